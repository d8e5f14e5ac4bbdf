/** What decides about a removal or a takeover besides the objects: the release payload, the platform, the confirmations. */
import { createHash } from 'node:crypto';
import { parseImageReference } from '../../core/image-reference.ts';
import {
  HOSTED_CLUSTER,
  isOperator,
  isOwnershipUnknown,
  GLOBAL_PULL_SECRET as NAMES,
  OWNERSHIP_UNKNOWN,
  type OwnershipMode,
  observedIn,
  operatorOf,
} from '../../core/kubernetes/hypershift.ts';
import { describeObject, type KubeObject } from '../../core/kubernetes/object.ts';
import { type EntryStatus, PULL_STATUS_CRD_NAME } from '../../core/kubernetes/pull-status.ts';
import { pullStatusCrd } from '../../core/kubernetes/pull-status-kind.ts';
import { recordOf, textOf, valueAt } from '../../core/record.ts';
import { type Redacted, redact, reveal } from '../../core/redacted.ts';
import { refOf } from '../../engine/changes.ts';
import {
  type ApplyObject,
  HOSTED_CLUSTER_NAME,
  HOSTED_CLUSTER_NAMESPACE,
  OWNER_LABEL,
  type Reader,
  type ReconcileError,
  type Ref,
  type Result,
  type Watch,
} from '../../engine/contract.ts';
import { pullStatusRef } from '../../engine/pull-status.ts';
import { managersOf } from '../../kube/drift.ts';
import {
  AGENT_POLICY_NAME,
  additionalSecretPolicies,
  agentBounds,
  agentDaemonSet,
  agentRbac,
  POLICY_NAME,
  upstreamDaemonSet,
} from '../daemon-set.ts';
import { configHash, ELIGIBLE_PLATFORMS } from '../eligibility.ts';
import type { GlobalPullSecretOptions } from '../options.ts';
import {
  CONFIRM_REMOVAL,
  confirmedRemovals,
  type PendingRemoval,
  type RemovalOptions,
} from '../removal-guard.ts';
import type { RemovalContext } from './plan.ts';

// `mode: own` beside objects of the same names that others made: all of them are adopted, or none. They are reported
// first, and adopted when a person confirms these very objects. Pure.
// Where HyperShift's operator runs on AWS or Azure there is no way: it has no switch for these objects, watches every Secret of
// `kube-system`, and writes them again with the next change (`globalps` of HyperShift).

/** On the HostedCluster, or on the platform's Secret: the codes of the objects that may be taken, with commas between them. */
const TAKEOVER_ANNOTATION = 'pullwright.dev/confirm-takeover';

/** On a foreign Secret: it may be adopted, whatever the mode. */
const ADOPT_ANNOTATION = 'pullwright.dev/adopt';

/** What decides about a takeover besides the objects. */
interface TakeoverContext {
  /** `spec.platform.type` of the HostedCluster, where there is one. */
  readonly platform: string | undefined;
  /** Values of {@link TAKEOVER_ANNOTATION}. */
  readonly confirmed: readonly string[];
}

/** Gives why nothing is written with `mode: own`; undefined when all is ours, or was confirmed. */
function heldTakeover(
  objects: readonly (KubeObject | undefined)[],
  { platform, confirmed }: TakeoverContext,
): ManagedExternally | undefined {
  const others = objects.filter((object) => object !== undefined).filter((object) => !isHeldByUs(object));
  if (others.length === 0) return undefined;
  const operator = others.map(operatorOf).find((one) => one !== undefined);
  if (operator !== undefined && platform !== undefined && ELIGIBLE_PLATFORMS.includes(platform))
    return { reason: 'TakeoverImpossible', message: impossible(operator, platform) };
  const codes = others.map(codeOf);
  const allowed = new Set(confirmed.flatMap((text) => text.split(',').map((code) => code.trim())));
  if (codes.every((code) => allowed.has(code))) return undefined;
  return { reason: 'TakeoverHeld', message: planText(others, codes) };
}

/** Whether a person allowed us to adopt a foreign object. */
export function isGivenToUs(object: KubeObject): boolean {
  return object.metadata.annotations?.[ADOPT_ANNOTATION] === 'true';
}

