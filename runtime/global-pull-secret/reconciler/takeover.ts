/**
 * `mode: own` beside objects of the same names that others made: all of them are taken over, or none. What would be taken is said
 * first, and goes on when a person confirms these very objects. Pure.
 *
 * Where HyperShift's operator runs on AWS or Azure there is no way: it has no switch for these objects, watches every Secret of
 * `kube-system`, and writes them again with the next change (`globalps` of HyperShift).
 */
import { createHash } from 'node:crypto';
import { OWNER_LABEL } from '../../controller/contract.ts';
import { managersOf } from '../../kube/managed-fields.ts';
import { GLOBAL_PULL_SECRET as NAMES } from '../../rules/kubernetes/global-pull-secret.ts';
import { isOperator, operatorOf } from '../../rules/kubernetes/hypershift-operators.ts';
import { describeObject, type KubeObject } from '../../rules/kubernetes/object.ts';
import { ELIGIBLE_PLATFORMS } from './eligibility.ts';

/** On the HostedCluster, or on the platform's Secret: the codes of the objects that may be taken, with commas between them. */
export const TAKEOVER_ANNOTATION = 'pullwright.dev/confirm-takeover';

/** On a Secret of somebody else: it may be taken over, whatever the mode. */
const ADOPT_ANNOTATION = 'pullwright.dev/adopt';

/** What decides about a takeover besides the objects. */
export interface TakeoverContext {
  /** `spec.platform.type` of the HostedCluster, where there is one. */
  readonly platform: string | undefined;
  /** Values of {@link TAKEOVER_ANNOTATION}. */
  readonly confirmed: readonly string[];
}

/** Why nothing is taken. */
export interface HeldTakeover {
  readonly reason: 'TakeoverHeld' | 'TakeoverImpossible';
  /** A sentence without its end. */
  readonly message: string;
}

/** Gives why nothing is written with `mode: own`; undefined when all is ours, or was confirmed. */
export function heldTakeover(
  objects: readonly (KubeObject | undefined)[],
  { platform, confirmed }: TakeoverContext,
): HeldTakeover | undefined {
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

/** Whether a person gave us an object of somebody else. */
export function isGivenToUs(object: KubeObject): boolean {
  return object.metadata.annotations?.[ADOPT_ANNOTATION] === 'true';
}

/** Whether a person, or an earlier pass, gave us the object, and nobody took its content back since. */
export function isHeldByUs(object: KubeObject): boolean {
  if (isGivenToUs(object)) return true;
  const labels = object.metadata.labels ?? {};
  if (labels[OWNER_LABEL] === undefined && labels['app.kubernetes.io/part-of'] !== 'pullwright') return false;
  const writers = managersOf(object, contentOf(object));
  return writers.length === 0 || writers.some(({ manager }) => !isOperator(manager ?? ''));
}

/** The field that whoever makes the object sets to a value of its own. */
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
