/**
 * The synthesized tree: the file path and content of each object.
 *
 * ```
 * kustomization.yaml              the base: _cluster, crds and the namespaces
 * _cluster/<kind>-<name>.yaml     cluster-scoped objects
 * crds/                           CustomResourceDefinitions, never pruned
 * <namespace>/<kind>-<name>.yaml
 * overlays/<API group>/           the same layout, for API groups that are not built into kube-apiserver
 * ```
 *
 * Output is deterministic: the same object gives the same bytes on every machine.
 */

import { hash } from 'node:crypto';
import {
  closeSync,
  existsSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  rmdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { PullwrightError } from '../runtime/core/errors.ts';
import {
  describeObject,
  isPathSegment,
  type KubeObject,
  pathPart,
} from '../runtime/core/kubernetes/object.ts';
import { withSortedKeys } from '../runtime/core/record.ts';
import { counted, someOf } from '../runtime/core/text.ts';
import { toYaml } from '../runtime/kube/yaml.ts';
import { replaceFile } from '../runtime/node/atomic-file.ts';

/** File text without header by path, relative to the output folder. Sorted by path. */
export type ManifestTree = ReadonlyMap<string, string>;

export interface TreeOptions {
  /** Folder of the tree below the output folder. @default {'.'} */
  readonly folder?: string;
  /** Render everything into the base, for clusters that serve every kind. @default {false} */
  readonly flat?: boolean;
  /** Paths of files that the user maintains in an overlay (SOPS): listed in the kustomization, never written. */
  readonly kept?: readonly string[];
}

/**
 * Lays out objects as files with kustomizations.
 *
 * @param objects in any order; plain JSON, as returned by `Chart.toJson()`
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
  for (const [path, text] of kustomizations(new Set([...files.keys(), ...(options.kept ?? [])])))
    files.set(path, text);
  const prefix = options.folder === undefined || options.folder === '.' ? '' : `${options.folder}/`;
  return new Map([...files.keys()].sort().map((path) => [prefix + path, files.get(path) ?? '']));
}

/**
 * Returns the file path of an object. API groups that are not built into kube-apiserver get an overlay each: the base applies to
 * any cluster in one pass, an overlay to clusters that serve its group.
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

/** API groups built into every recent kube-apiserver. */
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

/** `overlays/<group>/`, or an empty string for the base. */
function overlayOf(object: KubeObject): string {
  const group = object.apiVersion.includes('/') ? (object.apiVersion.split('/')[0] ?? '') : '';
  return BUILT_IN.has(group) ? '' : `overlays/${pathPart('API group', group)}/`;
}

/**
 * Encodes a name as a file name: unsafe or case-folded characters become `%XX`, and overlong names are truncated with a
 * digest. Most names stay unchanged.
 */
function fileName(name: string): string {
  const safe = name.toWellFormed().replace(/[^a-z0-9._-]/gu, escaped);
  if (safe.length <= MAX_FILE_NAME) return safe;
  return `${safe.slice(0, MAX_FILE_NAME - 9)}~${hash('sha256', name).slice(0, 8)}`;
}

/** The bytes of a character as `%3A`. */
function escaped(character: string): string {
  return Buffer.from(character).toString('hex').toUpperCase().replaceAll(/../g, '%$&');
}

/** File systems allow 255 bytes; reserves space for `.yaml`. */
const MAX_FILE_NAME = 240;

/** One kustomization for the base, one for the CRDs, one per overlay. */
function kustomizations(paths: ReadonlySet<string>): readonly (readonly [string, string])[] {
  const folders = Map.groupBy(paths, (path) => /^(?:overlays\/[^/]+|crds)\//.exec(path)?.[0] ?? '');
  if (folders.has('crds/')) folders.set('', [...(folders.get('') ?? []), 'crds']);
  return [...folders].map(([folder, files]) => {
    const resources = files.map((path) => path.slice(folder.length));
    return [`${folder}kustomization.yaml`, kustomization(resources)];
  });
}

/** Cluster-scoped objects come first: a namespace name may start with a digit and sort before `_cluster`. */
function kustomization(resources: readonly string[]): string {
  const rank = (path: string): number => (path.startsWith('_cluster/') ? 0 : 1);
  return yamlOf({
    apiVersion: 'kustomize.config.k8s.io/v1beta1',
    kind: 'Kustomization',
    resources: resources.toSorted().sort((a, b) => rank(a) - rank(b)),
  });
}

/**
 * Serializes YAML that YAML 1.1 and 1.2 parsers read alike: ambiguous strings are quoted. Keys are sorted, with apiVersion,
 * kind and metadata first.
 */
export function yamlOf(object: object): string {
  const key = JSON.stringify(ordered(object));
  const known = texts.get(key);
  if (known !== undefined) return known;
  const text = toYaml(JSON.parse(key), { lineWidth: 0, aliasDuplicateObjects: false });
  // Cache: most objects of a fleet are equal in all clusters. Bounded to limit memory for fleets with different objects.
  if (texts.size < 1000) texts.set(key, text);
  return text;
}

const texts = new Map<string, string>();

function ordered(object: object): object {
  const { apiVersion, kind, metadata, ...rest } = object as Record<string, unknown>;
  return { apiVersion, kind, metadata: withSortedKeys(metadata), ...(withSortedKeys(rest) as object) };
}

function sameFile(path: string, objects: readonly KubeObject[]): PullwrightError {
  const names = objects.map((object) => `${describeObject(object)} (${object.apiVersion})`);
  return new PullwrightError(
    `Cannot write "${path}": ${names.join(' and ')} both have this path, expected one`,
    {
      code: 'SameFile',
      retryPolicy: 'terminal',
      hint: 'Give one of them another name or namespace',
    },
  );
}

// Compares a rendered tree with a folder and writes it: removes our stale files and keeps foreign ones.
// A file is ours when its first line contains its own path. An index file would cause merge conflicts, because every branch that
// adds a cluster changes it. A marker without the path would claim copies of our files.

/** Differences between a folder and a tree. Paths use `/`, are relative to the folder and sorted. */
export interface TreeDifference {
  readonly added: readonly string[];
  readonly changed: readonly string[];
  /** Our files that are no longer rendered. */
  readonly stale: readonly string[];
  /** Rendered paths occupied by a foreign file, symbolic link or folder. */
  readonly inTheWay: readonly string[];
  readonly unchanged: number;
}

/** Options of {@link writeTree}. */
export interface WriteOptions {
  /** Replace foreign files at rendered paths. @default {false} */
  readonly overwrite?: boolean;
  /** First line of each file; distinguishes the files of one command from another's. @default the mark of rendered fleets */
  readonly mark?: (path: string) => string;
  /** Recreate every file, readable only by the current user. @default {false} */
  readonly secret?: boolean;
  /** Folders of the tree; files in other folders are neither read nor removed. @default all */
  readonly within?: readonly string[] | undefined;
}

/** First line of our files: a comment, or a field in JSON. */
export function headerOf(path: string, mark: WriteOptions['mark'] = rendered): string {
  const text = mark(path);
  if (path.endsWith('.json')) return `{ "$comment": ${JSON.stringify(text)},\n`;
  return /\.(?:tpl|txt)$/.test(path) ? `{{- /* ${text} */ -}}\n` : `# ${text}\n`;
}

function rendered(path: string): string {
  return `Rendered by pullwright as ${path}; change the fleet, not this file.`;
}

/**
 * Compares a tree with a folder. A missing folder counts as empty.
 *
 * @throws PullwrightError `UnsafeName` for a path that escapes the folder
 */
export function compareTree(
  folder: string,
  tree: ManifestTree,
  { mark, secret = false, within = [''] }: WriteOptions = {},
): TreeDifference {
  for (const path of tree.keys()) if (!path.split('/').every(isPathSegment)) throw leadsElsewhere(path);
  const present = existsSync(folder) ? listFiles(folder, within) : new Set<string>();
  const states = Map.groupBy(tree.keys(), (path) => {
    const state = stateOf(folder, path, headerOf(path, mark) + tree.get(path), present.has(path));
    return secret && state === 'unchanged' ? 'changed' : state;
  });
  const { added = [], changed = [], inTheWay = [], unchanged = [] } = Object.fromEntries(states);
  const stale = [...present].filter((path) => !tree.has(path) && isOurs(folder, path, mark)).sort();
  return { added, changed, stale, inTheWay, unchanged: unchanged.length };
}

/**
 * Writes added and changed files, and removes stale files with folders that become empty.
 *
 * @throws PullwrightError before any write: `ForeignFile` when a path is occupied, `UnsafeName` as {@link compareTree}
 */
export function writeTree(folder: string, tree: ManifestTree, options: WriteOptions = {}): TreeDifference {
  const difference = compareTree(folder, tree, options);
  const replaced = options.overwrite === true ? difference.inTheWay : [];
  if (replaced.length < difference.inTheWay.length) throw inTheWay(folder, difference.inTheWay, options);
  for (const path of replaced) rmSync(blockerOf(folder, path) ?? join(folder, path), { force: true });
  for (const path of difference.stale) removeFile(folder, path);
  const wanted = [...difference.added, ...difference.changed, ...replaced];
  for (const parent of new Set(wanted.map(dirname))) mkdirSync(join(folder, parent), { recursive: true });
  for (const path of wanted) {
    const text = headerOf(path, options.mark) + tree.get(path);
    // Recreated, so that open handles to the old file do not see the new value. An incomplete write is repaired by the next run.
    if (options.secret === true)
      replaceFile(join(folder, path), Buffer.from(text), { fresh: true, durable: false });
    else writeFileSync(join(folder, path), text);
  }
  return difference;
}

function leadsElsewhere(path: string): PullwrightError {
  return new PullwrightError(`Cannot write ${JSON.stringify(path)}: the path is outside the folder`, {
    code: 'UnsafeName',
    retryPolicy: 'terminal',
    hint: 'Correct the name in the fleet that the path is built from',
  });
}

function stateOf(folder: string, path: string, wanted: string, isListed: boolean) {
  if (!isListed) return blockerOf(folder, path) === undefined ? 'added' : 'inTheWay';
  const present = readFileSync(join(folder, path), 'utf8');
  if (present === wanted) return 'unchanged';
  // An empty file has no content to preserve: most likely an interrupted run.
  return present === '' || firstLine(present) === firstLine(wanted) ? 'changed' : 'inTheWay';
}

/** The path and its parent folders, outer ones first. */
function placesOf(folder: string, path: string): readonly string[] {
  return path.split('/').map((_, index, parts) => join(folder, ...parts.slice(0, index + 1)));
}

function isFolder(place: string): boolean {
  return lstatSync(place, { throwIfNoEntry: false })?.isDirectory() === true;
}

/** Returns what occupies the path or a parent folder. For a symbolic link, only the link is removed, not its target. */
function blockerOf(folder: string, path: string): string | undefined {
  return placesOf(folder, path).find((place, index, places) => {
    const stat = lstatSync(place, { throwIfNoEntry: false });
    return stat !== undefined && (index === places.length - 1 || !stat.isDirectory());
  });
}

function isOurs(folder: string, path: string, mark: WriteOptions['mark']): boolean {
  if (!/\.(?:yaml|json|tpl|txt)$/.test(path)) return false;
  const header = headerOf(path, mark);
  const start = Buffer.alloc(Buffer.byteLength(header) + 2);
  const file = openSync(join(folder, path), 'r');
  try {
    const length = readSync(file, start, 0, start.length, 0);
    return firstLine(start.toString('utf8', 0, length)) === firstLine(header);
  } finally {
    closeSync(file);
  }
}

/** Without the line ending, which git may convert to CRLF. */
function firstLine(text: string): string {
  return (text.split('\n', 1)[0] ?? '').replace(/\r$/, '');
}

/** Lists plain files below `folder`. Symbolic links are not followed; folders that start with a dot are foreign. */
function listFiles(folder: string, within: readonly string[]): Set<string> {
  const found = new Set<string>();
  const walk = (relative: string): void => {
    for (const entry of readdirSync(join(folder, relative), { withFileTypes: true })) {
      const path = relative === '' ? entry.name : `${relative}/${entry.name}`;
      if (entry.isDirectory() && !entry.name.startsWith('.') && entry.name !== 'node_modules') walk(path);
      else if (entry.isFile()) found.add(path);
    }
  };
  for (const root of within) if (root === '' || placesOf(folder, root).every(isFolder)) walk(root);
  return found;
}

function removeFile(folder: string, path: string): void {
  rmSync(join(folder, path));
  for (let parent = dirname(path); parent !== '.'; parent = dirname(parent)) {
    if (readdirSync(join(folder, parent)).length > 0) return;
    rmdirSync(join(folder, parent));
  }
}

function inTheWay(folder: string, paths: readonly string[], { overwrite }: WriteOptions): PullwrightError {
  return new PullwrightError(
    `Cannot write to "${folder}": ${counted(paths.length, 'path has', 'paths have')} files that were not rendered: ${someOf(paths, 5)}`,
    {
      code: 'ForeignFile',
      retryPolicy: 'terminal',
      hint: `Move them, or ${overwrite === undefined ? 'choose another folder' : 'pass --overwrite to replace them'}. Nothing was written`,
    },
  );
}
