/**
 * What a kubeconfig says about the API server: its address, its authority, and the name in its certificate.
 *
 * A kubelet's kubeconfig is a few lines of block YAML, or JSON. Those are read here, without a YAML library: to load one takes
 * longer than a whole run of the credential provider. For anything else the caller has to bring a parser.
 *
 * Source of the rule: client-go `clientcmd` (current-context, context, cluster).
 */

/** The cluster of the current context. */
export interface KubeconfigCluster {
  readonly server: string | undefined;
  /** Name that the server's certificate must be for, where it is not the host of `server`. */
  readonly serverName: string | undefined;
  /** Base64 of PEM. Wins over `caFile`. */
  readonly caData: string | undefined;
  /** Path; relative to the folder of the kubeconfig. */
  readonly caFile: string | undefined;
}

/**
 * The cluster that a parsed kubeconfig is for; undefined when it names none. Without a current context the only cluster counts.
 */
export function currentCluster(config: unknown): KubeconfigCluster | undefined {
  const current = textOf(field(config, 'current-context'));
  const clusters = listOf(field(config, 'clusters'));
  const context = field(named(listOf(field(config, 'contexts')), current), 'context');
  const name = textOf(field(context, 'cluster'));
  const found = current === undefined && clusters.length === 1 ? clusters[0] : named(clusters, name);
  const cluster = field(found, 'cluster');
  if (typeof cluster !== 'object' || cluster === null) return undefined;
  return {
    server: textOf(field(cluster, 'server')),
    serverName: textOf(field(cluster, 'tls-server-name')),
    caData: textOf(field(cluster, 'certificate-authority-data')),
    caFile: textOf(field(cluster, 'certificate-authority')),
  };
}

function named(list: readonly unknown[], name: string | undefined): unknown {
  return name === undefined ? undefined : list.find((one) => field(one, 'name') === name);
}

function field(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, name)
    ? (value as Record<string, unknown>)[name]
    : undefined;
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}

/**
 * Reads JSON, and YAML of nothing but block maps, block lists and texts on one line, every value as text; undefined for any
 * other text, which takes a parser.
 */
export function plainKubeconfig(text: string): unknown {
  try {
    if (text.trimStart().startsWith('{')) return JSON.parse(text);
    const lines = text
      .split('\n')
      .map((line) => line.trimEnd())
      .filter((line) => !/^ *(?:#|$)/.test(line))
      .map(lineOf);
    if (lines[0]?.text === '---') lines.shift();
    const reader = new BlockReader(lines);
    const value = reader.node(0);
    return reader.isAtEnd ? value : undefined;
  } catch {
    return undefined;
  }
}

interface Line {
  readonly indent: number;
  readonly text: string;
}

function lineOf(line: string): Line {
  const indent = line.search(/[^ ]/);
  return { indent, text: line.slice(indent) };
}

/** A key of letters and dashes, then nothing or a value. */
const PAIR = /^([A-Za-z][A-Za-z0-9-]*):(?: +(\S.*)?)?$/;
/** A value that means no more than its own characters. */
const PLAIN = /^(?:[A-Za-z0-9/._+=]|-(?=\S))(?:[^\s#:]|:(?=\S)|(?<=\S)#| (?!#))*$/;
const QUOTED = /^(?:'([^'\\]*)'|"([^"\\]*)")$/;

class BlockReader {
  readonly #lines: Line[];
  #at = 0;

  constructor(lines: readonly Line[]) {
    this.#lines = [...lines];
  }

  get isAtEnd(): boolean {
    return this.#at >= this.#lines.length;
  }

  /** The value whose lines begin at `least` or deeper. Throws for what is not plain. */
  node(least: number): unknown {
    const line = this.#lines[this.#at];
    if (line === undefined || line.indent < least) return '';
    return isItem(line) ? this.#list(line.indent) : this.#map(line.indent);
  }

  #list(indent: number): readonly unknown[] {
    const items: unknown[] = [];
    for (let line = this.#lines[this.#at]; line?.indent === indent && isItem(line); ) {
      const rest = line.text.slice(1).trimStart();
      if (rest === '') throw new SyntaxError('an item on lines of its own');
      items.push(PAIR.test(rest) ? this.#itemMap(line, rest) : this.#itemText(rest));
      line = this.#lines[this.#at];
    }
    return items;
  }

  /** The map that begins behind the dash. */
  #itemMap(line: Line, rest: string): unknown {
    const indent = line.indent + line.text.length - rest.length;
    this.#lines[this.#at] = { indent, text: rest };
    return this.#map(indent);
  }

  #itemText(rest: string): unknown {
    this.#at += 1;
    return scalar(rest);
  }

  #map(indent: number): Readonly<Record<string, unknown>> {
    const fields: Record<string, unknown> = Object.create(null) as Record<string, unknown>;
    for (let line = this.#lines[this.#at]; line?.indent === indent && !isItem(line); ) {
      const [, key, value = ''] = PAIR.exec(line.text) ?? [];
      if (key === undefined || key in fields) throw new SyntaxError('no plain key');
      this.#at += 1;
      fields[key] = value === '' ? this.#below(indent) : scalar(value);
      line = this.#lines[this.#at];
    }
    const next = this.#lines[this.#at];
    if (next !== undefined && next.indent > indent) throw new SyntaxError('a line that belongs to none');
    return fields;
  }

  /** What stands under a key; a list may stand as deep as the key itself. */
  #below(indent: number): unknown {
    const next = this.#lines[this.#at];
    return next !== undefined && next.indent === indent && isItem(next)
      ? this.#list(indent)
      : this.node(indent + 1);
  }
}

function isItem({ text }: Line): boolean {
  return text === '-' || text.startsWith('- ');
}

function scalar(text: string): unknown {
  if (text === '{}' || text === '[]') return JSON.parse(text);
  const quoted = QUOTED.exec(text);
  if (quoted !== null) return quoted[1] ?? quoted[2] ?? '';
  if (PLAIN.test(text) && !/^null$/i.test(text)) return text;
  throw new SyntaxError('no plain value');
}
