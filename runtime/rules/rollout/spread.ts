/**
 * Spreads the restarts of a fleet over a window without anybody to ask: each node waits for a share of the window that its
 * name and the content decide. With `n` nodes and a window of `w` seconds, `n/w` nodes restart in a second in expectation;
 * it bounds no instant.
 */
import { createHash } from 'node:crypto';

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
