/**
 * Keeps a copy of one collection: lists it in pages, then follows a watch with bookmarks, resumes after every kind of
 * interruption, lists again after 410, and gives up a watch that has gone silent. Never ends by itself.
 */

import { setImmediate } from 'node:timers/promises';
import { pause } from '../http/retry.ts';
import { type BackOff, backOffMs } from '../rules/back-off.ts';
import { PullwrightError } from '../rules/errors.ts';
import type { KubeObject } from '../rules/kubernetes/object.ts';
import { isApiError } from './api-error.ts';
import type { KubeClient, ListPage, Selector, WatchEvent } from './client.ts';
import { asPullwrightError } from './failure.ts';
import { leanObject } from './lean.ts';
import { ShrinkingPages } from './list-pages.ts';
import { costOfFailure, costOfLine, Pace } from './pace.ts';
import { Reach } from './reach.ts';
import { type Collection, type ObjectRef, objectRef } from './resources.ts';

/** What an informer does with what it sees. Called in order, never twice at once. */
export interface InformerSink {
  /** The whole collection, after a list. */
  replace(objects: readonly KubeObject[]): void;
  set(object: KubeObject): void;
  delete(object: KubeObject): void;
  /** `synced` after every list; `missing`: the cluster does not serve the kind; `failing`: with what, once per change of it. */
  state(state: InformerState): void;
}

export type InformerState =
  | { readonly is: 'synced' | 'missing' }
  | { readonly is: 'failing'; readonly error: PullwrightError };

export interface InformerOptions {
  readonly client: KubeClient;
  readonly collection: Collection;
  readonly selector: Selector;
  readonly sink: InformerSink;
  /** What is kept of each object, from the moment in which it was read, and how many bytes of its texts were left out. @default {leanObject} */
  readonly lean?: (object: KubeObject, leftOut: number) => KubeObject;
  /** Whether an object of which texts were left out is to be read again, by its name and whole. @default {never} */
  readonly wantsWhole?: (object: KubeObject) => boolean;
  readonly timing?: Partial<InformerTiming>;
  /** How fast its watches are read, with others of the same cluster: one that is ended and opened again gets no more. @default {its own} */
  readonly pace?: Pace;
  /** Whether its cluster answers at all, with others of the same cluster. @default {its own} */
  readonly reach?: Reach;
  readonly random?: () => number;
}

export interface InformerTiming {
  /** Objects per page of a list, at most: fewer where they are heavy. @default {500} */
  readonly pageSize: number;
  /** The server ends a watch after this time, up to twice as much. @default {300} */
  readonly watchSeconds: number;
  /** A watch on which nothing came for so long, no bookmark either (the server sends one a minute), is broken. @default {150000} */
  readonly silenceMs: number;
  /** @default {{ firstMs: 200, maxMs: 30000 }} */
  readonly backOff: BackOff;
  /** A kind that the cluster does not serve is looked for again after this time. @default {60000} */
  readonly missingMs: number;
}

const TIMING: InformerTiming = {
  pageSize: 500,
  watchSeconds: 300,
  silenceMs: 150_000,
  backOff: { firstMs: 200, maxMs: 30_000 },
  missingMs: 60_000,
};

/** A watch that lived so long was a good one: the next is opened at once. */
const GOOD_WATCH_MS = 5000;
/** What was listed a moment ago is forgotten by none that is well: so many steps of the back-off are left out. */
const FORGOTTEN = 2;
/** No API server gives so many pages in a row that hold nothing. */
const MOST_EMPTY_PAGES = 100;

/** Changes are taken for so long before others have their turn. */
const TURN_MS = 4;

export class Informer {
  readonly #options: InformerOptions;
  readonly #timing: InformerTiming;
  readonly #random: () => number;
  readonly #stop = new AbortController();
  readonly #pace: Pace;
  readonly #reach: Reach;
  #synced = false;
  #failures = 0;
  /** What a watch costs before anything came of it: what the last one cost by failing. */
  #deposit = 0;
  /** Watches in a row that ended at once. */
  #cutShort = 0;
  readonly #pages: ShrinkingPages;
  #lastFailure = '';

