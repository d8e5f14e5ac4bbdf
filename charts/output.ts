/**
 * The synthesized tree: which file an object goes to, and what stands in it.
 *
 * ```
 * kustomization.yaml              the base: _cluster, crds and the namespaces
 * _cluster/<kind>-<name>.yaml     what has no namespace
 * crds/                           CustomResourceDefinitions, never pruned
 * <namespace>/<kind>-<name>.yaml
 * overlays/<API group>/           the same layout, for objects whose kind a kube-apiserver does not bring itself
 * ```
 *
 * The text of a file is a function of its object: same object, same bytes, on every machine and in every run.
 */
import { createHash } from 'node:crypto';
import { toYaml } from '../runtime/kube/yaml.ts';
import { PullwrightError } from '../runtime/rules/errors.ts';
import { pathPart } from '../runtime/rules/kubernetes/file-name.ts';
import { describeObject, type KubeObject } from '../runtime/rules/kubernetes/object.ts';

/** Paths, relative to the folder that is written, to the text of each file without its header. Sorted by path. */
export type ManifestTree = ReadonlyMap<string, string>;

export interface TreeOptions {
  /** Folder of the tree within the written folder; `.` for the folder itself. @default {'.'} */
  readonly folder?: string;
  /** Put everything into the base: for trees that are applied where every kind is known. @default {false} */
  readonly flat?: boolean;
  /** Files that a person keeps in an overlay (SOPS), by their path: listed in the kustomization, never written. */
  readonly kept?: readonly string[];
}

/**
 * Lays objects out as files with their kustomizations.
 *
 * @param objects in any order; plain JSON, as `Chart.toJson()` gives it
 * @throws PullwrightError `SameFile` when two objects have the same kind, namespace and name
 *
 * @example
 * ```ts
 * import { renderTree } from './output.ts';
 * import assert from 'node:assert/strict';
 *
 * const tree = renderTree([{ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'a' } }]);
 * assert.deepEqual([...tree.keys()], ['_cluster/namespace-a.yaml', 'kustomization.yaml']);
 * ```
 */
export function renderTree(objects: readonly KubeObject[], options: TreeOptions = {}): ManifestTree {
  const files = new Map<string, string>();
  const owners = new Map<string, KubeObject>();
  for (const object of objects) {
    const path = options.flat === true ? basePath(object) : pathOf(object);
    const other = owners.get(path);
    if (other !== undefined) throw sameFile(path, [other, object]);
    owners.set(path, object);
    files.set(path, yamlOf(object));
  }
  for (const [path, text] of kustomizations([...files.keys(), ...(options.kept ?? [])]))
    files.set(path, text);
  const prefix = options.folder === undefined || options.folder === '.' ? '' : `${options.folder}/`;
  return new Map([...files].map(([path, text]): [string, string] => [prefix + path, text]).sort(byPath));
}

/**
 * The file of an object. Objects of API groups that a kube-apiserver does not bring itself stand in an overlay of their own:
 * the base applies in one pass to any cluster, and an overlay to any cluster that serves its group.
 *
 * @example
 * ```ts
 * import { pathOf } from './output.ts';
 * import assert from 'node:assert/strict';
 *
 * assert.equal(
 *   pathOf({ apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'Role', metadata: { name: 'a', namespace: 'kube-system' } }),
 *   'kube-system/role-a.yaml',
 * );
 * assert.equal(
 *   pathOf({ apiVersion: 'external-secrets.io/v1', kind: 'ExternalSecret', metadata: { name: 'a', namespace: 'b' } }),
 *   'overlays/external-secrets.io/b/externalsecret-a.yaml',
 * );
 * ```
 */
export function pathOf(object: KubeObject): string {
  if (object.kind === 'CustomResourceDefinition') return `crds/${fileName(object.metadata.name)}.yaml`;
  return `${overlayOf(object)}${basePath(object)}`;
}

function basePath(object: KubeObject): string {
  const { name, namespace } = object.metadata;
  const folder = namespace === undefined || namespace === '' ? '_cluster' : pathPart('namespace', namespace);
  return `${folder}/${fileName(`${object.kind.toLowerCase()}-${name}`)}.yaml`;
}

/** API groups that every kube-apiserver of the last years serves by itself. */
const BUILT_IN: ReadonlySet<string> = new Set([
  '',
  'apps',
  'autoscaling',
  'batch',
  'policy',
  'admissionregistration.k8s.io',
  'apiextensions.k8s.io',
  'apiregistration.k8s.io',
  'certificates.k8s.io',
  'coordination.k8s.io',
  'discovery.k8s.io',
  'events.k8s.io',
  'flowcontrol.apiserver.k8s.io',
  'networking.k8s.io',
  'node.k8s.io',
  'rbac.authorization.k8s.io',
  'scheduling.k8s.io',
  'storage.k8s.io',
]);

