/**
 * Objects of one cluster in memory, by kind, namespace and name. Used by caches and by offline folders.
 *
 * All watches of a cluster share one store: several narrow watches of one object are not in step, so the newest resource
 * version of a uid wins whatever its source, and an object whose deletion was seen is never restored by the response to a write.
 */
import type { KubeObject } from '../core/kubernetes/object.ts';
import { oncePer, valueAt } from '../core/record.ts';
import type { Collection, ObjectRef } from '../kube/resources.ts';
import {
  type ClusterPair,
  CONTROL_PLANE_NAMESPACE,
  HOSTED_CLUSTER_NAME,
  HOSTED_CLUSTER_NAMESPACE,
  KEY_ANNOTATION,
  OWNER_LABEL,
  type Query,
  type Reader,
  type Ref,
  type Role,
  type Watch,
} from './contract.ts';

// Objects in sorted order, updated one change at a time, because sorting thousands of objects for each change is slow.

/** Sort key of an object within its kind. A space cannot occur in either part and sorts before every character that can. */
function place({ namespace = '', name }: Pick<ObjectRef, 'namespace' | 'name'>): string {
  return `${namespace} ${name}`;
}

class SortedObjects {
  #objects: KubeObject[];
  /** A reader has the array, so the next change copies it. */
  #lent = false;
  readonly #byNamespace = new Map<string, readonly KubeObject[]>();

  constructor(objects: ReadonlyMap<string, KubeObject>) {
    this.#objects = [...objects].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, object]) => object);
  }

  /** All objects. The same array until an object changes; the array itself is never modified. */
  get all(): readonly KubeObject[] {
    this.#lent = true;
    return this.#objects;
  }

  /** The objects of one namespace, like {@link all}. */
  of(namespace: string): readonly KubeObject[] {
    const known = this.#byNamespace.get(namespace);
    if (known !== undefined) return known;
    const found = this.#objects.slice(this.#find(`${namespace} `), this.#find(`${namespace}!`));
    this.#byNamespace.set(namespace, found);
    return found;
  }

  set(at: string, object: KubeObject): void {
    this.#changing(at).splice(this.#find(at), this.#has(at) ? 1 : 0, object);
  }

  delete(at: string): void {
    if (this.#has(at)) this.#changing(at).splice(this.#find(at), 1);
  }

  #has(at: string): boolean {
    const object = this.#objects[this.#find(at)];
    return object !== undefined && place(object.metadata) === at;
  }

  #changing(at: string): KubeObject[] {
    this.#byNamespace.delete(at.slice(0, at.indexOf(' ')));
    if (this.#lent) this.#objects = this.#objects.slice();
    this.#lent = false;
    return this.#objects;
  }

  /** Index of the first element that is not before `at`. */
  #find(at: string): number {
    let low = 0;
    let high = this.#objects.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (place((this.#objects[middle] as KubeObject).metadata) < at) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

/** Identifies a kind: `apps/v1/DaemonSet`. */
export function kindKey({ apiVersion, kind }: Collection): string {
  return `${apiVersion}/${kind}`;
}

const NONE: readonly KubeObject[] = [];

interface KindTable {
  readonly objects: Map<string, KubeObject>;
  /** Built when a list is first requested, kept from then on. */
  sorted?: SortedObjects;
}

export class ObjectStore {
  readonly #kinds = new Map<string, KindTable>();
  readonly #owned = new Map<string, Set<KubeObject>>();

  get(ref: ObjectRef): KubeObject | undefined {
    return this.#kinds.get(kindKey(ref))?.objects.get(place(ref));
  }

  set(object: KubeObject): void {
    const kind = kindKey(object);
    const table: KindTable = this.#kinds.get(kind) ?? { objects: new Map() };
    this.#kinds.set(kind, table);
    const id = place(object.metadata);
    this.#disown(table.objects.get(id));
    table.objects.set(id, object);
    table.sorted?.set(id, object);
    const owner = ownerKey(object);
    if (owner === undefined) return;
    const group = this.#owned.get(owner) ?? new Set();
    this.#owned.set(owner, group.add(object));
  }

  delete(ref: ObjectRef): void {
    const table = this.#kinds.get(kindKey(ref));
    const id = place(ref);
    this.#disown(table?.objects.get(id));
    table?.objects.delete(id);
    table?.sorted?.delete(id);
  }

  /**
   * Objects of a kind, of one namespace or of all, sorted by namespace, then name. The array is shared, do not modify it: it is
   * the same one until an object changes, and returned arrays are never modified.
   */
  list(kind: Collection, namespace?: string): readonly KubeObject[] {
    const table = this.#kinds.get(kindKey(kind));
    if (table === undefined) return NONE;
    table.sorted ??= new SortedObjects(table.objects);
    return namespace === undefined ? table.sorted.all : table.sorted.of(namespace);
  }

