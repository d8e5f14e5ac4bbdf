/**
 * Bodies of requests while they arrive. Whoever reaches the port can begin as many as they like and end none: a hundred of eight megabytes
 * took twice what the pod may have. All together have a bound, and beyond it the largest goes: the API server's are small as a rule, and a
 * pod whose request is refused is admitted as it is.
 */
import type { IncomingMessage } from 'node:http';
import { Arriving, MOST_TOGETHER } from '../kube/arriving.ts';

/** The API server sends objects of up to 3 MiB, twice in an update. */
const MOST_BYTES = 8 * 1024 * 1024;

/** Why a body was not read to its end, and the status that says so. */
export interface RefusedBody {
  readonly status: number;
  readonly refused: string;
}

const TOO_LARGE: RefusedBody = {
  status: 413,
  refused: `the request is too large: at most ${MOST_BYTES} bytes are read`,
};
const TOO_MUCH: RefusedBody = {
  status: 503,
  refused: `too much is sent at once: at most ${MOST_TOGETHER} bytes are held, and this request has the most`,
};
const BROKEN_OFF: RefusedBody = { status: 400, refused: 'the request breaks off' };

export class Bodies {
  readonly #arriving = new Arriving();

  /** The whole body. Nothing of a refused one is kept. */
  read(request: IncomingMessage): Promise<{ readonly text: string } | RefusedBody> {
    return new Promise((resolve) => {
      let chunks: Buffer[] | undefined = [];
      let size = 0;
      /** The first call counts; without a refusal the body is whole. */
      const end = (refusal?: RefusedBody): void => {
        if (chunks === undefined) return;
        resolve(refusal ?? { text: Buffer.concat(chunks).toString('utf8') });
        chunks = undefined;
        held.release();
      };
      const held = this.#arriving.begin(this, () => end(TOO_MUCH));
      request.on('data', (chunk: Buffer) => {
        if (chunks === undefined) return;
        chunks.push(chunk);
        size += chunk.length;
        if (size > MOST_BYTES) end(TOO_LARGE);
        else held.hold(size);
      });
      request.once('end', () => end());
      request.once('error', () => end(BROKEN_OFF));
      request.once('close', () => end(BROKEN_OFF));
    });
  }
}
