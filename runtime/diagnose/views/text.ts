/** What commands print: in the form that `-o` names, and as text for people. */

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
} from '../model/types.ts';
import {
  endingSoon,
  type VerifiedAttempt,
  type VerifiedCredential,
  type VerifiedImage,
  type VerifyReport,
} from '../model/verification.ts';

// The answer of a command in the form that `-o` names, the same for all of them.

/** For `outputFlag`: the forms of kubectl. */
export const OUTPUT_FORMS = ['text', 'wide', 'name', 'json', 'yaml'] as const;

export interface Answer {
  /** For programs. */
  readonly data: unknown;
  /** Objects, for `-o name`. */
  readonly names?: readonly string[];
  /** For people, in so many columns; undefined: nothing is cut. */
  readonly text: (columns: number | undefined) => string;
  /** Why no object is named. @default {the text for people} */
  readonly nothing?: string;
  readonly failed: boolean;
}

/** Prints; where there is no object to name, stderr says why. */
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

/** Keys for other registries that the text names; the JSON has all, each with its reason. */
const MAX_NAMES = 8;

export interface TextLook {
  /** @default plain text */
  readonly paint?: Paint;
  /** Where a Secret or file stands, such as `secrets.yaml:12`; undefined when it is not known. */
  readonly locate?: (source: string) => string | undefined;
  /** Longer lines go on in the next one, below their own text. @default they do not end */
  readonly columns?: number | undefined;
}

/** The tree. Ends with a newline. */
export function explanationText(
  explanation: Explanation,
  { paint = plain, locate = () => undefined, columns }: TextLook = {},
): string {
  const file = (source: string): string => {
    const found = locate(source);
    return found === undefined ? '' : paint('dim', ` (${found})`);
  };
  const place = ({ key, source, origin }: EntryPlace): string =>
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
    ...(runtime === 'CRI-O' ? [] : [[head('containerd', isOfRuntime) + containerd(explanation)] as const]),
    [paint('dim', verification)],
    ...findings.map((finding): Branch => {
      const { severity, message } = finding;
      return [`${paint(COLOUR_OF[severity], severity)}: ${message}`, fixLines(finding).map((fix) => [fix])];
    }),
  ];
  const verdict = broken === undefined ? '' : `  ${paint('red', 'broken')}: ${broken.message}`;
  return `${[`${paint('bold', explanation.image)}${verdict}`, ...drawn(branches, '', columns)].join('\n')}\n`;
}

/** Checks of what the runtime does; what others find stands in the way of the kubelet. */
const OF_RUNTIME = ['pull-sources', 'mirror-credential', 'registry'];

function drawn(branches: readonly Branch[], indent: string, columns: number | undefined): readonly string[] {
  return branches.flatMap(([text, below = []], index) => {
    const last = index === branches.length - 1;
    const under = `${indent}${last ? '   ' : '│  '}`;
    const [first = '', ...rest] = wrapped(text, columns === undefined ? undefined : columns - under.length);
    // What follows of a text stands beside the branches below it.
    const bar = below.length > 0 ? '│  ' : '   ';
    return [
      `${indent}${last ? '└─' : '├─'} ${first}`,
      ...rest.map((line) => `${under}${bar}${line}`),
      ...drawn(below, under, columns),
    ];
  });
}

function kubelet(
  head: string,
  { kubelet: { blockedBy, tried, unused, anonymous } }: Explanation,
  paint: Paint,
  place: (entry: EntryPlace) => string,
): Branch {
  if (blockedBy !== undefined)
    return [`${head}${paint('red', `fails: ${blockedBy.source} ${blockedBy.why}`)}`];
  const used = tried.map((one, index): Branch => {
    const user = paint('green', one.username === '' ? '(no user)' : one.username);
    return [
      `${index + 1}. ${user}  ${place(one)}${one.by === 'hub' ? '  as the fall-back for Docker Hub' : ''}`,
    ];
  });
  const near = unused.filter((one) => one.near);
  const not = near.map((one): Branch => [paint('dim', `not ${place(one)}: ${one.why}`)]);
  const others = unused.filter((one) => !one.near).map((one) => one.key);
  const names = others.length > MAX_NAMES ? [...others.slice(0, MAX_NAMES), '...'] : others;
  const rest = paint('dim', `${others.length} ignored (other registries): ${names.join(', ')}`);
  const order = tried.length === 1 ? 'one credential' : `${tried.length} in this order`;
  const what = anonymous ? 'one anonymous attempt' : `${order}, no anonymous attempt`;
  return [`${head}${what}`, [...used, ...not, ...(others.length === 0 ? [] : [[rest] as const])]];
}