/** Whether a person, or an earlier reconcile, gave us the object, and its content is still ours. */
function isHeldByUs(object: KubeObject): boolean {
  if (isGivenToUs(object)) return true;
  const labels = object.metadata.labels ?? {};
  if (labels[OWNER_LABEL] === undefined && labels['app.kubernetes.io/part-of'] !== 'pullwright') return false;
  const writers = managersOf(object, contentOf(object));
  return writers.length === 0 || writers.some(({ manager }) => !isOperator(manager ?? ''));
}

/** The field that each creator of the object sets to a value of its own. */
function contentOf({ kind }: KubeObject): readonly string[] {
  return kind === 'DaemonSet'
    ? ['spec', 'template', 'spec', 'containers', `k:{"name":"${NAMES.syncer}"}`, 'image']
    : ['data', NAMES.dataKey];
}

/** Of the very state that was shown: what is written again meanwhile has to be confirmed again. */
function codeOf(object: KubeObject): string {
  const { uid, generation, resourceVersion } = object.metadata;
  return createHash('sha256')
    .update(JSON.stringify([nameOf(object), uid, generation ?? resourceVersion]))
    .digest('hex')
    .slice(0, 8);
}

function planText(objects: readonly KubeObject[], codes: readonly string[]): string {
  const steps = objects.map((object) => `${nameOf(object)} (of ${makerOf(object)}) ${stepOf(object)}`);
  return `taking over would do this: ${steps.join('; ')}. Nothing is written until the annotation ${TAKEOVER_ANNOTATION}: "${codes.join(',')}" on the HostedCluster, or on the platform's Secret, confirms all of it`;
}

function nameOf({ kind, metadata }: KubeObject): string {
  return describeObject({ kind, namespace: metadata.namespace, name: metadata.name });
}

function makerOf(object: KubeObject): string {
  const [first] = managersOf(object, contentOf(object));
  return operatorOf(object) ?? first?.manager ?? 'an unknown manager';
}

function stepOf({ kind, metadata }: KubeObject): string {
  if (kind === 'DaemonSet') return 'is deleted and created again, so that each node changes its agent once';
  return metadata.name === NAMES.global
    ? 'gets the merge, or is deleted while there is nothing to merge'
    : "gets the platform's pull secret";
}

function impossible(operator: string, platform: string): string {
  return `${operator} makes these objects on ${platform} and would write them again with the next change of any Secret in ${NAMES.namespace}; there is no way to take them over. Set mode to "auto" or "observe"; what its merge does not take can reach pods by the system credential-provider`;
}

const CLUSTER = { role: 'management', ...HOSTED_CLUSTER } as const;
const CLUSTER_VERSION = {
  role: 'hosted',
  apiVersion: 'config.openshift.io/v1',
  kind: 'ClusterVersion',
  name: 'version',
} as const;

/** About the copy. */
const REPORT: Ref = pullStatusRef('hosted', {
  kind: 'Secret',
  namespace: NAMES.namespace,
  name: NAMES.original,
});

export const REMOVAL_READS: readonly Watch[] = [
  { ...CLUSTER, namespace: HOSTED_CLUSTER_NAMESPACE, name: HOSTED_CLUSTER_NAME, optional: true },
  { ...CLUSTER_VERSION, optional: true },
];

/** Gathers it from the world. */
export function removalContext(reader: Reader, options: RemovalOptions = {}): RemovalContext {
  const held = heldBefore(reader);
  return {
    release: releaseRepository(hostedClusterOf(reader), reader.get(CLUSTER_VERSION)),
    confirmed: confirmations(reader, CONFIRM_REMOVAL).flatMap(confirmedRemovals),
    ...(held === undefined ? {} : { held }),
    options,
    now: reader.now,
  };
}

/** What decides about taking over the objects of others. */
export function takeoverContext(reader: Reader): TakeoverContext {
  const platform = textOf(valueAt(hostedClusterOf(reader)?.spec, 'platform.type')) || undefined;
  return { platform, confirmed: confirmations(reader, TAKEOVER_ANNOTATION) };
}

function hostedClusterOf(reader: Reader): KubeObject | undefined {
  const { hostedCluster } = reader.scope;
  return hostedCluster === undefined ? undefined : reader.get({ ...CLUSTER, ...hostedCluster });
}

