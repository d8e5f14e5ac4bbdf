/** An explanation as a tree for people, and as a mermaid picture of the way from pod to registry. */

import { wrapped } from '../text/wrap.ts';
import type { Explanation } from './explain.ts';
import type { EntryPlace, Finding, Sent } from './explain-types.ts';

/** Paints a text for a terminal; `plain` gives it back as it is. */
export type Paint = (style: 'bold' | 'dim' | 'red' | 'yellow' | 'green', text: string) => string;

export const plain: Paint = (_style, text) => text;

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
  readonly columns?: number;
}

/** The tree. Ends with a newline. */
export function explanationText(explanation: Explanation, look: TextLook = {}): string {
  const { paint = plain, locate = () => undefined, columns } = look;
  const place = (entry: EntryPlace): string => {
    const file = locate(entry.origin ?? entry.source);
    const origin = entry.origin === undefined ? '' : `, from ${entry.origin}`;
    return `"${entry.key}" in ${entry.source}${origin}${file === undefined ? '' : paint('dim', ` (${file})`)}`;
  };
  const branches: Branch[] = [
    listed(explanation, paint, locate),
    kubelet(explanation, paint, place),
    crio(explanation, paint, place),
    { text: `${paint('bold', 'containerd')}  ${containerd(explanation)}` },
    { text: paint('dim', explanation.verification) },
    ...findings(explanation.findings, paint),
  ];
  return `${[paint('bold', explanation.image), ...drawn(branches, '', columns)].join('\n')}\n`;
}

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

function containerd({ containerd: sent, kubelet: view }: Explanation): string {
  if (view.blockedBy !== undefined) return 'fails like the kubelet';
  return sent.what === 'kubelet'
    ? "the kubelet's credentials, at every host of its own hosts.toml; mirror sets are not for it"
    : 'one anonymous attempt';
}

function findings(list: readonly Finding[], paint: Paint): readonly Branch[] {
  const colour = { error: 'red', warning: 'yellow', info: 'dim' } as const;
  return list.map(({ severity, message, fix }) => ({
    text: `${paint(colour[severity], severity)}: ${message}`,
    below: fix === undefined ? [] : [{ text: `fix: ${fix}` }],
  }));
}

/** The way from pod to registry as a mermaid flow chart. No label begins with "1. ", which mermaid takes for a list and refuses. */
export function explanationMermaid(explanation: Explanation): string {
  const lines = ['flowchart LR', `  pod["pod<br/>${label(explanation.image)}"] --> kubelet`];
  const { tried, blockedBy } = explanation.kubelet;
  tried.forEach((one, index) => {
    lines.push(
      `  key${index}["${label(one.key)}<br/>${label(one.source)}"] -- "${index + 1}: ${label(one.username)}" --> kubelet`,
    );
  });
  if (blockedBy !== undefined)
    lines.push(`  blocked["${label(blockedBy.source)} ${label(blockedBy.why)}"] -- fails --> kubelet`);
  lines.push('  kubelet --> crio["CRI-O"]');
  explanation.places.forEach(({ reference, kind, crio: sent }, index) => {
    const arrow = sent.what === 'nothing' || sent.what === 'failure' ? '-.' : '--';
    lines.push(
      `  crio ${arrow} "${index + 1}: ${sentLabel(sent)}" ${arrow === '--' ? '-->' : '.->'} place${index}["${label(reference)}<br/>${kind}"]`,
    );
  });
  return `${lines.join('\n')}\n`;
}

function sentLabel(sent: Sent): string {
  if (sent.what === 'kubelet') return "kubelet's credentials";
  if (sent.what === 'entry') return label(`${sent.username} by ${sent.entry.key}`);
  if (sent.what === 'helper') return label(`helper ${sent.helper}`);
  return sent.what === 'nothing' ? 'anonymous' : 'fails';
}

/** Quotes and brackets would end a label. */
function label(text: string): string {
  return text.replace(/["<>[\]{}|#;`\n\r]/g, (character) => `#${character.charCodeAt(0)};`);
}
