/** What commands print: in the form that `-o` names, and as text for people. */

import type { CommandIo, ExitCode } from '../../cli/command.ts';
import { type FileFinding, type JunitCase, junitXml, sarifText } from '../../cli/findings.ts';
import { columnsOf, type Paint, plain, textRecords, textTable } from '../../cli/terminal.ts';
import { describeObject, type KubeObject } from '../../core/kubernetes/object.ts';
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
  type PullVerdict,
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

interface Branch {
  readonly text: string;
  readonly below?: readonly Branch[];
}

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
export function explanationText(explanation: Explanation, look: TextLook = {}): string {
  const { paint = plain, locate = () => undefined, columns } = look;
  const place = (entry: EntryPlace): string => {
    const file = locate(entry.origin ?? entry.source);
    const origin = entry.origin === undefined ? '' : `, from ${entry.origin}`;
    return `"${entry.key}" in ${entry.source}${origin}${file === undefined ? '' : paint('dim', ` (${file})`)}`;
  };
  const {
    runtime,
    findings: [worst],
  } = explanation;
  const broken = worst?.severity === 'error' ? worst : undefined;
  const hop = OF_RUNTIME.includes(broken?.check ?? '') ? 'runtime' : 'kubelet';
  const marked = (at: string, { text, ...rest }: Branch): Branch => ({
    text: `${broken !== undefined && at === hop ? paint('red', '✕ ') : ''}${text}`,
    ...rest,
  });
  const branches: Branch[] = [
    listed(explanation, paint, locate),
    marked('kubelet', kubelet(explanation, paint, place)),
    ...(runtime === 'containerd' ? [] : [marked('runtime', crio(explanation, paint, place))]),
    ...(runtime === 'CRI-O' ? [] : [marked('runtime', containerd(explanation, paint))]),
    { text: paint('dim', explanation.verification) },
    ...findings(explanation.findings, paint),
  ];
  const verdict = broken === undefined ? '' : `  ${paint('red', 'broken')}: ${broken.message}`;
  return `${[`${paint('bold', explanation.image)}${verdict}`, ...drawn(branches, '', columns)].join('\n')}\n`;
}

/** Checks of what the runtime does; what others find stands in the way of the kubelet. */
const OF_RUNTIME = ['places', 'mirror-credential', 'registry'];

