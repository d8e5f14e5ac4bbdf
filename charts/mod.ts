/**
 * Pullwright as a library of cdk8s constructs and typed objects.
 *
 * Fleets: `readFleet`, `renderFleet`, `writeTree`. Custom charts: the constructs, then `renderTree(chart.toJson())`. Objects
 * without cdk8s: the functions of `runtime/<system>`.
 */

export { type CrdInput, crd, structuralSchema } from '../runtime/core/kubernetes/kind.ts';
export { pullStatusCrd } from '../runtime/core/kubernetes/pull-status-kind.ts';
export { namespaceAccess, nodeAccess } from '../runtime/credential-provider/access.ts';
export { credentialProviderConfig, credentialProviderCrd } from '../runtime/credential-provider/kind.ts';
export type { NamespaceAccess } from '../runtime/credential-provider/options.ts';
export { type SecretReference, type SecretSource } from '../runtime/global-pull-secret/secret-source.ts';
export {
  clusterChart,
  Reconciler,
  type ReconcilerProps,
  renderCluster,
  renderFleet,
} from './app.ts';
export { CredentialProvider, type CredentialProviderProps } from './credential-provider/chart.ts';
export { defaultFleet } from './default-fleet.ts';
export { defineFleet, type Fleet, type FleetCluster, parseFleet, readFleet } from './fleet.ts';
export { FleetError, type FleetProblem, type LocatedProblem } from './fleet-problems.ts';
export {
  type ClusterInput,
  type FleetInput,
  fleetJsonSchema,
  fleetSchemaText,
  type GitOpsInput,
} from './fleet-schema.ts';
export {
  ArgoApplication,
  ArgoHealth,
  FluxKustomization,
  FluxSource,
  type RenderedCluster,
} from './gitops/fleet.ts';
export { GlobalPullSecret, type GlobalPullSecretProps } from './global-pull-secret/chart.ts';
export { renderChart } from './helm.ts';
export { renderBundle } from './olm/bundle.ts';
export {
  compareTree,
  type ManifestTree,
  pathOf,
  renderTree,
  type TreeDifference,
  writeTree,
  yamlOf,
} from './output.ts';
export { PullSecretAdapter } from './pull-secret-adapter/chart.ts';
export { PullSecretInjection, type PullSecretInjectionProps } from './pull-secret-injection/chart.ts';
export {
  lintMirrorSets,
  type MirrorSet,
  type MirrorSetEntry,
  MirrorSets,
  type MirrorSetsProps,
} from './registry-overrides/chart.ts';
export { ObjectGroup, PullSecret, type PullSecretProps } from './shared/group.ts';
export { type ChartSystem, type ClusterContext } from './shared/system.ts';
export { SYSTEMS } from './systems.ts';
export { Verify, type VerifyProps } from './verify/chart.ts';
