/**
 * Plans an uninstall: which objects are removed, in which order, and which are kept. Pure.
 *
 * Source of the order: requirement "CRIOCredentialProviderConfig" ("Upgrade / Downgrade Strategy"): custom resources first, then
 * the objects created from them, and the definitions last. The programs are stopped before, because they would create objects
 * again. Nodes are cleaned up while their Secrets still exist, so that a change in progress can finish.
 */
import { describeObject, type KubeObject } from '../../core/kubernetes/object.ts';
import { recordsIn, valueAt } from '../../core/record.ts';
import { CREDENTIAL_PROVIDER } from '../../credential-provider/platform.ts';
import { OWNER_LABEL } from '../../engine/contract.ts';

// Which GitOps tool delivers an object, from the tool's labels and annotations.

/** Syncs an object: an Argo CD Application or a Flux Kustomization. */
export interface Deliverer {
  readonly tool: 'Argo CD Application' | 'Flux Kustomization';
  readonly name: string;
  /** Undefined if the mark does not contain it. */
  readonly namespace?: string;
}

/** Returns the deliverer: Argo CD sets a label or an annotation, Flux sets labels. Undefined without them. */
export function delivererOf({ metadata }: KubeObject): Deliverer | undefined {
  const { labels = {}, annotations = {} } = metadata;
  const flux = labels['kustomize.toolkit.fluxcd.io/name'];
  if (flux !== undefined) {
    const namespace = labels['kustomize.toolkit.fluxcd.io/namespace'];
    return { tool: 'Flux Kustomization', name: flux, ...(namespace === undefined ? {} : { namespace }) };
  }
  const argo =
    annotations['argocd.argoproj.io/tracking-id'] ??
    labels['argocd.argoproj.io/instance'] ??
    labels['app.kubernetes.io/instance'];
  if (typeof argo !== 'string') return undefined;
  // An Application outside Argo CD's own namespace is written `<namespace>_<name>`. No Kubernetes name contains `_`.
  const [first = '', second] = (argo.split(':')[0] ?? '').split('_');
  return second === undefined
    ? { tool: 'Argo CD Application', name: first }
    : { tool: 'Argo CD Application', name: second, namespace: first };
}

/** `Flux Kustomization "prod"` */
export function delivererText({ tool, name }: Deliverer): string {
  return `${tool} "${name}"`;
}

export const STAGES = [
  'programs',
  'policies',
  'custom resources',
  'machine configs',
  'nodes',
  'computed objects',
  'rendered objects',
  'definitions',
  'namespaces',
] as const;
export type StageName = (typeof STAGES)[number];

/** What to do with one object. `release` releases the fields that we applied to an object of another owner. */
export type UninstallRemoval = {
  readonly object: KubeObject;
  readonly do: 'delete' | 'leave-nodes' | 'release';
  /** Field managers, for `release`. */
  readonly managers?: readonly string[];
};

export interface Stage {
  readonly name: StageName;
  readonly removals: readonly UninstallRemoval[];
}

/** An object that is not removed, with the reason. */
export interface Kept {
  readonly object: KubeObject;
  readonly reason: string;
}

export interface UninstallPlan {
  /** In order; stages without an object are omitted. */
  readonly stages: readonly Stage[];
  readonly kept: readonly Kept[];
  /** Objects with the mark of a GitOps tool, and the deliverer that would create them again. */
  readonly delivered: readonly { readonly object: KubeObject; readonly by: Deliverer }[];
}

export interface UninstallOptions {
  /** Keep Secrets and ConfigMaps that we computed. @default {false} */
  readonly 'keep-secrets'?: boolean;
  /** Namespaces that contain an object of another owner, with its name. @default none */
  readonly inUse?: ReadonlyMap<string, string>;
  /** Delete the DaemonSets without waiting for the nodes to be cleaned up. @default {false} */
  readonly 'skip-nodes'?: boolean;
}