function crio(
  head: string,
  { places, skipped }: Explanation,
  paint: Paint,
  place: (entry: EntryPlace) => string,
): Branch {
  const tried = places.map(({ reference, kind, from, crio: sent }, index): Branch => {
    const said = from === undefined ? '' : paint('dim', `  ${from}`);
    return [`${index + 1}. ${reference}  ${kind}${said}`, [[sentText(sent, paint, place)]]];
  });
  const others = skipped.map(
    ({ reference, kind, why }): Branch => [paint('dim', `-  ${reference}  ${kind}, not tried: ${why}`)],
  );
  return [`${head}pull sources, in order`, [...tried, ...others]];
}

function sentText(sent: Sent, paint: Paint, place: (entry: EntryPlace) => string): string {
  if (sent.what === 'kubelet') return "with the kubelet's credentials, one after the other";
  if (sent.what === 'entry') return `with ${paint('green', sent.username)}  ${place(sent.entry)}`;
  if (sent.what === 'helper')
    return `with what the credential helper "${sent.helper}" of ${sent.source} says`;
  if (sent.what === 'nothing') return `${paint('yellow', 'without a credential')}: ${sent.why}`;
  return `${paint('red', 'fails')}: ${sent.why}`;
}

function containerd({ containerd: sent, kubelet: view }: Explanation): string {
  if (view.blockedBy !== undefined) return 'fails like the kubelet';
  return sent.what === 'kubelet'
    ? "the kubelet's credentials, at every host of its own hosts.toml; mirror sets are not for it"
    : 'one anonymous attempt';
}

/** Of a severity; it stands beside the word, never alone. */
export const COLOUR_OF = {
  error: 'red',
  warning: 'yellow',
  unknown: 'yellow',
  info: 'dim',
  ok: 'green',
} as const satisfies Record<Severity, string>;

/** What to do. A command stands alone, to be copied. */
export function fixLines({ advice, commands = [] }: Finding): readonly string[] {
  return [advice ?? [], ...commands].flat().map((fix) => `fix: ${fix}`);
}

// What checks of files print: reports that CI systems read, beside text and data.

export const FILE_FORMS = ['text', 'json', 'yaml', 'sarif', 'junit'] as const;

/** One result in each form. */
export interface FileAnswer {
  readonly data: unknown;
  readonly findings: readonly FileFinding[];
  readonly suite: string;
  readonly cases: readonly JunitCase[];
  readonly text: () => string;
}

/** The result in the form that `-o` names. */
export function inForm(
  form: (typeof FILE_FORMS)[number],
  { data, findings, suite, cases, text }: FileAnswer,
): string {
  if (form === 'sarif') return sarifText(findings);
  if (form === 'junit') return junitXml(suite, cases);
  return form === 'text' ? text() : dataText(form, data);
}

// A verification for people: the most severe first, then every credential, then the sums.

/**
 * The text. Ends with a newline.
 *
 * @param warnDays credentials that expire within so many days are pointed out
 * @param columns width of the terminal; undefined: nothing is cut
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

/** Beside a time that has come, or comes soon; the verdict says it already where the registry refused for it. */
function noteOf({ verdict, expiresAt = '' }: VerifiedCredential, { checkedAt }: VerifyReport): string {
  if (verdict === 'Expired') return '';
  return Date.parse(expiresAt) <= Date.parse(checkedAt) ? ' (expired)' : ' (soon)';
}

