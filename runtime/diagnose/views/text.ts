/** Output of commands: in the format of `-o`, and as text. */

import type { CommandIo, ExitCode } from '../../cli/command.ts';
import { type FileFinding, type JunitCase, junitXml, sarifText } from '../../cli/findings.ts';
import { capped, columnsOf, type Paint, plain, textRecords, textTable } from '../../cli/terminal.ts';
import type { KubeObject } from '../../core/kubernetes/object.ts';
import { counted, onOneLine, wrapped } from '../../core/text.ts';
import { dataText, toYaml } from '../../kube/yaml.ts';
import { fixesOf } from '../checks/findings.ts';
import type { Report, ReportCluster } from '../model/cluster.ts';
import {
  type Cause,
  causeText,
  type EntryPlace,
  type Explanation,
  type Finding,
  headline,
  type Sent,
  type Severity,
  VERDICT_SIGNS,
} from '../model/types.ts';
import {
  endingSoon,
  type VerifiedAttempt,
  type VerifiedCredential,
  type VerifiedImage,
  type VerifyReport,
} from '../model/verification.ts';

// Output in the format of `-o`, the same for all commands.

/** Formats for `outputFlag`, as in kubectl. */
export const OUTPUT_FORMS = ['text', 'wide', 'name', 'json', 'yaml'] as const;

export interface Answer {
  /** Data for `-o json` and `-o yaml`. */
  readonly data: unknown;
  /** Objects, for `-o name`. */
  readonly names?: readonly string[];
  /** Formats the text for a terminal width; undefined for no limit. */
  readonly text: (columns: number | undefined) => string;
  /** Message for `-o name` without objects. @default {the text} */
  readonly nothing?: string;
  readonly failed: boolean;
}

/** Prints the answer in `form`. If `-o name` has no objects, stderr says why. */
export function answer(
  io: CommandIo,
  form: (typeof OUTPUT_FORMS)[number],
  { data, names = [], text, nothing, failed }: Answer,
): ExitCode {
  if (form === 'json' || form === 'yaml') io.stdout.write(dataText(form, data));
  else if (form !== 'name') io.stdout.write(text(form === 'wide' ? undefined : columnsOf(io)));
  else if (names.length > 0)
    io.stdout.write([...new Set(names)].map((one) => `${onOneLine(one)}\n`).join(''));
  else io.stderr.write(nothing === undefined ? text(undefined) : `${onOneLine(nothing)}\n`);
  return failed ? 1 : 0;
}

// An explanation as a tree.

type Branch = readonly [text: string, below?: readonly Branch[]];
type Place = (entry: EntryPlace) => string;

/** Maximum number of keys of other registries in the text. The JSON has all, with reasons. */
const MAX_NAMES = 8;

/**
 * Formats the explanation as a tree, with a final newline.
 *
 * @param locate returns the file and line of a Secret or file, such as `secrets.yaml:12`; undefined if unknown
 * @param columns width at which lines wrap; undefined for no limit
 */
export function explanationText(
  explanation: Explanation,
  locate: (source: string) => string | undefined,
  paint: Paint = plain,
  columns?: number,
): string {
  const file = (source: string): string => {
    const found = locate(source);
    return found === undefined ? '' : paint('dim', ` (${found})`);
  };
  const place: Place = ({ key, source, origin }) =>
    `"${key}" in ${source}${origin === undefined ? '' : `, from ${origin}`}${file(origin ?? source)}`;
  const { secrets, node, runtime, verification, findings } = explanation;
  const [worst] = findings;
  const broken = worst?.severity === 'error' ? worst : undefined;
  const isOfRuntime = OF_RUNTIME.includes(broken?.check ?? '');
  const head = (title: string, isHop: boolean): string =>
    `${broken !== undefined && isHop ? paint('red', '✕ ') : ''}${paint('bold', title)}  `;
  const listed = secrets.map(({ name, listedBy, state }): Branch => {
    const said = state === 'found' ? '' : `: ${paint('yellow', state)}`;
    return [`Secret ${name}, listed by ${listedBy}${said}`];
  });
  const ofNode = node === undefined ? 'node: unknown' : `node: ${node}${file(node)}`;
  const branches: readonly Branch[] = [
    [paint('bold', 'credentials from'), [...listed, [ofNode]]],
    kubelet(head('kubelet', !isOfRuntime), explanation, paint, place),
    ...(runtime === 'containerd' ? [] : [crio(head('CRI-O', isOfRuntime), explanation, paint, place)]),
    // containerd reads neither mirror sets nor policies of the cluster.
    ...(runtime === 'CRI-O'
      ? []
      : [[head('containerd', broken?.check === 'registry') + containerd(explanation)] as const]),
    [paint('dim', verification)],
    ...findings.map((finding): Branch => {
      const { severity, message } = finding;
      return [`${paint(COLOUR_OF[severity], severity)}: ${message}`, fixLines(finding).map((fix) => [fix])];
    }),
  ];
  const verdict = broken === undefined ? '' : `  ${paint('red', 'broken')}: ${broken.message}`;
  return `${[`${paint('bold', explanation.image)}${verdict}`, ...drawn(branches, '', columns)].join('\n')}\n`;
}

