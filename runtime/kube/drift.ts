/**
 * Evaluates server-side apply without a server: whether applying `desired` as `manager` changes `live`. Used in a cluster to
 * write only on drift, and offline to show what would be written.
 */
import type { KubeObject, ManagedFieldsEntry } from '../core/kubernetes/object.ts';
import { isRecord, recordOf, scalarText } from '../core/record.ts';
import { Redacted, sameSecret } from '../core/redacted.ts';
import { own } from './decode.ts';

// Lists that server-side apply merges by key. Every other list counts as one value, sets too, because we write none. Source:
// `x-kubernetes-list-map-keys` of the built-in types.

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

/**
 * The key fields of the list `field`, or undefined when the list is one value. `elements` distinguishes the two kinds of `ports`.
 */
function listKeys(field: string, elements: readonly unknown[]): readonly string[] | undefined {
  if (field === 'ports') {
    const key = ['containerPort', 'port'].find((one) => one in recordOf(elements[0]));
    return key === undefined ? undefined : [key, 'protocol'];
  }
  return Object.hasOwn(LIST_KEYS, field) ? LIST_KEYS[field] : undefined;
}

/** Key fields that the server defaults. */
const KEY_DEFAULTS: Readonly<Record<string, unknown>> = { protocol: 'TCP' };

/** The element of `list` that has the same key fields as `wanted`. */
function findByKeys(list: readonly unknown[], keys: readonly string[], wanted: unknown): unknown {
  return list.find((candidate) => keys.every((key) => keyValue(candidate, key) === keyValue(wanted, key)));
}

/** The value of a key field, with the server's default. */
function keyValue(element: unknown, key: string): unknown {
  return recordOf(element)[key] ?? KEY_DEFAULTS[key];
}

// Differences between two states of one object, leaf by leaf, as text for users. Secret values stay wrapped.

const BOOKKEEPING: ReadonlySet<string> = new Set([
  'managedFields',
  'resourceVersion',
  'uid',
  'generation',
  'creationTimestamp',
]);

/**
 * Every leaf that differs, in the order of `after`, then leaves that only `before` has. Metadata set by the server is ignored.
 */
export function diff(before: KubeObject | undefined, after: KubeObject | undefined): readonly Difference[] {
  return compareValue('', bare(after), bare(before), { path: '', isWhole: true });
}

function bare(object: KubeObject | undefined): unknown {
  if (object === undefined) return undefined;
  const metadata = Object.fromEntries(
    Object.entries(object.metadata).filter(([key]) => !BOOKKEEPING.has(key)),
  );
  return { ...object, metadata };
}

function same(a: unknown, b: unknown): boolean {
  if (a instanceof Redacted && b instanceof Redacted)
    return sameSecret(a as Redacted<string>, b as Redacted<string>);
  return a === b;
}

/** The path of a field below `path`: `.name` for plain names, `["a/b"]` for the rest. */
export function below(path: string, key: string): string {
  if (path === '') return key;
  return /^[A-Za-z_][\w-]*$/.test(key) ? `${path}.${key}` : `${path}["${key}"]`;
}

// Reads and writes `metadata.managedFields`: the fields of each manager. Source: the FieldsV1 format of the Kubernetes API
// (`f:<field>`, `k:<json of the key fields>`, `v:<json value>`, `.`). A path is a list of these tokens.

type Fields = Readonly<Record<string, unknown>>;

/** The FieldsV1 that server-side apply of `object` would record, without identity and server-set metadata. */
export function fieldsOf(object: KubeObject): Fields {
  const { apiVersion: _apiVersion, kind: _kind, ...content } = contentOf(object);
  return fieldsOfMap(content);
}

function fieldsOfMap(map: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const set = Object.entries(map).filter(([, value]) => value !== undefined);
  return Object.fromEntries(set.map(([key, value]) => [`f:${key}`, fieldsOfValue(key, value)]));
}

function fieldsOfValue(field: string, value: unknown): Record<string, unknown> {
  if (isMap(value)) return fieldsOfMap(value);
  const list: readonly unknown[] = Array.isArray(value) ? value : [];
  const keys = listKeys(field, list);
  if (keys === undefined) return {};
  return Object.fromEntries(
    list.map((element) => {
      const id = Object.fromEntries(keys.map((key) => [key, keyValue(element, key)]));
      return [`k:${JSON.stringify(id)}`, { '.': {}, ...fieldsOfMap(element as Fields) }];
    }),
  );
}

