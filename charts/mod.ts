/**
 * Pullwright as a library of cdk8s constructs and typed objects.
 *
 * Whole fleets: `readFleet`, `renderFleet`, `writeTree`. Charts of one's own: the constructs, then
 * `renderTree(chart.toJson())`. Objects without cdk8s: the functions of `charts/<system>/objects.ts`.
 */
export { clusterChart, type RenderedCluster, renderCluster, renderFleet } from './app.ts';
export { type NamespaceAccess, namespaceAccess, nodeAccess } from './credential-provider/access.ts';
export { CredentialProvider, type CredentialProviderProps } from './credential-provider/chart.ts';
export { credentialProviderConfig, credentialProviderCrd } from './credential-provider/crd.ts';
export { defaultFleet } from './default-fleet.ts';
export {
  defineFleet,
  type Fleet,
  type FleetCluster,
  type FleetInput,
  parseFleet,
  readFleet,
} from './fleet.ts';
export { fleetJsonSchema, fleetSchemaText } from './fleet-json-schema.ts';
export { FleetError, type FleetProblem, type LocatedProblem } from './fleet-problems.ts';
export type { ClusterInput, GitOpsInput } from './fleet-schema.ts';
export { ArgoApplication, ArgoHealth, FluxKustomization, FluxSource } from './gitops/chart.ts';
export { GlobalPullSecret, type GlobalPullSecretProps } from './global-pull-secret/chart.ts';
export { renderChart } from './helm.ts';
export { renderBundle } from './olm/bundle.ts';
export { type ManifestTree, pathOf, renderTree, yamlOf } from './output.ts';
export { compareTree, type TreeDifference, writeTree } from './output-files.ts';
export { PullSecretAdapter } from './pull-secret-adapter/chart.ts';
export { PullSecretInjection, type PullSecretInjectionProps } from './pull-secret-injection/chart.ts';
export { Reconciler, type ReconcilerProps } from './reconciler.ts';
export { lintMirrorSets, MirrorSets, type MirrorSetsProps } from './registry-overrides/chart.ts';
export type { MirrorSet, MirrorSetEntry } from './registry-overrides/mirror-objects.ts';
export { type CrdInput, crd, structuralSchema } from './shared/crd.ts';
export { ObjectGroup } from './shared/object-group.ts';
export { PullSecret, type PullSecretProps } from './shared/pull-secret.ts';
export { pullStatusCrd } from './shared/pull-status.ts';
export type { SecretReference, SecretSource } from './shared/secret-source.ts';
export type { ChartSystem, ClusterContext } from './shared/system.ts';
export { SYSTEMS } from './systems.ts';
export { Verify, type VerifyProps } from './verify/chart.ts';
