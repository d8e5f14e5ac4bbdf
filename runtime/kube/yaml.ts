/**
 * YAML as Kubernetes reads it, without the library's warnings: these quote the text on standard error, and the text may be a
 * kubeconfig. And YAML for Kubernetes to read.
 *
 * Warnings of the library are off: it prints the line that it found odd on standard error, past our logger, and that line can
 * hold a credential.
 */
import {
  type CreateNodeOptions,
  Document,
  type DocumentOptions,
  isScalar,
  stringify,
  type ToStringOptions,
  visit,
  YAMLParseError,
} from 'yaml';
import { yamlDocuments } from './yaml-documents.ts';
import { KUBERNETES_SCHEMA } from './yaml-schema.ts';

/**
 * What the document says. Throws what the library throws, and for a second document: the kubelet passes over it without a word.
 *
 * @example
 * ```ts
 * import { parseYaml } from './yaml.ts';
 * import assert from 'node:assert/strict';
 *
 * assert.deepEqual(parseYaml('a: !unknown [1]'), { a: [1] });
 * assert.deepEqual(parseYaml('{enabled: on, mode: 0644}'), { enabled: true, mode: 420 });
 * ```
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
 * As {@link parseYaml}, for a text that somebody else wrote: at most a mebibyte.
 *
 * @example
 * ```ts
 * import { parseShortYaml } from './yaml.ts';
 * import assert from 'node:assert/strict';
 *
 * assert.deepEqual(parseShortYaml('a: 1'), { a: 1 });
 * assert.throws(() => parseShortYaml('- abc\n'.repeat(200_000)), /more than 1048576 letters/);
 * ```
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

/** Line breaks of YAML 1.1 that newer YAML does not know, and characters that a terminal obeys or that nobody sees. */
const UNSEEN = /(?![\n\t])[\p{Cc}\p{Cf}\u2028\u2029]/gu;

/**
 * What must stand between double quotes: these, lines that begin with a tab, which Go takes for no block of text, and what CI systems
 * take for a command, so that an escape can stand for it where it is printed. A long line may be broken before any word.
 */
const ODD = /(?![\n\t])[\p{Cc}\p{Cf}\u2028\u2029]|^\t|(?<!\S)::|##\w*\[/mu;

/**
 * YAML of a plain value. Texts that any reader, old or new, would take for a number, a boolean or null are quoted.
 *
 * @example
 * ```ts
 * import { toYaml } from './yaml.ts';
 * import assert from 'node:assert/strict';
 *
 * assert.equal(toYaml({ namespace: 'on', zone: 'a' }), 'namespace: "on"\nzone: a\n');
 * ```
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

function yamlEscape(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  const digits = code.toString(16);
  return code > 0xffff ? `\\U${digits.padStart(8, '0')}` : `\\u${digits.padStart(4, '0')}`;
}
