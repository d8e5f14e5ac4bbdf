/** JSON values out of a stream of lines, each line at most as long as allowed. Linear also for lines of megabytes. */

import { PullwrightError } from '../rules/errors.ts';
import { type HeldBody, mostOfAll } from './arriving.ts';
import { JsonItems } from './json-items.ts';

/** A line longer than this ends the stream: no object of an API server is that large. */
const MAX_LINE_BYTES = 16 * 1024 * 1024;

/** A line's value, how many bytes of its texts were left out, and how many came since the line before. */
export interface JsonLine {
  readonly value: unknown;
  readonly leftOut: number;
  readonly bytes: number;
}

/**
 * Yields each line. Throws on what is no JSON and on a line that is too long.
 *
 * @param mostText longer texts are left out, see {@link JsonItems}
 * @param held told how much of a line is held until it ends
 */
export async function* jsonLines(
  chunks: AsyncIterable<Uint8Array>,
  mostText?: number,
  held?: HeldBody,
): AsyncGenerator<JsonLine> {
  let lines: JsonLine[] = [];
  let bytes = 0;
  const reader = new JsonItems({
    of: 'lines',
    mostText,
    take: (value, leftOut) => {
      lines.push({ value, leftOut, bytes });
      bytes = 0;
    },
  });
  try {
    for await (const chunk of chunks) {
      bytes += chunk.length;
      const damaged = pushed(reader, chunk);
      const read = lines;
      lines = [];
      if (held?.hold(reader.held) === false) throw tooLong(mostOfAll().message);
      yield* read;
      if (damaged !== undefined) throw damaged;
      if (reader.read > MAX_LINE_BYTES) throw tooLong(`a line is longer than ${MAX_LINE_BYTES} bytes`);
    }
  } catch (error) {
    throw held?.isRefused === true ? tooLong(mostOfAll().message) : error;
  } finally {
    held?.release();
  }
}

function tooLong(why: string): PullwrightError {
  return new PullwrightError(`Cannot read the watch: ${why}`, {
    code: 'AnswerTooLarge',
    hint: 'Look at the API server, and at what stands before it: no object that it stores is so large',
  });
}

/** Without the parser's words, which quote the text: it may be of a Secret. */
function pushed(reader: JsonItems, chunk: Uint8Array): PullwrightError | undefined {
  try {
    reader.push(chunk);
    return undefined;
  } catch {
    return new PullwrightError('Cannot read the watch: a line is no JSON', { code: 'WatchDamaged' });
  }
}
