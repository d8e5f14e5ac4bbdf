/**
 * Parses manifests: multi-document YAML, JSON, and `List` kinds, as printed by `kubectl get -o yaml`. Pure: returns objects and
 * problems.
 */
import { readdir, readFile, stat } from 'node:fs/promises';
import { dirname, join, relative, sep } from 'node:path';
import { text as streamText } from 'node:stream/consumers';
import { LineCounter } from 'yaml';
import { PullwrightError } from '../../core/errors.ts';
import { describeObject, type KubeObject } from '../../core/kubernetes/object.ts';
import { isRecord, recordOf, recordsIn, scalarText, textOf, textsIn } from '../../core/record.ts';
import { decodeObject } from '../../kube/decode.ts';
import { fileFailure } from '../../kube/pod-connection.ts';
import { yamlDocument, yamlMistake } from '../../kube/yaml.ts';
import { withIdentity } from '../contract.ts';
import { ObjectStore } from '../store.ts';

// Type checks of manifests. Rules rely on the types that an API server enforces, but files are written by people. A field of
// another type is a problem of the file, with line, object and path.

/**
 * Required types of present fields. `a.b[].c` is a path through each element of a list; the type is an object, a string (`text`)
 * or an object with string values (`texts`). Null counts as absent.
 *
 * Source of the rule: the published schemas of these kinds.
 */
const ALL: readonly string[] = [
  'metadata.namespace: text',
  'metadata.labels: texts',
  'metadata.annotations: texts',
  'metadata.uid: text',
  'metadata.deletionTimestamp: text',
  'metadata.finalizers[]: text',
  'metadata.ownerReferences[].kind: text',
  'metadata.ownerReferences[].name: text',
  'metadata.managedFields[].manager: text',
  'metadata.managedFields[].operation: text',
  'metadata.managedFields[].subresource: text',
  'metadata.managedFields[].fieldsV1',
  'spec',
  'status',
  ...['type', 'status', 'reason', 'message'].map((field) => `status.conditions[].${field}: text`),
];

const under = (prefix: string, paths: readonly string[]): readonly string[] =>
  paths.map((path) => `${prefix}.${path}`);

const MIRRORS = (list: string): readonly string[] => [
  `spec.${list}[].source: text`,
  `spec.${list}[].mirrors[]: text`,
  `spec.${list}[].mirrorSourcePolicy: text`,
];

const STATUSES = (list: string): readonly string[] => [
  `status.${list}[].state.waiting.reason: text`,
  `status.${list}[].state.waiting.message: text`,
  `status.${list}[].state.terminated`,
];

const SELECTOR: readonly string[] = ['matchLabels', 'matchExpressions[]'];

const BY_KIND: Readonly<Record<string, readonly string[]>> = {
  ImageDigestMirrorSet: MIRRORS('imageDigestMirrors'),
  ImageTagMirrorSet: MIRRORS('imageTagMirrors'),
  ImageContentSourcePolicy: MIRRORS('repositoryDigestMirrors'),
  HostedCluster: [
    'spec.pullSecret.name: text',
    'spec.release.image: text',
    ...MIRRORS('imageContentSources'),
  ],
  HostedControlPlane: ['spec.pullSecret.name: text', ...MIRRORS('imageContentSources')],
  NodePool: ['spec.clusterName: text', 'spec.config[].name: text'],
  MachineConfig: [
    'spec.config.storage.files[].path: text',
    'spec.config.storage.files[].contents.source: text',
    'spec.config.systemd.units[].name: text',
    'spec.config.systemd.units[].contents: text',
    'spec.config.systemd.units[].dropins[].contents: text',
  ],
  MachineConfigPool: [
    'spec.configuration.name: text',
    'status.configuration.name: text',
    'status.configuration.source[].name: text',
    ...under('spec.machineConfigSelector', SELECTOR),
    ...under('spec.nodeSelector', SELECTOR),
  ],
  Pod: [...STATUSES('containerStatuses'), ...STATUSES('initContainerStatuses')],
  Secret: ['type: text'],
};

/** The first field of a wrong type, as a message with its path; undefined if there is none. */
export function shapeFault(object: Readonly<Record<string, unknown>>): string | undefined {
  const kind = scalarText(object['kind']);
  const own = Object.hasOwn(BY_KIND, kind) ? (BY_KIND[kind] ?? []) : [];
  for (const rule of [...ALL, ...own]) {
    const [path = '', expected = 'map'] = rule.split(': ');
    const fault = faultAt(object, path.split(/\.|(?=\[\])/), expected, '');
    if (fault !== undefined) return fault;
  }
  return undefined;
}

