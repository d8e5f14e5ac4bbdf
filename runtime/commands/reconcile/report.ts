/** The report of an offline run, as text or as data. It contains no Secret values: they are `Redacted`. */

import { capped, textTable } from '../../cli/terminal.ts';
import { digestOfNode } from '../../core/docker-config/encode.ts';
import { readEntryMembers } from '../../core/docker-config/fields.ts';
import { secretDataText } from '../../core/docker-config/pull-secret.ts';
import { conditionsIn } from '../../core/kubernetes/conditions.ts';
import { describeObject, type KubeObject } from '../../core/kubernetes/object.ts';
import { verdictsOf } from '../../core/kubernetes/pull-status.ts';
import { Redacted, reveal } from '../../core/redacted.ts';
import { counted, oneLined } from '../../core/text.ts';
import { plannedNames } from '../../diagnose/model/admission.ts';
import { effectiveNames, pullBy, SECRET, WORKLOAD_KINDS } from '../../diagnose/model/pull.ts';
import type { ObjectResult, OfflineResult } from '../../engine/offline/offline.ts';
import type { ObjectStore } from '../../engine/store.ts';
import { below, type Difference, diff, isMap } from '../../kube/drift.ts';
import type { ReconcileFlags } from './settings.ts';

// Describes a Secret value without showing it: which registries a pull secret has, and which entries were added or changed.

/** Describes the change of one `data` value (base64) of a Secret. */
export function describeSecretValue(
  before: Redacted<string> | undefined,
  after: Redacted<string> | undefined,
): string {
  const [old, next] = [entriesOf(before), entriesOf(after)];
  if (next !== undefined && old === undefined)
    return `pull secret for ${[...next.keys()].join(', ') || 'no registry'}`;
  if (next !== undefined && old !== undefined) return describeEntries(old, next);
  if (after === undefined) return 'removed';
  const size = Buffer.from(reveal(after), 'base64').length;
  return before === undefined ? `[redacted] (${size} bytes)` : `[redacted] (changed, ${size} bytes)`;
}

function describeEntries(old: ReadonlyMap<string, string>, next: ReadonlyMap<string, string>): string {
  const lists = {
    added: [...next.keys()].filter((key) => !old.has(key)),
    removed: [...old.keys()].filter((key) => !next.has(key)),
    changed: [...next].flatMap(([key, entry]) => (old.has(key) && old.get(key) !== entry ? [key] : [])),
  };
  const parts = Object.entries(lists).flatMap(([word, keys]) =>
    keys.length === 0 ? [] : [`${word} ${keys.join(', ')}`],
  );
  return `pull secret: ${parts.join('; ') || 'same entries, other formatting'}`;
}

/** Digest of each entry by registry; undefined if the value is not a pull secret. */
function entriesOf(value: Redacted<string> | undefined): ReadonlyMap<string, string> | undefined {
  if (value === undefined) return undefined;
  const found = readEntryMembers(reveal(secretDataText(value)), 'config.json');
  if (found?.present !== true) return undefined;
  return new Map([...found.entries].map(([key, member]) => [key, digestOfNode(member.value)]));
}

// Pull secrets of the pods of templates, for `reconcile --from`. Templates are never changed, so no diff shows what admission
// adds to their pods.

/** A template whose pods get Secrets from profiles or SidecarSets. */
type TemplatePull = NonNullable<ReturnType<typeof pullOf>>;

/** Kinds to read for this, in addition to those of the reconcilers. */
export const TEMPLATE_KINDS: readonly string[] = [
  ...WORKLOAD_KINDS.map(({ kind }) => kind),
  'ServiceAccount',
  'MutatingWebhookConfiguration',
];

/**
 * Returns the templates whose pods get Secrets from profiles or SidecarSets.
 *
 * @param store state after the run, with the created copies and the compiled policy
 * @param isOff whether injection is off in the configuration
 */
