/** What one cluster holds, as far as somebody asked: informers that several reconcilers and scopes share, over one store. */

import type { KubeClient } from '../kube/client.ts';
import type { InformerTiming } from '../kube/informer.ts';
import { leanObject } from '../kube/lean.ts';
import { Outage } from '../kube/requester.ts';
import type { KubeObject } from '../rules/kubernetes/object.ts';
import { CachedSource } from './cached-source.ts';
import { isLightened } from './on-demand-values.ts';
import { matchesSelectors } from './selection.ts';
import type { Selection, Source } from './source.ts';
import { ObjectStore } from './store.ts';

export class ClusterCache {
  readonly store: ObjectStore = new ObjectStore();
  readonly #client: KubeClient;
  readonly #timing: Partial<InformerTiming>;
  readonly #outage = new Outage();
  readonly #sources = new Map<string, CachedSource>();

  constructor(client: KubeClient, timing: Partial<InformerTiming> = {}) {
    this.#client = client;
    this.#timing = timing;
  }

  /** The source of `selection`, started when it is asked for the first time. */
  source(selection: Selection): Source {
    return this.#cached(selection);
  }

  /**
   * As {@link source}, for what is read alike in hundreds of namespaces: they share one watch of `wide`. With a watch each, 500 hosted
   * clusters were 4,500 connections to one API server.
   *
   * @param wide the same without the namespace, and without the name where it differs by namespace
   */
  sharedSource(selection: Selection & { readonly namespace: string }, wide: Selection): Source {
    return this.#cached(wide).within(selection);
  }

  #cached(selection: Selection): CachedSource {
    const id = idOfSelection(selection);
    const known = this.#sources.get(id);
    if (known !== undefined) return known;
    const source = new CachedSource(selection, {
      keep: (object) => this.#keep(object),
      release: (object, whole) => this.#release(object, whole),
      replace: (before, less) => this.#replace(before, less),
      observe: (answer) => this.observe(answer),
    });
    this.#sources.set(id, source);
    source.start(this.#client, { timing: this.#timing, outage: this.#outage });
    return source;
  }

  /** Ends the sources that nobody listens to any more. */
  sweep(): void {
    for (const [id, source] of this.#sources) {
      if (source.listeners > 0) continue;
      this.#sources.delete(id);
      source.stop();
    }
  }

  /**
   * Takes what a write or a look gave back, so that the next look sees it before the watch tells. Whoever reads it is told at
   * once: when the watch tells the same version, it is no news to anybody.
   *
   * @param knownTo who wrote it and needs not hear of it
   */
  observe(answer: KubeObject, knownTo?: string): void {
    const object = leanObject(answer);
    let kept: KubeObject | undefined;
    // Whoever's selectors it matches has more of it than who is about to lose it.
    const sources = [...this.#sources.values()].filter((source) => source.concerns(object));
    const losing = sources.filter(({ selection }) => !matchesSelectors(selection, object));
    for (const source of losing.length === 0 ? sources : [...losing, ...sources]) {
      const one = source.observe(object);
      if (one !== undefined && (kept === undefined || isLightened(kept))) kept = one;
    }
    if (kept !== undefined && this.#storeNewer(kept)) this.#tell(kept, knownTo);
  }

  /** The object is gone by our own hand. */
  forget(object: KubeObject): void {
    for (const source of this.#sources.values()) source.drop(object);
    this.store.delete(storeName(object));
  }

  close(): void {
    for (const source of this.#sources.values()) source.stop();
    this.#sources.clear();
  }

  /** Sources of one object are not in step: the newest wins, and whoever reads it is told, whichever source saw it. */
  #keep(object: KubeObject): KubeObject {
    // Who reads it whole must never be given less, not for the moment until its own watch tells.
    const isLess =
      isLightened(object) && [...this.#sources.values()].some((source) => source.hasWhole(object));
    if (!isLess && this.#storeNewer(object)) this.#tell(object);
    return this.store.get(storeName(object)) ?? object;
  }

  /** Nobody is told: what is left says the same of all that is wanted of it. */
  #replace(before: KubeObject, less: KubeObject): KubeObject {
    const known = this.store.get(storeName(before));
    const isRead = [...this.#sources.values()].some((source) => source.hasWhole(before));
    if (known !== before || isRead) return known ?? less;
    this.store.set(less);
    return less;
  }

  /** @param whole the object is gone, and does not only match a selector no more */
  #release(object: KubeObject, whole: boolean): void {
    if (whole) for (const source of this.#sources.values()) source.drop(object);
    if (![...this.#sources.values()].some((source) => source.has(object)))
      this.store.delete(storeName(object));
    this.#tell(object);
  }

  /** False for what is known already, and for an echo of the time before. */
  #storeNewer(object: KubeObject): boolean {
    const before = this.store.get(storeName(object));
    if (before?.metadata.uid === object.metadata.uid && before !== undefined) {
      const isMore = sameVersion(before, object) && isLightened(before) && !isLightened(object);
      if (!isMore && !isNewer(object, before)) return false;
    }
    this.store.set(object);
    return true;
  }

  #tell(object: KubeObject, knownTo?: string): void {
    for (const source of this.#sources.values()) if (source.concerns(object)) source.tell(object, knownTo);
  }
}

function idOfSelection(selection: Selection): string {
  const { apiVersion, kind, namespace, name, labelSelector, fieldSelector, values } = selection;
  return JSON.stringify([apiVersion, kind, namespace, name, labelSelector, fieldSelector, values]);
}

function storeName({ apiVersion, kind, metadata }: KubeObject): Parameters<ObjectStore['get']>[0] {
  const { namespace, name } = metadata;
  return { apiVersion, kind, name, ...(namespace === undefined ? {} : { namespace }) };
}

function sameVersion(a: KubeObject, b: KubeObject): boolean {
  return a.metadata.resourceVersion === b.metadata.resourceVersion;
}

/** Resource versions of one kind are ordered numbers (KEP-5504); where they are not, every other one counts as newer. */
function isNewer(a: KubeObject, b: KubeObject): boolean {
  const [x, y] = [a.metadata.resourceVersion ?? '', b.metadata.resourceVersion ?? ''];
  if (!/^\d+$/.test(x) || !/^\d+$/.test(y)) return x !== y || x === '';
  return x.length === y.length ? x > y : x.length > y.length;
}
