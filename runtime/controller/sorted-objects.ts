/** Objects in the order of their places, kept in order one change at a time: a list of thousands is not sorted again for each. */
import type { KubeObject } from '../rules/kubernetes/object.ts';

/** Where an object stands within its kind. A space cannot occur in either part and sorts before every character that can. */
export function place(namespace: string | undefined, name: string): string {
  return `${namespace ?? ''} ${name}`;
}

/**
 * @example
 * ```ts
 * import { place, SortedObjects } from './sorted-objects.ts';
 * import assert from 'node:assert/strict';
 *
 * const object = (name: string) => ({ apiVersion: 'v1', kind: 'Secret', metadata: { name, namespace: 'a' } });
 * const sorted = new SortedObjects(new Map([[place('a', 'y'), object('y')]]));
 * const before = sorted.all;
 * sorted.set(place('a', 'x'), object('x'));
 * assert.deepEqual(sorted.of('a').map(({ metadata }) => metadata.name), ['x', 'y']);
 * assert.equal(before.length, 1);
 * ```
 */
export class SortedObjects {
  #places: string[];
  #objects: KubeObject[];
  /** Somebody holds the array: the next change goes into a copy. */
  #lent = false;
  readonly #byNamespace = new Map<string, readonly KubeObject[]>();

  constructor(objects: ReadonlyMap<string, KubeObject>) {
    const entries = [...objects].sort(([a], [b]) => (a < b ? -1 : 1));
    this.#places = entries.map(([at]) => at);
    this.#objects = entries.map(([, object]) => object);
  }

  /** All of them. The same array until something changes, and never changed itself. */
  get all(): readonly KubeObject[] {
    this.#lent = true;
    return this.#objects;
  }

  /** Those of one namespace; as {@link all}. */
  of(namespace: string): readonly KubeObject[] {
    const known = this.#byNamespace.get(namespace);
    if (known !== undefined) return known;
    const found = this.#objects.slice(this.#find(`${namespace} `), this.#find(`${namespace}!`));
    this.#byNamespace.set(namespace, found);
    return found;
  }

  set(at: string, object: KubeObject): void {
    const objects = this.#changing(at);
    const index = this.#find(at);
    if (this.#places[index] === at) objects[index] = object;
    else {
      this.#places.splice(index, 0, at);
      objects.splice(index, 0, object);
    }
  }

  delete(at: string): void {
    const index = this.#find(at);
    if (this.#places[index] !== at) return;
    this.#changing(at).splice(index, 1);
    this.#places.splice(index, 1);
  }

  #changing(at: string): KubeObject[] {
    this.#byNamespace.delete(at.slice(0, at.indexOf(' ')));
    if (this.#lent) this.#objects = this.#objects.slice();
    this.#lent = false;
    return this.#objects;
  }

  /** Index of the first place that is not before `at`. */
  #find(at: string): number {
    let low = 0;
    let high = this.#places.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#places[middle] as string) < at) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