function faultAt(
  value: unknown,
  [step, ...rest]: readonly string[],
  expected: string,
  path: string,
): string | undefined {
  if (value === undefined || value === null) return undefined;
  if (step === '[]') {
    if (!Array.isArray(value)) return `${path} must be an array`;
    const faults = (value as readonly unknown[]).map((element, index) => {
      const at = `${path}[${index}]`;
      return element === null ? `${at} must not be null` : faultAt(element, rest, expected, at);
    });
    return faults.find((fault) => fault !== undefined);
  }
  if (step === undefined && expected === 'text')
    return typeof value === 'string' ? undefined : `${path} must be a string: quote it`;
  if (!isRecord(value)) return `${path} must be an object`;
  if (step !== undefined) return faultAt(value[step], rest, expected, path === '' ? step : `${path}.${step}`);
  const wrong =
    expected === 'texts' ? Object.entries(value).find(([, one]) => typeof one !== 'string') : undefined;
  return wrong === undefined ? undefined : `${path}["${wrong[0]}"] must be a string: quote it`;
}

/** An object and its position. */
export interface Manifest {
  readonly object: KubeObject;
  readonly file: string;
  /** First line of the document, from 1. */
  readonly line: number;
  /** The document, and the path to the object in it. */
  readonly document?: Piece;
  readonly at?: readonly (string | number)[];
}

/** A document or object that could not be parsed, or a duplicate. */
export interface ManifestProblem {
  readonly file: string;
  readonly line: number;
  readonly message: string;
  /** For a duplicate: the position of the first object. */
  readonly first?: { readonly file: string; readonly line: number };
}

export interface Manifests {
  readonly manifests: readonly Manifest[];
  readonly problems: readonly ManifestProblem[];
}

/**
 * Parses every document of `text`.
 *
 * @param text content of one file
 * @param file name for messages
 * @param kinds parse only documents of these kinds (and lists); undefined parses all. The kind of a document is on a
 *   separate line, so other documents need not be parsed.
 */
export function parseManifests(text: string, file: string, kinds?: ReadonlySet<string>): Manifests {
  const manifests: Manifest[] = [];
  const problems: ManifestProblem[] = [];
  for (const document of splitDocuments(text)) {
    if (kinds !== undefined && isUnread(document.text, kinds)) continue;
    const parsed = parseOne(document.text, document.line);
    const before = problems.length;
    if ('problem' in parsed) problems.push({ file, ...parsed.problem });
    else collect(parsed.value, { file, line: document.line, document }, manifests, problems);
    const chart = problems.length > before ? chartText(document.text, file) : undefined;
    if (chart !== undefined)
      problems.splice(before, problems.length, { file, line: document.line, message: chart });
  }
  return { manifests, problems };
}

/** The message for an unrendered document of a Helm chart; undefined for any other. */
function chartText(text: string, file: string): string | undefined {
  if (/(^|\/)Chart\.yaml$/.test(file)) return 'belongs to a Helm chart: render it first (helm template)';
  return isTemplate(text) ? 'is a template of Helm: render it first (helm template)' : undefined;
}

