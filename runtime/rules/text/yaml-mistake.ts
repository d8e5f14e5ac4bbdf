/** What is wrong with a text that is no YAML, in words that hold nothing of the text: what stands there may be a credential. */

/** What the library calls these mistakes quotes the text. */
const OWN_WORDS: Readonly<Record<string, string>> = {
  BAD_DIRECTIVE: 'a line that begins with % and is no directive',
  BAD_DQ_ESCAPE: 'an escape sequence in double quotes that there is not',
  TAG_RESOLVE_FAILED: 'a tag (!) that there is not, or a value that does not fit its tag',
};

/** The library calls itself for each level: what ends it is the stack, wherever that is full. */
const STACK_IS_FULL = /^Maximum call stack size exceeded|Stack overflow/;

const TOO_DEEP =
  'Lists and maps stand within each other too deeply to be read, expected at most some hundred levels';

/** What the library says, or what to do where it ran out of stack. */
export function yamlWords(message: string): string {
  return STACK_IS_FULL.test(message) ? TOO_DEEP : message;
}

/**
 * One phrase, no longer than 200 characters, of an error of the YAML library.
 *
 * @example
 * ```ts
 * import { yamlMistake } from './yaml-mistake.ts';
 * import assert from 'node:assert/strict';
 *
 * const message = 'Block scalar header includes extra characters: |c2VjcmV0';
 * assert.equal(yamlMistake({ code: 'UNEXPECTED_TOKEN', message }), 'Block scalar header includes extra characters');
 * ```
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