function drawn(branches: readonly Branch[], indent: string, columns: number | undefined): readonly string[] {
  return branches.flatMap(({ text, below = [] }, index) => {
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

function listed(
  { secrets, node }: Explanation,
  paint: Paint,
  locate: (source: string) => string | undefined,
): Branch {
  const file = (source: string): string => (locate(source) === undefined ? '' : ` (${locate(source)})`);
  const below = secrets.map(({ name, listedBy, state }) => ({
    text: `Secret ${name}, listed by ${listedBy}${state === 'found' ? '' : `: ${paint('yellow', state)}`}`,
  }));
  const nodeText = node === undefined ? 'no file of the node is known' : `node: ${node}${file(node)}`;
  return { text: paint('bold', 'looked at'), below: [...below, { text: nodeText }] };
}

function kubelet(explanation: Explanation, paint: Paint, place: (entry: EntryPlace) => string): Branch {
  const { blockedBy, tried, unused, anonymous } = explanation.kubelet;
  if (blockedBy !== undefined) {
    return {
      text: `${paint('bold', 'kubelet')}  ${paint('red', `fails: ${blockedBy.source} ${blockedBy.why}`)}`,
    };
  }
  const used = tried.map((one, index) => ({
    text: `${index + 1}. ${paint('green', one.username === '' ? '(no user)' : one.username)}  ${place(one)}${
      one.by === 'hub' ? '  as the fall-back for Docker Hub' : ''
    }`,
  }));
  const not = unused
    .filter((one) => one.near)
    .map((one) => ({ text: paint('dim', `not ${place(one)}: ${one.why}`) }));
  const others = unused.filter((one) => !one.near).map((one) => one.key);
  const names = others.length > MAX_NAMES ? [...others.slice(0, MAX_NAMES), '...'] : others;
  const rest =
    others.length === 0
      ? []
      : [{ text: paint('dim', `not ${others.length} for other registries: ${names.join(', ')}`) }];
  const order = tried.length === 1 ? 'one credential' : `${tried.length} in this order`;
  const what = anonymous ? 'one anonymous attempt' : `${order}, no anonymous attempt`;
  return { text: `${paint('bold', 'kubelet')}  ${what}`, below: [...used, ...not, ...rest] };
}

function crio(explanation: Explanation, paint: Paint, place: (entry: EntryPlace) => string): Branch {
  const tried = explanation.places.map(({ reference, kind, from, crio: sent }, index) => ({
    text: `${index + 1}. ${reference}  ${kind}${from === undefined ? '' : paint('dim', `  ${from}`)}`,
    below: [{ text: sentText(sent, paint, place) }],
  }));
  const skipped = explanation.skipped.map(({ reference, kind, why }) => ({
    text: paint('dim', `-  ${reference}  ${kind}, not tried: ${why}`),
  }));
  return { text: `${paint('bold', 'CRI-O')}  the places in this order`, below: [...tried, ...skipped] };
}

function sentText(sent: Sent, paint: Paint, place: (entry: EntryPlace) => string): string {
  if (sent.what === 'kubelet') return "with the kubelet's credentials, one after the other";
  if (sent.what === 'entry') return `with ${paint('green', sent.username)}  ${place(sent.entry)}`;
  if (sent.what === 'helper')
    return `with what the credential helper "${sent.helper}" of ${sent.source} says`;
  if (sent.what === 'nothing') return `${paint('yellow', 'without a credential')}: ${sent.why}`;
  return `${paint('red', 'fails')}: ${sent.why}`;
}

function containerd({ containerd: sent, kubelet: view }: Explanation, paint: Paint): Branch {
  const asked =
    sent.what === 'kubelet'
      ? "the kubelet's credentials, at every host of its own hosts.toml; mirror sets are not for it"
      : 'one anonymous attempt';
  const what = view.blockedBy === undefined ? asked : 'fails like the kubelet';
  return { text: `${paint('bold', 'containerd')}  ${what}` };
}

function findings(list: readonly Finding[], paint: Paint): readonly Branch[] {
  return list.map((finding) => ({
    text: `${paint(COLOUR_OF[finding.severity], finding.severity)}: ${finding.message}`,
    below: fixLines(finding).map((text) => ({ text })),
  }));
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

const COLOURS: Readonly<Record<PullVerdict | 'Broken' | 'Warning', 'green' | 'yellow' | 'red'>> = {
  Valid: 'green',
  NotFound: 'yellow',
  NotAsked: 'yellow',
  Unreachable: 'yellow',
  RateLimited: 'yellow',
  Forbidden: 'red',
  Invalid: 'red',
  Expired: 'red',
  Broken: 'red',
  Warning: 'yellow',
};

function painted(table: string, paint: Paint): string {
  return table.replace(/^\w+/gm, (word) =>
    Object.hasOwn(COLOURS, word) ? paint(COLOURS[word as PullVerdict], word) : paint('bold', word),
  );
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

/** Names that are shown of a list. */
const NAMED = 3;

/**
 * For people: one line for each cause, and under it a case, and what fixes it.
 *
 * @param namespace the one that was looked at; all where it is undefined
 * @param complete whether all could be read
 */
export function renderCauses(
  causes: readonly Cause[],
  namespace: string | undefined,
  paint: Paint,
  complete: boolean,
): string {
  const where = namespace === undefined ? '' : ` in namespace "${namespace}"`;
  if (causes.length === 0) {
    const limit = complete ? '' : ', as far as could be read';
    const others = namespace === undefined ? '' : '; -A examines every namespace';
    return `No pod${where} fails to pull${limit}${others}\n`;
  }
  const pods = causes.reduce((sum, one) => sum + one.pods, 0);
  const head = `${counted(pods, 'pod')}${where} ${pods === 1 ? 'fails' : 'fail'} to pull, for ${counted(causes.length, 'cause')}`;
  return `${[paint('bold', head), ...causes.flatMap((one) => ['', ...linesOf(one, paint)])].join('\n')}\n`;
}

function linesOf({ pods, cases, ...cause }: Cause, paint: Paint): readonly string[] {
  const how = pods === 0 ? 'no pod is made' : counted(pods, 'pod');
  const namespaces = [...new Set(cases.map(({ subject }) => subject.split('/')[1] ?? ''))].sort();
  const [first] = cases;
  const objects = fixesOf(cases).map(({ kind, metadata }) => describeObject({ kind, ...metadata }));
  const fix = [
    ...(objects.length === 0 ? [] : [`-o yaml prints it: ${named(objects)}`]),
    ...new Set(cases.flatMap(({ commands = [] }) => commands)),
    ...[...new Set(cases.flatMap(({ advice = [] }) => advice))].slice(0, NAMED),
  ];
  return [
    `${paint('red', how)} in ${named(namespaces)}: ${causeText(cause)}`,
    `  such as  ${first?.subject ?? ''}: ${first?.message ?? ''}`,
    ...fix.map((text) => `  fix      ${text}`),
  ];
}

function named(names: readonly string[]): string {
  const rest = names.length - NAMED;
  return `${names.slice(0, NAMED).join(', ')}${rest > 0 ? ` and ${rest} more` : ''}`;
}

// A report on a terminal: what is wrong, where, and what to do; then the clusters.

/** With the colour, never the colour alone. */
const SIGNS = { broken: '✕', attention: '!', unknown: '?', ok: '✓' } as const;

const TEXT_COLOURS = { broken: 'red', attention: 'yellow', unknown: 'dim', ok: 'green' } as const;

/** Cases of one cause that are listed. */
const MOST_CASES = 5;

/** For people at a terminal. Longer lines than `columns` go on in the next one; YAML is left as it is. */
export function reportText(report: Report, paint: Paint, columns?: number): string {
  const { problems, clusters } = report;
  return [
    ...wrapped(headline(report), columns).map((line) => paint('bold', line)),
    '',
    ...problems.flatMap((cause) => [...causeLines(cause, paint, columns), '']),
    textTable(
      [['CLUSTER', 'VERDICT', 'NODES IN SYNC', 'KEYS', 'IMAGES', 'SYSTEMS'], ...clusters.map(clusterCells)],
      columns,
    ).trimEnd(),
    '',
  ].join('\n');
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
  return [
    ...wrapped(
      `${paint(TEXT_COLOURS[verdict], `${SIGNS[verdict]} ${verdict.padEnd(9)}`)} ${paint('bold', onOneLine(causeText(cause)))} (${cases.length} in ${clusters.length === 1 ? onOneLine(clusters[0] ?? '') : `${clusters.length} clusters`})`,
      columns,
    ),
    ...shown.flatMap(({ cluster, subject, message, advice, commands = [], fix = [] }) => [
      ...indented(2, `${onOneLine(cluster)}  ${onOneLine(subject)}`, columns),
      ...indented(4, message, columns),
      ...(advice === undefined ? [] : indented(4, advice, columns)),
      ...commands.map((command) => `      ${command}`),
      ...fixText(fix)
        .split('\n')
        .flatMap((line) => (line === '' ? [] : [`      ${line}`])),
    ]),
    ...(more === 0 ? [] : [`  and ${more} more`]),
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