/** Checks whose errors affect the runtime; those of all other checks affect the kubelet. */
const OF_RUNTIME = ['pull-sources', 'mirror-credential', 'registry'];

function drawn(branches: readonly Branch[], indent: string, columns: number | undefined): readonly string[] {
  return branches.flatMap(([text, below = []], index) => {
    const last = index === branches.length - 1;
    const under = `${indent}${last ? '   ' : '│  '}`;
    const [first = '', ...rest] = wrapped(text, columns === undefined ? undefined : columns - under.length);
    // Continuation lines align with the branches below.
    const bar = below.length > 0 ? '│  ' : '   ';
    return [
      `${indent}${last ? '└─' : '├─'} ${first}`,
      ...rest.map((line) => `${under}${bar}${line}`),
      ...drawn(below, under, columns),
    ];
  });
}

function kubelet(head: string, { kubelet: view }: Explanation, paint: Paint, place: Place): Branch {
  const { blockedBy, tried, unused, anonymous, unknown } = view;
  if (blockedBy !== undefined)
    return [`${head}${paint('red', `fails: ${blockedBy.source} ${blockedBy.why}`)}`];
  const used = tried.map((one, index): Branch => {
    const user = paint('green', one.username === '' ? '(no user)' : one.username);
    return [
      `${index + 1}. ${user}  ${place(one)}${one.by === 'hub' ? '  as the fallback for Docker Hub' : ''}`,
    ];
  });
  const near = unused.filter((one) => one.near);
  const not = near.map((one): Branch => [paint('dim', `not ${place(one)}: ${one.why}`)]);
  const others = unused.filter((one) => !one.near).map((one) => one.key);
  const names = others.length > MAX_NAMES ? [...others.slice(0, MAX_NAMES), '...'] : others;
  const rest = paint('dim', `${others.length} ignored (other registries): ${names.join(', ')}`);
  const order = tried.length === 1 ? 'one credential' : `${tried.length} in this order`;
  const known = anonymous ? 'one anonymous attempt' : `${order}, no anonymous attempt`;
  const what = unknown === undefined ? known : `unknown: ${unknown}`;
  return [`${head}${what}`, [...used, ...not, ...(others.length === 0 ? [] : [[rest] as const])]];
}

function crio(head: string, { places, skipped }: Explanation, paint: Paint, place: Place): Branch {
  const tried = places.map(({ reference, kind, from, crio: sent }, index): Branch => {
    const said = from === undefined ? '' : paint('dim', `  ${from}`);
    return [`${index + 1}. ${reference}  ${kind}${said}`, [[sentText(sent, paint, place)]]];
  });
  const others = skipped.map(
    ({ reference, kind, why }): Branch => [paint('dim', `-  ${reference}  ${kind}, not tried: ${why}`)],
  );
  return [`${head}pull sources, in order`, [...tried, ...others]];
}

function sentText(sent: Sent, paint: Paint, place: Place): string {
  if (sent.what === 'kubelet') return "with the kubelet's credentials, one after the other";
  if (sent.what === 'entry') return `with ${paint('green', sent.username)}  ${place(sent.entry)}`;
  if (sent.what === 'helper') return `with the credential helper "${sent.helper}" of ${sent.source}`;
  if (sent.what === 'nothing') return `${paint('yellow', 'without a credential')}: ${sent.why}`;
  return `${sent.what === 'unknown' ? paint('yellow', 'unknown') : paint('red', 'fails')}: ${sent.why}`;
}

function containerd({ containerd: sent, kubelet: view }: Explanation): string {
  if (view.blockedBy !== undefined) return 'fails like the kubelet';
  if (sent.what === 'unknown') return `unknown: ${sent.why}`;
  return sent.what === 'kubelet'
    ? "the kubelet's credentials, for every host of its hosts.toml; it ignores mirror sets"
    : 'one anonymous attempt';
}

/** Color of each severity, always shown with the word. */
export const COLOUR_OF = {
  error: 'red',
  warning: 'yellow',
  unknown: 'yellow',
  info: 'dim',
  ok: 'green',
} as const satisfies Record<Severity, string>;

/** Advice and commands, one per line, so that commands can be copied. */
export function fixLines({ advice, commands = [] }: Finding): readonly string[] {
  return [advice ?? [], ...commands].flat().map((fix) => `fix: ${fix}`);
}

