/**
 * One node of each pool gets new content first; the others follow when it is up again with it, and stay as they are when it is not.
 *
 * All that nodes are told is one document beside the content: for which content it speaks, which node of each pool is the first, and
 * which pools may go on. Whose content is another one is not concerned.
 */

import { isRecord } from '../record.ts';

/** What nodes are told. */
export interface Canary {
  /** Digest of the content. */
  readonly of: string;
  /** Key of the label whose value is the pool of a node; absent: all nodes are one pool, whose name is empty. */
  readonly by?: string;
  /** Pool to the node that goes first. */
  readonly first: Readonly<Record<string, string>>;
  /** Pools whose other nodes may follow. */
  readonly go: readonly string[];
  /** Pool to the instant since which its first node is the first, in ISO 8601. */
  readonly since: Readonly<Record<string, string>>;
  /** Images that a first node asks registries for; absent: none. */
  readonly probe?: readonly string[];
}

/** A node, as far as it is known. */
export interface CanaryNode {
  readonly name: string;
  readonly pool: string;
  /** Whether the node itself is up. */
  readonly up: boolean;
  /** What became of the content there: not begun, under way, in place and used, or given up. */
  readonly content: 'older' | 'under-way' | 'in-place' | 'failed';
  /** A sentence without its end; of a node that has failed, or is not done. */
  readonly why: string;
}

/** A pool whose nodes wait for their first. */
export interface WaitingPool {
  readonly pool: string;
  readonly node: string;
  /** Why somebody must look: the first has failed, or has not shown in time that it works. Absent: it is on its way. */
  readonly held?: 'failed' | 'late';
  readonly why: string;
}

export interface CanaryInput {
  /** Digest of the content that nodes should have. */
  readonly of: string;
  readonly by?: string | undefined;
  readonly nodes: readonly CanaryNode[];
  /** What nodes were told last. */
  readonly before?: Canary | undefined;
  /** Whether a person lets all pools go on, whatever became of the first. */
  readonly released: boolean;
  /** Images that a first node asks registries for. @default none */
  readonly probe?: readonly string[] | undefined;
  readonly now: Date;
  /** How long a first node may take. @default {10 minutes} */
  readonly withinMs?: number | undefined;
}

/** A restart that waits for its turn, a slow start of the kubelet and a report take a part of it. */
export const CANARY_WITHIN_MS = 600_000;

/**
 * Decides. A pool that may go on goes on, whatever happens to its first node later. A first node that is gone, or is down before it
 * has begun, gives its place to another. One that takes too long holds its pool until it is done all the same.
 *
 * @example
 * ```ts
 * import { planCanary } from './canary.ts';
 * import assert from 'node:assert/strict';
 *
 * const now = new Date('2026-01-01T00:00:00Z');
 * const node = (name: string, content: 'older' | 'in-place') => ({ name, pool: '', up: true, content, why: '' });
 * const begun = planCanary({ of: 'x', nodes: [node('a', 'older'), node('b', 'older')], released: false, now });
 * assert.deepEqual([begun.told.first, begun.told.go], [{ '': 'a' }, []]);
 * const nodes = [node('a', 'in-place'), node('b', 'older')];
 * assert.deepEqual(planCanary({ of: 'x', nodes, before: begun.told, released: false, now }).told.go, ['']);
 * ```
 */
export function planCanary(input: CanaryInput): {
  readonly told: Canary;
  readonly waiting: readonly WaitingPool[];
  /** After this one that waits is held; absent: none will be. */
  readonly lateInMs?: number;
} {
  const { of, by, nodes, probe } = input;
  const before = input.before?.of === of && input.before.by === by ? input.before : undefined;
  const pools = [...Map.groupBy(nodes, ({ pool }) => pool)].sort(([a], [b]) => (a < b ? -1 : 1));
  const chosen = pools.map(([pool, members]) => chosenOf(pool, members, { before, now: input.now }));
  const goes = ({ pool, first }: Chosen): boolean =>
    input.released || before?.go.includes(pool) === true || (first.content === 'in-place' && first.up);
  const waiting = chosen.filter((one) => !goes(one)).map((one) => waitingOf(one, input));
  const left = waiting.flatMap(({ held, leftMs }) => (held === undefined ? [leftMs] : []));
  return {
    told: {
      of,
      ...(by === undefined ? {} : { by }),
      first: Object.fromEntries(chosen.map(({ pool, first }) => [pool, first.name])),
      go: chosen.filter(goes).map(({ pool }) => pool),
      since: Object.fromEntries(chosen.map(({ pool, since }) => [pool, since])),
      ...(probe === undefined || probe.length === 0 ? {} : { probe }),
    },
    waiting: waiting.map(({ leftMs: _left, ...one }) => one),
    ...(left.length === 0 ? {} : { lateInMs: Math.min(...left) }),
  };
}

interface Chosen {
  readonly pool: string;
  readonly first: CanaryNode;
  readonly since: string;
}