/** The fields that `manager` owns by apply on the main resource. */
export function ownedBy(object: KubeObject, manager: string): Fields {
  return applyEntry(object, manager)?.fieldsV1 ?? {};
}

/** The entry of server-side apply by `manager` on the main resource. */
export function applyEntry(object: KubeObject, manager: string): ManagedFieldsEntry | undefined {
  return object.metadata.managedFields?.find(
    (entry) => entry.manager === manager && entry.operation === 'Apply' && (entry.subresource ?? '') === '',
  );
}

/** The fields that `manager` owns on the main resource, whether it applied, created or patched them. */
export function writtenBy(object: KubeObject, manager: string): Fields {
  return (object.metadata.managedFields ?? [])
    .filter((entry) => entry.manager === manager && (entry.subresource ?? '') === '')
    .reduce<Fields>((fields, entry) => union(fields, entry.fieldsV1 ?? {}), {});
}

function union(a: Fields, b: Fields): Fields {
  if (Object.keys(a).length === 0) return b;
  const inner = Object.entries(b).map(([key, value]) => [
    key,
    union((a[key] ?? {}) as Fields, (value ?? {}) as Fields),
  ]);
  return { ...a, ...Object.fromEntries(inner) };
}

/** Managers that own the field at `path`, with their operation. A step is the key of a map, or `k:<json>` of a keyed list. */
export function managersOf(object: KubeObject, path: readonly string[]): readonly ManagedFieldsEntry[] {
  const tokens = path.map((key) => (key.startsWith('k:') ? key : `f:${key}`));
  return (object.metadata.managedFields ?? []).filter((entry) => hasField(entry.fieldsV1, tokens));
}

/**
 * How a manager owns fields: by server-side apply only, or by any kind of write. The API server treats an apply and an update of
 * one manager as two owners.
 */
export type Ownership = 'applied' | 'written';

function hasField(fields: unknown, tokens: readonly string[]): boolean {
  return (
    tokens.reduce((node, token) => (isRecord(node) ? own(node, token) : undefined), fields) !== undefined
  );
}

/** The paths that `owned` covers and `desired` no longer has. Each path ends where the difference begins. */
export function givenUp(
  owned: Fields,
  desired: unknown,
  path: readonly string[] = [],
): readonly (readonly string[])[] {
  return Object.entries(owned).flatMap(([token, below]) => {
    if (!/^[fk]:/.test(token)) return [];
    const child = childOf(desired, token);
    const inner = recordOf(below);
    // A map that only leads to owned leaves is not released itself; an element or a value is.
    const whole = Object.keys(inner).length === 0 || '.' in inner;
    if (child === undefined && whole) return [[...path, token]];
    return givenUp(inner, child, [...path, token]);
  });
}

/** The child of `node` at `token`, or undefined. */
function childOf(node: unknown, token: string): unknown {
  if (token.startsWith('f:')) return own(recordOf(node), token.slice(2));
  const keys = keysOf(token);
  return Array.isArray(node) ? findByKeys(node, Object.keys(keys), keys) : undefined;
}

/** The key fields of an element of a list. */
function keysOf(token: string): Fields {
  return JSON.parse(token.slice(2)) as Fields;
}

/** `object` with the apply entry of `manager` replaced by `fields` (none when empty). Offline only: a server does this itself. */
export function withManager(object: KubeObject, manager: string, fields: Fields): KubeObject {
  const others = (object.metadata.managedFields ?? []).filter(
    (entry) => entry !== applyEntry(object, manager),
  );
  const mine: ManagedFieldsEntry = {
    manager,
    operation: 'Apply',
    apiVersion: object.apiVersion,
    fieldsType: 'FieldsV1',
    fieldsV1: fields,
  };
  const managedFields = Object.keys(fields).length === 0 ? others : [...others, mine];
  return { ...object, metadata: { ...object.metadata, managedFields } };
}