// Output of file checks: also reports for CI systems.

export const FILE_FORMS = ['text', 'json', 'yaml', 'sarif', 'junit'] as const;

/** A result in every format. */
export interface FileAnswer {
  readonly data: unknown;
  readonly findings: readonly FileFinding[];
  readonly suite: string;
  readonly cases: readonly JunitCase[];
  readonly text: () => string;
}

/** Formats the result as `form`. */
export function inForm(
  form: (typeof FILE_FORMS)[number],
  { data, findings, suite, cases, text }: FileAnswer,
): string {
  if (form === 'sarif') return sarifText(findings);
  if (form === 'junit') return junitXml(suite, cases);
  return form === 'text' ? text() : dataText(form, data);
}

// A verification as text: attempts and findings, then credentials, then totals.

/**
 * Formats a verification, with a final newline.
 *
 * @param warnDays marks credentials that expire within this number of days
 * @param columns width of the terminal; undefined for no limit
 */
export function verifyText(report: VerifyReport, warnDays: number, paint: Paint, columns?: number): string {
  const soon = new Set(endingSoon(report, warnDays));
  const attempts = report.images.flatMap(rowsOf);
  const credentials = report.credentials.map((one) => [
    one.verdict,
    `"${one.key}" in ${one.source}`,
    `${one.expiresAt ?? '-'}${soon.has(one) ? noteOf(one, report) : ''}`,
    String(one.images),
    one.verdict === 'Valid' ? '' : one.message,
  ]);
  const tables = [
    textRecords([['VERDICT', 'PLACE', 'CREDENTIAL', 'MESSAGE'], ...attempts], columns),
    ...(credentials.length === 0
      ? []
      : [textRecords([['VERDICT', 'CREDENTIAL', 'ENDS', 'TRIED', 'MESSAGE'], ...credentials], columns)]),
  ];
  return `${tables.map((table) => painted(table, paint)).join('\n')}\n${sums(report)}\n`;
}

/** Marks a time in the past or near future, unless the verdict already is `Expired`. */
function noteOf({ verdict, expiresAt = '' }: VerifiedCredential, { checkedAt }: VerifyReport): string {
  if (verdict === 'Expired') return '';
  return Date.parse(expiresAt) <= Date.parse(checkedAt) ? ' (expired)' : ' (soon)';
}

/** Rows for the attempts and findings of an image. */
function rowsOf({ image, usedBy, attempts, findings }: VerifiedImage): readonly (readonly string[])[] {
  const found = findings.map(({ severity, message, advice }) => [
    severity === 'error' ? 'Broken' : 'Warning',
    image,
    `used by ${usedBy}`,
    [message, advice ?? []].flat().join('; fix: '),
  ]);
  return [...attempts.map(rowOf), ...found];
}

function rowOf({ verdict, reference, credential, message }: VerifiedAttempt): readonly string[] {
  const by = credential === undefined ? 'none' : `"${credential.key}" in ${credential.source}`;
  return [verdict, reference, by, verdict === 'Valid' ? '' : message];
}

const REFUSED = ['Forbidden', 'Invalid', 'Expired', 'Broken'];

function painted(table: string, paint: Paint): string {
  return table.replace(/^\w+/gm, (word) => {
    if (word === 'VERDICT') return paint('bold', word);
    return paint(word === 'Valid' ? 'green' : REFUSED.includes(word) ? 'red' : 'yellow', word);
  });
}

function sums({ images, credentials }: VerifyReport): string {
  const count = (pullable: VerifiedImage['pullable']): number =>
    images.filter((image) => image.pullable === pullable).length;
  const verdicts = Map.groupBy(credentials, ({ verdict }) => verdict);
  const unknown = count('unknown') === 0 ? '' : `, ${count('unknown')} unknown`;
  const judged = [...verdicts].map(([verdict, its]) => `${its.length} ${verdict}`).join(', ') || 'none';
  return `${counted(images.length, 'image')}: ${count('yes')} can be pulled, ${count('no')} cannot${unknown}; credentials: ${judged}`;
}

// Causes with their cases and fixes, alone or with the clusters of a report.

const TEXT_COLOURS = { broken: 'red', attention: 'yellow', unknown: 'dim', ok: 'green' } as const;

/** Maximum number of cases listed per cause. */
const MOST_CASES = 5;

/** Formats causes under a `head`. Lines wrap at `columns`, except commands and YAML. */
export function causesText(head: string, causes: readonly Cause[], paint: Paint, columns?: number) {
  const lines = causes.flatMap((cause) => [...causeLines(cause, paint, columns), '']);
  return [...wrapped(head, columns).map((line) => paint('bold', line)), '', ...lines];
}

