/** Inputs of removal and takeover decisions (release payload, platform, confirmations), and ownership of the system's objects. */
import { createHash } from 'node:crypto';
import { parseImageReference } from '../../core/image-reference.ts';
import {
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
import { defined, recordOf, textOf, valueAt } from '../../core/record.ts';
import { type Redacted, redact, reveal } from '../../core/redacted.ts';
import { refOf } from '../../engine/changes.ts';
import {
  type ApplyObject,
  HOSTED_CLUSTER_READ,
  hostedClusterOf,
  hostedClusterRef,
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
import { CONFIRM_REMOVAL, confirmedRemovals, type RemovalOptions } from '../removal-guard.ts';
import type { RemovalContext } from './plan.ts';

// `mode: own` with existing foreign objects of the same names: all are adopted, or none. The reconciler reports them first and
// adopts them when an administrator confirms exactly these objects. Pure.
// On AWS and Azure, HyperShift's operator cannot be displaced: it has no switch for these objects, watches every Secret of
// `kube-system`, and rewrites them on the next change (`globalps` of HyperShift).

/** On the HostedCluster or the platform's Secret: comma-separated codes of the objects that may be adopted. */
const TAKEOVER_ANNOTATION = 'pullwright.dev/confirm-takeover';

/** On a foreign Secret: allows its adoption in any mode. */
const ADOPT_ANNOTATION = 'pullwright.dev/adopt';

/** Returns why `mode: own` writes nothing; undefined when all objects are ours or confirmed. */
function heldTakeover(
  objects: readonly (KubeObject | undefined)[],
  { platform, confirmed }: ReturnType<typeof takeoverContext>,
): ManagedExternally | undefined {
  const others = objects.filter((object) => object !== undefined).filter((object) => !isHeldByUs(object));
  if (others.length === 0) return undefined;
  const operator = others.map(operatorOf).find((one) => one !== undefined);
  if (operator !== undefined && ELIGIBLE_PLATFORMS.includes(platform))
    return { reason: 'TakeoverImpossible', message: impossible(operator, platform) };
  const codes = others.map(codeOf);
  const allowed = new Set(confirmed.flatMap((text) => text.split(',').map((code) => code.trim())));
  if (codes.every((code) => allowed.has(code))) return undefined;
  return { reason: 'TakeoverHeld', message: planText(others, codes) };
}

/** Whether an administrator allowed the adoption of a foreign object. */
export function isGivenToUs(object: KubeObject): boolean {
  return object.metadata.annotations?.[ADOPT_ANNOTATION] === 'true';
}

/** Whether we adopted or created the object, and no operator has overwritten its content. */
function isHeldByUs(object: KubeObject): boolean {
  if (isGivenToUs(object)) return true;
  const labels = object.metadata.labels ?? {};
  if (labels[OWNER_LABEL] === undefined && labels['app.kubernetes.io/part-of'] !== 'pullwright') return false;
  const writers = managersOf(object, contentOf(object));
  return writers.length === 0 || writers.some(({ manager }) => !isOperator(manager ?? ''));
}

/** Path of the field that every creator of the object sets. */
function contentOf({ kind }: KubeObject): readonly string[] {
  return kind === 'DaemonSet'
    ? ['spec', 'template', 'spec', 'containers', `k:{"name":"${NAMES.syncer}"}`, 'image']
    : ['data', NAMES.dataKey];
}

/** Code of the reported state of an object: a later change requires a new confirmation. */
function codeOf(object: KubeObject): string {
  const { uid, generation, resourceVersion } = object.metadata;
  return createHash('sha256')
    .update(JSON.stringify([describeObject(object), uid, generation ?? resourceVersion]))
    .digest('hex')
    .slice(0, 8);
}

function planText(objects: readonly KubeObject[], codes: readonly string[]): string {
  const steps = objects.map(
    (object) => `${describeObject(object)} (owner ${makerOf(object)}) ${stepOf(object)}`,
  );
  return `takeover plan: ${steps.join('; ')}. Nothing is written until the annotation ${TAKEOVER_ANNOTATION}: "${codes.join(',')}" on the HostedCluster, or on the platform's Secret, confirms the plan`;
}

function makerOf(object: KubeObject): string {
  const [first] = managersOf(object, contentOf(object));
  return operatorOf(object) ?? first?.manager ?? 'unknown';
}

function stepOf({ kind, metadata }: KubeObject): string {
  if (kind === 'DaemonSet') return 'is deleted and recreated, so that each node changes its agent once';
  return metadata.name === NAMES.global
    ? 'gets the merge, or is deleted when nothing is to be merged'
    : "gets the platform's pull secret";
}

function impossible(operator: string, platform: string): string {
  return `${operator} owns these objects on ${platform} and would overwrite them at the next change of any Secret in ${NAMES.namespace}; a takeover is not possible. Set mode to "auto" or "observe"; the system credential-provider can deliver the entries that its merge rejects`;
}

const CLUSTER_VERSION = {
  role: 'hosted',
  apiVersion: 'config.openshift.io/v1',
  kind: 'ClusterVersion',
  name: 'version',
} as const;

/** Reference to the PullStatus about a Secret of the system. */
export function secretReport(name: string): Ref {
  return pullStatusRef('hosted', { kind: 'Secret', namespace: NAMES.namespace, name });
}

export const REMOVAL_READS: readonly Watch[] = [HOSTED_CLUSTER_READ, { ...CLUSTER_VERSION, optional: true }];

/** Collects the inputs of a removal decision. */
export function removalContext(reader: Reader, options: RemovalOptions = {}): RemovalContext {
  return {
    release: releaseRepository(reader),
    confirmed: confirmations(reader, CONFIRM_REMOVAL).flatMap(confirmedRemovals),
    held: heldBefore(reader),
    options,
    now: reader.now,
  };
}

/** Collects the inputs of a takeover decision: the platform of the HostedCluster, if any, and the confirmations. */
export function takeoverContext(reader: Reader) {
  const platform = textOf(valueAt(hostedClusterOf(reader)?.spec, 'platform.type'));
  return { platform, confirmed: confirmations(reader, TAKEOVER_ANNOTATION) };
}

/** Values of an annotation on the HostedCluster and on the platform's Secret, where administrators confirm. */
export function confirmations(reader: Reader, annotation: string): readonly string[] {
  return [hostedClusterOf(reader), reader.get(platformSecret(reader.scope.controlPlaneNamespace))]
    .map((object) => object?.metadata.annotations?.[annotation])
    .filter((value) => typeof value === 'string');
}

/** The object in which an administrator can fix the platform's pull secret: the HostedCluster, or the Secret itself. */
export function platformOwner({ scope }: Reader): Ref {
  return hostedClusterRef(scope) ?? platformSecret(scope.controlPlaneNamespace);
}

/** Reference to the platform's pull secret. */
export function platformSecret(namespace: string): Ref {
  return { role: 'management', apiVersion: 'v1', kind: 'Secret', namespace, name: NAMES.platform };
}

function releaseRepository(reader: Reader): string | undefined {
  const image =
    valueAt(hostedClusterOf(reader)?.spec, 'release.image') ??
    valueAt(reader.get(CLUSTER_VERSION)?.status, 'desired.image');
  const parsed = parseImageReference(textOf(image));
  return parsed.ok ? parsed.reference.repository : undefined;
}

/** On the copy: `<hash> <start>` of the held removal. Survives deletion of the report. */
export const HELD_ANNOTATION = 'pullwright.dev/held-removal';

/** Reads the held removal from the copy, or from the report when the copy was deleted. */
function heldBefore(reader: Reader): RemovalContext['held'] {
  const copy = reader.get(secretRef(NAMES.original))?.metadata.annotations?.[HELD_ANNOTATION];
  const { heldRemoval, heldSince } = recordOf(
    valueAt(reader.get(secretReport(NAMES.original))?.status, 'summary'),
  );
  const [hash, since] = typeof copy === 'string' ? copy.split(' ') : [heldRemoval, heldSince];
  return typeof hash !== 'string' || typeof since !== 'string' || Number.isNaN(Date.parse(since))
    ? undefined
    : { hash, since };
}

// Foreign objects with the names of this system: removed by a takeover, or reported for an administrator to delete. Pure.

/**
 * Returns the foreign objects to remove. A DaemonSet is not adopted in place: server-side apply would keep the arguments and
 * volumes of its creator.
 *
 * @param global the merge, when there is nothing to merge
 * @param takes whether `mode: own` is in effect and confirmed
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

/** Reports a foreign merge that remains without an additional secret: nodes prefer it to the platform's pull secret. */
export function foreignMerge(global: KubeObject | undefined): readonly ReconcileError[] {
  if (global === undefined || isHeldByUs(global)) return [];
  return [
    {
      retryPolicy: 'terminal',
      code: 'ForeignObject',
      message: `Cannot remove "Secret/${NAMES.namespace}/${NAMES.global}": it was not created by Pullwright, and nodes use it instead of the platform's pull secret`,
      hint: 'Delete it, or annotate it with pullwright.dev/adopt: "true"',
      regarding: refOf('hosted', global),
    },
  ];
}

/** Warns about a DaemonSet with the labels of a rendered tree that GitOps should no longer deliver. */
export function gitVerdicts(
  daemonSet: KubeObject | undefined,
  observed: ManagedExternally | undefined,
  delivery: 'reconciler' | 'gitops',
): readonly EntryStatus[] {
  const labels = daemonSet?.metadata.labels ?? {};
  if (labels['app.kubernetes.io/part-of'] !== 'pullwright' || labels[OWNER_LABEL] !== undefined) return [];
  const subject = `DaemonSet ${NAMES.namespace}/${NAMES.syncer}`;
  if (observed?.reason === 'Observing') {
    const message =
      'has the labels of a rendered tree, and HyperShift manages it too: if a GitOps tool still applies it, set mode "observe" in the fleet, so that the two do not overwrite each other';
    return [{ subject, verdict: 'Warning', reason: 'GitOverwrites', message }];
  }
  if (delivery === 'gitops' || observed !== undefined) return [];
  const message =
    'is no longer rendered into git, so nothing updates it: prune it with the GitOps tool, or delete it, and the reconciler recreates it';
  return [{ subject, verdict: 'Warning', reason: 'LeftInGit', message }];
}

// Whether HyperShift's operator manages any of these objects, in which case the reconciler only observes.

/** Why another component manages the objects. */
export interface ManagedExternally {
  readonly reason: 'Observing' | 'OwnershipUnknown' | 'TakeoverHeld' | 'TakeoverImpossible';
  /** A clause without a period. */
  readonly message: string;
}

/**
 * Returns why the reconciler must not write, or undefined. The objects are one unit: one foreign object is enough.
 *
 * Without managedFields, which `kubectl get -o yaml` omits, the owner of an object that an operator may manage is unknown.
 */
export function managedElsewhere(
  mode: OwnershipMode,
  objects: readonly (KubeObject | undefined)[],
  takeover: ReturnType<typeof takeoverContext>,
): ManagedExternally | undefined {
  if (mode === 'own') return heldTakeover(objects, takeover);
  const operator = objects.map((object) => observedIn(mode, object)).find((one) => one !== undefined);
  if (operator !== undefined)
    return { reason: 'Observing', message: `${operator} manages these objects; nothing is written` };
  const unknown = objects.find((object) => isOwnershipUnknown(mode, object));
  if (unknown === undefined) return undefined;
  const name = describeObject(unknown);
  return { reason: 'OwnershipUnknown', message: `${name} ${OWNERSHIP_UNKNOWN}` };
}

// The node agent's objects in the hosted cluster: applied by the reconciler, or expected from git.

const NAMESPACES: readonly string[] = [NAMES.namespace, NAMES.configNamespace];

/** Reference to an object of the hosted cluster. */
function hosted(apiVersion: string, kind: string, name: string, namespace?: string): Ref {
  return { role: 'hosted', apiVersion, kind, ...defined({ namespace }), name };
}

/** Reference to a Secret of the system. */
export function secretRef(name: string): Ref {
  return hosted('v1', 'Secret', name, NAMES.namespace);
}

export const DAEMON_SET: Ref = hosted('apps/v1', 'DaemonSet', NAMES.syncer, NAMES.namespace);
const CRD: Ref = hosted('apiextensions.k8s.io/v1', 'CustomResourceDefinition', PULL_STATUS_CRD_NAME);
const RBAC = 'rbac.authorization.k8s.io/v1';

/** Never pruned: deleting the CRD deletes all reports. */
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

/** Cached: it is equal for every cluster, and rendering took half of the start of a process with many clusters. */
function reportCrd(): ApplyObject['object'] {
  crd ??= pullStatusCrd();
  return crd;
}

/** State that the objects depend on. */
interface AgentState {
  /** Whether the merged secret exists. */
  readonly merged: boolean;
  /** Whether the platform's secret is usable. Otherwise there is nothing to sync to nodes. */
  readonly usable: boolean;
  /** Base64 of the desired docker config, for the hash of upstream's shape. */
  readonly value: Redacted<string> | undefined;
}

/** Returns the objects to apply with `delivery: reconciler`; empty with `gitops`. */
export function agentObjects(
  reader: Reader,
  options: GlobalPullSecretOptions,
  state: AgentState,
): readonly ApplyObject[] {
  if (options.delivery === 'gitops') return [];
  const rbac = agentRbac(options.agent).filter(
    ({ metadata: { namespace } }) => namespace === undefined || hasNamespace(reader, namespace),
  );
  // Upstream's pods cannot start without a secret to mount.
  const runs = options.agent.shape !== 'upstream' || state.value !== undefined;
  const workload = state.usable && runs ? [daemonSet(options, state)] : [];
  // Without GitOps, only the reconciler installs the CRD of the reports.
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
 * Whether the object was rendered by `synth` and applied by a GitOps tool, which then stays its owner, regardless of our
 * configuration. A CRD that an administrator installed stays theirs too.
 */
function isFromGit(object: KubeObject | undefined): boolean {
  const labels = object?.metadata.labels;
  if (object?.kind === CRD.kind) return labels?.[OWNER_LABEL] === undefined;
  return labels?.['app.kubernetes.io/part-of'] === 'pullwright' && labels[OWNER_LABEL] === undefined;
}

/** Upstream's objects of these names have no labels of ours. They are the same objects, so the reconciler adopts them. */
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

/** Plain Kubernetes has no `openshift-config`. An offline folder without any Namespace object proves nothing. */
function hasNamespace(reader: Reader, name: string): boolean {
  const known = reader.list({ role: 'hosted', apiVersion: 'v1', kind: 'Namespace' });
  const found = known.find(({ metadata }) => metadata.name === name);
  return known.length === 0 || (found !== undefined && found.metadata.deletionTimestamp === undefined);
}

/** With `delivery: gitops`, reports a DaemonSet that was not delivered. */
export function missingAgent(reader: Reader, options: GlobalPullSecretOptions): readonly ReconcileError[] {
  if (options.delivery === 'reconciler' || reader.get(DAEMON_SET) !== undefined) return [];
  return [
    {
      retryPolicy: 'waiting',
      afterMs: 60_000,
      code: 'DaemonSetMissing',
      message: `Cannot sync pull secrets to nodes: DaemonSet/${NAMES.namespace}/${NAMES.syncer} not found, a GitOps tool must apply it`,
      hint: 'Sync the rendered manifests, or choose delivery "reconciler"',
      regarding: DAEMON_SET,
    },
  ];
}
