/**
 * YAML as Kubernetes reads it, without the library's warnings: these quote the text on standard error, and the text may be a
 * kubeconfig. And YAML for Kubernetes to read.
 *
 * Warnings of the library are off: it prints the line that it found odd on standard error, past our logger, and that line can
 * hold a credential.
 */
import {
  type Alias,
  type CreateNodeOptions,
  Document,
  type DocumentOptions,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  parseAllDocuments,
  parseDocument,
  Scalar,
  type ScalarTag,
  type SchemaOptions,
  stringify,
  type ToStringOptions,
  visit,
  type YAMLMap,
  YAMLParseError,
} from 'yaml';
import { scalarText } from '../core/record.ts';
import { jsonText } from '../core/text.ts';

// What is wrong with invalid YAML, without quoting the text: it may hold a credential.

/** What the library calls these mistakes quotes the text. */
const OWN_WORDS: Readonly<Record<string, string>> = {
  BAD_DIRECTIVE: 'a line that begins with % and is not a directive',
  BAD_DQ_ESCAPE: 'an escape sequence in double quotes that there is not',
  TAG_RESOLVE_FAILED: 'a tag (!) that there is not, or a value that does not fit its tag',
};

/** The library recurses for each level, until the stack overflows. */
const STACK_IS_FULL = /^Maximum call stack size exceeded|Stack overflow/;

const TOO_DEEP =
  'Lists and maps stand within each other too deeply to be read, expected at most some hundred levels';

/** What the library says, or what to do where it ran out of stack. */
export function yamlWords(message: string): string {
  return STACK_IS_FULL.test(message) ? TOO_DEEP : message;
}

/**
 * One phrase, no longer than 200 characters, of an error of the YAML library.
 */
