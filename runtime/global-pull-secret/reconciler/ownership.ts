/** What decides about a removal or a takeover besides the objects: the release payload, the platform, the confirmations. */

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
import type { EntryStatus } from '../../core/kubernetes/pull-status.ts';
import { recordOf } from '../../core/record.ts';
import { refOf } from '../../engine/changes.ts';
import {
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
import { ELIGIBLE_PLATFORMS } from '../eligibility.ts';
import {
  CONFIRM_REMOVAL,
  confirmedRemovals,
  type PendingRemoval,
  type RemovalOptions,
} from '../removal-guard.ts';
import { secretRef } from './agent-objects.ts';
import type { RemovalContext } from './plan.ts';

// `mode: own` beside objects of the same names that others made: all of them are adopted, or none. They are reported
// first, and adopted when a person confirms these very objects. Pure.
// Where HyperShift's operator runs on AWS or Azure there is no way: it has no switch for these objects, watches every Secret of
// `kube-system`, and writes them again with the next change (`globalps` of HyperShift).

/** On the HostedCluster, or on the platform's Secret: the codes of the objects that may be taken, with commas between them. */
export const TAKEOVER_ANNOTATION = 'pullwright.dev/confirm-takeover';

/** On a foreign Secret: it may be adopted, whatever the mode. */
const ADOPT_ANNOTATION = 'pullwright.dev/adopt';

/** What decides about a takeover besides the objects. */
export interface TakeoverContext {
  /** `spec.platform.type` of the HostedCluster, where there is one. */
  readonly platform: string | undefined;
  /** Values of {@link TAKEOVER_ANNOTATION}. */
  readonly confirmed: readonly string[];
}

/** Gives why nothing is written with `mode: own`; undefined when all is ours, or was confirmed. */
export function heldTakeover(
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
export function isHeldByUs(object: KubeObject): boolean {
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

const HOSTED_CLUSTER = {
  role: 'management',
  apiVersion: 'hypershift.openshift.io/v1beta1',
  kind: 'HostedCluster',
} as const;
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
  { ...HOSTED_CLUSTER, namespace: HOSTED_CLUSTER_NAMESPACE, name: HOSTED_CLUSTER_NAME, optional: true },
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
  const spec = hostedClusterOf(reader)?.spec as
    | { readonly platform?: { readonly type?: unknown } }
    | undefined;
  const type = spec?.platform?.type;
  return {
    platform: typeof type === 'string' ? type : undefined,
    confirmed: confirmations(reader, TAKEOVER_ANNOTATION),
  };
}

function hostedClusterOf(reader: Reader): KubeObject | undefined {
  const { hostedCluster } = reader.scope;
  return hostedCluster === undefined ? undefined : reader.get({ ...HOSTED_CLUSTER, ...hostedCluster });
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
  if (scope.hostedCluster !== undefined) return { ...HOSTED_CLUSTER, ...scope.hostedCluster };
  const { controlPlaneNamespace: namespace } = scope;
  return { role: 'management', apiVersion: 'v1', kind: 'Secret', namespace, name: NAMES.platform };
}

function releaseRepository(
  cluster: KubeObject | undefined,
  version: KubeObject | undefined,
): string | undefined {
  const spec = cluster?.spec as { readonly release?: { readonly image?: unknown } } | undefined;
  const status = version?.status as { readonly desired?: { readonly image?: unknown } } | undefined;
  const image = spec?.release?.image ?? status?.desired?.image;
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
  const { summary } = recordOf(reader.get(REPORT)?.status);
  const { heldRemoval, heldSince } = recordOf(summary);
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