/**
 * The differences that an apply of `desired` by `manager` would make to `live`: fields that it sets to another value, and fields
 * that only this manager owns and `desired` no longer has. A field that only others set is not a difference.
 */
export function drift(
  desired: KubeObject,
  live: KubeObject,
  manager: string,
  ownership: Ownership = 'applied',
): readonly Difference[] {
  const owned = ownership === 'written' ? writtenBy(live, manager) : ownedBy(live, manager);
  const appliedBefore = Object.keys(owned).length > 0;
  const set = compareMaps(contentOf(desired), contentOf(live), { path: '', isWhole: false }).filter(
    (difference) => !(appliedBefore && isOmittedZero(difference)),
  );
  const dropped = abandoned(live, desired, manager, ownership).map((path) => ({
    path: renderPath(path),
    before: path.reduce<unknown>(childOf, live),
    after: undefined,
  }));
  return [...set, ...dropped.filter((difference) => difference.before !== undefined)];
}

/** `live` after `manager` applies `desired`: merged, released fields removed unless others own them too, ownership recorded. */
export function applied(desired: KubeObject, live: KubeObject | undefined, manager: string): KubeObject {
  const fields = fieldsOf(desired);
  if (live === undefined) return withManager(desired, manager, fields);
  const pruned = abandoned(live, desired, manager, 'applied').reduce<unknown>(without, live);
  return withManager(merge(pruned, desired, '') as KubeObject, manager, fields);
}

/**
 * The JSON merge patch (RFC 7386) from `live` to `desired`, without server-side apply, for objects that are wholly ours: all of
 * `desired`, null for fields that only `manager` wrote and `desired` no longer has, and the uid. Fields of others stay. The field
 * manager is recorded either way, so that apply can take over at any time.
 */
export function plainPatch(desired: KubeObject, live: KubeObject, manager: string): object {
  return abandoned(live, desired, manager, 'written').reduce<object>(withNull, withUid(desired, live));
}

/** `desired` with the uid of `live`, so that a write can neither change nor create another object of the same name. */
export function withUid(desired: KubeObject, live: KubeObject | undefined): KubeObject {
  const uid = live?.metadata.uid;
  return uid === undefined ? desired : { ...desired, metadata: { ...desired.metadata, uid } };
}

/** `patch` with null at `path`; list elements are not changed. */
function withNull(patch: object, [token, ...rest]: readonly string[]): object {
  if (token?.startsWith('f:') !== true) return patch;
  const below = childOf(patch, token) ?? {};
  return { ...patch, [token.slice(2)]: rest.length === 0 ? null : withNull(below, rest) };
}

/** Paths that only `manager` owns and `desired` no longer has. */
function abandoned(
  live: KubeObject,
  desired: KubeObject,
  manager: string,
  ownership: Ownership,
): readonly (readonly string[])[] {
  const owned = ownership === 'written' ? writtenBy(live, manager) : ownedBy(live, manager);
  const mine = applyEntry(live, manager);
  const others = (live.metadata.managedFields ?? []).filter((entry) => {
    const isMine = ownership === 'written' ? entry.manager === manager : entry === mine;
    return !isMine && (entry.subresource ?? '') === '';
  });
  return givenUp(owned, desired).filter((path) => !others.some(({ fieldsV1 }) => hasField(fieldsV1, path)));
}

/** The fields that an apply sets, without the status, which is a subresource. */
function contentOf(object: KubeObject): Fields {
  const { status: _status, metadata, ...rest } = object;
  const { labels, annotations, ownerReferences } = metadata;
  return { metadata: { labels, annotations, ownerReferences }, ...rest };
}

/** `isWhole`: fields that only the live object has are differences too, and omitted values are not equal to empty ones. */
interface Comparison {
  readonly path: string;
  readonly isWhole: boolean;
}

function compareValue(field: string, desired: unknown, live: unknown, at: Comparison): readonly Difference[] {
  if (isMap(desired) && isMap(live)) return compareMaps(desired, live, at);
  if (Array.isArray(desired) && Array.isArray(live)) return compareLists(field, desired, live, at);
  if (same(desired, live) || (!at.isWhole && live === undefined && isNothing(desired))) return [];
  return [{ path: at.path, before: live, after: desired }];
}

