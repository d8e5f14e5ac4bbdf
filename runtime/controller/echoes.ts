/**
 * What a watch will tell of our own plain writes. The pass that wrote has seen the answer already; a second one over the same key
 * would find nothing, thousands of times over.
 */
import type { KubeObject } from '../rules/kube-object.ts';

/** An event can overtake the answer to its write; what was remembered after it is never asked for. */
const REMEMBERED = 10_000;

/**
 * @example
 * ```ts
 * import { Echoes } from './echoes.ts';
 * import assert from 'node:assert/strict';
 *
 * const echoes = new Echoes();
 * const written = { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'a', uid: 'u', resourceVersion: '7' } };
 * echoes.expect(written, 'key');
 * assert.equal(echoes.take({ ...written, metadata: { ...written.metadata, resourceVersion: '8' } }), undefined);
 * assert.equal(echoes.take(written), 'key');
 * assert.equal(echoes.take(written), undefined);
 * ```
 */
export class Echoes {
  readonly #keys = new Map<string, string>();

  /** `key` needs not hear of `written`. */
  expect(written: KubeObject, key: string): void {
    this.#keys.set(versionOf(written), key);
    const [oldest] = this.#keys.keys();
    if (this.#keys.size > REMEMBERED && oldest !== undefined) this.#keys.delete(oldest);
  }

  /** The key that wrote this very version of the object, once. */
  take(object: KubeObject): string | undefined {
    if (this.#keys.size === 0) return undefined;
    const version = versionOf(object);
    const key = this.#keys.get(version);
    if (key !== undefined) this.#keys.delete(version);
    return key;
  }
}

function versionOf({ metadata }: KubeObject): string {
  return `${metadata.uid ?? ''} ${metadata.resourceVersion ?? ''}`;
}