/** What is tried for an image, and what is found of it. */
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
  const verdicts = new Map<string, number>();
  for (const { verdict } of credentials) verdicts.set(verdict, (verdicts.get(verdict) ?? 0) + 1);
  const unknown = count('unknown') === 0 ? '' : `, ${count('unknown')} unknown`;
  const judged = [...verdicts].map(([verdict, number]) => `${number} ${verdict}`).join(', ') || 'none';
  return `${counted(images.length, 'image')}: ${count('yes')} can be pulled, ${count('no')} cannot${unknown}; credentials: ${judged}`;
}

// Causes: what is wrong, where, and what to do; alone, or with the clusters of a report.

/** With the colour, never the colour alone. */
const SIGNS = { broken: '✕', attention: '!', unknown: '?', ok: '✓' } as const;

const TEXT_COLOURS = { broken: 'red', attention: 'yellow', unknown: 'dim', ok: 'green' } as const;

/** Cases of one cause that are listed. */
const MOST_CASES = 5;

/** For people at a terminal, under a `head`. Longer lines than `columns` go on in the next one; what is to be copied is left as it is. */
export function causesText(
  head: string,
  causes: readonly Cause[],
  paint: Paint,
  columns?: number,
): readonly string[] {
  const lines = causes.flatMap((cause) => [...causeLines(cause, paint, columns), '']);
  return [...wrapped(head, columns).map((line) => paint('bold', line)), '', ...lines];
}

/** A report for people at a terminal. */
export function reportText(report: Report, paint: Paint, columns?: number): string {
  const head = ['CLUSTER', 'VERDICT', 'NODES IN SYNC', 'KEYS', 'IMAGES', 'SYSTEMS'];
  const table = textTable([head, ...report.clusters.map(clusterCells)], columns);
  return `${causesText(headline(report), report.problems, paint, columns).join('\n')}\n${table}`;
}

/** Lines of a report in the comment of a change, and characters of each: GitHub takes 65,536 in all. */
const MOST_LINES = 150;
const MOST_CHARACTERS = 400;

/**
 * A report as Markdown, for the comment of a change: as the text of a terminal, so that nothing in a name is Markdown or HTML. The
 * fence is longer than any run of backticks within.
 */
export function reportMarkdown(report: Report): string {
  const { source, madeAt, unread } = report;
  const [head = '', , ...lines] = reportText(report, plain).trimEnd().split('\n');
  const from = `${onOneLine(source)}, ${madeAt}${unread.length === 0 ? '' : `; ${counted(unread.length, 'thing')} could not be read`}`;
  const text = [from, '', ...capped(lines, MOST_LINES, 'pullwright report has them all')]
    .map((line) => line.slice(0, MOST_CHARACTERS))
    .join('\n');
  const fence = '`'.repeat(Math.max(3, ...[...text.matchAll(/`+/g)].map(([run]) => run.length + 1)));
  return `## ${head}\n\n${fence}text\n${text}\n${fence}\n`;
}

/** Each line at its own depth, in so many columns. */
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
      `${paint(TEXT_COLOURS[verdict], `${SIGNS[verdict]} ${verdict.padEnd(9)}`)} ${title} (${cases.length} in ${where}${cause.pods === 0 ? '' : `, ${counted(cause.pods, 'pod')}`})`,
      columns,
    ),
    ...shown.flatMap(({ cluster, subject, message }) => [
      ...indented(2, `${cluster}  ${subject}`, columns),
      ...indented(4, message, columns),
    ]),
    ...(more === 0 ? [] : [`  and ${more} more`]),
  ];
  // A fix is for its cluster: in another one the same object may need another fix.
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

/** Objects of fixes as documents, ready to be applied. */
export function documentsText(findings: readonly Finding[]): string {
  return fixesOf(findings)
    .map((object) => `---\n${toYaml(object)}`)
    .join('');
}

/** Objects as YAML, without a newline at its end. */
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
