/**
 * `node test/conformance/run.ts [DIR] [--suite FOLDER/NAME] [--verbose]`
 *
 * Runs every case file `DIR/<folder>/<name>.json` through `suites/<folder>/<name>.ts` or the suite of that name in
 * `suites/<folder>/table.ts`, prints one line per suite and the sum. A file without a suite, a case that cannot be read or expects nothing, and a folder without cases are reported and
 * count as failed: nothing is skipped in silence. A case of unknown shape is one failed case; the others run.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { inspect, parseArgs } from 'node:util';
import { idleFields, ignoredFields, isAccepted, looseFields } from './comparison.ts';
import { DEVIATIONS } from './deviations.ts';
import { suiteOf } from './find-suite.ts';
import { messageOf, type ReadCases, readCases } from './read-cases.ts';
import type { ConformanceCase, ConformanceSuite } from './suite.ts';

interface Tally {
  passed: number;
  failed: number;
  deviating: Map<string, number>;
  /** By loose field: in how many cases it agrees, of how many that have it. */
  loose: Map<string, readonly [agree: number, of: number]>;
  reports: string[];
}

const here = new URL('.', import.meta.url).pathname;

async function main(): Promise<number> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { suite: { type: 'string' }, verbose: { type: 'boolean' } },
  });
  const dir = resolve(positionals[0] ?? join(here, 'cases'));
  const names = caseFiles(dir).filter((name) => values.suite === undefined || values.suite === name);
  let passed = 0;
  let failed = 0;
  if (names.length === 0) {
    process.stdout.write(`No case file in ${dir}: expected <folder>/<name>.json\n`);
    failed = 1;
  }
  for (const name of names) {
    const tally = await runSuite(dir, name);
    passed += tally.passed;
    failed += tally.failed;
    printSuite(name, tally, values.verbose === true);
  }
  process.stdout.write(`${passed} passed, ${failed} failed\n`);
  return failed === 0 ? 0 : 1;
}

function caseFiles(dir: string): string[] {
  if (!existsSync(dir)) return [];
  return readdirSync(dir, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.json'))
    .map((file) => file.slice(0, -'.json'.length))
    .sort();
}

async function runSuite(dir: string, name: string): Promise<Tally> {
  const tally: Tally = { passed: 0, failed: 0, deviating: new Map(), loose: new Map(), reports: [] };
  const suite = await suiteOf(name);
  if (suite === undefined) return failWhole(tally, 'unknown suite: no driver for these cases');
  const missing = suite.missing?.();
  if (missing !== undefined) return failWhole(tally, `cannot run: ${missing}`);
  let read: ReadCases;
  try {
    read = readCases(suite, JSON.parse(readFileSync(join(dir, `${name}.json`), 'utf8')));
  } catch (error) {
    return failWhole(tally, `cannot read the cases: ${messageOf(error)}`);
  }
  if (read.cases.length + read.unreadable.length === 0) return failWhole(tally, 'no case in the file');
  for (const reason of read.unreadable) failWhole(tally, reason);
  try {
    for (const one of read.cases) await runCase(suite, name, one, tally);
  } finally {
    await suite.finish?.();
  }
  return tally;
}

function failWhole(tally: Tally, report: string): Tally {
  tally.failed += 1;
  tally.reports.push(report);
  return tally;
}

async function runCase(
  suite: ConformanceSuite,
  name: string,
  one: ConformanceCase,
  tally: Tally,
): Promise<void> {
  const idle = idleFields(suite, one);
  if (idle !== undefined) return void failWhole(tally, `${one.name}: ${idle}`);
  const answer = await answerOf(suite, one);
  if ('threw' in answer) return void failWhole(tally, `${one.name}: the rule threw: ${answer.threw}`);
  for (const [field, agrees] of looseFields(suite, answer.value, one)) {
    const [agree, of] = tally.loose.get(field) ?? [0, 0];
    tally.loose.set(field, [agree + (agrees ? 1 : 0), of + 1]);
  }
  if (isAccepted(suite, answer.value, one)) {
    const ignored = ignoredFields(suite, answer.value, one);
    if (ignored !== undefined) return void failWhole(tally, `${one.name}: ${ignored}`);
    tally.passed += 1;
    return;
  }
  const deviation = DEVIATIONS[name]?.find((candidate) => candidate.when(one.input));
  if (deviation === undefined) {
    return void failWhole(
      tally,
      `${one.name}\n      wanted ${show(one.expected)}\n      got    ${show(answer.value)}`,
    );
  }
  tally.passed += 1;
  tally.deviating.set(deviation.reason, (tally.deviating.get(deviation.reason) ?? 0) + 1);
}

async function answerOf(
  suite: ConformanceSuite,
  one: ConformanceCase,
): Promise<{ value: unknown } | { threw: string }> {
  try {
    return { value: await suite.answer(one.input) };
  } catch (error) {
    return { threw: error instanceof Error ? (error.stack ?? error.message) : String(error) };
  }
}

function show(value: unknown): string {
  return inspect(value, { depth: 8, breakLength: 140, maxStringLength: 600 }).replaceAll('\n', '\n      ');
}

function printSuite(name: string, tally: Tally, verbose: boolean): void {
  const mark = tally.failed === 0 ? 'ok  ' : 'FAIL';
  const loose = [...tally.loose].map(([field, [agree, of]]) => `; ${field} ${agree} of ${of}`).join('');
  process.stdout.write(`${mark} ${name}: ${tally.passed} passed, ${tally.failed} failed${loose}\n`);
  for (const [reason, count] of tally.deviating)
    process.stdout.write(`       ${count} on purpose: ${reason}\n`);
  const limit = verbose ? tally.reports.length : 5;
  for (const report of tally.reports.slice(0, limit)) process.stdout.write(`    - ${report}\n`);
  if (tally.reports.length > limit)
    process.stdout.write(`    (${tally.reports.length - limit} more: --verbose)\n`);
}

// A connection or a child that a suite left open must not keep the run from ending.
process.exit(await main());
