/** What a wide read keeps of Secrets that are not ours: names, versions and what is said to us. Values only of those that are needed. */
import type { KubeObject, SecretObject } from '../core/kubernetes/object.ts';

const IDENTITY: ReadonlySet<string> = new Set(['namespace', 'uid', 'resourceVersion', 'deletionTimestamp']);
/** Labels and annotations that say something to us. */
const OURS = 'pullwright.dev/';

const lightened = new WeakSet<KubeObject>();

/** Whether the object is less than the API server has. A read by name gives all of it. */
export function isLightened(object: KubeObject): boolean {
  return lightened.has(object);
}

/** The Secrets of one wide read whose values are needed. */
export class OnDemandValues {
  readonly #wanted = new Map<object, ReadonlySet<string>>();

  /** The Secrets whose values `who` needs from now on, as `<namespace>/<name>`. */
  want(who: object, names: ReadonlySet<string>): void {
    if (names.size === 0) this.#wanted.delete(who);
    else this.#wanted.set(who, names);
  }

  /** What is kept of the Secret. */
  keep(object: KubeObject): KubeObject {
    const kept = saidToUs(object);
    const { data } = object as SecretObject;
    if (data !== undefined && this.#isWanted(object)) return { ...kept, data };
    lightened.add(kept);
    return kept;
  }

  /** Whether the values of a Secret are to be read that are not kept. */
  wants(kept: KubeObject): boolean {
    return isLightened(kept) && this.#isWanted(kept);
  }

  /** Whether the values of a Secret are kept that are not needed any more. */
  isIdle(kept: KubeObject): boolean {
    return !isLightened(kept) && !this.#isWanted(kept);
  }

  #isWanted({ metadata: { namespace = '', name } }: KubeObject): boolean {
    return this.#wanted.values().some((names) => names.has(`${namespace}/${name}`));
  }
}

/** Who it is, and what is said to us: nothing else that a tenant may make as large as it likes. */
function saidToUs(secret: KubeObject): KubeObject {
  const { apiVersion, kind, type, metadata } = secret as SecretObject;
  const { name, labels, annotations } = metadata;
  const identity = Object.entries(metadata).filter(([key]) => IDENTITY.has(key));
  const said = {
    ...(labels === undefined ? {} : { labels: ours(labels) }),
    ...(annotations === undefined ? {} : { annotations: ours(annotations) }),
  };
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
