/** The report of `install-provider` as text, JSON or YAML. */

import { toYaml } from '../../kube/yaml.ts';
import { jsonText } from '../../rules/text/json-text.ts';
import { oneLined } from '../../rules/text/printable.ts';
import type { HostChange } from './changes.ts';
import type { InstallerReport } from './preview.ts';

/**
 * The text for stdout, ending with a line end.
 *
 * @example
 * ```ts
 * import { renderReport } from './render.ts';
 * import assert from 'node:assert/strict';
 *
 * const report = { node: 'a', ready: true, reason: 'InSync', message: 'The file means what is wanted' };
 * assert.equal(renderReport({ ...report, would: [] }, 'text'), 'InSync: The file means what is wanted\nwould do nothing\n');
 * ```
 */
export function renderReport(report: InstallerReport, output: 'text' | 'json' | 'yaml'): string {
  if (output === 'json') return jsonText<InstallerReport>(report);
  if (output === 'yaml') return toYaml(report);
  const { reason, message, would, resumes, entries = [] } = oneLined(report);
  return [
    `${reason}: ${message}`,
    ...(resumes === undefined ? [] : [`an interrupted run goes on first (${resumes})`]),
    ...(would === undefined ? [] : wouldLines(would)),
    ...entries
      .filter(({ verdict }) => verdict !== 'Rendered')
      .map((entry) => `left out: ${entry.pattern}: ${entry.message}`),
    '',
  ].join('\n');
}

function wouldLines(would: readonly HostChange[]): readonly string[] {
  if (would.length === 0) return ['would do nothing'];
  return would.flatMap(({ action, what, details }) => [
    `would ${action.padEnd(7)} ${what}`,
    ...details.map((detail) => `              ${detail}`),
  ]);
}
