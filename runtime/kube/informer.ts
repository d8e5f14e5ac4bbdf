/**
 * Keeps a copy of one collection: lists it in pages, then follows a watch with bookmarks, resumes after every kind of
 * interruption, lists again after 410, and drops a watch that has gone silent. Never ends by itself.
 */
import { setImmediate } from 'node:timers/promises';
import { type BackOff, backOffMs } from '../core/back-off.ts';
import { PullwrightError } from '../core/errors.ts';
import type { KubeObject } from '../core/kubernetes/object.ts';
import { pause } from '../http/client.ts';
import { asPullwrightError, isApiError } from './api-error.ts';
import type { KubeClient, ListOptions, ListPage, Selector, WatchEvent } from './client.ts';
import { leanObject } from './decode.ts';
import { Outage } from './requester.ts';
import { type Collection, objectRef } from './resources.ts';

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
  /** What is kept of each object. @default {leanObject} */
  readonly lean?: (object: KubeObject) => KubeObject;
  /** Whether an object of which the metadata alone was read is to be read again, by its name and whole. @default {never} */
  readonly wantsWhole?: (object: KubeObject) => boolean;
  readonly timing?: Partial<InformerTiming>;
  /** The back-off that it shares with others of the same cluster. @default {its own} */
  readonly outage?: Outage;
  readonly random?: () => number;
}

export interface InformerTiming {
  /** Objects per page of a list: half as many where it is too large. @default {500} */
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
/** Changes are taken for so long before others have their turn. */
const TURN_MS = 4;

export class Informer {
  readonly #options: InformerOptions;
  readonly #timing: InformerTiming;
  readonly #random: () => number;
  readonly #stop = new AbortController();
  readonly #outage: Outage;
  #synced = false;
  #failures = 0;
  /** Watches in a row that ended at once. */
  #cutShort = 0;
  #lastFailure = '';

  constructor(options: InformerOptions) {
    this.#options = options;
    this.#timing = { ...TIMING, ...options.timing };
    this.#random = options.random ?? Math.random;
    this.#outage = options.outage ?? new Outage();
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
    const { client, collection, selector, sink } = this.#options;
    const objects: KubeObject[] = [];
    let resourceVersion = '';
    const options = { ...selector, limit: this.#timing.pageSize, signal: this.#stop.signal };
    for await (const page of pagesOf(client, collection, options)) {
      this.#outage.answered();
      for (const object of page.items) objects.push(await this.#whole(this.#lean(object)));
      ({ resourceVersion } = page);
    }
    sink.replace(objects);
    this.#succeeded();
    return resourceVersion;
  }

  /** Watches, and resumes from the last resourceVersion, until the server answers 410 Gone. */
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
      // A server that ends every watch at once, or forgets at once what it listed, must not be called in a tight loop.
      else if (isShort) await pause(this.#backOffMs(), this.#stop.signal);
      if (isForgotten) return;
    }
  }

  /** One watch, ended when nothing comes any more. */
  async *#watch(resourceVersion: string): AsyncGenerator<WatchEvent> {
    const { client, collection, selector } = this.#options;
    const control = new AbortController();
    const abort = (): void => control.abort();
    this.#stop.signal.addEventListener('abort', abort, { once: true });
    let timer = setTimeout(abort, this.#timing.silenceMs);
    try {
      const seconds = Math.round(this.#timing.watchSeconds * (1 + this.#random()));
      const signal = control.signal;
      const events = await client.watch(collection, { ...selector, resourceVersion, seconds, signal });
      this.#outage.answered();
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
        this.#outage.answered();
        yield event;
      }
    } catch (error) {
      // Ending it on purpose is not a failure.
      if (control.signal.aborted) return;
      throw error;
    } finally {
      clearTimeout(timer);
      this.#stop.signal.removeEventListener('abort', abort);
      control.abort();
    }
  }

  #lean(object: KubeObject): KubeObject {
    return (this.#options.lean ?? leanObject)(object);
  }

  async #whole(object: KubeObject): Promise<KubeObject> {
    const { client, wantsWhole } = this.#options;
    if (wantsWhole?.(object) !== true) return object;
    const found = await client.get(objectRef(object));
    return found === undefined || found.metadata.uid !== object.metadata.uid ? object : this.#lean(found);
  }

  async #take(event: WatchEvent): Promise<string> {
    if (event.type === 'BOOKMARK') return event.resourceVersion;
    const { sink } = this.#options;
    if (event.type === 'DELETED') sink.delete(event.object);
    else sink.set(await this.#whole(this.#lean(event.object)));
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
    await this.#outage.wait(failure.code, waitMs, this.#stop.signal);
  }

  #backOffMs(): number {
    const tries = Math.max(this.#failures, this.#cutShort - 1);
    return backOffMs(this.#timing.backOff, tries, this.#random());
  }
}

/**
 * All pages of a list. One that is too large is requested again with half its limit, and so are those after it.
 *
 * @throws PullwrightError `AnswerTooLarge` for an object that is too large by itself, or what the client throws
 */
export async function* pagesOf(
  client: KubeClient,
  collection: Collection,
  options: ListOptions & { readonly limit: number },
): AsyncGenerator<ListPage> {
  let { limit } = options;
  for (let next: string | undefined; ; ) {
    let page: ListPage;
    try {
      page = await client.list(collection, { ...options, limit, next });
    } catch (error) {
      if (limit === 1 || !(error instanceof PullwrightError) || error.code !== 'AnswerTooLarge') throw error;
      limit = Math.ceil(limit / 2);
      continue;
    }
    yield page;
    ({ next } = page);
    if (next === undefined) return;
  }
}
