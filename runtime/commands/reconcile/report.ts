/** What an offline run found, as text for people or as data for programs. No Secret value gets in: they are `Redacted`. */

import type { EventNote, Key, Problem } from '../../controller/contract.ts';
import { type ObjectResult, type OfflineResult } from '../../controller/offline.ts';
import { diff, pathStep } from '../../kube/diff.ts';
import type { Difference } from '../../kube/difference.ts';
import type { Condition } from '../../rules/kubernetes/conditions.ts';
import { describeObject } from '../../rules/kubernetes/object.ts';
import { isRecord } from '../../rules/record.ts';
import { Redacted } from '../../rules/redacted.ts';
import { capped } from '../../rules/text/capped.ts';
import { jsonText } from '../../rules/text/json-text.ts';
import { oneLined } from '../../rules/text/printable.ts';
import { describeSecretValue } from './secret-summary.ts';
import { type TemplatePull, templateLine } from './templates.ts';

/** One line of a diff: a sign and a text. */
export interface DiffLine {
  readonly sign: '+' | '-' | '~';
  readonly text: string;
}

export interface ReportEntry {
  readonly verb: ObjectResult['verb'];
  readonly role: string;
  readonly object: string;
  readonly reconciler: string;
  readonly diff: readonly DiffLine[];
}

export interface RunReport {
  readonly scope: string;
  readonly objects: readonly ReportEntry[];
  readonly events: readonly (EventNote & { readonly reconciler: string })[];
  readonly conditions: readonly (Pick<Condition, 'type' | 'status' | 'reason' | 'message'> & {
    readonly object: string;
  })[];
  readonly verdicts: readonly {
    readonly object: string;
    readonly subject: string;
    readonly verdict: string;
    readonly reason: string;
    readonly message: string;
  }[];
  readonly actions: readonly string[];
  /** What the pods of templates will pull with, where profiles or SidecarSets have a part in it. */
  readonly templates: readonly TemplatePull[];
  readonly problems: readonly (Omit<Problem, 'regarding'> & {
    readonly reconciler: string;
    readonly key: Key;
  })[];
  readonly counts: Readonly<Record<ObjectResult['verb'], number>>;
}

/** As JSON: of one cluster its report, of several a list. */
export function reportsJson(reports: readonly RunReport[]): string {
  const [first] = reports;
  const printed = reports.length === 1 && first !== undefined ? first : reports;
  return jsonText<RunReport | readonly RunReport[]>(printed);
}

/** Turns a run into a report. */
export function reportOf(
  scope: string,
  result: OfflineResult,
  templates: readonly TemplatePull[] = [],
): RunReport {
  const counts = { created: 0, configured: 0, unchanged: 0, removed: 0 };
  for (const object of result.objects) counts[object.verb] += 1;
  return {
    scope,
    objects: result.objects.map((object) => ({
      verb: object.verb,
      role: object.ref.role,
      object: describeObject(object.ref),
      reconciler: object.reconciler,
      diff: object.verb === 'removed' || object.verb === 'unchanged' ? [] : diffLines(object),
    })),
    events: result.reports.flatMap((report) =>
      report.events.map((event) => ({ ...event, reconciler: report.reconciler })),
    ),
    ...statusOf(result),
    templates,
    actions: result.reports.flatMap((report) =>
      report.actions.map((action) => `patch ${describeObject(action.ref)}`),
    ),
    problems: result.reports.flatMap((report) =>
      report.problems.map(({ regarding: _regarding, ...problem }) => ({
        ...problem,
        reconciler: report.reconciler,
        key: report.key,
      })),
    ),
    counts,
  };
}

function statusOf(result: OfflineResult): Pick<RunReport, 'conditions' | 'verdicts'> {
  const reported = new Set(result.reports.flatMap((report) => report.status.map(describeObject)));
  const withStatus = result.objects.flatMap(({ ref, after }) => {
    const status = after?.status as
      | { conditions?: readonly Condition[]; verdicts?: RunReport['verdicts'] }
      | undefined;
    return status === undefined || !reported.has(describeObject(ref))
      ? []
      : [{ object: describeObject(ref), status }];
  });
  return {
    conditions: withStatus.flatMap(({ object, status }) =>
      (status.conditions ?? []).map(({ type, status: value, reason, message }) => ({
        object,
        type,
        status: value,
        reason,
        message,
      })),
    ),
    verdicts: withStatus.flatMap(({ object, status }) =>
      (status.verdicts ?? []).map((verdict) => ({ ...verdict, object })),
    ),
  };
}

