/** One informer, the objects that it has, and who hears of them. */
import type { KubeClient } from '../kube/client.ts';
import { Informer, type InformerOptions, type InformerSink } from '../kube/informer.ts';
import { leanObject } from '../kube/lean.ts';
import { objectRef } from '../kube/resources.ts';
import { PullwrightError } from '../rules/errors.ts';
import type { KubeObject } from '../rules/kubernetes/object.ts';
import { OnDemandValues } from './on-demand-values.ts';
import { inParallel } from './parallel.ts';
import { impliedFields, matchesSelectors } from './selection.ts';
import type { ChangeListener, Selection, Source, SourceStatus } from './source.ts';
import { kindKey } from './store.ts';

/** What a source does with the store that it shares. */
export interface SharedStore {
  /** Gives what is stored now: what was known of the same version already, so that nothing is kept twice. */
  keep(object: KubeObject): KubeObject;
  release(object: KubeObject, whole: boolean): void;
  /** Has less of the same version from now on. Gives what is stored. */
  replace(before: KubeObject, less: KubeObject): KubeObject;
  /** Takes the answer to a look. */
  observe(answer: KubeObject): void;
}

/** What the informers of one cluster have in common. */
type SharedOfCluster = Required<Pick<InformerOptions, 'timing' | 'outage'>>;

/** Secrets whose values are asked for at once, by name. */
const PARALLEL_LOOKS = 16;
/** A look that failed is tried again after this time, as long as its values are wanted. */
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
  readonly #shared: SharedStore;
  readonly #onDemand: OnDemandValues | undefined;
  /** The objects that this source has, by name. */
  readonly #objects = new Map<string, KubeObject>();
  /** The watch can tell of a deletion before the answer to our last write of the object is read. */
  readonly #deletedUids = new Set<string>();
  /** By what they want to hear of: '' for everything, else a {@link watchPlaceOf}. */
  readonly #listeners = new Map<string, Set<ChangeListener>>();
  readonly #statusListeners = new Set<() => void>();
  #informer: Informer | undefined;
  #look: ((object: KubeObject) => Promise<KubeObject | undefined>) | undefined;
  #lookAgainMs = LOOK_AGAIN_MS;
  readonly #looks = new Set<NodeJS.Timeout>();

  constructor(selection: Selection, shared: SharedStore) {
    this.selection = selection;
    this.#shared = shared;
    this.#onDemand = selection.values === undefined ? undefined : new OnDemandValues();
  }

  get listeners(): number {
    return this.#listeners.values().reduce((sum, group) => sum + group.size, 0);
  }

  start(client: KubeClient, shared: SharedOfCluster): void {
    const { apiVersion, kind, namespace, name, labelSelector, fieldSelector } = this.selection;
    const byName = name === undefined ? [] : [`metadata.name=${name}`];
    const fields = [...byName, ...(fieldSelector === undefined ? [] : [fieldSelector])].join(',');
    const informer = new Informer({
      client,
      collection: { apiVersion, kind, ...(namespace === undefined ? {} : { namespace }) },
      selector: {
        ...(labelSelector === undefined ? {} : { labelSelector }),
        ...(fields === '' ? {} : { fieldSelector: fields }),
        ...(this.#onDemand === undefined ? {} : { metadataOnly: true }),
      },
      sink: this,
      lean: (object) => this.#seen(object) ?? this.#kept(leanObject(object)),
      wantsWhole: (object) => this.#onDemand?.wants(object) === true,
      ...shared,
    });
    this.#informer = informer;
    this.#lookAgainMs = Math.min(LOOK_AGAIN_MS, shared.timing.backOff?.maxMs ?? LOOK_AGAIN_MS);
    this.#look = (object) => client.get(objectRef(object));
    void informer.run();
  }

  stop(): void {
    this.#informer?.stop();
    this.#look = undefined;
    for (const timer of this.#looks) clearTimeout(timer);
    const objects = [...this.#objects.values()];
    this.#objects.clear();
    for (const object of objects) this.#shared.release(object, false);
  }

  subscribe(listener: ChangeListener): () => void {
    return this.#subscribeAt('', listener);
  }

  /** The source as readers of one namespace see it: they are told of what is there, and of nothing else. */
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

  /** Whether the object is of the kind, namespace and name that are read here; selectors aside. */
  concerns(object: KubeObject): boolean {
    const { namespace, name } = this.selection;
    if (kindKey(object) !== kindKey(this.selection)) return false;
    if (namespace !== undefined && namespace !== object.metadata.namespace) return false;
    return name === undefined || name === object.metadata.name;
  }

  tell(object: KubeObject, knownTo?: string): void {
    const { namespace, name } = object.metadata;
    const places =
      namespace === undefined
        ? ['']
        : ['', watchPlaceOf(namespace, undefined), watchPlaceOf(namespace, name)];
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
    // Known before it is told, or who hears of it would not find it here.
    this.#objects.set(id, object);
    const kept = this.#shared.keep(object);
    if (kept !== object && this.#objects.get(id) === object) this.#objects.set(id, kept);
  }

  delete(object: KubeObject): void {
    this.drop(object);
    this.#rememberDeletion(object.metadata.uid);
    this.#shared.release(object, !this.#narrowed);
  }

  drop(object: KubeObject): void {
    this.#objects.delete(idOf(object));
  }

  /** The very version that an answer brought before the watch told of it: nothing is to be made of it again. */
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

  /** Never rejects: what could not be read is asked for again. */
  async #lookAt(object: KubeObject): Promise<void> {
    try {
      const found = await this.#look?.(object);
      if (found !== undefined) this.#shared.observe(found);
    } catch {
      const timer = setTimeout(() => {
        this.#looks.delete(timer);
        const known = this.#objects.get(idOf(object));
        if (known !== undefined && this.#onDemand?.wants(known) === true) void this.#lookAt(known);
      }, this.#lookAgainMs);
      this.#looks.add(timer);
    }
  }

  /** Whether this source has all of the object, or will have it. */
  hasWhole(object: KubeObject): boolean {
    return this.#onDemand === undefined && this.concerns(object) && matchesSelectors(this.selection, object);
  }

  state(state: Parameters<InformerSink['state']>[0]): void {
    if (state.is === 'failing') this.status = { is: this.status.is, error: state.error };
    // A kind that was there and is not found any more: an API server that starts says so for a moment. What is known stays.
    else if (state.is === 'missing' && this.status.is === 'synced')
      this.status = { is: 'synced', error: noLongerServed(this.selection) };
    else this.status = { is: state.is };
    for (const listener of this.#statusListeners) listener();
  }

  /** Takes the object if this source has it or would get it: what a selector does not match must not slip in. Gives what it keeps. */
  observe(object: KubeObject): KubeObject | undefined {
    if (!this.concerns(object) || this.#deletedUids.has(object.metadata.uid ?? '')) return undefined;
    if (!this.has(object) && !matchesSelectors(this.selection, object)) return undefined;
    const kept = this.#kept(object);
    this.#objects.set(idOf(object), kept);
    return kept;
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

function idOf({ apiVersion, kind, metadata }: KubeObject): string {
  return `${apiVersion} ${kind} ${metadata.namespace ?? ''} ${metadata.name}`;
}