export const PART_OF = 'app.kubernetes.io/part-of';
const OURS = 'pullwright';
const POLICIES: readonly string[] = [
  'MutatingWebhookConfiguration',
  'ValidatingAdmissionPolicyBinding',
  'ValidatingAdmissionPolicy',
  'MutatingAdmissionPolicyBinding',
  'MutatingAdmissionPolicy',
];
const REPORTING: readonly string[] = [
  'PullSecretProfile',
  'PullSecretGrant',
  'PullStatus',
  CREDENTIAL_PROVIDER.kind,
];
const DATA: readonly string[] = ['Secret', 'ConfigMap'];
/** Kinds of other projects that we render to create a Secret. The Secret belongs to the tenant, so they are kept. */
const FOREIGN_KINDS: readonly string[] = ['ExternalSecret', 'SealedSecret'];

/** Plans the removal of `objects`, which are all objects of the cluster that could be ours. */
export function planUninstall(objects: readonly KubeObject[], options: UninstallOptions = {}): UninstallPlan {
  const isProviderOurs = objects.some(makesProvider);
  const judged = objects.flatMap((object) => judge(object, { ...options, isProviderOurs, objects }) ?? []);
  const removed = judged.filter((one) => 'stage' in one);
  const stages = STAGES.map((name): Stage => {
    const own = removed.filter(({ stage }) => stage === name);
    return { name, removals: own.map(({ removal }) => removal).sort(byOrder) };
  });
  return {
    stages: stages.filter(({ removals }) => removals.length > 0),
    kept: judged.filter((one) => 'reason' in one),
    delivered: removed.flatMap(({ removal: { object, do: what } }) => {
      const by = what === 'release' ? undefined : delivererOf(object);
      return by === undefined ? [] : [{ object, by }];
    }),
  };
}

interface Surroundings extends UninstallOptions {
  readonly isProviderOurs: boolean;
  readonly objects: readonly KubeObject[];
}

type Judged = { readonly stage: StageName; readonly removal: UninstallRemoval } | Kept;

/** Undefined for an object that neither is ours nor has fields of ours. */
function judge(object: KubeObject, around: Surroundings): Judged | undefined {
  if (!isOurs(object)) {
    const managers = managersToRelease(object);
    if (managers.length === 0) return undefined;
    return { stage: 'computed objects', removal: { object, do: 'release', managers } };
  }
  const reason = reasonToKeep(object, around);
  if (reason !== undefined) return { object, reason };
  const stage = stageOf(object);
  const leaves = stage === 'nodes' && around['skip-nodes'] !== true;
  return { stage, removal: { object, do: leaves ? 'leave-nodes' : 'delete' } };
}

function isOurs({ kind, metadata }: KubeObject): boolean {
  const { labels } = metadata;
  return (
    labels?.[OWNER_LABEL] !== undefined ||
    labels?.[PART_OF] === OURS ||
    REPORTING.includes(kind) ||
    NAMED.includes(`${kind}/${metadata.name}`)
  );
}

/** Objects with the same name as in the platform's own installation, which therefore have none of our labels. */
const NAMED: readonly string[] = ['PrometheusRule/pullwright-credential-provider'];

function stageOf({ kind, metadata }: KubeObject): StageName {
  const owner = metadata.labels?.[OWNER_LABEL];
  if (kind === 'CustomResourceDefinition') return 'definitions';
  if (kind === 'Namespace') return 'namespaces';
  if (['Deployment', 'CronJob'].includes(kind)) return 'programs';
  if (POLICIES.includes(kind)) return 'policies';
  if (REPORTING.includes(kind)) return 'custom resources';
  if (kind === 'DaemonSet') return 'nodes';
  if (kind === 'MachineConfig' || (kind === 'ConfigMap' && owner === 'credential-provider'))
    return 'machine configs';
  return owner === undefined ? 'rendered objects' : 'computed objects';
}

