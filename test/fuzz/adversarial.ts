/** Long runs of one piece, at each place of a good text where its kind of character changes: what comes before is taken, and what comes after may be refused. */
import type { Parser } from './parser.ts';

export interface Search {
  /** Of a text. */
  readonly mostPlaces: number;
  readonly pieces: readonly string[];
}

/** Pieces that slow down loops when repeated. Pieces that close nothing leave the rest of a document valid. */
export const WHOLE: Search = { mostPlaces: 12, pieces: ['\\n', ...'/ \0a0.=:-,\\\n[{"%@'.split('')] };

/** A text of any length, with what is repeated in it and where. */
export interface Adversarial {
  readonly piece: string;
  readonly at: number;
  /** Number of the text in the corpus. */
  readonly text: number;
  /** The text with a run of so many characters. */
  readonly withRun: (length: number) => string;
}

/** Every piece at every place of every text of the corpus, as far as the search goes. */
export function* adversarial(
  { corpus, unit = '[' }: Pick<Parser, 'corpus' | 'unit'>,
  { mostPlaces, pieces }: Search,
): Generator<Adversarial> {
  for (const [text, whole] of corpus.entries())
    for (const at of placesIn(whole, mostPlaces))
      for (const piece of new Set([unit, ...pieces]))
        yield {
          piece,
          at,
          text,
          withRun: (length) =>
            whole.slice(0, at) + piece.repeat(Math.ceil(length / piece.length)) + whole.slice(at),
        };
}

/** Start, end, and where the kind of character changes, spread over the text. */
function placesIn(text: string, most: number): readonly number[] {
  const places = [0];
  for (let at = 1; at < text.length; at += 1) if (kindOf(text[at]) !== kindOf(text[at - 1])) places.push(at);
  const step = Math.max(1, Math.ceil(places.length / (most - 1)));
  return [...new Set([...places.filter((_, index) => index % step === 0), text.length])];
}

function kindOf(character = ''): string {
  if (/[a-z]/i.test(character)) return 'letter';
  return /\d/.test(character) ? 'digit' : character;
}
