/** An installation before it is made, and after: every line of it. */
import type { StatusRow } from '../diagnose/status-table.ts';
import {
  crdLines,
  foreignLines,
  kindLines,
  kubernetesLine,
  namespaceLine,
  priorityLines,
  rightsLine,
} from './cluster.ts';
import { admissionLines, presentLine, servedLines, statusLines, workloadLines } from './installed.ts';
import { eligibleLine, mcoLine, podSecurityLines, runtimeLines } from './nodes.ts';
import { hypershiftLine, ownerLines } from './owners.ts';
import type { CheckInput, CheckLevel, CheckLine } from './types.ts';

/**
 * Whether the cluster can take what is rendered. Total.
 *
 * @example
 * ```ts
 * import { checkBefore } from './check.ts';
 * import assert from 'node:assert/strict';
 *
 * const lines = checkBefore({ objects: [], plan: [], systems: [], nodes: 'linux', live: true, serverVersion: 'v1.24.0' });
 * assert.equal(lines.find(({ check }) => check === 'kubernetes')?.level, 'fail');
 * ```
 */
export function checkBefore(input: CheckInput): readonly CheckLine[] {
  return [
    kubernetesLine(input),
    ...crdLines(input),
    ...kindLines(input),
    namespaceLine(input),
    ...priorityLines(input),
    ...podSecurityLines(input),
    ...eligibleLine(input),
    ...runtimeLines(input),
    ...mcoLine(input),
    ...hypershiftLine(input),
    ...ownerLines(input),
    ...foreignLines(input),
    rightsLine(input),
  ];
}

/** Whether what was applied is there and at work. Total. */
export function checkAfter(input: CheckInput, rows: readonly StatusRow[]): readonly CheckLine[] {
  return [
    presentLine(input),
    ...servedLines(input),
    ...workloadLines(input),
    ...admissionLines(input),
    ...statusLines(rows),
  ];
}

/** The worst of all lines. */
export function worstLevel(lines: readonly CheckLine[]): CheckLevel {
  if (lines.some(({ level }) => level === 'fail')) return 'fail';
  return lines.some(({ level }) => level === 'warn') ? 'warn' : 'ok';
}
