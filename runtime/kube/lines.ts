/** JSON values out of a stream of lines, each line at most as long as allowed. Linear also for lines of megabytes. */

import { PullwrightError } from '../rules/errors.ts';

/** A longer line ends the stream: no object of an API server is that large. */
const MAX_LINE_BYTES = 16 * 1024 * 1024;
const NEWLINE = 0x0a;

/** Yields the value of each line. Throws on what is no JSON and on a line that is too long. */
export async function* jsonLines(chunks: AsyncIterable<Uint8Array>): AsyncGenerator {
  let parts: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of chunks) {
    let from = 0;
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, from)) {
      const line = Buffer.concat([...parts, chunk.subarray(from, end)]).toString('utf8');
      [parts, size, from] = [[], 0, end + 1];
      if (line.trim() !== '') yield parsed(line);
    }
    parts.push(chunk.subarray(from));
    size += chunk.length - from;
    if (size > MAX_LINE_BYTES)
      throw new PullwrightError(`Cannot read the watch: a line is longer than ${MAX_LINE_BYTES} bytes`, {
        code: 'AnswerTooLarge',
        hint: 'Look at the API server, and at what stands before it: no object that it stores is so large',
      });
  }
}

/** Without the parser's words, which quote the text: it may be of a Secret. */
function parsed(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    throw new PullwrightError('Cannot read the watch: a line is no JSON', { code: 'WatchDamaged' });
  }
}
