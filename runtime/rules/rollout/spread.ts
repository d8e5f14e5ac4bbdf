/**
 * Spreads the restarts of a fleet over a window without anybody to ask: each node waits for a share of the window that its
 * name and the content decide. With `n` nodes and a window of `w` seconds, `n/w` nodes restart in a second in expectation;
 * it bounds no instant.
 */
import { createHash } from 'node:crypto';
import type { Change } from './journal.ts';

/**
 * Milliseconds that `node` waits, from 0 to just under `windowMs`: the same for the same node and content, and different
 * for another content, so that no node is always the first.
 *
 * @example
 * ```ts
 * import { spreadDelay } from './spread.ts';
 * import assert from 'node:assert/strict';
 *
 * const delay = spreadDelay('worker-1', 'content', 300_000);
 * assert.ok(delay >= 0 && delay < 300_000);
 * assert.equal(spreadDelay('worker-1', 'content', 300_000), delay);
 * assert.equal(spreadDelay('worker-1', 'content', 0), 0);
 * ```
 */
export function spreadDelay(node: string, content: string, windowMs: number): number {
  const share = createHash('sha256').update(`${node}\0${content}`).digest().readUInt32BE(0) / 2 ** 32;
  return Math.floor(share * windowMs);
}

/** How long the restarts of a fleet are spread, and the share of one node for a content. Milliseconds. */
export interface Window {
  readonly windowMs: number;
  readonly delayMs: (source: string) => number;
}

/** The window as `node` has it. */
export function windowOf(node: string, windowMs: number): Window {
  return { windowMs, delayMs: (source) => spreadDelay(node, source, windowMs) };
}

/**
 * The change with a place in the window of now: who shortens the window, or takes it away, does not wait for a place in the longer one.
 * A longer window moves nobody, and a wait after a failure is not of the window.
 *
 * @param change what is under way
 *
 * @example
 * ```ts
 * import { inWindow } from './spread.ts';
 * import assert from 'node:assert/strict';
 *
 * const change = {
 *   phase: 'restarting', wanted: 'b', source: 'b', restart: true, removes: true, failures: 0, invocation: '',
 *   writtenAt: 1_000, notBefore: 1_801_000, waitMs: 1_800_000,
 * } as const;
 * assert.equal(inWindow(change, { windowMs: 60_000, delayMs: () => 30_000 }).notBefore, 31_000);
 * assert.equal(inWindow(change, { windowMs: 3_600_000, delayMs: () => 1_800_000 }), change);
 * ```
 */
export function inWindow(change: Change, { windowMs, delayMs }: Window): Change {
  const { phase, failures, waitMs, writtenAt, source } = change;
  if (phase !== 'restarting' || failures > 0 || waitMs === 0 || waitMs < windowMs) return change;
  const share = delayMs(source);
  return { ...change, notBefore: (writtenAt ?? change.notBefore - waitMs) + share, waitMs: share };
}