export function templatePulls(store: ObjectStore, isOff: boolean): readonly TemplatePull[] {
  return WORKLOAD_KINDS.filter(({ kind }) => kind !== 'Pod')
    .flatMap((kind) => store.list(kind).filter((object) => !isMade(object)))
    .flatMap((object) => pullOf(store, object, isOff) ?? []);
}

/** Whether another listed template controls it: a ReplicaSet of a Deployment, a Job of a CronJob. */
function isMade({ metadata }: KubeObject): boolean {
  return (metadata.ownerReferences ?? []).some(({ controller }) => controller === true);
}

function pullOf(store: ObjectStore, object: KubeObject, isOff: boolean) {
  const { namespace = 'default', name } = object.metadata;
  const names = effectiveNames(store, pullBy(object));
  const given = names.filter(({ listedBy }) => /^(PullSecretProfile|SidecarSet)\//.test(listedBy));
  const listed = names.map((one) => one.name);
  const planned = plannedNames(store, object, listed);
  if (given.length + planned.length === 0) return undefined;
  return {
    template: describeObject({ kind: object.kind, namespace, name }),
    /** In the order in which the kubelet tries them. */
    secrets: names
      .filter((one) => !isOff || !given.includes(one))
      .map((one) => ({
        name: one.name,
        /** `Deployment/shop/web`, `ServiceAccount/shop/default`, `PullSecretProfile/team`. */
        by: one.listedBy,
        /** Whether the Secret is in the namespace or will be copied there. */
        present: store.get({ ...SECRET, namespace, name: one.name }) !== undefined,
      })),
    /** Names that profiles or SidecarSets list, but nothing injects into these pods. */
    notInjected: [...(isOff ? given : []), ...planned].map((one) => one.name),
  };
}

/** Describes a template in one line. */
export function templateLine({ template, secrets, notInjected }: TemplatePull): string {
  const names = secrets.map(
    ({ name, by, present }) => `${name} (${by === template ? 'its own' : by}${present ? '' : ', not found'})`,
  );
  const list = names.length === 0 ? 'none' : names.join(', ');
  const rest = notInjected.length === 0 ? '' : `; not injected: ${notInjected.join(', ')}`;
  return `${template}: ${list}${rest}`;
}

/** The data of {@link reportOf}, as printed for programs. */
export type RunReport = ReturnType<typeof reportOf>;

type ReportEntry = RunReport['objects'][number];

/** Converts the result of a run to a report. */
export function reportOf(scope: string, result: OfflineResult, templates: readonly TemplatePull[] = []) {
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
    /** Pull secrets of the pods of templates, where profiles or SidecarSets add some. */
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

function statusOf(result: OfflineResult) {
  const reported = new Set(result.reports.flatMap((report) => report.status.map(describeObject)));
  const objects = result.objects
    .map(({ ref, after }) => ({ object: describeObject(ref), after }))
    .filter(({ object }) => reported.has(object));
  return {
    conditions: objects.flatMap(({ object, after }) =>
      conditionsIn(after).map(({ type, status, reason, message }) => ({
        object,
        type,
        status,
        reason,
        message,
      })),
    ),
    verdicts: objects.flatMap(({ object, after }) =>
      verdictsOf(after).map((verdict) => ({ ...verdict, object })),
    ),
  };
}

/** Fields that a diff omits: the identity (in the headline), our labels and annotations, and status (shown separately). */
const PLAIN: readonly RegExp[] = [
  /^(apiVersion|kind|status)\b/,
  /^metadata\.(name|namespace|uid)$/,
  /^metadata\.labels\["(app\.kubernetes\.io\/|pullwright\.dev\/owner)/,
  /^metadata\.annotations\["pullwright\.dev\/key"/,
];

function diffLines({ before, after }: ObjectResult) {
  return diff(before, after)
    .flatMap((difference) => leaves(difference))
    .filter(({ path }) => !PLAIN.some((pattern) => pattern.test(path)))
    .map(lineOf);
}

/** Splits a created or removed map into its leaves. */
function leaves({ path, before, after }: Difference): readonly Difference[] {
  const present = before ?? after;
  if ((before !== undefined && after !== undefined) || !isMap(present) || Object.keys(present).length === 0)
    return [{ path, before, after }];
  return Object.entries(present).flatMap(([key, value]) => {
    const at = { path: below(path, key), before, after };
    return leaves(before === undefined ? { ...at, after: value } : { ...at, before: value });
  });
}

/** One line of a diff: a sign and a text. */
function lineOf({ path, before, after }: Difference) {
  const sign = before === undefined ? '+' : after === undefined ? '-' : '~';
  return { sign, text: `${path}: ${changeOf(before, after)}` };
}

function changeOf(before: unknown, after: unknown): string {
  if (before instanceof Redacted || after instanceof Redacted)
    return describeSecretValue(before as Redacted<string> | undefined, after as Redacted<string> | undefined);
  if (before === undefined || after === undefined) return short(before ?? after);
  return `${short(before)} -> ${short(after)}`;
}

function short(value: unknown): string {
  const text = JSON.stringify(value) ?? 'nothing';
  return text.length > 100 ? `${text.slice(0, 97)}...` : text;
}

/** Options of {@link renderRunReport}. */
export interface RenderOptions {
  readonly verbose: boolean;
  /** Marks every change as a dry run, like kubectl. @default {false} */
  readonly dryRun?: boolean;
}

type Section = readonly [title: string, lines: readonly string[]];

/** Formats the report as text. */
export function renderRunReport(given: RunReport, options: RenderOptions): string {
  const report = oneLined(given);
  const shown = report.objects.filter((object) => options.verbose || object.verb !== 'unchanged');
  const roles = [...Map.groupBy(shown, ({ role }) => role)].sort(([a], [b]) => (a < b ? 1 : -1));
  const few = (lines: readonly string[]): readonly string[] =>
    options.verbose ? lines : capped(lines, MOST_LINES, '--verbose shows all');
  const sections: readonly Section[] = [
    ...roles.map(
      ([role, objects]): Section => [
        `${role} cluster`,
        objects.flatMap((object) => objectLines(object, options)),
      ],
    ),
    ['pull secrets of pod templates', few(report.templates.map((one) => `  ${templateLine(one)}`))],
    [
      'verdicts',
      few(report.verdicts.map((one) => `  ${one.verdict.padEnd(9)} ${one.subject}: ${one.message}`)),
    ],
    [
      'conditions',
      // Stalled and Reconciling only repeat Ready, for programs.
      report.conditions
        .filter((one) => one.type !== 'Stalled' && one.type !== 'Reconciling')
        .map((one) => `  ${one.object} ${one.type}=${one.status} ${one.reason}: ${one.message}`),
    ],
    [
      'events',
      few(
        report.events.map(
          (one) => `  ${one.type.padEnd(7)} ${one.reason} on ${describeObject(one.regarding)}: ${one.note}`,
        ),
      ),
    ],
    ['actions', report.actions.map((one) => `  ${one}`)],
    [
      'problems',
      report.problems.map(
        ({ retryPolicy, code, message, hint = [] }) =>
          `  ${retryPolicy.padEnd(8)} ${code}: ${[message, hint].flat().join('. ')}`,
      ),
    ],
  ];
  const told = sections.flatMap(([title, lines]) =>
    lines.length === 0 ? [] : [[title, ...lines].join('\n')],
  );
  const { created, configured, unchanged, removed } = report.counts;
  const tail = `${created} created, ${configured} configured, ${unchanged} unchanged, ${removed} removed${dryRunMark(options)}`;
  return `${[`scope ${report.scope}`, ...told, tail].join('\n\n')}\n`;
}

/** Limits the output, because one tenant may have many rejected entries. */
const MOST_LINES = 200;

/** For a created object, lists only its data; for a changed object, every change. */
function objectLines(entry: ReportEntry, options: RenderOptions): string[] {
  const { verbose } = options;
  const mark = entry.verb === 'unchanged' ? '' : dryRunMark(options);
  const told =
    verbose || entry.verb !== 'created'
      ? entry.diff
      : entry.diff.filter((line) => line.text.startsWith('data'));
  const shown = verbose ? told : told.slice(0, 20);
  const more =
    told.length > shown.length ? [`      (${told.length - shown.length} more, use --verbose)`] : [];
  return [
    `  ${entry.verb.padEnd(10)} ${entry.object}${mark}`,
    ...shown.map((line) => `      ${line.sign} ${line.text}`),
    ...more,
  ];
}

function dryRunMark({ dryRun = false }: RenderOptions): string {
  return dryRun ? ' (dry run)' : '';
}

// Summary of a run over several clusters: one row each, the worst first, and the next commands.

const COLUMNS = ['errors', 'warnings', 'changes'] as const;

/**
 * Returns the table and three commands. Errors are rejected entries, problems and conditions `Ready=False`; warnings are
 * shadowed entries and remarks.
 *
 * @param program how the user runs it: `pullwright`, `node main.ts`
 */
export function runSummary(
  reports: readonly RunReport[],
  flags: Pick<ReconcileFlags, 'from' | 'management'>,
  program: string,
): string {
  const rows = reports
    .map(rowOf)
    .toSorted((a, b) => b.errors - a.errors || b.warnings - a.warnings || (a.scope < b.scope ? -1 : 1));
  const [worst] = rows;
  if (worst === undefined) return '';
  const totals = COLUMNS.map((column) => String(rows.reduce((total, row) => total + row[column], 0)));
  const table = textTable(
    [
      ['CLUSTER', ...COLUMNS.map((column) => column.toUpperCase())],
      ...rows.map((row) => [row.scope, ...COLUMNS.map((column) => String(row[column]))]),
      [counted(rows.length, 'cluster'), ...totals],
    ],
    undefined,
  );
  const next = nextCommands(worst, flags);
  const wrong = reports.flatMap(({ scope, verdicts }) =>
    verdicts
      .filter(({ verdict }) => verdict === 'Rejected')
      .map((one) => `  ${scope}: ${one.subject}: ${one.message}`),
  );
  const rejected = wrong.length === 0 ? '' : `\nrejected\n${wrong.slice(0, 5).join('\n')}\n`;
  return `summary\n\n${table}${rejected}\nto see more\n${next.map((line) => `  ${program} ${line}\n`).join('')}`;
}

function rowOf({ scope, verdicts, conditions, problems, counts }: RunReport) {
  const count = (names: readonly string[]): number =>
    verdicts.filter(({ verdict }) => names.includes(verdict)).length;
  const notReady = conditions.filter(({ type, status }) => type === 'Ready' && status === 'False').length;
  return {
    scope,
    verdicts,
    errors: count(['Rejected']) + notReady + problems.length,
    warnings: count(['Shadowed', 'Warning']),
    changes: counts.created + counts.configured + counts.removed,
  };
}

/** Commands for one cluster: the full report, an image of a rejected registry, and its files. */
function nextCommands(
  { scope, verdicts }: Pick<RunReport, 'scope' | 'verdicts'>,
  { from = '', management }: Pick<ReconcileFlags, 'from' | 'management'>,
): readonly string[] {
  const folder = `${from}/${scope}`;
  const subject = verdicts.find(({ verdict }) => verdict === 'Rejected')?.subject;
  const image =
    subject === undefined || !SUMMARY_PLAIN.test(subject) ? 'quay.io/team/app:1' : `${subject}/app:1`;
  const both = management === undefined ? '' : ` --management ${management}`;
  return [
    `reconcile --from ${from}${both} --hosted-cluster ${scope} --dry-run`,
    `explain ${image} --from ${folder}`,
    `validate ${folder}`,
  ];
}

/** A tenant may write a subject. Commands contain it only if it is a plain registry or repository. */
const SUMMARY_PLAIN = /^[a-z0-9][a-z0-9.:/-]*$/;