/** `overlays/<group>/`, or nothing for the base. */
function overlayOf(object: KubeObject): string {
  const group = object.apiVersion.includes('/') ? (object.apiVersion.split('/')[0] ?? '') : '';
  return BUILT_IN.has(group) ? '' : `overlays/${pathPart('API group', group)}/`;
}

/**
 * A name as a file name: characters that file systems dislike or fold (`:`, upper case) as `%` and their number, and names
 * that are too long cut and told apart by a digest. Names of most objects are left as they are.
 */
function fileName(name: string): string {
  const safe = name.toWellFormed().replace(/[^a-z0-9._-]/gu, escaped);
  if (safe.length <= MAX_FILE_NAME) return safe;
  return `${safe.slice(0, MAX_FILE_NAME - 9)}~${createHash('sha256').update(name).digest('hex').slice(0, 8)}`;
}

/** The bytes of a character as `%3A`. */
function escaped(character: string): string {
  return [...Buffer.from(character)]
    .map((byte) => `%${byte.toString(16).toUpperCase().padStart(2, '0')}`)
    .join('');
}

/** File systems take 255 bytes; `.yaml` and some room are kept. */
const MAX_FILE_NAME = 240;

/** One kustomization for the base, one for the CRDs, one per overlay. */
function kustomizations(paths: readonly string[]): readonly (readonly [string, string])[] {
  const folders = new Map<string, Set<string>>();
  const add = (folder: string, resource: string): void => {
    const resources = folders.get(folder) ?? new Set<string>();
    folders.set(folder, resources.add(resource));
  };
  for (const path of paths) {
    const overlay = /^overlays\/[^/]+\//.exec(path)?.[0];
    if (overlay !== undefined) add(overlay, path.slice(overlay.length));
    else if (path.startsWith('crds/')) add('crds/', path.slice('crds/'.length));
    else add('', path);
  }
  if (folders.has('crds/')) add('', 'crds');
  return [...folders].map(
    ([folder, resources]) => [`${folder}kustomization.yaml`, kustomization([...resources])] as const,
  );
}

function kustomization(resources: readonly string[]): string {
  return yamlOf({
    apiVersion: 'kustomize.config.k8s.io/v1beta1',
    kind: 'Kustomization',
    resources: [...resources].sort(clusterFirst),
  });
}

/** By code point, but what has no namespace first: a namespace may begin with a digit, and its objects need it. */
function clusterFirst(a: string, b: string): number {
  const rank = (path: string): number => (path.startsWith('_cluster/') ? 0 : 1);
  return rank(a) - rank(b) || compare(a, b);
}

/**
 * YAML that old and new parsers read alike: texts that either would take for something else are quoted. Keys are sorted, but
 * apiVersion, kind and metadata come first.
 */
export function yamlOf(object: object): string {
  const key = JSON.stringify(ordered(object));
  const known = texts.get(key);
  if (known !== undefined) return known;
  const text = toYaml(JSON.parse(key), { lineWidth: 0, aliasDuplicateObjects: false });
  // Most objects of a fleet are the same in every cluster. Bounded, so that a fleet where they differ costs no memory.
  if (texts.size < 1000) texts.set(key, text);
  return text;
}

const texts = new Map<string, string>();

function ordered(object: object): object {
  const { apiVersion, kind, metadata, ...rest } = object as Record<string, unknown>;
  return { ...definedOnly({ apiVersion, kind, metadata: sorted(metadata) }), ...(sorted(rest) as object) };
}

function definedOnly(fields: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).filter(([, inner]) => inner !== undefined);
  return Object.fromEntries(entries.sort(byPath).map(([key, inner]) => [key, sorted(inner)]));
}

function byPath(a: readonly [string, unknown], b: readonly [string, unknown]): number {
  return compare(a[0], b[0]);
}

/** By UTF-16 code unit: the same in every locale. */
function compare(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}

function sameFile(path: string, objects: readonly KubeObject[]): PullwrightError {
  const names = objects.map(
    (object) => `${describeObject({ ...object.metadata, kind: object.kind })} (${object.apiVersion})`,
  );
  return new PullwrightError(
    `Cannot write "${path}": ${names.join(' and ')} both belong there, expected one`,
    {
      code: 'SameFile',
      disposition: 'terminal',
      hint: 'Give one of them another name or namespace',
    },
  );
}
