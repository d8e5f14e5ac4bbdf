/** What one cluster holds, as far as somebody asked: informers that several reconcilers and scopes share, over one store. */

import type { KubeClient } from '../kube/client.ts';
import { Informer, type InformerSink, type InformerTiming } from '../kube/informer.ts';
import { PullwrightError } from '../rules/errors.ts';
import type { KubeObject } from '../rules/kube-object.ts';
import { isDenied, placeOf, SharedSource, type WideSource } from './shared-source.ts';
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

/** So many namespaces have a watch of their own before one for all is opened. */
const NARROW_WATCHES = 3;

export class ClusterCache {
  readonly store: ObjectStore = new ObjectStore();
  readonly #client: KubeClient;
  readonly #timing: Partial<InformerTiming>;
  readonly #sources = new Map<string, CachedSource>();
  /** By the watch over all namespaces: those with a watch of their own, or `denied` when the rights do not reach so far. */
  readonly #narrow = new Map<string, Set<string> | 'denied'>();

  constructor(client: KubeClient, timing: Partial<InformerTiming> = {}) {
    this.#client = client;
    this.#timing = timing;
  }

  /** The source of `selection`, started when it is asked for the first time. */
  source(selection: Selection): Source {
    return this.#cached(selection);
  }

  /**
   * As {@link source}, for what is read alike in many namespaces: the fourth namespace and all later ones share one watch of
   * `wide`, if the rights allow it.
   *
   * @param selection what is read
   * @param wide the same without the namespace, and without the name where it differs by namespace
   */
  sharedSource(selection: Selection & { readonly namespace: string }, wide: Selection): Source {
    const [id, wideId] = [idOfSelection(selection), idOfSelection(wide)];
    const narrow = this.#narrow.get(wideId) ?? new Set();
    this.#narrow.set(wideId, narrow);
    if (narrow === 'denied' || narrow.has(id)) return this.#cached(selection);
    if (narrow.size < NARROW_WATCHES) {
      narrow.add(id);
      return this.#cached(selection);
    }
    const known = this.#sources.has(wideId);
    const source = this.#cached(wide);
    if (!known) this.#noticeDenial(wideId, source);
    return new SharedSource({ selection, wide: source, alone: () => this.#cached(selection) });
  }

  #noticeDenial(wideId: string, source: CachedSource): void {
    const end = source.onStatus(() => {
      if (source.status.is !== 'new' || isDenied(source.status)) end();
      if (!isDenied(source.status)) return;
      this.#narrow.set(wideId, 'denied');
      this.#sources.delete(wideId);
      source.stop();
    });
  }

  #cached(selection: Selection): CachedSource {
    const id = idOfSelection(selection);
    const known = this.#sources.get(id);
    if (known !== undefined) return known;
    const source = new CachedSource(selection, {
      keep: (object) => this.#keep(object),
      release: (object, whole) => this.#release(object, whole),
    });
    this.#sources.set(id, source);
    source.start(this.#client, this.#timing);
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

  /** Takes what a write gave back, so that the next look sees it before the watch tells. Nobody is told. */
  observe(object: KubeObject): void {
    for (const source of this.#sources.values()) if (source.observe(object)) this.#storeNewer(object);
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
  #keep(object: KubeObject): void {
    this.#storeNewer(object);
    this.#tell(object);
  }

  /** @param whole the object is gone, and does not only match a selector no more */
  #release(object: KubeObject, whole: boolean): void {
    if (whole) for (const source of this.#sources.values()) source.drop(object);
    if (![...this.#sources.values()].some((source) => source.has(object)))
      this.store.delete(storeName(object));
    this.#tell(object);
  }

  #storeNewer(object: KubeObject): void {
    const before = this.store.get(storeName(object));
    // An echo of the time before.
    if (before !== undefined && before.metadata.uid === object.metadata.uid && isOlder(object, before))
      return;
    this.store.set(object);
  }

  #tell(object: KubeObject): void {
    for (const source of this.#sources.values()) if (source.concerns(object)) source.tell(object);
  }
}

/** What a source does with the store that it shares. */
interface SharedStore {
  keep(object: KubeObject): void;
  release(object: KubeObject, whole: boolean): void;
}

/** Deleted objects that are remembered per source. */
const REMEMBERED_DELETIONS = 1000;

class CachedSource implements WideSource, InformerSink {
  readonly selection: Selection;
  status: SourceStatus = { is: 'new' };
  readonly #shared: SharedStore;
  /** The objects that this source has, by name. */
  readonly #objects = new Map<string, KubeObject>();
  /** The watch can tell of a deletion before the answer to our last write of the object is read. */
  readonly #deletedUids = new Set<string>();
  /** By what they want to hear of: '' for everything, else a {@link placeOf}. */
  readonly #listeners = new Map<string, Set<ChangeListener>>();
  readonly #statusListeners = new Set<() => void>();
  #informer: Informer | undefined;

  constructor(selection: Selection, shared: SharedStore) {
    this.selection = selection;
    this.#shared = shared;
  }

  get listeners(): number {
    return this.#listeners.values().reduce((sum, group) => sum + group.size, 0);
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
    const objects = [...this.#objects.values()];
    this.#objects.clear();
    for (const object of objects) this.#shared.release(object, false);
  }

  subscribe(listener: ChangeListener): () => void {
    return this.subscribeAt('', listener);
  }

  subscribeAt(place: string, listener: ChangeListener): () => void {
    const group = this.#listeners.get(place) ?? new Set();
    this.#listeners.set(place, group.add(listener));
    return () => {
      group.delete(listener);
      if (group.size === 0 && this.#listeners.get(place) === group) this.#listeners.delete(place);
    };
  }

  onStatus(listener: () => void): () => void {
    this.#statusListeners.add(listener);
    return () => this.#statusListeners.delete(listener);
  }

  has(object: KubeObject): boolean {
    return this.#objects.has(idOf(object));
  }

  /** Whether the object is of the kind, namespace and name that are read here; selectors aside. */
  concerns(object: KubeObject): boolean {
    const { namespace, name } = this.selection;
    if (kindKey(object) !== kindKey(this.selection)) return false;
    if (namespace !== undefined && namespace !== object.metadata.namespace) return false;
    return name === undefined || name === object.metadata.name;
  }

  tell(object: KubeObject): void {
    const { namespace, name } = object.metadata;
    const places =
      namespace === undefined ? [''] : ['', placeOf(namespace, undefined), placeOf(namespace, name)];
    for (const place of places) for (const listener of this.#listeners.get(place) ?? []) listener(object);
  }

  replace(objects: readonly KubeObject[]): void {
    const present = new Set(objects.map(idOf));
    const gone = [...this.#objects.values()].filter((object) => !present.has(idOf(object)));
    for (const object of gone) this.delete(object);
    for (const object of objects) this.set(object);
  }

  set(object: KubeObject): void {
    this.#objects.set(idOf(object), object);
    this.#shared.keep(object);
  }

  delete(object: KubeObject): void {
    this.drop(object);
    this.#rememberDeletion(object.metadata.uid);
    this.#shared.release(object, !this.#narrowed);
  }

  drop(object: KubeObject): void {
    this.#objects.delete(idOf(object));
  }

  state(state: Parameters<InformerSink['state']>[0]): void {
    if (state.is === 'failing') this.status = { is: this.status.is, error: state.error };
    // A kind that was there and is not found any more: an API server that starts says so for a moment. What is known stays.
    else if (state.is === 'missing' && this.status.is === 'synced')
      this.status = { is: 'synced', error: noLongerServed(this.selection) };
    else this.status = { is: state.is };
    for (const listener of this.#statusListeners) listener();
  }

  /** Takes the object if this source has it or would get it: what a selector does not match must not slip in. */
  observe(object: KubeObject): boolean {
    if (!this.concerns(object) || this.#deletedUids.has(object.metadata.uid ?? '')) return false;
    if (this.#narrowed && !this.has(object)) return false;
    this.#objects.set(idOf(object), object);
    return true;
  }

  get #narrowed(): boolean {
    return this.selection.labelSelector !== undefined || this.selection.fieldSelector !== undefined;
  }

  #rememberDeletion(uid: string | undefined): void {
    if (uid === undefined) return;
    this.#deletedUids.add(uid);
    const [oldest] = this.#deletedUids;
    if (this.#deletedUids.size > REMEMBERED_DELETIONS && oldest !== undefined)
      this.#deletedUids.delete(oldest);
  }
}

function noLongerServed({ apiVersion, kind }: Selection): PullwrightError {
  return new PullwrightError(`Cannot watch "${apiVersion} ${kind}": the cluster does not serve it any more`, {
    code: 'KindNotServed',
    disposition: 'waiting',
    hint: 'What was seen last stays in force; restart the reconciler when the kind is gone for good',
  });
}

function idOfSelection(selection: Selection): string {
  const { apiVersion, kind, namespace, name, labelSelector, fieldSelector } = selection;
  return JSON.stringify([apiVersion, kind, namespace, name, labelSelector, fieldSelector]);
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
