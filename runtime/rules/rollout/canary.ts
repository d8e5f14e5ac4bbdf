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
  /** Whether the first has failed, so that somebody must look. */
  readonly held: boolean;
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
}

/**
 * Decides. A pool that may go on goes on, whatever happens to its first node later. A first node that is gone, or is down before it
 * has begun, gives its place to another.
 *
 * @example
 * ```ts
 * import { planCanary } from './canary.ts';
 * import assert from 'node:assert/strict';
 *
 * const node = (name: string, content: 'older' | 'in-place') => ({ name, pool: '', up: true, content, why: '' });
 * const begun = planCanary({ of: 'x', nodes: [node('a', 'older'), node('b', 'older')], released: false });
 * assert.deepEqual([begun.told.first, begun.told.go], [{ '': 'a' }, []]);
 * const nodes = [node('a', 'in-place'), node('b', 'older')];
 * assert.deepEqual(planCanary({ of: 'x', nodes, before: begun.told, released: false }).told.go, ['']);
 * ```
 */
export function planCanary(input: CanaryInput): {
  readonly told: Canary;
  readonly waiting: readonly WaitingPool[];
} {
  const { of, by, nodes, released } = input;
  const before = input.before?.of === of && input.before.by === by ? input.before : undefined;
  const pools = [...Map.groupBy(nodes, ({ pool }) => pool)].sort(([a], [b]) => (a < b ? -1 : 1));
  const chosen = pools.map(([pool, members]) => ({ pool, first: firstOf(members, before?.first[pool]) }));
  const goes = ({ pool, first }: (typeof chosen)[number]): boolean =>
    released || before?.go.includes(pool) === true || (first.content === 'in-place' && first.up);
  return {
    told: {
      of,
      ...(by === undefined ? {} : { by }),
      first: Object.fromEntries(chosen.map(({ pool, first }) => [pool, first.name])),
      go: chosen.filter(goes).map(({ pool }) => pool),
    },
    waiting: chosen
      .filter((one) => !goes(one))
      .map(({ pool, first }) => ({
        pool,
        node: first.name,
        held: first.content === 'failed',
        why: first.content === 'in-place' ? 'it has it, and its Node is not Ready' : first.why,
      })),
  };
}

/** The one that has been told to, as long as it can be; else one that has it already, that is up, the first by name. */
function firstOf(members: readonly CanaryNode[], told: string | undefined): CanaryNode {
  const kept = members.find(({ name }) => name === told);
  if (kept !== undefined && (kept.up || kept.content !== 'older')) return kept;
  const rank = ({ up, content }: CanaryNode): number => (up ? 0 : 2) + (content === 'in-place' ? 0 : 1);
  const [best] = [...members].sort((a, b) => rank(a) - rank(b) || (a.name < b.name ? -1 : 1));
  return best as CanaryNode;
}

/**
 * For whom a node waits; undefined: it may go on. A pool of which nothing is said waits to be told.
 *
 * @example
 * ```ts
 * import { waitsForFirst } from './canary.ts';
 * import assert from 'node:assert/strict';
 *
 * const told = { of: 'x', first: { '': 'a' }, go: [] };
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

/** The document beside the content. */
export function writeCanary(told: Canary): string {
  return JSON.stringify(told);
}

/** Reads it; undefined where it is none: then nobody is told to wait. */
export function readCanary(text: string | undefined): Canary | undefined {
  const value = parsed(text);
  if (!isRecord(value)) return undefined;
  const { of, by, first, go } = value;
  if (typeof of !== 'string' || !isRecord(first) || !Array.isArray(go)) return undefined;
  const names = Object.entries(first).filter(
    (entry): entry is [string, string] => typeof entry[1] === 'string',
  );
  return {
    of,
    ...(typeof by === 'string' ? { by } : {}),
    first: Object.fromEntries(names),
    go: go.filter((pool) => typeof pool === 'string'),
  };
}

function parsed(text: string | undefined): unknown {
  try {
    return text === undefined ? undefined : JSON.parse(text);
  } catch {
    return undefined;
  }
}