/** What a reader need not see of an object: its identity, which is the headline, our marks, and status, which has its own part. */
const PLAIN: readonly RegExp[] = [
  /^(apiVersion|kind|status)\b/,
  /^metadata\.(name|namespace|uid)$/,
  /^metadata\.labels\["(app\.kubernetes\.io\/|pullwright\.dev\/owner)/,
  /^metadata\.annotations\["pullwright\.dev\/key"/,
];

function diffLines({ before, after }: ObjectResult): readonly DiffLine[] {
  return diff(before, after)
    .flatMap((difference) => leaves(difference))
    .filter(({ path }) => !PLAIN.some((pattern) => pattern.test(path)))
    .map(lineOf);
}

/** A created or removed map is shown leaf by leaf. */
function leaves({ path, before, after }: Difference): readonly Difference[] {
  const present = before ?? after;
  if ((before !== undefined && after !== undefined) || !isMap(present) || Object.keys(present).length === 0)
    return [{ path, before, after }];
  return Object.entries(present).flatMap(([key, value]) => {
    const below = path === '' ? key : `${path}${pathStep(key)}`;
    return leaves(
      before === undefined ? { path: below, before, after: value } : { path: below, before: value, after },
    );
  });
}

function lineOf({ path, before, after }: Difference): DiffLine {
  const sign = before === undefined ? '+' : after === undefined ? '-' : '~';
  if (before instanceof Redacted || after instanceof Redacted) {
    return {
      sign,
      text: `${path}: ${describeSecretValue(before as Redacted<string> | undefined, after as Redacted<string> | undefined)}`,
    };
  }
  return {
    sign,
    text:
      sign === '~' ? `${path}: ${short(before)} -> ${short(after)}` : `${path}: ${short(before ?? after)}`,
  };
}

function isMap(value: unknown): value is Readonly<Record<string, unknown>> {
  return isRecord(value) && !(value instanceof Redacted);
}

function short(value: unknown): string {
  const text = JSON.stringify(value) ?? 'nothing';
  return text.length > 100 ? `${text.slice(0, 97)}...` : text;
}

/** Options of {@link renderRunReport}. */
export interface RenderOptions {
  readonly verbose: boolean;
  /** Nothing was changed: said with every change, as kubectl does. @default {false} */
  readonly dryRun?: boolean;
}

/** The report as lines for people. */
export function renderRunReport(given: RunReport, options: RenderOptions): string {
  const report = oneLined(given);
  const shown = report.objects.filter((object) => options.verbose || object.verb !== 'unchanged');
  const roles = [...new Set(report.objects.map((object) => object.role))].sort().reverse();
  const few = (lines: readonly string[]): readonly string[] =>
    options.verbose ? lines : capped(lines, MOST_LINES, '--verbose shows all');
  const sections = [
    ...roles.map((role) =>
      section(
        `${role} cluster`,
        shown.filter((object) => object.role === role).flatMap((object) => objectLines(object, options)),
      ),
    ),
    section('pods of templates pull with', few(report.templates.map((one) => `  ${templateLine(one)}`))),
    section(
      'verdicts',
      few(report.verdicts.map((one) => `  ${one.verdict.padEnd(9)} ${one.subject}: ${one.message}`)),
    ),
    section(
      'conditions',
      // These two only repeat what Ready says, for programs.
      report.conditions
        .filter((one) => one.type !== 'Stalled' && one.type !== 'Reconciling')
        .map((one) => `  ${one.object} ${one.type}=${one.status} ${one.reason}: ${one.message}`),
    ),
    section(
      'events',
      few(
        report.events.map(
          (one) => `  ${one.type.padEnd(7)} ${one.reason} on ${describeObject(one.regarding)}: ${one.note}`,
        ),
      ),
    ),
    section(
      'actions',
      report.actions.map((one) => `  ${one}`),
    ),
    section(
      'problems',
      report.problems.map(
        (one) =>
          `  ${one.disposition.padEnd(8)} ${one.code}: ${one.message}${one.hint === undefined ? '' : `. ${one.hint}`}`,
      ),
    ),
  ];
  const { created, configured, unchanged, removed } = report.counts;
  const tail = `${created} created, ${configured} configured, ${unchanged} unchanged, ${removed} removed${dryRunMark(options)}`;
  return `${[`scope ${report.scope}`, ...sections.filter((text) => text !== ''), tail].join('\n\n')}\n`;
}

/** One tenant's broken entries must not fill a person's screen. */
const MOST_LINES = 200;

function section(title: string, lines: readonly string[]): string {
  return lines.length === 0 ? '' : [title, ...lines].join('\n');
}

/** A created object is its headline and what its data says; a changed one is shown change by change. */
function objectLines(entry: ReportEntry, options: RenderOptions): string[] {
  const { verbose } = options;
  const mark = entry.verb === 'unchanged' ? '' : dryRunMark(options);
  const told =
    verbose || entry.verb !== 'created'
      ? entry.diff
      : entry.diff.filter((line) => line.text.startsWith('data'));
  const shown = verbose ? told : told.slice(0, 20);
  const more = told.length > shown.length ? [`      (${told.length - shown.length} more: --verbose)`] : [];
  return [
    `  ${entry.verb.padEnd(10)} ${entry.object}${mark}`,
    ...shown.map((line) => `      ${line.sign} ${line.text}`),
    ...more,
  ];
}

function dryRunMark({ dryRun = false }: RenderOptions): string {
  return dryRun ? ' (dry run)' : '';
}
