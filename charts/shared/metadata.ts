/**
 * Metadata that every rendered object carries.
 *
 * Source of the rule: the recommended labels `app.kubernetes.io/*`. The selector subset never holds a version, because a
 * selector cannot change.
 */
import type { KubeObject, ObjectMeta } from '../../runtime/rules/kubernetes/object.ts';
import { VERSION } from '../../runtime/rules/version.ts';
import { kubernetesObject } from './kubernetes.ts';

/** Namespace of our own pods unless the fleet says otherwise. */
export const OWN_NAMESPACE = 'pullwright-system';

/** Of what makes a GitOps tool sync a cluster: the cluster's name in the fleet. */
export const SYNCED_CLUSTER_LABEL = 'pullwright.dev/cluster';

/** Who keeps an object true: `pullwright` in git, `pullwright-<reconciler>` at run time. */
export interface LabelInput {
  /** What it is: `global-pull-secret-syncer`, `reconciler`. */
  readonly name: string;
  /** Which system it serves: `global-pull-secret`. */
  readonly component: string;
  /** @default {'pullwright'} */
  readonly managedBy?: string;
}

/** Labels for `metadata.labels` of an object. Not for pod templates: the version would roll the pods a second time. */
export function labels(input: LabelInput): Readonly<Record<string, string>> {
  return {
    ...selectorLabels(input),
    'app.kubernetes.io/part-of': 'pullwright',
    'app.kubernetes.io/managed-by': input.managedBy ?? 'pullwright',
    'app.kubernetes.io/version': VERSION,
  };
}

/** The labels that selectors and pod templates use: they never change between versions. */
export function selectorLabels(input: LabelInput): Readonly<Record<string, string>> {
  return { 'app.kubernetes.io/name': input.name, 'app.kubernetes.io/component': input.component };
}

/**
 * A Namespace, with the Pod Security level that its pods need.
 *
 * @example
 * ```ts
 * import { namespace } from './metadata.ts';
 * import assert from 'node:assert/strict';
 *
 * const own = namespace('pullwright-system', { podSecurity: 'restricted' });
 * assert.equal(own.metadata.labels?.['pod-security.kubernetes.io/enforce'], 'restricted');
 * ```
 */
export function namespace(
  name: string,
  options: {
    readonly podSecurity: 'restricted' | 'baseline' | 'privileged';
    readonly labels?: Readonly<Record<string, string>>;
  },
): KubeObject {
  const all = {
    ...labels({ name, component: 'namespace' }),
    'pod-security.kubernetes.io/enforce': options.podSecurity,
    ...options.labels,
  };
  return kubernetesObject('Namespace', { name, labels: all }, {});
}

/**
 * A Namespace that belongs to the platform and is only rendered so that a first apply finds it: nothing of it is ours, and no
 * GitOps tool may remove it.
 */
export function namespaceReference(name: string, marks?: Readonly<Record<string, string>>): KubeObject {
  const annotations = {
    'argocd.argoproj.io/sync-options': 'Prune=false,Delete=false',
    'kustomize.toolkit.fluxcd.io/prune': 'disabled',
  };
  const labelled = marks === undefined ? {} : { labels: marks };
  return kubernetesObject('Namespace', { name, ...labelled, annotations }, {});
}

/** A ServiceAccount that mounts no token by itself: pods that need one ask for it. */
export function serviceAccount(metadata: ObjectMeta): KubeObject {
  return kubernetesObject('ServiceAccount', metadata, { automountServiceAccountToken: false });
}

/** A ConfigMap of text files. */
export function configMap(metadata: ObjectMeta, data: Readonly<Record<string, string>>): KubeObject {
  return kubernetesObject('ConfigMap', metadata, { data });
}
