/** Long lines for narrow terminals. */
import { stripVTControlCharacters } from 'node:util';

/** Narrower than this nothing is wrapped: words would stand alone. */
const MIN_WIDTH = 16;

/** Continuation lines stand so much further in. */
const HANGING = 3;

/**
 * Cuts `text` at blanks into lines of at most `width` characters, colours not counted; a word that is longer, such as the name
 * of an image, stays whole, so that it can be copied.
 *
 * @param width undefined: one line. The second line and all after it are three characters shorter.
 *
 * @example
 * ```ts
 * import { wrapped } from './wrap.ts';
 * import assert from 'node:assert/strict';
 *
 * assert.deepEqual(wrapped('one two three four five', 16), ['one two three', 'four five']);
 * assert.deepEqual(wrapped('registry.example.com/a/b:1 is long', 18), ['registry.example.com/a/b:1', 'is long']);
 * ```
 */
export function wrapped(text: string, width: number | undefined): readonly string[] {
  if (width === undefined || seen(text) <= width) return [text];
  const limit = Math.max(MIN_WIDTH, width);
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(' ')) {
    const room = lines.length === 0 ? limit : limit - HANGING;
    const longer = line === '' ? word : `${line} ${word}`;
    if (line !== '' && seen(longer) > room) {
      lines.push(line.trimEnd());
      line = word;
    } else line = longer;
  }
  return [...lines, line].filter((one) => one !== '');
}

function seen(text: string): number {
  return stripVTControlCharacters(text).length;
}
