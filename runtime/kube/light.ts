/**
 * Objects of many bytes without what nobody here reads. An API server takes objects of a megabyte and a half of anybody who may make one, and caches
 * hold those of all tenants: a few hundred ServiceAccounts or pods of that size would end the process for everybody.
 */
import type { KubeObject } from '../rules/kubernetes/object.ts';
import { isRecord } from '../rules/record.ts';

/** Kinds that tenants make, that are read in every namespace, and of which nothing is owned here but a status and names in a list. */
const OF_TENANTS: ReadonlySet<string> = new Set(['Namespace', 'Pod', 'ServiceAccount']);

/** Up to this weight an object is kept as it is. A usual pod has a fifth of it. */
const HEAVY_BYTES = 64 * 1024;
const MOST_ENTRIES = 50;
const MOST_LABELS = 200;
const MOST_TEXT = 512;

/** On an object of which something was left out: nothing of it may be written back. */
const LEFT_OUT = 'pullwright.dev/left-out';

/** Keys that mean something here, or to Kubernetes. */
const MEANT = /^(?:[a-z0-9.-]+\.)?(?:pullwright\.dev|kubernetes\.io|k8s\.io|openshift\.io)\//;

/**
 * The object itself, unless it is heavy and of a kind that tenants make. Of a heavy one names and states stay: its labels, the annotations
 * that mean something, of a pod its images and why it waits, of a ServiceAccount the beginning of its lists.
 *
 * @example
 * ```ts
 * import { lightObject } from './light.ts';
 * import assert from 'node:assert/strict';
 *
 * const env = Array.from({ length: 5000 }, (_, at) => ({ name: `E${at}`, value: 'x'.repeat(100) }));
 * const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'a' }, spec: { containers: [{ name: 'a', image: 'quay.io/a', env }] } };
 * assert.deepEqual(lightObject(pod).spec, { containers: [{ name: 'a', image: 'quay.io/a' }] });
 * const small = { ...pod, spec: { containers: [] } };
 * assert.equal(lightObject(small), small);
 * ```
 */
export function lightObject(object: KubeObject): KubeObject {
  if (!OF_TENANTS.has(object.kind) || weightLeft(object, HEAVY_BYTES) >= 0) return object;
  const { apiVersion, kind } = object;
  const {
    labels,
    annotations = {},
    ownerReferences,
    managedFields: _fields,
    finalizers: _ends,
    ...rest
  } = object.metadata;
  const metadata = {
    ...rest,
    ...(labels === undefined ? {} : { labels: meant(labels, MOST_LABELS) }),
    ...(ownerReferences === undefined ? {} : { ownerReferences: ownerReferences.slice(0, MOST_ENTRIES) }),
    annotations: { ...meant(annotations, 0), [LEFT_OUT]: 'true' },
  };
  if (kind === 'Pod') return { apiVersion, kind, metadata, ...lightPod(object) };
  if (kind !== 'ServiceAccount') return { ...object, metadata };
  const { secrets, imagePullSecrets } = object;
  return {
    apiVersion,
    kind,
    metadata,
    ...picked({ secrets, imagePullSecrets }, { secrets: ['name'], imagePullSecrets: ['name'] }),
  };
}

/** What is left of `budget` after all texts of `value`, about; below nothing as soon as it is known to be too little. */
function weightLeft(value: unknown, budget: number): number {
  if (typeof value === 'string') return budget - value.length - 2;
  if (typeof value !== 'object' || value === null) return budget - 4;
  let left = budget - 2;
  for (const [key, one] of Object.entries(value)) {
    left = weightLeft(one, left - (Array.isArray(value) ? 1 : key.length + 4));
    if (left < 0) return left;
  }
  return left;
}

/** Entries that mean something, and so many of the others. */
function meant<V>(map: Readonly<Record<string, V>>, others: number): Readonly<Record<string, V>> {
  const entries = Object.entries(map).filter(
    ([, value]) => typeof value === 'string' && value.length <= MOST_TEXT,
  );
  const known = entries.filter(([key]) => MEANT.test(key)).slice(0, MOST_ENTRIES);
  return Object.fromEntries([...entries.filter(([key]) => !MEANT.test(key)).slice(0, others), ...known]);
}

const CONTAINER = ['name', 'image'];
const STATUS = ['name', 'image', 'imageID', 'ready', 'state'];
const SPEC = {
  initContainers: CONTAINER,
  containers: CONTAINER,
  ephemeralContainers: CONTAINER,
  imagePullSecrets: ['name'],
};
const STATUS_LISTS = {
  initContainerStatuses: STATUS,
  containerStatuses: STATUS,
  conditions: ['type', 'status', 'reason'],
};

function lightPod({ spec, status }: KubeObject): Readonly<Record<string, unknown>> {
  const own = { ...simple(spec, ['nodeName', 'serviceAccountName', 'restartPolicy']), ...picked(spec, SPEC) };
  return { spec: own, status: { ...simple(status, ['phase', 'reason']), ...picked(status, STATUS_LISTS) } };
}

/** Of lists that are there the first entries, each with the fields that are named. */
function picked(
  value: unknown,
  lists: Readonly<Record<string, readonly string[]>>,
): Readonly<Record<string, unknown>> {
  if (!isRecord(value)) return {};
  return Object.fromEntries(
    Object.entries(lists).flatMap(([field, fields]) => {
      const list = value[field];
      return Array.isArray(list)
        ? [[field, list.slice(0, MOST_ENTRIES).map((one) => simple(one, fields))]]
        : [];
    }),
  );
}

/** Fields that are there; texts at most so long, and of a container's state why it waits. */
function simple(value: unknown, fields: readonly string[]): Readonly<Record<string, unknown>> {
  if (!isRecord(value)) return {};
  return Object.fromEntries(
    fields.flatMap((field) => {
      const one = value[field];
      if (typeof one === 'string') return [[field, one.slice(0, MOST_TEXT)]];
      if (field === 'state') return [[field, { ...simpleWaiting(one) }]];
      return one === undefined || typeof one === 'object' ? [] : [[field, one]];
    }),
  );
}

function simpleWaiting(state: unknown): Readonly<Record<string, unknown>> {
  const waiting = isRecord(state) ? state['waiting'] : undefined;
  return waiting === undefined ? {} : { waiting: simple(waiting, ['reason', 'message']) };
}