/** Formats a report for a terminal. */
export function reportText(report: Report, paint: Paint, columns?: number): string {
  const head = ['CLUSTER', 'VERDICT', 'NODES IN SYNC', 'KEYS', 'IMAGES', 'SYSTEMS'];
  const table = textTable([head, ...report.clusters.map(clusterCells)], columns);
  return `${causesText(headline(report), report.problems, paint, columns).join('\n')}\n${table}`;
}

/** Maximum lines and characters per line in a pull request comment: GitHub accepts 65,536 characters in total. */
const MOST_LINES = 150;
const MOST_CHARACTERS = 400;

/**
 * Formats a report as Markdown, for a pull request comment. A code fence, longer than any run of backticks inside, keeps names
 * from being read as Markdown or HTML.
 */
export function reportMarkdown(report: Report): string {
  const { source, madeAt, unread } = report;
  const [head = '', , ...lines] = reportText(report, plain).trimEnd().split('\n');
  const from = `${onOneLine(source)}, ${madeAt}${unread.length === 0 ? '' : `; ${counted(unread.length, 'thing')} could not be read`}`;
  const text = [from, '', ...capped(lines, MOST_LINES, 'pullwright report shows all')]
    .map((line) => line.slice(0, MOST_CHARACTERS))
    .join('\n');
  const fence = '`'.repeat(Math.max(3, ...[...text.matchAll(/`+/g)].map(([run]) => run.length + 1)));
  return `## ${head}\n\n${fence}text\n${text}\n${fence}\n`;
}

/** Wraps `text` at `columns`, with an indentation of `depth`. */
function indented(depth: number, text: string, columns: number | undefined): readonly string[] {
  const lines = wrapped(onOneLine(text), columns === undefined ? undefined : columns - depth);
  return lines.map((line) => `${' '.repeat(depth)}${line}`);
}

function causeLines(
  { verdict, cases, clusters, ...cause }: Cause,
  paint: Paint,
  columns: number | undefined,
): readonly string[] {
  const shown = cases.slice(0, MOST_CASES);
  const more = cases.length - shown.length;
  const where = clusters.length === 1 ? onOneLine(clusters[0] ?? '') : `${clusters.length} clusters`;
  const title = paint('bold', onOneLine(causeText(cause)));
  const lines = [
    ...wrapped(
      `${paint(TEXT_COLOURS[verdict], `${VERDICT_SIGNS[verdict]} ${verdict.padEnd(9)}`)} ${title} (${cases.length} in ${where}${cause.pods === 0 ? '' : `, ${counted(cause.pods, 'pod')}`})`,
      columns,
    ),
    ...shown.flatMap(({ cluster, subject, message }) => [
      ...indented(2, `${cluster}  ${subject}`, columns),
      ...indented(4, message, columns),
    ]),
    ...(more === 0 ? [] : [`  and ${more} more`]),
  ];
  // Group fixes by cluster: the same object may need another fix in another cluster.
  const fixes = [...Map.groupBy(shown, ({ cluster }) => cluster)].map(
    ([cluster, its]) => [cluster, fixOf(its, columns)] as const,
  );
  const isSame = new Set(fixes.map(([, fix]) => fix.join('\n'))).size <= 1;
  if (isSame) return [...lines, ...(fixes[0]?.[1] ?? [])];
  return [
    ...lines,
    ...fixes.flatMap(([cluster, fix]) => (fix.length === 0 ? [] : [`  in ${onOneLine(cluster)}`, ...fix])),
  ];
}

function fixOf(findings: readonly Finding[], columns: number | undefined): readonly string[] {
  const commands = new Set(findings.flatMap((one) => one.commands ?? []));
  return [
    ...[...new Set(findings.flatMap((one) => one.advice ?? []))].flatMap((one) =>
      indented(2, `fix: ${one}`, columns),
    ),
    ...[...commands, ...fixText(fixesOf(findings)).split('\n')].flatMap((line) =>
      line === '' ? [] : [`    ${line}`],
    ),
  ];
}

/** Objects of fixes as YAML documents to apply. */
export function documentsText(findings: readonly Finding[]): string {
  return fixesOf(findings)
    .map((object) => `---\n${toYaml(object)}`)
    .join('');
}

/** Objects as YAML, without a final newline. */
export function fixText(objects: readonly KubeObject[]): string {
  return objects
    .map((object) => toYaml(object, { lineWidth: 0 }))
    .join('---\n')
    .trimEnd();
}

function clusterCells({ name, verdict, nodes, keys, pulls, pullsLeftOut, systems }: ReportCluster): string[] {
  return [
    onOneLine(name),
    verdict,
    `${nodes.inSync} of ${nodes.eligible} (${counted(nodes.total, 'node')})`,
    String(keys.length),
    String(pulls.length + pullsLeftOut),
    systems.map((one) => `${one.system} ${one.verdict}`).join(', '),
  ];
}