export function yamlMistake({
  code = '',
  message,
}: {
  readonly code?: string;
  readonly message: string;
}): string {
  const own = Object.hasOwn(OWN_WORDS, code) ? OWN_WORDS[code] : undefined;
  if (own !== undefined) return own;
  const [line = ''] = yamlWords(message).split('\n');
  // After a word and a colon stands a piece of the text; ` : ` is the sign that is spoken of.
  const [words = ''] = line.split(/(?<=\S): | at line \d/);
  return words.replace(/["'].*["']/g, '…').slice(0, 200);
}

// What the YAML library takes minutes for in a megabyte: keys that stand twice, for which it compares each with all before it, and
// aliases, each of which it looks up in the whole document.

/** Far more than any manifest has, and few enough to look up. */
const MOST_ALIASES = 1000;

type Span = readonly [start: number, end: number];

/**
 * Where the second of two equal keys of one map begins and ends, and the first alias beyond {@link MOST_ALIASES}, in the order of the
 * text. Linear in the document, which was set not to look for them itself.
 */
export function yamlExcesses(document: Document): {
  readonly repeatedKeys: readonly Span[];
  readonly aliasTooMany: Span | undefined;
} {
  const repeatedKeys: Span[] = [];
  const aliases: Span[] = [];
  visit(document, {
    Alias: (_key, { range }) => void aliases.push(spanOf(range)),
    Map: (_key, { items }) => {
      const seen = new Set<unknown>();
      for (const { key } of items)
        if (isScalar(key) && seen.size === seen.add(key.value).size) repeatedKeys.push(spanOf(key.range));
    },
  });
  const inOrder = ([a]: Span, [b]: Span): number => a - b;
  return { repeatedKeys: repeatedKeys.sort(inOrder), aliasTooMany: aliases[MOST_ALIASES] };
}

function spanOf(range: readonly number[] | null | undefined): Span {
  return [range?.[0] ?? 0, range?.[1] ?? 0];
}

// What plain YAML scalars mean to kubectl, the kubelet and the API server. They read YAML 1.1 in Go's manner: `yes`, `on` and `y`
// are booleans, `0644` is octal and `1_000` a number, while `1:20` and `2001-01-01` are texts. To newer YAML all of these are
// something else, so that a parser of it would call files good that a cluster refuses.
// Source of the rule: sigs.k8s.io/yaml 1.6 over go.yaml.in/yaml/v2, compared in test/oracle/kubernetes/yaml.test.ts.

const tag = (name: string): string => `tag:yaml.org,2002:${name}`;

const NULL: ScalarTag = {
  tag: tag('null'),
  default: true,
  identify: (value) => value === null || value === undefined,
  test: /^(?:|~|null|Null|NULL)$/,
  resolve: () => new Scalar(null),
};

const NULL_KEY: ScalarTag = {
  ...NULL,
  default: 'key',
  identify: () => false,
  resolve(text, fail) {
    fail('null as a key, expected a text: quote it');
    return new Scalar(text);
  },
};

const BOOL: ScalarTag = {
  tag: tag('bool'),
  default: true,
  identify: (value) => typeof value === 'boolean',
  test: /^(?:y|Y|yes|Yes|YES|true|True|TRUE|on|On|ON|n|N|no|No|NO|false|False|FALSE|off|Off|OFF)$/,
  resolve: (text) => /^(?:y|t|on$)/i.test(text),
};

/** Go takes underscores out first, wherever they are; only the first character must be another. */
const INT: ScalarTag = {
  tag: tag('int'),
  default: true,
  identify: (value) => typeof value === 'number' || typeof value === 'bigint',
  test: /^(?:[-+]_*)?(?:0_*[xX]_*[0-9a-fA-F][_0-9a-fA-F]*|0_*[oO]_*[0-7][_0-7]*|0_*[bB]_*[01][_01]*|0[_0-7]*|[1-9][_0-9]*)$/,
  resolve(text) {
    const [, sign, digits = ''] = /^([-+]?)(.*)$/.exec(text.replaceAll('_', '').toLowerCase()) ?? [];
    const value = Number(/^0\d/.test(digits) ? `0o${digits.slice(1)}` : digits);
    return sign === '-' && value !== 0 ? -value : value;
  },
};

const FLOAT: ScalarTag = {
  tag: tag('float'),
  default: true,
  test: /^(?:\.[0-9]+(?:[eE][-+]?[0-9]+)?|(?=[-+0-9])(?:[-+]_*)?(?:\._*[0-9][_0-9]*|[0-9][_0-9]*(?:\.[_0-9]*)?)(?:[eE](?:_*[-+])?_*[0-9][_0-9]*)?)$/,
  resolve(text) {
    const value = Number(text.replaceAll('_', ''));
    return Number.isFinite(value) ? value : new Scalar(text);
  },
};

const NOT_FINITE: ScalarTag = {
  tag: tag('float'),
  default: true,
  test: /^(?:[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$/,
  resolve(text, fail) {
    fail(`${text} is a number that JSON cannot say`);
    return new Scalar(text);
  },
};

const BINARY: ScalarTag = {
  tag: tag('binary'),
  default: false,
  resolve: (text) => Buffer.from(text, 'base64').toString(),
};

/** `<<: *base`. The later one wins, also over a key that is written out before. */
const MERGE: ScalarTag = {
  tag: tag('merge'),
  default: 'key',
  test: /^<<$/,
  resolve: () => Object.assign(new Scalar(Symbol('<<')), { addToJSMap: mergeInto }),
};

type Context = Parameters<Alias['resolve']>[1];

function mergeInto(
  context: Context,
  target: YAMLMap | Map<unknown, unknown> | Set<unknown> | Readonly<Record<string, unknown>>,
  value: unknown,
): void {
  const source = sourceOf(context, value);
  const parts = isSeq(source) ? source.items.map((item) => sourceOf(context, item)).toReversed() : [source];
  for (const part of parts) {
    if (!isMap(part)) throw new Error('Merge sources must be maps or map aliases');
    for (const [key, inner] of part.toJSON(undefined, context, Map) as Map<unknown, unknown>) {
      if (target instanceof Map) target.set(key, inner);
      else
        Object.defineProperty(target, scalarText(key), {
          value: inner,
          writable: true,
          enumerable: true,
          configurable: true,
        });
    }
  }
}

function sourceOf(context: Context, value: unknown): unknown {
  return context !== undefined && isAlias(value) ? value.resolve(context.doc, context) : value;
}

/** Options that make the library read scalars as Kubernetes does. */
export const KUBERNETES_SCHEMA: SchemaOptions = {
  schema: 'failsafe',
  customTags: [NULL_KEY, NULL, BOOL, INT, FLOAT, NOT_FINITE, BINARY, MERGE],
};

// Documents of YAML as Kubernetes reads them. Keys that stand twice are refused in linear time, and aliases without end.

/** Options of every parse: with `uniqueKeys` the library would compare each key with all others. */
const OPTIONS = { ...KUBERNETES_SCHEMA, uniqueKeys: false, prettyErrors: false } as const;

/**
 * The one document, with its mistakes.
 *
 * @param lines learns where lines begin
 */
export function yamlDocument(text: string, lines: LineCounter): Document {
  return judged(parseDocument(text, { ...OPTIONS, lineCounter: lines, logLevel: 'silent' }), lines);
}

/** All documents of the text, each with its mistakes. */
export function yamlDocuments(text: string): readonly Document[] {
  const lines = new LineCounter();
  const found = parseAllDocuments(text, { ...OPTIONS, lineCounter: lines, logLevel: 'error' });
  return (Array.isArray(found) ? found : []).map((document) => judged(document, lines));
}

/** With the mistakes that the library did not look for, and their lines in the words of all. */
function judged(document: Document, lines: LineCounter): Document {
  const { repeatedKeys, aliasTooMany } = yamlExcesses(document);
  const errors = [
    ...document.errors,
    ...repeatedKeys.map((span) => new YAMLParseError([...span], 'DUPLICATE_KEY', 'Map keys must be unique')),
  ];
  const tooMany = `There are more than ${MOST_ALIASES} aliases`;
  if (aliasTooMany !== undefined)
    errors.push(new YAMLParseError([...aliasTooMany], 'RESOURCE_EXHAUSTION', tooMany));
  errors.sort((a, b) => a.pos[0] - b.pos[0]);
  for (const error of errors) {
    const { line, col } = lines.linePos(error.pos[0]);
    error.message = `${yamlWords(error.message)} at line ${line}, column ${col}`;
  }
  document.errors = errors;
  return document;
}

/**
 * What the document says. Throws what the library throws, and for a second document: the kubelet passes over it without a word.
 */
export function parseYaml(text: string): unknown {
  const [first, ...more] = yamlDocuments(text);
  if (first === undefined) return null;
  const wrong = first.errors[0];
  if (wrong !== undefined) throw wrong;
  if (more.some(({ contents, errors }) => errors.length > 0 || !isNothing(contents)))
    throw new SyntaxError(`there are ${more.length + 1} documents, expected one`);
  return first.toJS();
}

/** As much as a Secret or a ConfigMap can hold. */
const MOST_LETTERS = 1024 * 1024;

/**
 * As {@link parseYaml}, for an untrusted text: at most 1 MiB.
 */
export function parseShortYaml(text: string): unknown {
  if (text.length > MOST_LETTERS)
    throw new YAMLParseError([0, 0], 'RESOURCE_EXHAUSTION', `It has more than ${MOST_LETTERS} letters`);
  return parseYaml(text);
}

/** Many tools end a file with three dashes. */
function isNothing(contents: unknown): boolean {
  return contents === null || (isScalar(contents) && contents.value === null);
}

/** How a value is laid out: widths, quotes, order of keys. */
export type YamlLayout = Pick<CreateNodeOptions & DocumentOptions, 'aliasDuplicateObjects'> &
  Pick<ToStringOptions, 'indentSeq' | 'lineWidth' | 'singleQuote'> & { readonly sortMapEntries?: boolean };

/** Line breaks of YAML 1.1 that newer YAML does not know, and terminal control or invisible characters. */
const UNSEEN = /(?![\n\t])[\p{Cc}\p{Cf}\u2028\u2029]/gu;

/**
 * What must stand between double quotes: these, lines that begin with a tab, which Go takes for no block of text, and what CI systems
 * take for a command, so that an escape can stand for it where it is printed. A long line may be broken before any word.
 */
const ODD = /(?![\n\t])[\p{Cc}\p{Cf}\u2028\u2029]|^\t|(?<!\S)::|##\w*\[/mu;

/**
 * YAML of a plain value. Texts that any reader, old or new, would take for a number, a boolean or null are quoted.
 */
export function toYaml(value: unknown, layout: YamlLayout = {}): string {
  const options = { ...KUBERNETES_SCHEMA, ...layout, compat: 'yaml-1.1' } as const;
  const text = stringify(value, options);
  if (!ODD.test(text) && !/^[ -]*\t/m.test(text)) return text;
  const document = new Document(value, options);
  visit(document, {
    Scalar(_key, node) {
      if (typeof node.value === 'string' && ODD.test(node.value)) node.type = 'QUOTE_DOUBLE';
    },
  });
  return document.toString(options).replace(UNSEEN, yamlEscape);
}

/** A value for programs, as `-o json` and `-o yaml` print it. YAML goes through JSON, where what is redacted shows as such. */
export function dataText(form: 'json' | 'yaml', value: unknown): string {
  const text = jsonText(value);
  return form === 'json' ? text : toYaml(JSON.parse(text), { lineWidth: 0 });
}

function yamlEscape(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  const digits = code.toString(16);
  return code > 0xffff ? `\\U${digits.padStart(8, '0')}` : `\\u${digits.padStart(4, '0')}`;
}