function chosenOf(
  pool: string,
  members: readonly CanaryNode[],
  { before, now }: { readonly before: Canary | undefined; readonly now: Date },
): Chosen {
  const told = before?.first[pool];
  const first = firstOf(members, told);
  const since = first.name === told ? Date.parse(before?.since[pool] ?? '') : Number.NaN;
  // A clock that was set back must not make anybody wait the longer.
  return { pool, first, since: (since <= now.getTime() ? new Date(since) : now).toISOString() };
}

function waitingOf(
  { pool, first, since }: Chosen,
  { now, withinMs = CANARY_WITHIN_MS }: CanaryInput,
): WaitingPool & { readonly leftMs: number } {
  const leftMs = Date.parse(since) + withinMs - now.getTime();
  const held = first.content === 'failed' ? 'failed' : leftMs <= 0 ? 'late' : undefined;
  const why = first.content === 'in-place' ? 'it has it, and its Node is not Ready' : first.why;
  return { pool, node: first.name, ...(held === undefined ? {} : { held }), why, leftMs };
}

/** The one that has been told to, as long as it can be; else one that has it already, that is up, the first by name. */
function firstOf(members: readonly CanaryNode[], told: string | undefined): CanaryNode {
  const kept = members.find(({ name }) => name === told);
  if (kept !== undefined && (kept.up || kept.content !== 'older')) return kept;
  const rank = ({ up, content }: CanaryNode): number => (up ? 0 : 3) + (NEAR[content] ?? 2);
  const [best] = [...members].sort((a, b) => rank(a) - rank(b) || (a.name < b.name ? -1 : 1));
  return best as CanaryNode;
}

const NEAR: Partial<Record<CanaryNode['content'], number>> = { 'in-place': 0, 'under-way': 1 };

/**
 * For whom a node waits; undefined: it may go on. A pool of which nothing is said waits to be told.
 *
 * @example
 * ```ts
 * import { waitsForFirst } from './canary.ts';
 * import assert from 'node:assert/strict';
 *
 * const told = { of: 'x', first: { '': 'a' }, go: [], since: {} };
 * assert.equal(waitsForFirst(told, { of: 'x', node: 'b', pool: '' }), 'node "a"');
 * assert.equal(waitsForFirst(told, { of: 'x', node: 'a', pool: '' }), undefined);
 * assert.equal(waitsForFirst(told, { of: 'y', node: 'b', pool: '' }), undefined);
 * ```
 */
export function waitsForFirst(
  told: Canary | undefined,
  { of, node, pool }: { readonly of: string; readonly node: string; readonly pool: string | undefined },
): string | undefined {
  if (told === undefined || told.of !== of) return undefined;
  if (pool === undefined) return 'the API server, which knows the pool of this node';
  if (told.go.includes(pool)) return undefined;
  const first = Object.hasOwn(told.first, pool) ? told.first[pool] : undefined;
  if (first === node) return undefined;
  return first === undefined ? 'the first node of its pool, which is not chosen yet' : `node "${first}"`;
}

/**
 * The images that a node asks registries for: those of whom it is told, while it is the first of its pool and the others wait.
 *
 * @example
 * ```ts
 * import { imagesToProbe } from './canary.ts';
 * import assert from 'node:assert/strict';
 *
 * const told = { of: 'x', first: { '': 'a' }, go: [], since: {}, probe: ['quay.io/acme/web:1'] };
 * assert.deepEqual(imagesToProbe(told, { of: 'x', node: 'a' }), ['quay.io/acme/web:1']);
 * assert.deepEqual(imagesToProbe(told, { of: 'x', node: 'b' }), []);
 * ```
 */
export function imagesToProbe(
  told: Canary | undefined,
  { of, node }: { readonly of: string; readonly node: string },
): readonly string[] {
  if (told === undefined || told.of !== of) return [];
  const waits = Object.entries(told.first).some(([pool, first]) => first === node && !told.go.includes(pool));
  return waits ? (told.probe ?? []) : [];
}

/** The document beside the content. */
export function writeCanary(told: Canary): string {
  return JSON.stringify(told);
}

/** Reads it; undefined where it is none: then nobody is told to wait. */
export function readCanary(text: string | undefined): Canary | undefined {
  const value = parsed(text);
  if (!isRecord(value)) return undefined;
  const { of, by, first, go, since, probe } = value;
  if (typeof of !== 'string' || !isRecord(first) || !Array.isArray(go)) return undefined;
  const images = Array.isArray(probe) ? textsIn(probe) : [];
  return {
    of,
    ...(typeof by === 'string' ? { by } : {}),
    first: textsOf(first),
    go: textsIn(go),
    // Versions before wrote none.
    since: isRecord(since) ? textsOf(since) : {},
    ...(images.length === 0 ? {} : { probe: images }),
  };
}

function textsIn(list: readonly unknown[]): readonly string[] {
  return list.filter((one) => typeof one === 'string');
}

function textsOf(map: Readonly<Record<string, unknown>>): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(map).filter((entry): entry is [string, string] => typeof entry[1] === 'string'),
  );
}

function parsed(text: string | undefined): unknown {
  try {
    return text === undefined ? undefined : JSON.parse(text);
  } catch {
    return undefined;
  }
}