/** Values of an annotation where a person can confirm: on the HostedCluster, or on the platform's Secret. */
export function confirmations(reader: Reader, annotation: string): readonly string[] {
  const namespace = reader.scope.controlPlaneNamespace;
  const secret = reader.get({
    role: 'management',
    apiVersion: 'v1',
    kind: 'Secret',
    namespace,
    name: NAMES.platform,
  });
  return [hostedClusterOf(reader), secret]
    .map((object) => object?.metadata.annotations?.[annotation])
    .filter((value) => typeof value === 'string');
}

/** Where a person can do something about the platform's pull secret: the HostedCluster, or the Secret itself. */
export function platformOwner({ scope }: Reader): Ref {
  if (scope.hostedCluster !== undefined) return { ...CLUSTER, ...scope.hostedCluster };
  const { controlPlaneNamespace: namespace } = scope;
  return { role: 'management', apiVersion: 'v1', kind: 'Secret', namespace, name: NAMES.platform };
}

function releaseRepository(
  cluster: KubeObject | undefined,
  version: KubeObject | undefined,
): string | undefined {
  const image = valueAt(cluster?.spec, 'release.image') ?? valueAt(version?.status, 'desired.image');
  const parsed = typeof image === 'string' ? parseImageReference(image) : undefined;
  return parsed?.ok ? parsed.reference.repository : undefined;
}

/**
 * On the copy, beside the entries that stay: what is held, and since when. Deleting the report does not lose it.
 */
export const HELD_ANNOTATION = 'pullwright.dev/held-removal';

/** Value of {@link HELD_ANNOTATION}. */
export function heldAnnotation({ hash, since }: PendingRemoval): string {
  return `${hash} ${since}`;
}

/** By the copy; where it was deleted, by the report. */
function heldBefore(reader: Reader): RemovalContext['held'] {
  const copy = reader.get(secretRef(NAMES.original))?.metadata.annotations?.[HELD_ANNOTATION];
  const { heldRemoval, heldSince } = recordOf(valueAt(reader.get(REPORT)?.status, 'summary'));
  const [hash, since] = typeof copy === 'string' ? copy.split(' ') : [heldRemoval, heldSince];
  return typeof hash !== 'string' || typeof since !== 'string' || Number.isNaN(Date.parse(since))
    ? undefined
    : { hash, since };
}

// What others left under the names of this system: what is removed with a takeover, and what only a person can clear away. Pure.

/**
 * Objects of others that go. A DaemonSet is not taken over in place: server-side apply would leave the arguments and the volumes of
 * its maker in it.
 *
 * @param global the merge, when there is nothing to merge
 * @param takes whether a person said that all of it is ours
 */
export function removals(
  global: KubeObject | undefined,
  daemonSet: KubeObject | undefined,
  takes: boolean,
): NonNullable<Result['remove']> {
  const merge = global !== undefined && (takes || isGivenToUs(global)) ? [global] : [];
  const workload = takes && daemonSet !== undefined && !isHeldByUs(daemonSet) ? [daemonSet] : [];
  return [...merge, ...workload].flatMap((object) => {
    const { uid } = object.metadata;
    return uid === undefined ? [] : [{ ...refOf('hosted', object), uid }];
  });
}

/** A foreign merge that stays although there is nothing to merge: nodes prefer it to the platform's pull secret. */
export function foreignMerge(global: KubeObject | undefined): readonly ReconcileError[] {
  if (global === undefined || isHeldByUs(global)) return [];
  return [
    {
      retryPolicy: 'terminal',
      code: 'ForeignObject',
      message: `Cannot remove "Secret/${NAMES.namespace}/${NAMES.global}": it was not made by Pullwright, and nodes use it instead of the platform's pull secret`,
      hint: 'Delete it, or annotate it with pullwright.dev/adopt: "true"',
      regarding: refOf('hosted', global),
    },
  ];
}

