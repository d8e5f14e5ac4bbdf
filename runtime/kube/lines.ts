/** JSON values out of a stream of lines, each line at most as long as allowed. Linear also for lines of megabytes. */
import { PullwrightError } from '../rules/errors.ts';

/** A line longer than this ends the stream: no object of an API server is that large. */
const MAX_LINE_BYTES = 16 * 1024 * 1024;

/** Yields each line's value. Throws on what is no JSON and on a line that is too long. */
export async function* jsonLines(chunks: AsyncIterable<Uint8Array>): AsyncGenerator {
  let parts: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of chunks) {
    let from = 0;
    for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, from)) {
      parts.push(chunk.subarray(from, end));
      from = end + 1;
      const text = Buffer.concat(parts).toString('utf8');
      parts = [];
      size = 0;
      if (text.trim() !== '') yield valueOf(text);
    }
    const rest = chunk.subarray(from);
    size += rest.length;
    if (size > MAX_LINE_BYTES)
      throw new PullwrightError(`Cannot read the watch: a line is longer than ${MAX_LINE_BYTES} bytes`, {
        code: 'AnswerTooLarge',
      });
    if (rest.length > 0) parts.push(rest);
  }
}

/** Without the parser's words, which quote the text: it may be of a Secret. */
function valueOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new PullwrightError('Cannot read the watch: a line is no JSON', { code: 'WatchDamaged' });
  }
}
