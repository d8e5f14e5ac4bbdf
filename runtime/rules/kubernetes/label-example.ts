/** Labels that a selector selects, for a pod that is made up to try something. */
import { type LabelRequirement, type Labels, selects } from './label-selector.ts';

/**
 * The least labels that meet every requirement; undefined when none can. Total, linear in the size of the requirements of each key.
 *
 * @example
 * ```ts
 * import { exampleLabels } from './label-example.ts';
 * import assert from 'node:assert/strict';
 *
 * assert.deepEqual(exampleLabels([{ key: 'app', operator: 'In', values: ['web', 'db'] }]), { app: 'web' });
 * assert.equal(exampleLabels([{ key: 'app', operator: 'Exists' }, { key: 'app', operator: 'DoesNotExist' }]), undefined);
 * ```
 */
export function exampleLabels(requirements: readonly LabelRequirement[]): Labels | undefined {
  const byKey = Map.groupBy(requirements, ({ key }) => key);
  const labels: Record<string, string> = {};
  for (const [key, own] of byKey) {
    // Without the label NotIn and DoesNotExist hold.
    if (selects(own, {})) continue;
    const value = candidates(own).find((one) => selects(own, { [key]: one }));
    if (value === undefined) return undefined;
    labels[key] = value;
  }
  return labels;
}

/** One of the values that are asked for, or one that nobody excludes. */
function candidates(requirements: readonly LabelRequirement[]): readonly string[] {
  const [asked] = requirements.filter(({ operator }) => operator === 'In');
  if (asked !== undefined) return asked.values ?? [];
  const excluded = new Set(requirements.flatMap(({ values = [] }) => values));
  let other = 'x';
  while (excluded.has(other)) other += 'x';
  return [other];
}
