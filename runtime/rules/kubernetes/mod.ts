/**
 * What every Kubernetes object has: shapes, conditions, selectors, verdicts.
 *
 * - `conditions.ts`: Conditions as kstatus and kubectl understand them
 * - `file-name.ts`: Names of objects as parts of a path, of files and of the API, in one place, which refuses what would lead elsewhere
 * - `global-pull-secret.ts`: Names of the global pull secret system, as HyperShift and its users know them
 * - `hosted-clusters.ts`: What is said of hosted clusters
 * - `hypershift-operators.ts`: Which objects HyperShift's operators write
 * - `immutable-field.ts`: What to say of a field that the API server does not let anybody change
 * - `label-example.ts`: Labels that a selector selects, for a pod that is made up to try something
 * - `label-selector.ts`: Label selectors as the API server reads them
 * - `object-names.ts`: Which texts can be names of objects
 * - `object.ts`: Kubernetes objects as raw JSON
 * - `pod-owner.ts`: Who makes a pod again that was evicted
 * - `pod-template.ts`: Containers of what has a template of pods, as a cluster or a folder has them
 * - `pull-status.ts`: `PullStatus` (pullwright.dev/v1alpha1)
 * - `shape.ts`: Whether a value has the fields and types that its kind declares
 * - `shards.ts`: How several replicas of the reconciler divide the hosted clusters
 *
 * @module
 */
export {};