/** Whether the text contains actions of Go templates, as in Helm charts. */
export function isTemplate(text: string): boolean {
  return /\{\{-?\s*[.$\w"(/]/.test(text);
}

interface Piece {
  readonly text: string;
  readonly line: number;
}

/** A line of three dashes cannot occur inside a document at column 0, so the text can be cut before it is parsed. */
function splitDocuments(text: string): Piece[] {
  const clean = text.startsWith('\uFEFF') ? text.slice(1) : text;
  const pieces: Piece[] = [];
  let start = 0;
  let line = 1;
  const push = (end: number): void => {
    const piece = clean.slice(start, end);
    if (/^[ \t]*[^\s#]/m.test(piece)) pieces.push({ text: piece, line });
  };
  for (const marker of clean.matchAll(/^---(?=[ \t\r\n]|$)[^\n]*(?:\n|$)/gm)) {
    push(marker.index);
    line += clean.slice(start, marker.index).split('\n').length;
    start = marker.index + marker[0].length;
    // Text on the marker's own line belongs to the document, unless it is a comment.
    const rest = marker[0].slice(3).trim();
    if (rest !== '' && !rest.startsWith('#')) {
      start = marker.index + 3;
      line -= 1;
    }
  }
  push(clean.length);
  return pieces;
}

function isUnread(text: string, kinds: ReadonlySet<string>): boolean {
  const kind = /^kind:[ \t]*["']?([A-Za-z0-9]+)["']?[ \t]*(?:#[^\n]*)?\r?$/m.exec(text)?.[1];
  return kind !== undefined && !kinds.has(kind) && !kind.endsWith('List');
}

function parseOne(
  text: string,
  line: number,
): { value: unknown } | { problem: { line: number; message: string } } {
  if (/^\s*[{[]/.test(text)) {
    try {
      return { value: JSON.parse(text) };
    } catch {
      // Flow-style YAML also starts with a brace: leave that to the YAML parser.
    }
  }
  const lines = new LineCounter();
  const document = yamlDocument(text, lines);
  const [error] = document.errors;
  if (error !== undefined) {
    const message = `not valid YAML: ${yamlMistake(error)}`;
    return { problem: { line: line + lines.linePos(error.pos[0]).line - 1, message } };
  }
  try {
    return { value: document.toJS({ maxAliasCount: 100 }) as unknown };
  } catch (failure) {
    const mistake = failure instanceof Error ? yamlMistake(failure) : 'unknown';
    return { problem: { line, message: `not usable YAML: ${mistake}` } };
  }
}

function collect(
  value: unknown,
  place: Omit<Manifest, 'object'>,
  manifests: Manifest[],
  problems: ManifestProblem[],
): void {
  if (value === null || value === undefined) return;
  const fault = faultOf(value);
  if (fault !== undefined) {
    problems.push({ file: place.file, line: place.line, message: fault });
    return;
  }
  const object = value as Readonly<Record<string, unknown>>;
  if (!scalarText(object['kind']).endsWith('List') || !Array.isArray(object['items'])) {
    manifests.push({ object: decodeObject(normalized(object)), ...place });
    return;
  }
  const itemKind = scalarText(object['kind']).slice(0, -'List'.length);
  for (const [index, item] of (object['items'] as readonly unknown[]).entries()) {
    // Items of a typed list leave kind and apiVersion out.
    const whole =
      itemKind === '' || typeof item !== 'object' || item === null
        ? item
        : { apiVersion: object['apiVersion'], kind: itemKind, ...item };
    collect(whole, { ...place, at: [...(place.at ?? []), 'items', index] }, manifests, problems);
  }
}

/** Removes nulls, such as `creationTimestamp: null` of typed printers and an empty `status:`: null counts as absent. */
function normalized(object: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const metadata = object['metadata'] as Readonly<Record<string, unknown>>;
  return { ...withoutNulls(object), metadata: withoutNulls(metadata) };
}

function withoutNulls(map: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  return Object.fromEntries(Object.entries(map).filter(([, value]) => value !== null));
}

function faultOf(object: unknown): string | undefined {
  if (!isRecord(object)) return 'not a Kubernetes object: expected a map with apiVersion, kind and metadata';
  if (typeof object['apiVersion'] !== 'string' || object['apiVersion'] === '') return 'has no apiVersion';
  if (typeof object['kind'] !== 'string' || object['kind'] === '') return 'has no kind';
  if (object['kind'].endsWith('List') && Array.isArray(object['items'])) return undefined;
  // Anything else than a valid kind is not shown, because a misplaced line may put a credential here.
  const kind = /^[A-Z][A-Za-z]{0,49}$/.test(object['kind']) ? object['kind'] : 'an object';
  const { metadata } = object;
  if (!isRecord(metadata)) return `${kind} has no metadata`;
  const { name } = metadata;
  if (typeof name !== 'string' || name === '') return `${kind} has no metadata.name`;
  const shape = shapeFault(object);
  return shape === undefined ? undefined : `${kind} "${name}": ${shape}`;
}

// Folders of manifests on disk, or standard input, as object stores.

/** Content of a folder. */
export interface Folder extends Manifests {
  readonly store: ObjectStore;
}

/**
 * Reads every `*.yaml`, `*.yml` and `*.json` below `dir`, in name order. Hidden folders and links are skipped.
 *
 * @param stdin read for `-`
 * @throws PullwrightError if the path does not exist, is neither folder nor file, cannot be read, or holds no manifest at all:
 *   a command that failed before the pipe must not look like a cluster without problems
 */
export async function readFolder(
  dir: string,
  kinds?: ReadonlySet<string>,
  stdin?: NodeJS.ReadableStream,
): Promise<Folder> {
  const piped = dir === '-' && stdin !== undefined;
  const texts = piped ? [{ file: 'standard input', text: await streamText(stdin) }] : await folderTexts(dir);
  if (texts.every(({ text }) => splitDocuments(text).length === 0))
    throw new PullwrightError(
      piped
        ? 'Cannot read standard input: it is empty (see the error of the command before the pipe)'
        : `Cannot read "${dir}": it has no manifests (*.yaml, *.yml or *.json)`,
      { code: 'InputUnreadable', retryPolicy: 'terminal' },
    );
  return folderOf(texts, kinds);
}

async function folderTexts(dir: string) {
  return Array.fromAsync(await manifestFiles(dir), async (file) => ({
    // Use slashes on Windows too, because file names are compared, sorted and printed for other tools.
    file: relative(dir, file).replaceAll(sep, '/') || file,
    text: await readText(file),
  }));
}

/** Like {@link readFolder}, for texts in memory. */
export function folderOf(
  texts: readonly { readonly file: string; readonly text: string }[],
  kinds?: ReadonlySet<string>,
): Folder {
  const patches = new Set(texts.flatMap(patchesIn));
  const parsed = texts.map(({ file, text }): Manifests => {
    const one = parseManifests(text, file, kinds);
    const isPatch = patches.has(file) && one.manifests.length + one.problems.length > 0;
    return isPatch ? { manifests: [], problems: [{ file, line: 1, message: PATCH }] } : one;
  });
  const manifests = parsed.flatMap((one) => one.manifests);
  const problems = parsed.flatMap((one) => one.problems);
  const store = new ObjectStore();
  const places = new Map<string, Manifest>();
  for (const manifest of manifests) {
    const { object, file, line } = manifest;
    const subject = describeObject(object);
    const id = `${object.apiVersion} ${subject}`;
    const first = places.get(id);
    if (first !== undefined) {
      const message = `${subject} is duplicated: first at ${first.file}:${first.line}`;
      problems.push({ file, line, message, first: { file: first.file, line: first.line } });
      continue;
    }
    places.set(id, manifest);
    store.set(withIdentity(object));
  }
  return { store, manifests, problems };
}

const PATCH = 'is a patch of Kustomize, not an object: render its folder first (kubectl kustomize)';

/** Files that a kustomization names as patches. */
function patchesIn({ file, text }: { readonly file: string; readonly text: string }): readonly string[] {
  if (!/(?:^|\/)kustomization\.ya?ml$/.test(file)) return [];
  const parsed = parseOne(text, 1);
  const { patches, patchesJson6902, patchesStrategicMerge } = recordOf('value' in parsed && parsed.value);
  const paths = [...recordsIn(patches), ...recordsIn(patchesJson6902)].map(({ path }) => textOf(path));
  return [...paths, ...textsIn(patchesStrategicMerge)].map((path) =>
    join(dirname(file), path).replaceAll(sep, '/'),
  );
}

async function manifestFiles(path: string): Promise<string[]> {
  const info = await stat(path).catch((error: unknown) => fail(path, error));
  if (info.isFile()) return [path];
  if (!info.isDirectory())
    throw new PullwrightError(`Cannot read "${path}": it is neither a folder nor a file`, {
      code: 'InputUnreadable',
      retryPolicy: 'terminal',
    });
  const entries = await readdir(path, { withFileTypes: true }).catch((error: unknown) => fail(path, error));
  // A chart's files are not manifests until Helm renders them.
  if (entries.some(({ name }) => name === 'Chart.yaml')) return [join(path, 'Chart.yaml')];
  const found: string[] = [];
  for (const entry of entries.sort((a, b) => (a.name < b.name ? -1 : 1))) {
    if (entry.name.startsWith('.')) continue;
    if (entry.isDirectory()) found.push(...(await manifestFiles(join(path, entry.name))));
    else if (entry.isFile() && /\.(ya?ml|json)$/.test(entry.name)) found.push(join(path, entry.name));
  }
  return found;
}

/** Reads `file`. @param what description for the message, with a trailing space @throws PullwrightError `InputUnreadable` */
export async function readText(file: string, what = ''): Promise<string> {
  return readFile(file, 'utf8').catch((error: unknown) => fail(file, error, what));
}

function fail(path: string, error: unknown, what = ''): never {
  throw new PullwrightError(`Cannot read ${what}"${path}": ${fileFailure(error, 'unknown error')}`, {
    code: 'InputUnreadable',
    retryPolicy: 'terminal',
    cause: error,
  });
}