function reasonToKeep(object: KubeObject, around: Surroundings): string | undefined {
  const { kind, metadata } = object;
  if (kind === CREDENTIAL_PROVIDER.kind && !around.isProviderOurs)
    return 'the Machine Config Operator manages it';
  if (kind === 'CustomResourceDefinition' && metadata.name.startsWith('sidecarsets.'))
    return 'its objects have other owners; delete it when they are no longer needed';
  const operator = platformOperator(object);
  if (operator !== undefined) return `the ${operator} manages it`;
  const holds = kind === 'Namespace' ? around.inUse?.get(metadata.name) : undefined;
  if (holds !== undefined) return `it contains "${holds}"`;
  if (FOREIGN_KINDS.includes(kind)) return 'its Secret belongs to the tenant';
  const isData = metadata.labels?.[OWNER_LABEL] !== undefined && DATA.includes(kind);
  return isData ? reasonToKeepData(object, around) : undefined;
}

/** The OpenShift operator that owns the object. If we applied fields to it, it has our label but is not ours. */
function platformOperator({ metadata }: KubeObject): string | undefined {
  const managers = new Set(metadata.managedFields?.map(({ manager }) => manager));
  return Object.entries(OPERATORS).find(([manager]) => managers.has(manager))?.[1];
}

const OPERATORS: Readonly<Record<string, string>> = {
  'cluster-version-operator': 'Cluster Version Operator',
  'machine-config-operator': 'Machine Config Operator',
};

/** For Secrets and ConfigMaps that we computed. */
function reasonToKeepData(object: KubeObject, around: Surroundings): string | undefined {
  if (stageOf(object) === 'computed objects')
    return around['keep-secrets'] === true ? '--keep-secrets is set' : undefined;
  const pool = referringPool(object, around.objects);
  return pool === undefined
    ? undefined
    : `NodePool "${pool}" references it: remove it from spec.config there, then run this again`;
}

/** Whether the object proves that we, not the platform, manage the credential provider of this cluster. */
function makesProvider({ kind, metadata }: KubeObject): boolean {
  const { labels, name } = metadata;
  if (kind === 'MachineConfig' || kind === 'ConfigMap')
    return labels?.[OWNER_LABEL] === 'credential-provider';
  if (kind === 'DaemonSet') return name === 'credential-provider-installer';
  return (
    kind === 'CustomResourceDefinition' &&
    name === `${CREDENTIAL_PROVIDER.plural}.${CREDENTIAL_PROVIDER.group}` &&
    labels?.[PART_OF] === OURS
  );
}

function referringPool(configMap: KubeObject, objects: readonly KubeObject[]): string | undefined {
  const pool = objects.find(
    ({ kind, metadata, spec }) =>
      kind === 'NodePool' &&
      metadata.namespace === configMap.metadata.namespace &&
      recordsIn(valueAt(spec, 'config')).some(({ name }) => name === configMap.metadata.name),
  );
  return pool?.metadata.name;
}

function managersToRelease({ metadata }: KubeObject): readonly string[] {
  const ours = (metadata.managedFields ?? []).filter(
    ({ manager, operation, subresource }) =>
      manager?.startsWith('pullwright-') === true && operation === 'Apply' && (subresource ?? '') === '',
  );
  return [...new Set(ours.map(({ manager }) => manager ?? ''))];
}

/** Deployments first, then bindings before their policies, so that no policy is half in force; otherwise by name. */
function byOrder(a: UninstallRemoval, b: UninstallRemoval): number {
  const rank = ({ object: { kind } }: UninstallRemoval): number => {
    if (kind === 'Deployment') return 0;
    if (kind === 'MutatingWebhookConfiguration' || kind.endsWith('Binding')) return 1;
    return 2;
  };
  return rank(a) - rank(b) || (describeObject(a.object) < describeObject(b.object) ? -1 : 1);
}
