/**
 * Keeps a copy of one collection: lists it in pages, then watches it with bookmarks. Resumes after interruptions, relists after
 * 410, and reopens a silent watch. Runs until it is stopped.
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

/** Receives the objects and the state of an informer. Calls are sequential. */
export interface InformerSink {
  /** Receives the whole collection after a list. */
  replace(objects: readonly KubeObject[]): void;
  set(object: KubeObject): void;
  delete(object: KubeObject): void;
  /** `synced` after every list; `missing`: the cluster does not serve the kind; `failing`: once per change of the error. */
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
  /** Reduces each object to the fields to keep. @default {leanObject} */
  readonly lean?: (object: KubeObject) => KubeObject;
  /** Whether to read a whole object by name after a metadata-only list or watch. @default {never} */
  readonly wantsWhole?: (object: KubeObject) => boolean;
  readonly timing?: Partial<InformerTiming>;
  /** Back-off shared by the informers of a cluster. @default {a separate one} */
  readonly outage?: Outage;
  readonly random?: () => number;
}

export interface InformerTiming {
  /** Objects per page of a list; halved if a page is too large. @default {500} */
  readonly pageSize: number;
  /** Minimum watch timeout; the actual one is up to twice as long. @default {300} */
  readonly watchSeconds: number;
  /** A watch without events for this time is reopened; the server sends a bookmark every minute. @default {150000} */
  readonly silenceMs: number;
  /** @default {{ firstMs: 200, maxMs: 30000 }} */
  readonly backOff: BackOff;
  /** Discovery of a missing kind is retried after this time. @default {60000} */
  readonly missingMs: number;
}

const TIMING: InformerTiming = {
  pageSize: 500,
  watchSeconds: 300,
  silenceMs: 150_000,
  backOff: { firstMs: 200, maxMs: 30_000 },
  missingMs: 60_000,
};

/** After a watch of at least this duration, the next one is opened without back-off. */
const GOOD_WATCH_MS = 5000;
/** Events are handled for this time before yielding to the event loop. */
const TURN_MS = 4;

export class Informer {
  readonly #options: InformerOptions;
  readonly #timing: InformerTiming;
  readonly #random: () => number;
  readonly #lean: (object: KubeObject) => KubeObject;
  readonly #stop = new AbortController();
  readonly #outage: Outage;
  #synced = false;
  #failures = 0;
  /** Consecutive short watches. */
  #cutShort = 0;
  #lastFailure = '';

  constructor(options: InformerOptions) {
    this.#options = options;
    this.#timing = { ...TIMING, ...options.timing };
    this.#random = options.random ?? Math.random;
    this.#lean = options.lean ?? leanObject;
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

  /** Lists all pages. Returns the resource version to watch from. */
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

  /** Watches, resuming from the last resource version, until the server returns 410 Gone. */
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
      // Back off if the server ends every watch at once, or expires a new resource version.
      else if (isShort) await pause(this.#backOffMs(), this.#stop.signal);
      if (isForgotten) return;
    }
  }

  /** Opens one watch. Ends when it is silent. */
  async *#watch(resourceVersion: string): AsyncGenerator<WatchEvent> {
    const { client, collection, selector } = this.#options;
    const control = new AbortController();
    const abort = (): void => control.abort();
    // Not `AbortSignal.any`: each one would stay referenced by the signal of the informer.
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
        // Buffered events would otherwise be handled in one turn of the event loop, and block all other clusters of the process.
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
      // Aborted by stop or by the silence timer: not a failure.
      if (control.signal.aborted) return;
      throw error;
    } finally {
      clearTimeout(timer);
      this.#stop.signal.removeEventListener('abort', abort);
      control.abort();
    }
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
 * Yields the pages of a list. If a page is too large, halves the limit for it and the following pages.
 *
 * @throws PullwrightError `AnswerTooLarge` if a single object is too large; errors of the client
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
