/**
 * What would cost a reader of YAML far more than the text weighs. The library needs up to a kilobyte for each piece of a text, and calls
 * itself for each level: a megabyte of brackets took a gigabyte and six seconds, before it was found to be no YAML. A look at the pieces
 * alone finds that out in a hundredth.
 */
import { Lexer } from 'yaml';
import { TOO_DEEP } from '../rules/text/yaml-mistake.ts';

/** Levels of lists and maps within each other. The library's own stack ends near it. */
const MOST_LEVELS = 1000;
/** Of one text in quotes, which the library puts together letter by letter. The API server takes no object of half that size. */
const MOST_QUOTED = 8 * 1024 * 1024;

/** Why a text is not read, and where that begins. */
export interface YamlBurden {
  readonly at: number;
  readonly message: string;
}

/** What the lexer writes between pieces of the text. */
const MARKS = new Set(['\u0002', '\u0018', '\u001f']);
const SCALAR_FOLLOWS = '\u001f';
const INDICATORS: ReadonlySet<string> = new Set(['-', '?', ':']);

/**
 * The first thing that is too much; undefined for a text that may be read. Linear in the text.
 *
 * @param mostPieces words, signs and line breaks: as many as whoever asks has room for
 *
 * @example
 * ```ts
 * import { yamlBurden } from './yaml-burden.ts';
 * import assert from 'node:assert/strict';
 *
 * assert.equal(yamlBurden('a: [1, {b: 2}]\n'), undefined);
 * assert.match(yamlBurden('['.repeat(2000))?.message ?? '', /too deeply/);
 * assert.match(yamlBurden('a: [1, 2, 3]\n', 5)?.message ?? '', /more than 5 words and signs/);
 * ```
 */
export function yamlBurden(
  text: string,
  mostPieces: number = Number.POSITIVE_INFINITY,
): YamlBurden | undefined {
  if (text.length <= mostPieces && isPlain(text)) return undefined;
  const depth = new Depth();
  let at = 0;
  let pieces = 0;
  let isScalar = false;
  for (const piece of new Lexer().lex(text)) {
    pieces += 1;
    if (pieces > mostPieces) return { at, message: `It has more than ${mostPieces} words and signs` };
    if (piece.length > MOST_QUOTED && (piece.startsWith('"') || piece.startsWith("'")))
      return { at, message: `A text in quotes has more than ${MOST_QUOTED} letters` };
    if (!isScalar && depth.after(piece) > MOST_LEVELS) return { at, message: TOO_DEEP };
    isScalar = piece === SCALAR_FOLLOWS;
    if (!MARKS.has(piece)) at += piece.length;
  }
  return undefined;
}

/** Too few brackets, and too few signs on a line, for so many levels: most texts, at a twentieth of what the pieces cost. */
function isPlain(text: string): boolean {
  if (text.length > MOST_QUOTED) return false;
  let brackets = 0;
  let signs = 0;
  for (let at = 0; at < text.length; at += 1) {
    const letter = text[at] ?? '';
    if (letter === '\n') signs = 0;
    else if (INDICATORS.has(letter)) signs += 1;
    else if (letter === '[' || letter === '{') brackets += 1;
    if (brackets > MOST_LEVELS || signs > MOST_LEVELS) return false;
  }
  return true;
}

/** Brackets that are open, and on one line signs that each begin a level: `- - - a`. */
class Depth {
  #open = 0;
  #signs = 0;

  after(piece: string): number {
    if (piece === '[' || piece === '{') this.#open += 1;
    else if (piece === ']' || piece === '}') this.#open = Math.max(0, this.#open - 1);
    else if (piece.startsWith('\n') || piece.startsWith('\r')) this.#signs = 0;
    else if (this.#open === 0 && INDICATORS.has(piece)) this.#signs += 1;
    return this.#open + this.#signs;
  }
}
