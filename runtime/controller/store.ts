/** Objects of one cluster in memory, by kind, namespace and name. What caches and offline folders share. */
import type { KubeObject } from '../rules/kube-object.ts';
import { KEY_ANNOTATION, OWNER_LABEL } from './contract.ts';

/** Names one object within a cluster. */
export interface ObjectName {
  readonly apiVersion: string;
  readonly kind: string;
  readonly namespace?: string;
  readonly name: string;
}

/** Identifies a kind: `apps/v1/DaemonSet`. */
export function kindKey(kind: { readonly apiVersion: string; readonly kind: string }): string {
  return `${kind.apiVersion}/${kind.kind}`;
}

interface KindTable {
  readonly objects: Map<string, KubeObject>;
  /** Sorted lists by namespace ('*' for all), made when first asked for, dropped when the kind changes. */
  readonly lists: Map<string, readonly KubeObject[]>;
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
    table.lists.clear();
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
    table?.lists.clear();
  }

  /** Objects of a kind, of one namespace or of all, sorted by namespace, then name. The array is shared: do not change it. */
  list(
    kind: { readonly apiVersion: string; readonly kind: string },
    namespace?: string,
  ): readonly KubeObject[] {
    const table = this.#kinds.get(kindKey(kind));
    if (table === undefined) return [];
    const known = table.lists.get(namespace ?? '*');
    if (known !== undefined) return known;
    const all = [...table.objects.entries()].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, object]) => object);
    if (namespace === undefined) table.lists.set('*', all);
    else
      for (const [name, group] of Map.groupBy(all, (object) => object.metadata.namespace ?? ''))
        table.lists.set(name, group);
    return table.lists.get(namespace ?? '*') ?? [];
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
      table = { objects: new Map(), lists: new Map() };
      this.#kinds.set(kind, table);
    }
    return table;
  }

  #disown(object: KubeObject | undefined): void {
    const owner = object === undefined ? undefined : ownerKey(object);
    if (object !== undefined && owner !== undefined) this.#owned.get(owner)?.delete(object);
  }
}

function ownerKey(object: KubeObject): string | undefined {
  const owner = object.metadata.labels?.[OWNER_LABEL];
  const key = object.metadata.annotations?.[KEY_ANNOTATION];
  return owner === undefined || typeof key !== 'string' ? undefined : `${owner} ${key}`;
}

// A space cannot occur in either part and sorts before every character that can.
function place(namespace: string | undefined, name: string): string {
  return `${namespace ?? ''} ${name}`;
}
