/** One informer, its objects and its subscribers. */

import { PullwrightError } from '../core/errors.ts';
import type { KubeObject, SecretObject } from '../core/kubernetes/object.ts';
import { inParallel } from '../core/parallel.ts';
import { defined, remember } from '../core/record.ts';
import { pause } from '../http/client.ts';
import type { KubeClient } from '../kube/client.ts';
import { leanObject } from '../kube/decode.ts';
import { Informer, type InformerOptions, type InformerSink, type InformerTiming } from '../kube/informer.ts';
import { Outage } from '../kube/requester.ts';
import { objectRef } from '../kube/resources.ts';
import type { Watch } from './contract.ts';
import { impliedFields, kindKey, matchesSelectors, ObjectStore } from './store.ts';

/** What the informers of one cluster share. */
type SharedOfCluster = Required<Pick<InformerOptions, 'client' | 'timing' | 'outage'>>;

/** Secrets that are read by name at the same time. */
const PARALLEL_LOOKS = 16;
/** A failed read is retried after this time, as long as its values are needed. */
const LOOK_AGAIN_MS = 5000;
/** Deleted objects that are remembered per source. */
const REMEMBERED_DELETIONS = 1000;

/** A namespace, or one name in it. */
function watchPlaceOf(namespace: string, name: string | undefined): string {
  return name === undefined ? namespace : `${namespace}/${name}`;
}

export class CachedSource implements Source, InformerSink {
  readonly selection: Selection;
  status: SourceStatus = { is: 'new' };
  readonly #shared: ClusterCache;
  readonly #onDemand: OnDemandValues | undefined;
  /** The objects of this source, by kind, namespace and name. */
  readonly #objects = new Map<string, KubeObject>();
  /** The watch can report a deletion before the response to our last write of the object is read. */
  readonly #deletedUids = new Map<string, true>();
  /** Listeners by subscription: '' for everything, else a {@link watchPlaceOf}. */
  readonly #listeners = new Map<string, Set<ChangeListener>>();
  readonly #statusListeners = new Set<() => void>();
  readonly #informer: Informer;
  readonly #client: KubeClient;
  readonly #lookAgainMs: number;
  readonly #stopped = new AbortController();

