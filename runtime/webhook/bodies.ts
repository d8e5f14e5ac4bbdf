/**
 * Bodies of requests while they arrive. Whoever reaches the port can begin as many as they like and end none: a hundred of eight megabytes
 * took twice what the pod may have. All together have a bound, and beyond it the largest goes: the API server's are small as a rule, and a
 * pod whose request is refused is admitted as it is.
 */
import type { IncomingMessage } from 'node:http';

/** The API server sends objects of up to 3 MiB, twice in an update. */
const MOST_BYTES = 8 * 1024 * 1024;
const MOST_TOGETHER = 64 * 1024 * 1024;

/** Why a body was not read to its end, and the status that says so. */
export interface RefusedBody {
  readonly status: number;
  readonly refused: string;
}

export class Bodies {
  readonly #arriving = new Set<Arriving>();
  #held = 0;

  /** The whole body. Nothing of a refused one is kept. */
  read(request: IncomingMessage): Promise<{ readonly text: string } | RefusedBody> {
    return new Promise((resolve) => {
      const body = new Arriving((end) => {
        this.#arriving.delete(body);
        this.#held -= body.size;
        resolve(end);
      });
      this.#arriving.add(body);
      request.on('data', (chunk: Buffer) => {
        if (body.take(chunk)) this.#held += chunk.length;
        if (body.size > MOST_BYTES)
          body.end({
            status: 413,
            refused: `the request is too large: at most ${MOST_BYTES} bytes are read`,
          });
        if (this.#held > MOST_TOGETHER) this.#refuseLargest();
      });
      request.once('end', () => body.end());
      const gone = (): void => body.end({ status: 400, refused: 'the request breaks off' });
      request.once('error', gone);
      request.once('close', gone);
    });
  }

  #refuseLargest(): void {
    const [first, ...others] = this.#arriving;
    const largest = others.reduce(
      (most, one) => (most !== undefined && one.size > most.size ? one : most),
      first,
    );
    largest?.end({
      status: 503,
      refused: `too much is sent at once: at most ${MOST_TOGETHER} bytes are held, and this request has the most`,
    });
  }
}

/** One body, until it ends in one way or another. */
class Arriving {
  size = 0;
  #chunks: Buffer[] | undefined = [];
  readonly #ended: (end: { readonly text: string } | RefusedBody) => void;

  constructor(ended: (end: { readonly text: string } | RefusedBody) => void) {
    this.#ended = ended;
  }

  /** Whether it is kept. */
  take(chunk: Buffer): boolean {
    if (this.#chunks === undefined) return false;
    this.#chunks.push(chunk);
    this.size += chunk.length;
    return true;
  }

  /** The first call counts; without a refusal the body is whole. */
  end(refusal?: RefusedBody): void {
    if (this.#chunks === undefined) return;
    const chunks = this.#chunks;
    this.#chunks = undefined;
    this.#ended(refusal ?? { text: Buffer.concat(chunks).toString('utf8') });
  }
}