/** A DaemonSet with the marks of a rendered tree, where git is not the one to bring it. */
export function gitVerdicts(
  daemonSet: KubeObject | undefined,
  observed: ManagedExternally | undefined,
  delivery: 'reconciler' | 'gitops',
): readonly EntryStatus[] {
  const labels = daemonSet?.metadata.labels ?? {};
  if (labels['app.kubernetes.io/part-of'] !== 'pullwright' || labels[OWNER_LABEL] !== undefined) return [];
  const subject = `DaemonSet ${NAMES.namespace}/${NAMES.syncer}`;
  const says = (reason: string, message: string): EntryStatus => ({
    subject,
    verdict: 'Warning',
    reason,
    message,
  });
  if (observed?.reason === 'Observing')
    return [
      says(
        'GitOverwrites',
        'has the marks of a rendered tree, and HyperShift makes it too: where a GitOps tool still applies it, set mode "observe" in the fleet, so that the two do not overwrite each other',
      ),
    ];
  if (delivery === 'gitops' || observed !== undefined) return [];
  return [
    says(
      'LeftInGit',
      'was applied from git, where it is no longer rendered, so that it never changes: let the GitOps tool prune it, or delete it, and it is created again',
    ),
  ];
}

// Whether HyperShift's own operator manages any of these objects, so that we watch and write nothing.

/** Who writes the objects instead of us. */
export interface ManagedExternally {
  readonly reason: 'Observing' | 'OwnershipUnknown' | 'TakeoverHeld' | 'TakeoverImpossible';
  /** A sentence without its end. */
  readonly message: string;
}

/**
 * Gives who writes instead, or undefined when the objects are ours to write: they are one unit, so one is enough.
 *
 * Without managedFields, which `kubectl get -o yaml` omits, the owner of an object that an operator may manage is unknown.
 */
export function managedElsewhere(
  mode: OwnershipMode,
  objects: readonly (KubeObject | undefined)[],
  takeover: TakeoverContext,
): ManagedExternally | undefined {
  if (mode === 'own') return heldTakeover(objects, takeover);
  const operator = objects.map((object) => observedIn(mode, object)).find((one) => one !== undefined);
  if (operator !== undefined)
    return { reason: 'Observing', message: `${operator} manages these objects; nothing is written` };
  const unknown = objects.find((object) => isOwnershipUnknown(mode, object));
  if (unknown === undefined) return undefined;
  const { kind, metadata } = unknown;
  const name = describeObject({ kind, namespace: metadata.namespace, name: metadata.name });
  return {
    reason: 'OwnershipUnknown',
    message: `${name} ${OWNERSHIP_UNKNOWN}`,
  };
}

// The node agent's objects in the hosted cluster: applied by us, or expected from git.

const NAMESPACES: readonly string[] = [NAMES.namespace, NAMES.configNamespace];

/** An object of the cluster whose nodes get the pull secret. */
function hosted(apiVersion: string, kind: string, name: string, namespace?: string): Ref {
  return { role: 'hosted', apiVersion, kind, ...(namespace === undefined ? {} : { namespace }), name };
}

/** A Secret of the system there. */
export function secretRef(name: string): Ref {
  return hosted('v1', 'Secret', name, NAMES.namespace);
}

export const DAEMON_SET: Ref = hosted('apps/v1', 'DaemonSet', NAMES.syncer, NAMES.namespace);
const CRD: Ref = hosted('apiextensions.k8s.io/v1', 'CustomResourceDefinition', PULL_STATUS_CRD_NAME);
const RBAC = 'rbac.authorization.k8s.io/v1';

/** Never pruned: with the kind go all reports of it. */
export const AGENT_KEPT: readonly Ref[] = [CRD];

export const AGENT_READS: readonly Watch[] = [
  CRD,
  DAEMON_SET,
  hosted('v1', 'ServiceAccount', NAMES.syncer, NAMES.namespace),
  hosted('coordination.k8s.io/v1', 'Lease', NAMES.turns, NAMES.namespace),
  ...[POLICY_NAME, `${POLICY_NAME}-deny`, AGENT_POLICY_NAME].flatMap((name) =>
    ['ValidatingAdmissionPolicy', 'ValidatingAdmissionPolicyBinding'].map((kind) =>
      hosted('admissionregistration.k8s.io/v1', kind, name),
    ),
  ),
  ...['ClusterRole', 'ClusterRoleBinding'].map((kind) => hosted(RBAC, kind, NAMES.syncer)),
  ...NAMESPACES.flatMap((namespace) => [
    hosted('v1', 'Namespace', namespace),
    hosted(RBAC, 'Role', NAMES.syncer, namespace),
    hosted(RBAC, 'RoleBinding', NAMES.syncer, namespace),
  ]),
];