  constructor(options: InformerOptions) {
    this.#options = options;
    this.#timing = { ...TIMING, ...options.timing };
    this.#random = options.random ?? Math.random;
    this.#pace = options.pace ?? new Pace();
    this.#reach = options.reach ?? new Reach();
    this.#pages = new ShrinkingPages(this.#timing.pageSize);
  }

  /** Runs until {@link stop}. Never rejects. */
  async run(): Promise<void> {
    while (!this.#stop.signal.aborted) {
      try {
        await this.#follow(await this.#list());
      } catch (error) {
        await this.#afterFailure(error);
      }
    }
  }

  stop(): void {
    this.#stop.abort();
  }

  /** Lists all pages; gives the resource version to watch from. */
  async #list(): Promise<string> {
    const { sink } = this.#options;
    const objects: KubeObject[] = [];
    let next: string | undefined;
    let resourceVersion = '';
    let empty = 0;
    do {
      const page = await this.#page(next);
      this.#reach.answered();
      empty = page.items.length === 0 ? empty + 1 : 0;
      if (empty > MOST_EMPTY_PAGES) throw withoutEnd(this.#options.collection);
      for (const object of page.items) objects.push(await this.#whole(object));
      ({ next, resourceVersion } = { next: page.next, resourceVersion: page.resourceVersion });
    } while (next !== undefined);
    sink.replace(objects);
    this.#succeeded();
    return resourceVersion;
  }

  #page(next: string | undefined): Promise<ListPage> {
    const { client, collection, selector } = this.#options;
    const { signal } = this.#stop;
    return this.#pages.read(({ limit, maxBytes, count }) =>
      this.#pace.page(
        (weigh) => {
          const lean = (object: KubeObject, leftOut: number): KubeObject => {
            count();
            weigh();
            return this.#lean(object, leftOut);
          };
          const asked = { ...selector, limit, maxBytes, lean, signal };
          return client.list(collection, next === undefined ? asked : { ...asked, next });
        },
        limit,
        signal,
      ),
    );
  }

  /** Watches, and watches again from where it ended, until the server has forgotten that place. */
  async #follow(from: string): Promise<void> {
    let resourceVersion = from;
    while (!this.#stop.signal.aborted) {
      const started = performance.now();
      let failure: unknown;
      try {
        for await (const event of this.#watch(resourceVersion)) resourceVersion = await this.#take(event);
      } catch (error) {
        failure = error;
      }
      const isForgotten = isApiError(failure, 410);
      const isShort = performance.now() - started < GOOD_WATCH_MS;
      this.#cutShort = isShort ? this.#cutShort + 1 : 0;
      if (failure !== undefined && !isForgotten) await this.#afterFailure(failure);
      // A server that ends every watch at once, or forgets at once what it listed, must not be asked in a tight loop.
      else if (isShort) await pause(this.#backOffMs(isForgotten ? FORGOTTEN : 0), this.#stop.signal);
      if (isForgotten) return;
    }
  }

  /** One watch, ended when nothing comes any more. */
  async *#watch(resourceVersion: string): AsyncGenerator<WatchEvent> {
    const { client, collection, selector } = this.#options;
    // Whoever's last watch was too large pays for the next before it is opened: else fifty of one cluster would be too large at once.
    await this.#pace.turn(this.#stop.signal);
    if (this.#stop.signal.aborted) return;
    this.#pace.taken(this.#deposit);
    const control = new AbortController();
    const abort = (): void => control.abort();
    this.#stop.signal.addEventListener('abort', abort, { once: true });
    let timer = setTimeout(abort, this.#timing.silenceMs);
    try {
      const seconds = Math.round(this.#timing.watchSeconds * (1 + this.#random()));
      const signal = control.signal;
      const events = await client.watch(collection, { ...selector, resourceVersion, seconds, signal });
      this.#reach.answered();
      this.#succeeded();
      let turnBegan = performance.now();
      for await (const event of events) {
        // What came in one piece would be taken in one turn of the event loop, and all other clusters of the process would wait.
        if (performance.now() - turnBegan >= TURN_MS) {
          await setImmediate();
          turnBegan = performance.now();
        }
        clearTimeout(timer);
        timer = setTimeout(abort, this.#timing.silenceMs);
        this.#deposit = 0;
        this.#reach.answered();
        yield event;
        const waitMs = this.#pace.taken(costOfLine(event.bytes ?? 0));
        if (waitMs > 0) await pause(waitMs, signal);
      }
    } catch (error) {
      // Ending it on purpose is no failure.
      if (control.signal.aborted) return;
      const cost = costOfFailure(error);
      this.#pace.taken(Math.max(0, cost - this.#deposit));
      this.#deposit = cost;
      throw error;
    } finally {
      clearTimeout(timer);
      this.#stop.signal.removeEventListener('abort', abort);
      control.abort();
    }
  }

  #lean(object: KubeObject, leftOut = 0): KubeObject {
    return (this.#options.lean ?? leanObject)(object, leftOut);
  }

  async #whole(object: KubeObject): Promise<KubeObject> {
    if (this.#options.wantsWhole?.(object) !== true) return object;
    const found = await this.read(objectRef(object));
    return found === undefined || found.metadata.uid !== object.metadata.uid ? object : this.#lean(found);
  }

  /**
   * One object of the collection, whole, when it is its cluster's turn: a server that says little of an object and much when it is asked for
   * it is as heavy as one that says it at once.
   *
   * @throws what the client throws
   */
  async read(ref: ObjectRef): Promise<KubeObject | undefined> {
    await this.#pace.turn(this.#stop.signal);
    let cost = 0;
    try {
      const weighed = (bytes: number): void => void (cost = costOfLine(bytes));
      return await this.#options.client.get(ref, { weighed });
    } catch (error) {
      cost = costOfFailure(error);
      throw error;
    } finally {
      this.#pace.taken(cost);
    }
  }

  async #take(event: WatchEvent): Promise<string> {
    if (event.type === 'BOOKMARK') return event.resourceVersion;
    const { sink } = this.#options;
    if (event.type === 'DELETED') sink.delete(event.object);
    else sink.set(await this.#whole(this.#lean(event.object, event.leftOut)));
    return event.object.metadata.resourceVersion ?? '';
  }

  #succeeded(): void {
    if (this.#failures === 0 && this.#synced) return;
    this.#synced = true;
    this.#failures = 0;
    this.#lastFailure = '';
    this.#options.sink.state({ is: 'synced' });
  }

  async #afterFailure(error: unknown): Promise<void> {
    if (this.#stop.signal.aborted) return;
    const failure = asPullwrightError(error);
    const missing = failure.code === 'KindNotServed' || isApiError(failure, 404);
    if (this.#lastFailure !== failure.message) {
      this.#lastFailure = failure.message;
      this.#options.sink.state(missing ? { is: 'missing' } : { is: 'failing', error: failure });
    }
    const waitMs = missing ? this.#timing.missingMs : this.#backOffMs();
    this.#failures += 1;
    await this.#reach.again(failure, waitMs, this.#stop.signal);
  }

  #backOffMs(more = 0): number {
    const tries = Math.max(this.#failures, this.#cutShort - 1);
    return backOffMs(this.#timing.backOff, tries + more, this.#random());
  }
}

function withoutEnd({ kind }: Collection): PullwrightError {
  return new PullwrightError(
    `Cannot list "${kind}": ${MOST_EMPTY_PAGES} pages in a row were empty, and there is always another one`,
    { code: 'ListWithoutEnd', hint: 'Look at the API server, and at what stands before it' },
  );
}