  /** Starts the informer. */
  constructor(selection: Selection, shared: ClusterCache, ofCluster: SharedOfCluster) {
    this.selection = selection;
    this.#shared = shared;
    this.#client = ofCluster.client;
    this.#onDemand = selection.values === undefined ? undefined : new OnDemandValues();
    const { apiVersion, kind, namespace, name, labelSelector, fieldSelector } = selection;
    const byName = name === undefined ? [] : [`metadata.name=${name}`];
    const fields = [...byName, ...(fieldSelector === undefined ? [] : [fieldSelector])].join(',');
    this.#informer = new Informer({
      collection: { apiVersion, kind, ...(namespace === undefined ? {} : { namespace }) },
      selector: {
        labelSelector,
        fieldSelector: fields === '' ? undefined : fields,
        metadataOnly: this.#onDemand !== undefined,
      },
      sink: this,
      lean: (object) => this.#seen(object) ?? this.#kept(leanObject(object)),
      wantsWhole: (object) => this.#onDemand?.wants(object) === true,
      ...ofCluster,
    });
    this.#lookAgainMs = Math.min(LOOK_AGAIN_MS, ofCluster.timing.backOff?.maxMs ?? LOOK_AGAIN_MS);
    void this.#informer.run();
  }

  get listeners(): number {
    return this.#listeners.values().reduce((sum, group) => sum + group.size, 0);
  }

  stop(): void {
    this.#informer.stop();
    this.#stopped.abort();
    const objects = [...this.#objects.values()];
    this.#objects.clear();
    for (const object of objects) this.#shared.release(object, false);
  }

  subscribe(listener: ChangeListener): () => void {
    return this.#subscribeAt('', listener);
  }

  /** The source limited to one namespace: its subscribers are notified only of objects there. */
  within({ namespace, name }: { readonly namespace: string; readonly name?: string }): Source {
    const place = watchPlaceOf(namespace, name);
    const status = (): SourceStatus => this.status;
    return {
      selection: { ...this.selection, namespace, ...(name === undefined ? {} : { name }) },
      get status() {
        return status();
      },
      subscribe: (listener) => this.#subscribeAt(place, listener),
      onStatus: (listener) => this.onStatus(listener),
    };
  }

  #subscribeAt(place: string, listener: ChangeListener): () => void {
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

  /** Whether the source watches the object's kind, namespace and name; selectors are ignored. */
  concerns(object: KubeObject): boolean {
    const { namespace, name } = this.selection;
    if (kindKey(object) !== kindKey(this.selection)) return false;
    if (namespace !== undefined && namespace !== object.metadata.namespace) return false;
    return name === undefined || name === object.metadata.name;
  }

  tell(object: KubeObject, knownTo?: string): void {
    const { namespace, name } = object.metadata;
    const places = namespace === undefined ? [''] : ['', namespace, watchPlaceOf(namespace, name)];
    for (const place of places)
      for (const listener of this.#listeners.get(place) ?? []) listener(object, knownTo);
  }

  replace(objects: readonly KubeObject[]): void {
    const present = new Set(objects.map(idOf));
    const gone = [...this.#objects.values()].filter((object) => !present.has(idOf(object)));
    for (const object of gone) this.delete(object);
    for (const object of objects) this.set(object);
  }

  set(object: KubeObject): void {
    const id = idOf(object);
    // Update the store before notifying subscribers.
    this.#objects.set(id, object);
    const kept = this.#shared.keep(object);
    if (kept !== object && this.#objects.get(id) === object) this.#objects.set(id, kept);
  }

  delete(object: KubeObject): void {
    this.drop(object);
    const { uid } = object.metadata;
    if (uid !== undefined) remember(this.#deletedUids, uid, true, REMEMBERED_DELETIONS);
    const { labelSelector, fieldSelector } = this.selection;
    this.#shared.release(object, labelSelector === undefined && fieldSelector === undefined);
  }

  drop(object: KubeObject): void {
    this.#objects.delete(idOf(object));
  }

  /** The known object when this version was already received in a response, before its watch event. */
  #seen(object: KubeObject): KubeObject | undefined {
    const known = this.#objects.get(idOf(object));
    const { uid, resourceVersion } = object.metadata;
    if (known === undefined || resourceVersion === undefined || this.#onDemand?.wants(known) === true)
      return undefined;
    const isSame = known.metadata.uid === uid && known.metadata.resourceVersion === resourceVersion;
    return isSame ? known : undefined;
  }

  #kept(object: KubeObject): KubeObject {
    if (this.#onDemand === undefined) return object;
    return this.#onDemand.keep({ ...impliedFields(this.selection.fieldSelector), ...object });
  }

  async want(who: object, places: ReadonlySet<string>): Promise<void> {
    const values = this.#onDemand;
    if (values === undefined) return;
    values.want(who, places);
    const objects = [...this.#objects.values()];
    for (const object of objects.filter((one) => values.isIdle(one)))
      this.#objects.set(idOf(object), this.#shared.replace(object, this.#kept(object)));
    const unread = objects.filter((object) => values.wants(object));
    await inParallel(unread, PARALLEL_LOOKS, (object) => this.#lookAt(object));
  }

  /** Never rejects: failed reads are retried. */
  async #lookAt(object: KubeObject): Promise<void> {
    if (this.#stopped.signal.aborted) return;
    try {
      const found = await this.#client.get(objectRef(object));
      if (found !== undefined) this.#shared.observe(found);
    } catch {
      void this.#lookAgain(object);
    }
  }

  async #lookAgain(object: KubeObject): Promise<void> {
    await pause(this.#lookAgainMs, this.#stopped.signal);
    const known = this.#objects.get(idOf(object));
    if (known !== undefined && this.#onDemand?.wants(known) === true) await this.#lookAt(known);
  }

  /** Whether this source has the whole object, or will have it. */
  hasWhole(object: KubeObject): boolean {
    return this.#onDemand === undefined && this.concerns(object) && matchesSelectors(this.selection, object);
  }

  state(state: Parameters<InformerSink['state']>[0]): void {
    if (state.is === 'failing') this.status = { is: this.status.is, error: state.error };
    // An API server that starts may not serve a kind for a moment, so keep the known objects.
    else if (state.is === 'missing' && this.status.is === 'synced')
      this.status = { is: 'synced', error: noLongerServed(this.selection) };
    else this.status = { is: state.is };
    for (const listener of this.#statusListeners) listener();
  }

  /** Stores the object if this source has it or its selectors match it. Returns the stored object. */
  observe(object: KubeObject): KubeObject | undefined {
    if (!this.concerns(object) || this.#deletedUids.has(object.metadata.uid ?? '')) return undefined;
    if (!this.has(object) && !matchesSelectors(this.selection, object)) return undefined;
    const kept = this.#kept(object);
    this.#objects.set(idOf(object), kept);
    return kept;
  }
}

function noLongerServed({ apiVersion, kind }: Selection): PullwrightError {
  return new PullwrightError(`Cannot watch "${apiVersion} ${kind}": the API server no longer serves it`, {
    code: 'KindNotServed',
    retryPolicy: 'waiting',
    hint: 'The last known state stays in use; restart the reconciler if the kind was removed permanently',
  });
}

function idOf({ apiVersion, kind, metadata }: KubeObject): string {
  return `${apiVersion} ${kind} ${metadata.namespace ?? ''} ${metadata.name}`;
}

// Cache of one cluster: informers and one store that several reconcilers and scopes share.

export class ClusterCache {
  readonly store: ObjectStore = new ObjectStore();
  readonly #shared: SharedOfCluster;
  readonly #sources = new Map<string, CachedSource>();

  constructor(client: KubeClient, timing: Partial<InformerTiming> = {}) {
    this.#shared = { client, timing, outage: new Outage() };
  }

  /**
   * Like {@link source}, for equal watches in hundreds of namespaces, which share one watch of `wide`. With a watch each, 500
   * hosted clusters opened 4,500 connections to one API server.
   *
   * @param wide `selection` without the namespace, and without the name if it differs by namespace
   */
  sharedSource(selection: Selection & { readonly namespace: string }, wide: Selection): Source {
    return this.source(wide).within(selection);
  }

  /** The source of `selection`, started on first use. */
  source(selection: Selection): CachedSource {
    const { apiVersion, kind, namespace, name, labelSelector, fieldSelector, values } = selection;
    const id = JSON.stringify([apiVersion, kind, namespace, name, labelSelector, fieldSelector, values]);
    const known = this.#sources.get(id);
    if (known !== undefined) return known;
    const source = new CachedSource(selection, this, this.#shared);
    this.#sources.set(id, source);
    return source;
  }

  /** Stops the sources without subscribers. */
  sweep(): void {
    for (const [id, source] of this.#sources) {
      if (source.listeners > 0) continue;
      this.#sources.delete(id);
      source.stop();
    }
  }

  /**
   * Stores the object that a write or a read returned, so that the next read sees it before its watch event. Subscribers are
   * notified at once, and not again by the watch event of the same version.
   *
   * @param knownTo the author of the write, which is not notified
   */
  observe(answer: KubeObject, knownTo?: string): void {
    const object = leanObject(answer);
    let kept: KubeObject | undefined;
    // A source whose selectors match has more fields of the object than one that is about to drop it.
    const sources = [...this.#sources.values()].filter((source) => source.concerns(object));
    const losing = sources.filter(({ selection }) => !matchesSelectors(selection, object));
    for (const source of losing.length === 0 ? sources : [...losing, ...sources]) {
      const one = source.observe(object);
      if (one !== undefined && (kept === undefined || isLightened(kept))) kept = one;
    }
    if (kept !== undefined && this.#storeNewer(kept)) this.#tell(kept, knownTo);
  }

  /** Removes an object that this process deleted. */
  forget(object: KubeObject): void {
    for (const source of this.#sources.values()) source.drop(object);
    this.store.delete(objectRef(object));
  }

  close(): void {
    for (const source of this.#sources.values()) source.stop();
    this.#sources.clear();
  }

  // Methods for sources, which share the store.

  /**
   * Stores `object` unless a newer version is stored: sources of one object are not in step. All subscribers are notified,
   * whichever source saw it. Returns the stored object, so that equal versions are not kept twice.
   */
  keep(object: KubeObject): KubeObject {
    // Readers of the whole object must never see only the metadata, not even until their own watch event.
    const isLess =
      isLightened(object) && [...this.#sources.values()].some((source) => source.hasWhole(object));
    if (!isLess && this.#storeNewer(object)) this.#tell(object);
    return this.store.get(objectRef(object)) ?? object;
  }

  /** Stores less of the same version, without notification: the fields that the remaining subscribers read do not change. */
  replace(before: KubeObject, less: KubeObject): KubeObject {
    const known = this.store.get(objectRef(before));
    const isRead = [...this.#sources.values()].some((source) => source.hasWhole(before));
    if (known !== before || isRead) return known ?? less;
    this.store.set(less);
    return less;
  }

  /** @param whole the object is deleted; else it only no longer matches a selector */
  release(object: KubeObject, whole: boolean): void {
    if (whole) for (const source of this.#sources.values()) source.drop(object);
    if (![...this.#sources.values()].some((source) => source.has(object)))
      this.store.delete(objectRef(object));
    this.#tell(object);
  }

  /** Returns false when this version or a newer one is stored. */
  #storeNewer(object: KubeObject): boolean {
    const before = this.store.get(objectRef(object));
    if (before?.metadata.uid === object.metadata.uid && before !== undefined) {
      const isSame = before.metadata.resourceVersion === object.metadata.resourceVersion;
      const isMore = isSame && isLightened(before) && !isLightened(object);
      if (!isMore && !isNewer(object, before)) return false;
    }
    this.store.set(object);
    return true;
  }

  #tell(object: KubeObject, knownTo?: string): void {
    for (const source of this.#sources.values()) if (source.concerns(object)) source.tell(object, knownTo);
  }
}

/** Resource versions of one kind are ordered numbers (KEP-5504); otherwise, every different one counts as newer. */
function isNewer(a: KubeObject, b: KubeObject): boolean {
  const [x, y] = [a.metadata.resourceVersion ?? '', b.metadata.resourceVersion ?? ''];
  if (!/^\d+$/.test(x) || !/^\d+$/.test(y)) return x !== y || x === '';
  return x.length === y.length ? x > y : x.length > y.length;
}

// The interface of an informer for readers.

/** One collection with its selectors: a {@link Watch} with a resolved namespace and name. */
export type Selection = Omit<Watch, 'role' | 'optional' | 'dispensable'>;

/** Notified of every change that a source covers. `knownTo`: the author of the write, which has seen the response. */
export type ChangeListener = (object: KubeObject, knownTo?: string) => void;

export interface Source {
  readonly selection: Selection;
  readonly status: SourceStatus;
  /** Calls `listener` for every further change. Returns a function that unsubscribes. */
  subscribe(listener: ChangeListener): () => void;
  /** Calls back when the status changes. */
  onStatus(listener: () => void): () => void;
  /**
   * Sets the Secrets (`<namespace>/<name>`) whose values are read for `who`. Only on sources that do not read all values.
   *
   * @returns settles after each was requested, with or without a response
   */
  want?(who: object, places: ReadonlySet<string>): Promise<unknown>;
}

export interface SourceStatus {
  /** `new` until the first list succeeds or discovery finds no such kind. */
  readonly is: 'new' | 'synced' | 'missing';
  /** The current read error. */
  readonly error?: PullwrightError;
}

// A wide watch keeps names, versions and our labels and annotations of foreign Secrets, and values only of required ones.

const IDENTITY: ReadonlySet<string> = new Set(['namespace', 'uid', 'resourceVersion', 'deletionTimestamp']);
/** Prefix of our labels and annotations. */
const OURS = 'pullwright.dev/';

const lightened = new WeakSet<KubeObject>();

/** Whether fields of the object were dropped. A read by name returns the whole object. */
export function isLightened(object: KubeObject): boolean {
  return lightened.has(object);
}

/** The Secrets of one wide watch whose values are required. */
export class OnDemandValues {
  readonly #wanted = new Map<object, ReadonlySet<string>>();

  /** Sets the Secrets whose values `who` requires from now on, as `<namespace>/<name>`. */
  want(who: object, names: ReadonlySet<string>): void {
    if (names.size === 0) this.#wanted.delete(who);
    else this.#wanted.set(who, names);
  }

  /** The part of the Secret that is kept. */
  keep(object: KubeObject): KubeObject {
    const kept = saidToUs(object);
    const { data } = object as SecretObject;
    if (data !== undefined && this.#isWanted(object)) return { ...kept, data };
    lightened.add(kept);
    return kept;
  }

  /** Whether the values of the Secret are required and not kept. */
  wants(kept: KubeObject): boolean {
    return isLightened(kept) && this.#isWanted(kept);
  }

  /** Whether the values of the Secret are kept and no longer required. */
  isIdle(kept: KubeObject): boolean {
    return !isLightened(kept) && !this.#isWanted(kept);
  }

  #isWanted({ metadata: { namespace = '', name } }: KubeObject): boolean {
    return this.#wanted.values().some((names) => names.has(`${namespace}/${name}`));
  }
}

/** Identity, type, and our labels and annotations. Drops everything else, which a tenant can make arbitrarily large. */
function saidToUs(secret: KubeObject): KubeObject {
  const { apiVersion, kind, type, metadata } = secret as SecretObject;
  const { name, labels, annotations } = metadata;
  const identity = Object.entries(metadata).filter(([key]) => IDENTITY.has(key));
  const said = defined({ labels: labels && ours(labels), annotations: annotations && ours(annotations) });
  return {
    apiVersion,
    kind,
    metadata: { name, ...Object.fromEntries(identity), ...said },
    ...(type === undefined ? {} : { type }),
  };
}

function ours<V>(notes: Readonly<Record<string, V>>): Readonly<Record<string, V>> {
  return Object.fromEntries(Object.entries(notes).filter(([key]) => key.startsWith(OURS)));
}
