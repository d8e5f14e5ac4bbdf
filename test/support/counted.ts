/**
 * Events that must occur for a run of random faults to count. A kill while nothing is in progress, a mutation that every parser
 * rejects at its first byte, a soak without faults: such a run passes whatever the program does. Each such test names the events that it
 * requires, and fails when one is missing.
 */
import assert from 'node:assert/strict';

/**
 * Prints what was seen, and fails where less of it was seen than the run needs.
 *
 * @param seen how often each thing happened
 * @param least how often it must have happened for the run to count: at least once each
 */
export function counted<K extends string>(
  seen: Readonly<Record<K, number>>,
  least: Readonly<Record<K, number>>,
): void {
  const names = Object.keys(least) as K[];
  assert.ok(names.length > 0, 'nothing is needed for this run to count');
  const text = names.map((name) => `${name} ${seen[name]} (at least ${least[name]})`).join(', ');
  process.stdout.write(`counted: ${text}\n`);
  for (const name of names) {
    assert.ok(least[name] >= 1, `"${name}" may be missing altogether, so that it says nothing`);
    assert.ok(seen[name] >= least[name], `the run does not count: ${text}`);
  }
}
