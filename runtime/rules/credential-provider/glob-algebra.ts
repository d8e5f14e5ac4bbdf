/**
 * Whether two `matchImages` patterns of the kubelet can match the same image: the question behind "who is asked for this
 * image's credentials?".
 *
 * Source of the rule: the kubelet's `URLsMatch`: equal ports, as many host labels, each label by Go's `filepath.Match`, path
 * by plain string prefix. So two patterns meet when the ports are equal, every pair of labels has a common text, and one path
 * is a prefix of the other.
 */
import { parseSchemelessUrl } from '../auth-lookup/match-images.ts';

/**
 * Whether some image is matched by both patterns.
 *
 * @example
 * ```ts
 * import { patternsMeet } from './glob-algebra.ts';
 * import assert from 'node:assert/strict';
 *
 * assert.ok(patternsMeet('123.dkr.ecr.us-east-1.amazonaws.com', '*.dkr.ecr.*.amazonaws.com'));
 * assert.ok(!patternsMeet('a.b.gcr.io', '*.gcr.io'));
 * assert.ok(!patternsMeet('us.gcr.io:443', '*.gcr.io'));
 * ```
 */
export function patternsMeet(a: string, b: string): boolean {
  const [first, second] = [parseSchemelessUrl(a), parseSchemelessUrl(b)];
  // What the kubelet cannot parse it never matches.
  if (!first.ok || !second.ok) return false;
  const [left, right] = [first.url, second.url];
  if (left.port !== right.port || left.labels.length !== right.labels.length) return false;
  if (!left.path.startsWith(right.path) && !right.path.startsWith(left.path)) return false;
  return left.labels.every((label, index) => globsMeet(label, right.labels[index] ?? ''));
}

/** One position of a glob: `*`, or a set of characters. */
type Token = '*' | ((code: number) => boolean);

/** Whether some text without `/` is matched by both globs of Go's `filepath.Match`. A malformed glob matches nothing. */
export function globsMeet(a: string, b: string): boolean {
  const left = tokens(a);
  const right = tokens(b);
  if (left === undefined || right === undefined) return false;
  // One row per position in `left`, kept as the set of positions in `right` that are reachable with the same text.
  const seen = new Set<number>();
  const open = [[0, 0]];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const [i = 0, j = 0] = next;
    if (i === left.length && j === right.length) return true;
    const key = i * (right.length + 1) + j;
    if (seen.has(key)) continue;
    seen.add(key);
    open.push(...steps(left, right, i, j));
  }
  return false;
}

/** Positions reachable from (i, j): a star may end, or swallow what the other side needs; two sets need a common character. */
function steps(left: readonly Token[], right: readonly Token[], i: number, j: number): number[][] {
  const a = left[i];
  const b = right[j];
  const next: number[][] = [];
  if (a === '*') next.push([i + 1, j]);
  if (b === '*') next.push([i, j + 1]);
  if (a === '*' && b !== undefined && b !== '*') next.push([i, j + 1]);
  if (b === '*' && a !== undefined && a !== '*') next.push([i + 1, j]);
  if (typeof a === 'function' && typeof b === 'function' && haveCommon(a, b)) next.push([i + 1, j + 1]);
  return next;
}

// Labels hold neither dot nor slash; one character stands for all beyond ASCII.
const ALPHABET: readonly number[] = [...Array.from({ length: 95 }, (_, index) => 0x20 + index), 0x100].filter(
  (code) => code !== 0x2e && code !== 0x2f,
);

function haveCommon(a: (code: number) => boolean, b: (code: number) => boolean): boolean {
  return ALPHABET.some((code) => a(code) && b(code));
}

function tokens(glob: string): readonly Token[] | undefined {
  const found: Token[] = [];
  for (let at = 0; at < glob.length; ) {
    const char = glob[at];
    if (char === '[') {
      const set = charset(glob, at);
      if (set === undefined) return undefined;
      found.push(set.token);
      at = set.end;
      continue;
    }
    if (char === '\\') at += 1;
    const code = glob.codePointAt(at);
    if (code === undefined) return undefined;
    if (char === '*') found.push('*');
    else found.push(char === '?' ? () => true : (other) => other === code);
    at += code > 0xffff ? 2 : 1;
  }
  return found;
}

/** `[a-z]` or `[^a-z]` from `start`; `undefined` when it is malformed. */
function charset(glob: string, start: number): { readonly token: Token; readonly end: number } | undefined {
  const match = /^\[(\^?)((?:\\.|[^\]\\])+)\]/u.exec(glob.slice(start));
  if (match === null) return undefined;
  const chars = [...(match[2] ?? '').matchAll(/\\?(.)/gu)].map((one) => one[0]);
  const ranges: (readonly [number, number])[] = [];
  for (let at = 0; at < chars.length; at += 1) {
    const low = chars[at] ?? '';
    const isRange = chars[at + 1] === '-';
    const high = isRange ? chars[at + 2] : low;
    if (low === '-' || high === undefined || high === '-') return undefined;
    ranges.push([codeOf(low), codeOf(high)]);
    if (isRange) at += 2;
  }
  const negated = match[1] === '^';
  const token = (code: number): boolean =>
    ranges.some(([low, high]) => code >= low && code <= high) !== negated;
  return { token, end: start + match[0].length };
}

function codeOf(char: string): number {
  return (char.length > 1 && char.startsWith('\\') ? char.slice(1) : char).codePointAt(0) ?? 0;
}