  /** Objects with the label of `owner` and the annotation of `key`. */
  owned(owner: string, key: string): readonly KubeObject[] {
    return [...(this.#owned.get(`${owner} ${key}`) ?? [])];
  }

  *[Symbol.iterator](): Generator<KubeObject> {
    for (const [, table] of [...this.#kinds.entries()].sort(([a], [b]) => (a < b ? -1 : 1)))
      yield* table.objects.values();
  }

  #disown(object: KubeObject | undefined): void {
    const owner = object === undefined ? undefined : ownerKey(object);
    if (object === undefined || owner === undefined) return;
    const group = this.#owned.get(owner);
    group?.delete(object);
    if (group?.size === 0) this.#owned.delete(owner);
  }
}

function ownerKey(object: KubeObject): string | undefined {
  const owner = object.metadata.labels?.[OWNER_LABEL];
  const key = object.metadata.annotations?.[KEY_ANNOTATION];
  return owner === undefined || typeof key !== 'string' ? undefined : `${owner} ${key}`;
}

// Objects that a {@link Watch} covers. A reconciler sees no others, offline as in a cluster.

/** The namespace of `read` in `scope`, or undefined for all. */
export function readNamespace(read: Watch, scope: ClusterPair): string | undefined {
  if (read.namespace === CONTROL_PLANE_NAMESPACE) return scope.controlPlaneNamespace;
  // A stand-alone cluster has no HostedCluster: `-` is not a namespace, so the watch covers nothing.
  if (read.namespace === HOSTED_CLUSTER_NAMESPACE) return scope.hostedCluster?.namespace ?? '-';
  return read.namespace;
}

/** The name of `read` in `scope`, or undefined for all. */
export function readName(read: Watch, scope: ClusterPair): string | undefined {
  return read.name?.replace(HOSTED_CLUSTER_NAME, scope.hostedCluster?.name ?? '-');
}

/** Whether `object`, of the cluster of `read.role`, is covered by `read`. */
export function covers(read: Watch, object: KubeObject, scope: ClusterPair): boolean {
  if (read.apiVersion !== object.apiVersion || read.kind !== object.kind) return false;
  const namespace = readNamespace(read, scope);
  if (namespace !== undefined && namespace !== (object.metadata.namespace ?? '')) return false;
  if (read.name !== undefined && readName(read, scope) !== object.metadata.name) return false;
  return matchesSelectors(read, object);
}

/** Whether the selectors of `read` select `object`. Of the fields, only what reads use: `metadata.…` and `type`. */
export function matchesSelectors(
  { labelSelector, fieldSelector }: Pick<Watch, 'labelSelector' | 'fieldSelector'>,
  object: KubeObject,
): boolean {
  const labels = object.metadata.labels ?? {};
  return (
    terms(labelSelector).every(({ key, value, isNot }) =>
      value === undefined ? key in labels : (labels[key] === value) !== isNot,
    ) && terms(fieldSelector).every(({ key, value }) => valueAt(object, key) === value)
  );
}

/** The fields of the object itself in `selector`: for metadata alone, the server has matched them and does not send them. */
export function impliedFields(selector: string | undefined): Readonly<Record<string, string>> {
  return Object.fromEntries(
    terms(selector).flatMap(({ key, value }) =>
      key.includes('.') || value === undefined ? [] : [[key, value]],
    ),
  );
}

/** Parsed selectors of the watches, which are few and used for every object. */
const knownTerms = new Map<string, ReturnType<typeof readTerms>>();

/** Terms `a=b,c,d!=e`, as reads use them; `c` alone means: exists, with any value. */
function terms(selector = ''): ReturnType<typeof readTerms> {
  const known = knownTerms.get(selector) ?? readTerms(selector);
  knownTerms.set(selector, known);
  return known;
}

function readTerms(selector: string) {
  return selector
    .split(',')
    .filter((term) => term !== '')
    .map((term) => {
      const [key = '', value] = term.split(/!?=+/, 2);
      return { key: key.trim(), value: value?.trim(), isNot: term.includes('!=') };
    });
}

// A {@link Reader} over object stores: the objects of one scope that one reconciler watches.

/** The stores of a pair: the same one twice when it is stand-alone. */
export type Stores = Readonly<Record<Role, ObjectStore>>;

/** The roles whose stores hold different objects. */
export function rolesOf({ hosted, management }: Stores): readonly Role[] {
  return hosted === management ? ['hosted'] : ['hosted', 'management'];
}

/** Input of {@link createReader}; without the optional functions it has no look-ups, dry runs or refusals. */
export interface ReaderInput
  extends Pick<Reader, 'scope' | 'now' | 'serves'>,
    Partial<Pick<Reader, 'lookup' | 'dryRun' | 'refusal' | 'isUnreadable'>> {
  readonly stores: Stores;
  readonly reads: readonly Watch[];
}

/**
 * Creates the reader. It does not find objects that no watch covers, so that a missing watch fails in tests, not in a cluster.
 */
export function createReader({ stores, reads, ...rest }: ReaderInput): Reader {
  const { scope } = rest;
  const readsOf = (role: Role, kind: string): readonly Watch[] => {
    const found = byKind(reads).get(kind) ?? [];
    return stores.hosted === stores.management ? found : found.filter((read) => read.role === role);
  };
  return {
    lookup: () => undefined,
    dryRun: () => undefined,
    refusal: () => undefined,
    isUnreadable: () => false,
    ...rest,
    get(ref: Ref) {
      const object = stores[ref.role].get(ref);
      if (object === undefined || (ref.uid !== undefined && ref.uid !== object.metadata.uid))
        return undefined;
      return readsOf(ref.role, kindKey(ref)).some((read) => covers(read, object, scope)) ? object : undefined;
    },
    list(query: Query) {
      const objects = stores[query.role].list(query, query.namespace);
      const found = readsOf(query.role, kindKey(query));
      if (query.labels === undefined && found.some(coversAll)) return objects;
      return objects.filter(
        (object) => selected(query, object) && found.some((read) => covers(read, object, scope)),
      );
    },
  };
}

/** In a stand-alone cluster both roles share a store, and a watch of either role covers it. */
const byKind = oncePer((reads: readonly Watch[]) => Map.groupBy(reads, kindKey));

/** Whether the watch covers all objects of its kind: the list is then the store's own array. */
function coversAll({ namespace, name, labelSelector, fieldSelector }: Watch): boolean {
  return [namespace, name, labelSelector, fieldSelector].every((bound) => bound === undefined);
}

function selected(query: Query, object: KubeObject): boolean {
  return Object.entries(query.labels ?? {}).every(([key, value]) => object.metadata.labels?.[key] === value);
}
