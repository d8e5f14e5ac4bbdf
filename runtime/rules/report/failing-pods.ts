/** Pods that fail to pull, those that fail for one cause together, and what fixes each cause. */
import { firstBroken } from '../diagnose/doctor.ts';
import type { Link, LinkName } from '../diagnose/doctor-types.ts';
import type { Paint } from '../diagnose/explain-text.ts';
import { describeObject, type KubeObject } from '../kubernetes/object.ts';
import { counted } from '../text/counted.ts';

/** One that was examined, and how many pods it stands for; none for a template that makes no pod. */
export interface FailingPod {
  readonly namespace: string;
  /** `Pod/shop/web-1` */
  readonly object: string;
  readonly pods: number;
  readonly links: readonly Link[];
}

/** What several pods fail for. */
export interface PodCause {
  /** `unknown`: no link that could be judged is broken, and not all could be read. */
  readonly link: LinkName | 'unknown';
  readonly cause: string;
  readonly pods: number;
  readonly namespaces: readonly string[];
  /** What was examined, of pods that fail alike one. */
  readonly objects: readonly string[];
  /** What is said of the first. */
  readonly message: string;
  readonly advice?: string;
  /** To be applied with `kubectl apply --server-side`: for all of them, each object once. */
  readonly fix: readonly KubeObject[];
}

const CAUSES: Readonly<Record<PodCause['link'], string>> = {
  image: 'an image has a name that nobody can read',
  places: 'images may be pulled from nowhere',
  'service-account': 'the ServiceAccount does not exist',
  injection: 'pods lack a Secret that they should be given',
  'secrets-there': 'a Secret that pods list does not exist',
  'secrets-readable': 'a Secret that pods list cannot be read',
  credential: 'no credential that is listed matches',
  'mirror-credential': 'a mirror is asked without a credential that it takes',
  distribution: 'a Secret could not be brought to its namespace',
  node: 'a node lacks the pull secret that is there',
  registry: 'the last pull failed',
  unknown: 'not all could be read, so that the cause is not known',
};

/**
 * Groups by the first link that is broken, and by what that is about: a host, a Secret, a profile, a node. The cause of most pods
 * comes first. Total, and linear in the pods.
 *
 * @example
 * ```ts
 * import { podsByCause } from './failing-pods.ts';
 * import assert from 'node:assert/strict';
 *
 * const links = [{ link: 'secrets-there', state: 'broken', about: 'regcred', message: 'it is not there' }] as const;
 * const causes = podsByCause([
 *   { namespace: 'shop', object: 'Pod/shop/a', pods: 2, links },
 *   { namespace: 'billing', object: 'Pod/billing/b', pods: 1, links },
 * ]);
 * assert.equal(causes.length, 1);
 * assert.equal(causes[0]?.pods, 3);
 * assert.deepEqual(causes[0]?.namespaces, ['billing', 'shop']);
 * ```
 */
export function podsByCause(found: readonly FailingPod[]): readonly PodCause[] {
  const groups = new Map<string, { readonly broken: Link | undefined; readonly all: FailingPod[] }>();
  for (const one of found) {
    const broken = firstBroken(one.links);
    // A template without pods is listed for what is broken, and not because not all could be read.
    if (broken === undefined && (one.pods === 0 || one.links.every(({ state }) => state === 'ok'))) continue;
    const id = JSON.stringify([broken?.link, broken?.about ?? broken?.message]);
    const group = groups.get(id);
    if (group === undefined) groups.set(id, { broken, all: [one] });
    else group.all.push(one);
  }
  return [...groups.values()].map(causeOf).toSorted((a, b) => b.pods - a.pods);
}

function causeOf({
  broken,
  all,
}: {
  readonly broken: Link | undefined;
  readonly all: readonly FailingPod[];
}): PodCause {
  const link = broken?.link ?? 'unknown';
  const about = broken?.about === undefined ? '' : `: ${broken.about}`;
  return {
    link,
    cause: `${CAUSES[link]}${about}`,
    pods: all.reduce((sum, { pods }) => sum + pods, 0),
    namespaces: [...new Set(all.map(({ namespace }) => namespace))].sort(),
    objects: all.map(({ object }) => object),
    message: broken?.message ?? 'not all could be read',
    ...(broken?.advice === undefined ? {} : { advice: broken.advice }),
    fix: once(all.flatMap(({ links }) => firstBroken(links)?.fix ?? [])),
  };
}

/** Objects that are the same are one; of those that differ under one name the first, as applying the second would undo it. */
function once(objects: readonly KubeObject[]): readonly KubeObject[] {
  const byName = new Map<string, KubeObject>();
  for (const object of objects) {
    const id = `${object.apiVersion} ${nameOf(object)}`;
    if (!byName.has(id)) byName.set(id, object);
  }
  return [...byName.values()];
}

function nameOf({ kind, metadata: { namespace, name } }: KubeObject): string {
  return describeObject({ kind, namespace, name });
}

/** What fixes all causes, each object once. */
export function fixesOf(causes: readonly PodCause[]): readonly KubeObject[] {
  return once(causes.flatMap(({ fix }) => fix));
}

/** How causes are shown. */
export interface CausesText {
  /** The one that was looked at; all where it is undefined. */
  readonly namespace: string | undefined;
  readonly paint: Paint;
  readonly complete: boolean;
}

/** Names that are shown of a list. */
const NAMED = 3;

/** For people: one line for each cause, and under it a case, and what fixes it. */
export function renderCauses(
  causes: readonly PodCause[],
  { namespace, paint, complete }: CausesText,
): string {
  const where = namespace === undefined ? '' : ` in namespace "${namespace}"`;
  if (causes.length === 0) {
    const limit = complete ? '' : ', as far as could be read';
    return `No pod${where} fails to pull${limit}\n`;
  }
  const pods = causes.reduce((sum, one) => sum + one.pods, 0);
  const head = `${counted(pods, 'pod')}${where} ${pods === 1 ? 'fails' : 'fail'} to pull, for ${counted(causes.length, 'cause')}`;
  return `${[paint('bold', head), ...causes.flatMap((one) => ['', ...linesOf(one, paint)])].join('\n')}\n`;
}

function linesOf(one: PodCause, paint: Paint): readonly string[] {
  const how = one.pods === 0 ? 'no pod is made' : counted(one.pods, 'pod');
  const fixes = one.fix.length === 0 ? [] : [`-o yaml prints it: ${named(one.fix.map(nameOf))}`];
  const advice = one.advice === undefined ? [] : [one.advice];
  const fix = [...fixes, ...advice];
  return [
    `${paint('red', how)} in ${named(one.namespaces)}: ${one.cause}`,
    `  such as  ${named(one.objects.slice(0, 1))}: ${one.message}`,
    ...fix.map((text) => `  fix      ${text}`),
  ];
}

function named(names: readonly string[]): string {
  const rest = names.length - NAMED;
  return `${names.slice(0, NAMED).join(', ')}${rest > 0 ? ` and ${rest} more` : ''}`;
}
