/**
 * Which lists of Kubernetes objects are maps in disguise. Server-side apply merges these by key; every other list is taken as
 * one value. Source: `x-kubernetes-list-map-keys` and `x-kubernetes-list-type: set` of the built-in types.
 */

const BY_NAME: readonly string[] = ['name'];

const LIST_KEYS: Readonly<Record<string, readonly string[]>> = {
  containers: BY_NAME,
  initContainers: BY_NAME,
  ephemeralContainers: BY_NAME,
  volumes: BY_NAME,
  env: BY_NAME,
  imagePullSecrets: BY_NAME,
  secrets: BY_NAME,
  webhooks: BY_NAME,
  matchConditions: BY_NAME,
  variables: BY_NAME,
  volumeMounts: ['mountPath'],
  volumeDevices: ['devicePath'],
  conditions: ['type'],
  ownerReferences: ['uid'],
  hostAliases: ['ip'],
  topologySpreadConstraints: ['topologyKey', 'whenUnsatisfiable'],
};

const SETS: ReadonlySet<string> = new Set(['finalizers']);

/** The key fields of the list under `field`, or undefined when the list is one value. `elements` tells the two kinds of `ports` apart. */
export function listKeys(field: string, elements: readonly unknown[]): readonly string[] | undefined {
  if (field === 'ports') {
    const first = elements[0];
    const has = (key: string): boolean => typeof first === 'object' && first !== null && key in first;
    return has('containerPort')
      ? ['containerPort', 'protocol']
      : has('port')
        ? ['port', 'protocol']
        : undefined;
  }
  return Object.hasOwn(LIST_KEYS, field) ? LIST_KEYS[field] : undefined;
}

/** Whether the list under `field` is a set of plain values. */
export function isSet(field: string): boolean {
  return SETS.has(field);
}

/** Fields that the server fills in when an element of the list leaves them out. */
export const KEY_DEFAULTS: Readonly<Record<string, unknown>> = { protocol: 'TCP' };

/** The element of `list` that has the same key fields as `wanted`. */
export function findByKeys(list: readonly unknown[], keys: readonly string[], wanted: unknown): unknown {
  return list.find((candidate) => keys.every((key) => keyValue(candidate, key) === keyValue(wanted, key)));
}

/** The value of a key field, with the server's default. */
export function keyValue(element: unknown, key: string): unknown {
  const value =
    typeof element === 'object' && element !== null
      ? (element as Readonly<Record<string, unknown>>)[key]
      : undefined;
  return value ?? KEY_DEFAULTS[key];
}