let crd: ApplyObject['object'] | undefined;

/** The same for every cluster: rendered once, or a process of many spends half of its start on it. */
function reportCrd(): ApplyObject['object'] {
  crd ??= pullStatusCrd();
  return crd;
}

/** What the objects depend on. */
interface AgentState {
  /** Whether there is a merged secret. */
  readonly merged: boolean;
  /** Whether the platform's secret can be used: without it there is nothing to bring to nodes. */
  readonly usable: boolean;
  /** Base64 of what nodes should have; for the hash of upstream's shape. */
  readonly value: Redacted<string> | undefined;
}

/** Objects to apply with `delivery: reconciler`; none with `gitops`. */
export function agentObjects(
  reader: Reader,
  options: GlobalPullSecretOptions,
  state: AgentState,
): readonly ApplyObject[] {
  if (options.delivery === 'gitops') return [];
  const rbac = agentRbac(options.agent).filter(
    ({ metadata: { namespace } }) => namespace === undefined || hasNamespace(reader, namespace),
  );
  // Upstream's pods do not start before there is a secret to mount.
  const runs = options.agent.shape !== 'upstream' || state.value !== undefined;
  const workload = state.usable && runs ? [daemonSet(options, state)] : [];
  // In a cluster without GitOps nothing else installs the CRD of our reports.
  return [
    reportCrd(),
    ...rbac,
    ...agentBounds(options.agent),
    ...workload,
    ...additionalSecretPolicies(options.enforce),
  ]
    .filter((object) => !isFromGit(reader.get(refOf('hosted', object))))
    .map((object) => ({ role: 'hosted', object, ...(isAdoptable(object) ? { forceOwnership: true } : {}) }));
}

/**
 * Rendered by `synth` and applied by a GitOps tool, whatever our configuration says: one owner per object. A definition that
 * a person installed stays theirs too.
 */
function isFromGit(object: KubeObject | undefined): boolean {
  const labels = object?.metadata.labels;
  if (object?.kind === CRD.kind) return labels?.[OWNER_LABEL] === undefined;
  return labels?.['app.kubernetes.io/part-of'] === 'pullwright' && labels[OWNER_LABEL] === undefined;
}

/** Upstream's objects of these names have no marks; they are the same objects, so they are taken over. */
function isAdoptable(object: KubeObject): boolean {
  return ['DaemonSet', 'ServiceAccount', 'Role', 'RoleBinding'].includes(object.kind);
}

function daemonSet(options: GlobalPullSecretOptions, state: AgentState): KubeObject {
  if (options.agent.shape !== 'upstream' || state.value === undefined) return agentDaemonSet(options.agent);
  return upstreamDaemonSet(options.agent, {
    merged: state.merged,
    configHash: configHash(redact(Buffer.from(reveal(state.value), 'base64').toString('utf8'))),
  });
}

/** A plain Kubernetes cluster has no `openshift-config`. A folder without any Namespace says nothing about them. */
function hasNamespace(reader: Reader, name: string): boolean {
  const known = reader.list({ role: 'hosted', apiVersion: 'v1', kind: 'Namespace' });
  return (
    known.length === 0 ||
    known.some(
      (namespace) => namespace.metadata.name === name && namespace.metadata.deletionTimestamp === undefined,
    )
  );
}

/** With `delivery: gitops`, a DaemonSet that git did not bring is worth a word. */
export function missingAgent(reader: Reader, options: GlobalPullSecretOptions): readonly ReconcileError[] {
  if (options.delivery === 'reconciler' || reader.get(DAEMON_SET) !== undefined) return [];
  return [
    {
      retryPolicy: 'waiting',
      afterMs: 60_000,
      code: 'DaemonSetMissing',
      message: `Cannot sync pull secrets to nodes: DaemonSet/${NAMES.namespace}/${NAMES.syncer} not found, and a GitOps tool must apply it`,
      hint: 'Sync the rendered manifests, or choose delivery "reconciler"',
      regarding: DAEMON_SET,
    },
  ];
}
