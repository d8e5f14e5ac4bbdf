/**
 * Parses and writes YAML like Kubernetes.
 *
 * Warnings of the library are disabled: it prints the affected line to standard error, and that line may contain a credential.
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

// Errors of invalid YAML without quotes of the text, which may contain a credential.

/** Replaces messages of the library that quote the text. */
const OWN_WORDS: Readonly<Record<string, string>> = {
  BAD_DIRECTIVE: 'a line that begins with % but is not a directive',
  BAD_DQ_ESCAPE: 'an unknown escape sequence in double quotes',
  TAG_RESOLVE_FAILED: 'an unknown tag (!), or a value that does not match its tag',
};

/** The library recurses for each level, so deep nesting overflows the stack. */
const STACK_IS_FULL = /^Maximum call stack size exceeded|Stack overflow/;

const TOO_DEEP = 'Lists and maps are nested too deeply, expected at most a few hundred levels';

/** The message of the library, or our own for a stack overflow. */
export function yamlWords(message: string): string {
  return STACK_IS_FULL.test(message) ? TOO_DEEP : message;
}

/** The message for an error of the YAML library: one phrase of at most 200 characters, without quotes of the text. */
export function yamlMistake(error: Pick<Error, 'message'> & { readonly code?: string }): string {
  const { code = '', message } = error;
  const own = Object.hasOwn(OWN_WORDS, code) ? OWN_WORDS[code] : undefined;
  if (own !== undefined) return own;
  const [line = ''] = yamlWords(message).split('\n');
  // The text is quoted after a word and a colon, while ` : ` refers to the character itself.
  const [words = ''] = line.split(/(?<=\S): | at line \d/);
  return words.replace(/["'].*["']/g, '…').slice(0, 200);
}

// Linear-time checks for duplicate keys and too many aliases. The library needs minutes per megabyte: it compares each key with
// all earlier ones, and looks up each alias in the whole document.

/** Maximum number of aliases: far more than in any manifest, and few enough to resolve. */
const MOST_ALIASES = 1000;

type Span = readonly [start: number, end: number];

/**
 * Returns the positions of duplicate map keys, in the order of the text, and of the first alias beyond {@link MOST_ALIASES}.
 */
export function yamlExcesses(document: Document) {
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

// Plain scalars as kubectl, the kubelet and the API server read them, in Go's variant of YAML 1.1: `yes`, `on` and `y` are
// booleans, `0644` is octal and `1_000` a number, while `1:20` and `2001-01-01` are strings. A YAML 1.2 parser reads them
// differently, and would accept files that a cluster rejects.
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
    fail('null as a key, expected a string: quote it');
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

/** Go removes underscores first, in any position but the first. */
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
    fail(`${text} is a number that JSON does not support`);
    return new Scalar(text);
  },
};

const BINARY: ScalarTag = {
  tag: tag('binary'),
  default: false,
  resolve: (text) => Buffer.from(text, 'base64').toString(),
};

/** `<<: *base`. The later value wins, even over an explicit key before it. */
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

// YAML documents as Kubernetes reads them, with duplicate keys and too many aliases rejected.

/** Options of every parse: with `uniqueKeys` the library would compare each key with all others. */
const OPTIONS = { ...KUBERNETES_SCHEMA, uniqueKeys: false, prettyErrors: false } as const;

/**
 * Parses one document, with its errors.
 *
 * @param lines receives the line positions
 */
export function yamlDocument(text: string, lines: LineCounter): Document {
  return judged(parseDocument(text, { ...OPTIONS, lineCounter: lines, logLevel: 'silent' }), lines);
}

/** Adds the errors of {@link yamlExcesses}, and the position to every message. */
function judged(document: Document, lines: LineCounter): Document {
  const { repeatedKeys, aliasTooMany } = yamlExcesses(document);
  const errors = [
    ...document.errors,
    ...repeatedKeys.map((span) => new YAMLParseError([...span], 'DUPLICATE_KEY', 'Map keys must be unique')),
  ];
  const tooMany = `more than ${MOST_ALIASES} aliases`;
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

/** Parses one document. Throws errors of the library, and for a second document, which the kubelet silently ignores. */
export function parseYaml(text: string): unknown {
  const lines = new LineCounter();
  const found = parseAllDocuments(text, { ...OPTIONS, lineCounter: lines, logLevel: 'error' });
  const [first, ...more] = Array.from(found, (document) => judged(document, lines));
  if (first === undefined) return null;
  const wrong = first.errors[0];
  if (wrong !== undefined) throw wrong;
  if (more.some(({ contents, errors }) => errors.length > 0 || !isNothing(contents)))
    throw new SyntaxError(`found ${more.length + 1} documents, expected one`);
  return first.toJS();
}

/** Maximum size of a Secret or ConfigMap. */
const MOST_LETTERS = 1024 * 1024;

/** Like {@link parseYaml}, with a limit of 1 MiB for untrusted text. */
export function parseShortYaml(text: string): unknown {
  if (text.length > MOST_LETTERS)
    throw new YAMLParseError([0, 0], 'RESOURCE_EXHAUSTION', `more than ${MOST_LETTERS} characters`);
  return parseYaml(text);
}

/** Whether a document is empty: many tools end a file with three dashes. */
function isNothing(contents: unknown): boolean {
  return contents === null || (isScalar(contents) && contents.value === null);
}

/** Formatting options: width, quotes, order of keys. */
export type YamlLayout = Pick<CreateNodeOptions & DocumentOptions, 'aliasDuplicateObjects'> &
  Pick<ToStringOptions, 'indentSeq' | 'lineWidth' | 'singleQuote'> & { readonly sortMapEntries?: boolean };

/** Line breaks of YAML 1.1 that newer YAML does not know, and terminal control or invisible characters. */
const UNSEEN = /(?![\n\t])[\p{Cc}\p{Cf}\u2028\u2029]/gu;

/**
 * Requires double quotes: the characters above, lines that begin with a tab, which Go rejects in a block scalar, and CI commands,
 * so that they can be escaped in output. A long line may be wrapped before any word.
 */
const ODD = /(?![\n\t])[\p{Cc}\p{Cf}\u2028\u2029]|^\t|(?<!\S)::|##\w*\[/mu;

/** Formats a plain value as YAML. Quotes strings that a YAML 1.1 or 1.2 parser would read as number, boolean or null. */
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

/** Formats a value for `-o json` and `-o yaml`. YAML is converted from JSON, in which redacted values are masked. */
export function dataText(form: 'json' | 'yaml', value: unknown): string {
  const text = jsonText(value);
  return form === 'json' ? text : toYaml(JSON.parse(text), { lineWidth: 0 });
}

function yamlEscape(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  const digits = code.toString(16);
  return code > 0xffff ? `\\U${digits.padStart(8, '0')}` : `\\u${digits.padStart(4, '0')}`;
}