/** Whether the API server may omit the value. */
function isNothing(value: unknown): boolean {
  if (isMap(value)) return Object.values(value).every((child) => child === undefined);
  return value === null || (Array.isArray(value) && value.length === 0);
}

function compareMaps(desired: Fields, live: Fields, { path, isWhole }: Comparison): readonly Difference[] {
  const set = Object.keys(desired).filter((key) => isWhole || desired[key] !== undefined);
  const gone = isWhole ? Object.keys(live).filter((key) => !Object.hasOwn(desired, key)) : [];
  return [...set, ...gone].flatMap((key) =>
    compareValue(key, own(desired, key), own(live, key), { path: below(path, key), isWhole }),
  );
}

function compareLists(
  field: string,
  desired: readonly unknown[],
  live: readonly unknown[],
  { path, isWhole }: Comparison,
): readonly Difference[] {
  const keys = listKeys(field, desired.length > 0 ? desired : live);
  if (keys === undefined) {
    // One value: same length, and each element covered, because the server adds defaults to elements.
    const covers = (element: unknown, at: number): boolean =>
      compareValue(field, element, live[at], { path: '', isWhole }).length === 0;
    const isSame = desired.length === live.length && desired.every(covers);
    return isSame ? [] : [{ path, before: live, after: desired }];
  }
  const place = (element: unknown): string =>
    `${path}[${keys.map((key) => scalarText(keyValue(element, key))).join('/')}]`;
  const gone = isWhole ? live.filter((element) => findByKeys(desired, keys, element) === undefined) : [];
  return [
    ...desired.flatMap((element) =>
      compareValue('', element, findByKeys(live, keys, element), { path: place(element), isWhole }),
    ),
    ...gone.map((element) => ({ path: place(element), before: element, after: undefined })),
  ];
}

/**
 * The server stores no zero value of an `omitempty` field, so it never returns `hostPID: false`. Once this manager has applied,
 * such a field counts as set. Labels and annotations are stored even when empty.
 */
function isOmittedZero({ path, before, after }: Difference): boolean {
  return (
    before === undefined && !path.startsWith('metadata') && (after === false || after === 0 || after === '')
  );
}

/** Whether a value is a map of fields. */
export function isMap(value: unknown): value is Fields {
  return isRecord(value) && !(value instanceof Redacted);
}

function merge(base: unknown, over: unknown, field: string): unknown {
  if (over === undefined) return base;
  if (isMap(base) && isMap(over)) {
    const entries = Object.entries(over).map(
      ([key, value]) => [key, merge(own(base, key), value, key)] as const,
    );
    return { ...base, ...Object.fromEntries(entries.filter(([, value]) => value !== undefined)) };
  }
  if (Array.isArray(base) && Array.isArray(over)) return mergeList(base, over, field);
  return over;
}

function mergeList(base: readonly unknown[], over: readonly unknown[], field: string): readonly unknown[] {
  const keys = listKeys(field, over);
  if (keys === undefined) return over;
  const kept = base.map((element) => merge(element, findByKeys(over, keys, element), field));
  return [...kept, ...over.filter((element) => findByKeys(base, keys, element) === undefined)];
}

function without(node: unknown, [token = '', ...rest]: readonly string[]): unknown {
  if (isMap(node) && token.startsWith('f:')) {
    const { [token.slice(2)]: child, ...others } = node;
    return rest.length === 0 ? others : { ...node, [token.slice(2)]: without(child, rest) };
  }
  if (!Array.isArray(node)) return node;
  const target = childOf(node, token);
  return rest.length === 0
    ? node.filter((element) => element !== target)
    : node.map((element) => (element === target ? without(element, rest) : element));
}

function renderPath(path: readonly string[]): string {
  return path.reduce((text, token) => {
    if (token.startsWith('f:')) return below(text, token.slice(2));
    return `${text}[${Object.values(keysOf(token)).map(scalarText).join('/')}]`;
  }, '');
}

/** One field in which two objects differ. `before` or `after` is undefined when absent; secrets stay wrapped. */
export interface Difference {
  /** `spec.containers[agent].image`, `metadata.labels["a/b"]`. */
  readonly path: string;
  readonly before: unknown;
  readonly after: unknown;
}
