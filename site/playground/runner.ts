/** The worker that runs commands: one question at a time, and it can be stopped. */
import type { Answer, HeldFile, Question } from './messages.ts';

export type Asked = Omit<Question, 'id' | 'files'>;

/** Runs commands on one set of files. */
export class Runner {
  readonly #address: string;
  readonly #files: readonly HeldFile[];
  #worker: Worker | undefined;
  #next = 0;

  constructor(address: string, files: readonly HeldFile[]) {
    this.#address = address;
    this.#files = files;
  }

  /** The answer; undefined when it was stopped before. @throws Error when the worker fails as a whole */
  async ask(asked: Asked): Promise<Answer | undefined> {
    this.stop();
    const id = ++this.#next;
    const isNew = this.#worker === undefined;
    const worker = this.#worker ?? new Worker(this.#address);
    this.#worker = worker;
    const heard = new AbortController();
    return await new Promise<Answer | undefined>((resolve, reject) => {
      this.#stopped = () => resolve(undefined);
      const { signal } = heard;
      worker.addEventListener('message', ({ data }: MessageEvent<Answer>) => resolve(data), { signal });
      worker.addEventListener(
        'error',
        () => {
          this.end();
          reject(
            new Error('The worker of this page failed: the files may be larger than the memory that it has'),
          );
        },
        { signal },
      );
      worker.postMessage({ ...asked, id, ...(isNew ? { files: this.#files } : {}) } satisfies Question, []);
    }).finally(() => {
      heard.abort();
      this.#stopped = undefined;
    });
  }

  #stopped: (() => void) | undefined;

  /** Ends what runs; the next question starts anew. */
  stop(): void {
    if (this.#stopped === undefined) return;
    this.#stopped();
    this.end();
  }

  /** Frees the files. */
  end(): void {
    this.#stopped = undefined;
    this.#worker?.terminate();
    this.#worker = undefined;
  }
}
