/**
 * Objects of one cluster in memory, by kind, namespace and name. What caches and offline folders share.
 *
 * All watches of a cluster share one store: several narrow watches of one object are not in step, so the newest resource
 * version of a uid wins whichever brought it, and an object whose deletion was seen is never put back by the answer to a write.
 */
import type { KubeObject } from '../rules/kubernetes/object.ts';
import { KEY_ANNOTATION, OWNER_LABEL } from './contract.ts';
import { place, SortedObjects } from './sorted-objects.ts';

/** Names one object within a cluster. */
export interface ObjectName {
  readonly apiVersion: string;
  readonly kind: string;
  readonly namespace?: string;
  readonly name: string;
}

/** By kind and version: a text that is put together anew is hashed anew at each look, and there are a dozen looks for each copy. */
const kindKeys = new Map<string, Map<string, string>>();
/** More kinds than a cluster has. */
const MOST_KINDS = 10_000;

/** Identifies a kind: `apps/v1/DaemonSet`. */
export function kindKey({
  apiVersion,
  kind,
}: {
  readonly apiVersion: string;
  readonly kind: string;
}): string {
  const known = kindKeys.get(kind)?.get(apiVersion);
  if (known !== undefined) return known;
  const made = `${apiVersion}/${kind}`;
  if (kindKeys.size > MOST_KINDS) kindKeys.clear();
  kindKeys.set(kind, (kindKeys.get(kind) ?? new Map<string, string>()).set(apiVersion, made));
  return made;
}

const NONE: readonly KubeObject[] = [];

interface KindTable {
  readonly objects: Map<string, KubeObject>;
  /** Made when a list is asked for the first time, kept from then on. */
  sorted?: SortedObjects;
}

export class ObjectStore {
  readonly #kinds = new Map<string, KindTable>();
  readonly #owned = new Map<string, Set<KubeObject>>();

  get(ref: ObjectName): KubeObject | undefined {
    return this.#kinds.get(kindKey(ref))?.objects.get(place(ref.namespace, ref.name));
  }

  set(object: KubeObject): void {
    const table = this.#table(kindKey(object));
    const id = place(object.metadata.namespace, object.metadata.name);
    this.#disown(table.objects.get(id));
    table.objects.set(id, object);
    table.sorted?.set(id, object);
    const owner = ownerKey(object);
    if (owner === undefined) return;
    const group = this.#owned.get(owner) ?? new Set();
    this.#owned.set(owner, group.add(object));
  }

  delete(ref: ObjectName): void {
    const table = this.#kinds.get(kindKey(ref));
    const id = place(ref.namespace, ref.name);
    this.#disown(table?.objects.get(id));
    table?.objects.delete(id);
    table?.sorted?.delete(id);
  }

  /**
   * Objects of a kind, of one namespace or of all, sorted by namespace, then name. The array is shared, do not change it: it
   * stays the same one until something in it changes, and what was given out stays as it is.
   */
  list(
    kind: { readonly apiVersion: string; readonly kind: string },
    namespace?: string,
  ): readonly KubeObject[] {
    const table = this.#kinds.get(kindKey(kind));
    if (table === undefined) return NONE;
    table.sorted ??= new SortedObjects(table.objects);
    return namespace === undefined ? table.sorted.all : table.sorted.of(namespace);
  }

  /** Objects that carry the marks of this owner and key. */
  owned(owner: string, key: string): readonly KubeObject[] {
    return [...(this.#owned.get(`${owner} ${key}`) ?? [])];
  }

  /** How many objects there are. */
  get size(): number {
    return [...this.#kinds.values()].reduce((sum, table) => sum + table.objects.size, 0);
  }

  *[Symbol.iterator](): Generator<KubeObject> {
    for (const [, table] of [...this.#kinds.entries()].sort(([a], [b]) => (a < b ? -1 : 1)))
      yield* table.objects.values();
  }

  #table(kind: string): KindTable {
    let table = this.#kinds.get(kind);
    if (table === undefined) {
      table = { objects: new Map() };
      this.#kinds.set(kind, table);
    }
    return table;
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
