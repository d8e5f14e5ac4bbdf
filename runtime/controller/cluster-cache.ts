/** What one cluster holds, as far as somebody asked: informers that several reconcilers and scopes share, over one store. */

import type { KubeClient } from '../kube/client.ts';
import { Informer, type InformerSink, type InformerTiming } from '../kube/informer.ts';
import type { PullwrightError } from '../rules/errors.ts';
import type { KubeObject } from '../rules/kube-object.ts';
import { kindKey, ObjectStore } from './store.ts';

/** One collection, with what narrows it. A {@link Read} whose namespace is resolved. */
export interface Selection {
  readonly apiVersion: string;
  readonly kind: string;
  readonly namespace?: string;
  readonly name?: string;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
}

/** Told about every change of what a source covers. */
export type ChangeListener = (object: KubeObject) => void;

export interface Source {
  readonly selection: Selection;
  readonly status: SourceStatus;
  /** Calls `listener` for every change from now on; gives the way to stop that. */
  subscribe(listener: ChangeListener): () => void;
  /** Calls back when the status changes. */
  onStatus(listener: () => void): () => void;
}

export interface SourceStatus {
  /** `new` until the first list, or until it is known that the kind is missing. */
  readonly is: 'new' | 'synced' | 'missing';
  /** Why it cannot be read at the moment. */
  readonly error?: PullwrightError;
}

export class ClusterCache {
  readonly store: ObjectStore = new ObjectStore();
  readonly #client: KubeClient;
  readonly #timing: Partial<InformerTiming>;
  readonly #sources = new Map<string, CachedSource>();

  constructor(client: KubeClient, timing: Partial<InformerTiming> = {}) {
    this.#client = client;
    this.#timing = timing;
  }

  /** The source of `selection`, started when it is asked for the first time. */
  source(selection: Selection): Source {
    const { apiVersion, kind, namespace, name, labelSelector, fieldSelector } = selection;
    const id = JSON.stringify([apiVersion, kind, namespace, name, labelSelector, fieldSelector]);
    const known = this.#sources.get(id);
    if (known !== undefined) return known;
    const source: CachedSource = new CachedSource(selection, this.store, (name) => this.#holds(name, source));
    this.#sources.set(id, source);
    source.start(this.#client, this.#timing);
    return source;
  }

  /** Ends the sources that nobody listens to any more. */
  sweep(): void {
    for (const [id, source] of this.#sources) {
      if (source.listeners > 0) continue;
      source.stop();
      this.#sources.delete(id);
    }
  }

  /** Takes what a write gave back, so that the next look sees it before the watch tells. */
  observe(object: KubeObject): void {
    for (const source of this.#sources.values()) source.observe(object);
  }

  /** The object is gone by our own hand. */
  forget(object: KubeObject): void {
    for (const source of this.#sources.values()) source.drop(object);
  }

  close(): void {
    for (const source of this.#sources.values()) source.stop();
    this.#sources.clear();
  }

  /** Whether a source other than `except` has an object of this name. */
  #holds(id: string, except: CachedSource): boolean {
    return [...this.#sources.values()].some((source) => source !== except && source.has(id));
  }
}

class CachedSource implements Source, InformerSink {
  readonly selection: Selection;
  status: SourceStatus = { is: 'new' };
  readonly #store: ObjectStore;
  readonly #heldElsewhere: (id: string) => boolean;
  readonly #objects = new Map<string, KubeObject>();
  readonly #listeners = new Set<ChangeListener>();
  readonly #statusListeners = new Set<() => void>();
  #informer: Informer | undefined;

  constructor(selection: Selection, store: ObjectStore, heldElsewhere: (id: string) => boolean) {
    this.selection = selection;
    this.#store = store;
    this.#heldElsewhere = heldElsewhere;
  }

  get listeners(): number {
    return this.#listeners.size;
  }

  start(client: KubeClient, timing: Partial<InformerTiming>): void {
    const { apiVersion, kind, namespace, name, labelSelector, fieldSelector } = this.selection;
    const byName = name === undefined ? [] : [`metadata.name=${name}`];
    const fields = [...byName, ...(fieldSelector === undefined ? [] : [fieldSelector])].join(',');
    this.#informer = new Informer({
      client,
      collection: { apiVersion, kind, ...(namespace === undefined ? {} : { namespace }) },
      selector: {
        ...(labelSelector === undefined ? {} : { labelSelector }),
        ...(fields === '' ? {} : { fieldSelector: fields }),
      },
      sink: this,
      timing,
    });
    void this.#informer.run();
  }

  stop(): void {
    this.#informer?.stop();
    for (const object of this.#objects.values()) this.drop(object);
  }

  subscribe(listener: ChangeListener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  onStatus(listener: () => void): () => void {
    this.#statusListeners.add(listener);
    return () => this.#statusListeners.delete(listener);
  }

  has(id: string): boolean {
    return this.#objects.has(id);
  }

  replace(objects: readonly KubeObject[]): void {
    const present = new Set(objects.map(idOf));
    const gone = [...this.#objects.values()].filter((object) => !present.has(idOf(object)));
    for (const object of gone) this.delete(object);
    for (const object of objects) this.set(object);
  }

  set(object: KubeObject): void {
    this.#keep(object);
    this.#tell(object);
  }

  delete(object: KubeObject): void {
    this.drop(object);
    this.#tell(object);
  }

  state(state: Parameters<InformerSink['state']>[0]): void {
    if (state.is === 'failing') this.status = { is: this.status.is, error: state.error };
    else this.status = { is: state.is };
    for (const listener of this.#statusListeners) listener();
  }

  /** Only what this source has or would get: an object that a selector does not match must not slip in. */
  observe(object: KubeObject): void {
    const { namespace, name, labelSelector, fieldSelector } = this.selection;
    if (kindKey(object) !== kindKey(this.selection)) return;
    if (namespace !== undefined && namespace !== object.metadata.namespace) return;
    if (name !== undefined && name !== object.metadata.name) return;
    const narrowed = labelSelector !== undefined || fieldSelector !== undefined;
    if (!narrowed || this.#objects.has(idOf(object))) this.#keep(object);
  }

  drop(object: KubeObject): void {
    const id = idOf(object);
    if (this.#objects.delete(id) && !this.#heldElsewhere(id)) this.#store.delete(storeName(object));
  }

  #keep(object: KubeObject): void {
    const id = idOf(object);
    const before = this.#objects.get(id);
    // An echo of the time before our own write.
    if (before !== undefined && before.metadata.uid === object.metadata.uid && isOlder(object, before))
      return;
    this.#objects.set(id, object);
    this.#store.set(object);
  }

  #tell(object: KubeObject): void {
    for (const listener of this.#listeners) listener(object);
  }
}

function idOf({ apiVersion, kind, metadata }: KubeObject): string {
  return `${apiVersion} ${kind} ${metadata.namespace ?? ''} ${metadata.name}`;
}

function storeName({ apiVersion, kind, metadata }: KubeObject): Parameters<ObjectStore['get']>[0] {
  const { namespace, name } = metadata;
  return { apiVersion, kind, name, ...(namespace === undefined ? {} : { namespace }) };
}

/** Resource versions of one kind are ordered numbers (KEP-5504); where they are not, nothing counts as older. */
function isOlder(a: KubeObject, b: KubeObject): boolean {
  const [x, y] = [a.metadata.resourceVersion ?? '', b.metadata.resourceVersion ?? ''];
  if (!/^\d+$/.test(x) || !/^\d+$/.test(y)) return false;
  return x.length === y.length ? x < y : x.length < y.length;
}
