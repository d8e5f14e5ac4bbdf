/** An API server that answers an informer by a script, and what the informer made of it. */

import { Readable } from 'node:stream';
import type { KubeObject } from '../../runtime/core/kubernetes/object.ts';
import { ApiError } from '../../runtime/kube/api-error.ts';
import type { KubeClient, ListOptions, ListPage, WatchEvent } from '../../runtime/kube/client.ts';
import {
  Informer,
  type InformerSink,
  type InformerState,
  type InformerTiming,
} from '../../runtime/kube/informer.ts';

export const FAST: Pick<InformerTiming, 'backOff' | 'missingMs' | 'silenceMs'> = {
  backOff: { firstMs: 1, maxMs: 5 },
  missingMs: 5,
  silenceMs: 50,
};

export function object(name: string, resourceVersion: string): KubeObject {
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, resourceVersion } };
}

/** Behaviour of the server for each request, in order; the last one repeats. */
export interface Script {
  readonly lists: readonly (() => ListPage)[];
  readonly watches: readonly ((from: string) => AsyncGenerator<WatchEvent>)[];
}

export class Recorder implements InformerSink {
  readonly names: Map<string, string> = new Map();
  readonly states: InformerState[] = [];
  replaced = 0;

  replace(objects: readonly KubeObject[]): void {
    this.replaced += 1;
    this.names.clear();
    for (const one of objects) this.set(one);
  }

  set({ metadata }: KubeObject): void {
    this.names.set(metadata.name, metadata.resourceVersion ?? '');
  }

  delete({ metadata }: KubeObject): void {
    this.names.delete(metadata.name);
  }

  /** States that the informer reported, in order. */
  said(): readonly InformerState['is'][] {
    return this.states.map(({ is }) => is);
  }

  state(state: InformerState): void {
    this.states.push(state);
  }
}

/** The server rejects the version that it has just returned. */
export function expired(): AsyncGenerator<WatchEvent> {
  throw new ApiError('expired', { code: 'Expired', status: 410, causes: [], retryPolicy: 'retry' });
}

export function run(
  script: Script,
  timing: Partial<InformerTiming> = FAST,
): {
  sink: Recorder;
  informer: Informer;
  watchedFrom: string[];
  limits: unknown[];
} {
  const sink = new Recorder();
  const watchedFrom: string[] = [];
  const limits: unknown[] = [];
  let [lists, watches] = [0, 0];
  const client = {
    list: (_collection: unknown, options: ListOptions) => {
      limits.push([options.limit, options.next]);
      const answer = script.lists[Math.min(lists++, script.lists.length - 1)];
      try {
        return Promise.resolve(answer?.());
      } catch (error) {
        return Promise.reject(error);
      }
    },
    watch: (_collection: unknown, options: { resourceVersion: string; signal: AbortSignal }) => {
      watchedFrom.push(options.resourceVersion);
      const answer = script.watches[Math.min(watches++, script.watches.length - 1)];
      return Promise.resolve(untilAborted(answer?.(options.resourceVersion) ?? quiet(), options.signal));
    },
  } as unknown as KubeClient;
  const collection = { apiVersion: 'v1', kind: 'ConfigMap' };
  const informer = new Informer({ client, collection, selector: {}, sink, timing, random: () => 0 });
  void informer.run();
  return { sink, informer, watchedFrom, limits };
}

async function* untilAborted(
  events: AsyncGenerator<WatchEvent>,
  signal: AbortSignal,
): AsyncGenerator<WatchEvent> {
  const aborted = new Promise<'aborted'>((resolve) => {
    signal.addEventListener('abort', () => resolve('aborted'), { once: true });
  });
  for (;;) {
    const next = await Promise.race([events.next(), aborted]);
    if (next === 'aborted') throw new Error('aborted');
    if (next.done === true) return;
    yield next.value;
  }
}

/** A watch on which nothing ever comes. */
export async function* quiet(): AsyncGenerator<WatchEvent> {
  await new Promise(() => undefined);
  yield { type: 'BOOKMARK', resourceVersion: 'never' };
}

/** A watch that gives what is pushed into it, and breaks off with the signal as a connection does. */
export function openWatch(signal: AbortSignal): Readable {
  return new Readable({ objectMode: true, signal, read: () => undefined });
}

export async function* events(...list: WatchEvent[]): AsyncGenerator<WatchEvent> {
  yield* list;
}

export const page = (resourceVersion: string, ...names: string[]): ListPage => ({
  items: names.map((name) => object(name, resourceVersion)),
  resourceVersion,
  bytes: names.length * 1000,
});
