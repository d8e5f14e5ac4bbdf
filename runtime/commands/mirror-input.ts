/**
 * What `mirrors` goes by: the mirror sets of a folder, of standard input or of a cluster, the files of a node, and
 * which of several clusters is meant.
 */
import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { parse as parseToml } from 'smol-toml';
import { folderOf, readFolder } from '../controller/folder.ts';
import type { AuthSource } from '../rules/auth-lookup/kubelet.ts';
import { pullSecretSource } from '../rules/docker-config/secret-text.ts';
import { UsageError } from '../rules/errors.ts';
import type { KubeObject, SecretObject } from '../rules/kubernetes/object.ts';
import { MIRROR_SET_KINDS } from '../rules/mirrors/collect.ts';
import { parseRegistriesConf } from '../rules/mirrors/registries-conf.ts';
import { asTable, listOf } from '../rules/mirrors/registries-conf-table.ts';
import { mergeRegistries } from '../rules/mirrors/registry-prefix.ts';
import { aliasesOf } from '../rules/mirrors/short-name-aliases.ts';
import { type ClusterObjects, clustersIn, type Located } from '../rules/node-registries/clusters.ts';
import { CLUSTER_VERSION, IMAGE_CONFIG } from '../rules/node-registries/input.ts';
import { type ConfInForce, MACHINE_CONFIG } from '../rules/node-registries/node-mirrors.ts';
import { renderNodeFiles } from '../rules/node-registries/render.ts';
import { chooseCluster, clusterFlag } from './choose-cluster.ts';
import type { CommandIo } from './command.ts';
import { CLUSTER_FLAGS } from './flags/common.ts';
import { type Flag, file, folder, several, text } from './flags/flag.ts';
import { type ClusterAccess, type NextKinds, readObjects, type SourceKind } from './object-source.ts';

/** For `parseArgs`. */
export const INPUT_FLAGS: {
  readonly from: Flag<readonly string[] | undefined>;
  readonly kubeconfig: Flag<string | undefined>;
  readonly context: Flag<string | undefined>;
  readonly 'request-timeout': Flag<number>;
  readonly as: Flag<string | undefined>;
  readonly cluster: Flag<string | undefined>;
} = {
  from: several(
    folder({
      help: 'a folder of manifests, a file, or - for standard input, with mirror sets, image.config.openshift.io/cluster and HostedClusters',
    }),
  ),
  kubeconfig: file({ help: 'read them from a cluster instead' }),
  context: text({ value: 'NAME', completes: 'contexts', help: 'a context of the kubeconfig' }),
  'request-timeout': CLUSTER_FLAGS['request-timeout'],
  as: CLUSTER_FLAGS.as,
  cluster: clusterFlag,
};

export interface InputValues extends ClusterAccess {
  readonly from?: readonly string[] | undefined;
  readonly cluster?: string | undefined;
}

/** Rights on a cluster, for the permissions of commands. */
export const INPUT_API: readonly string[] = [
  'list imagedigestmirrorsets, imagetagmirrorsets, imagecontentsourcepolicies, hostedclusters',
  'get images.config.openshift.io/cluster, clusterversions/version',
  'get machineconfigs/99-worker-generated-registries, machineconfigs/99-master-generated-registries',
];

export interface MirrorInput {
  readonly cluster: ClusterObjects;
  /** Whatever else was read, for commands that want more kinds. */
  readonly found: readonly Located[];
  readonly problems: readonly string[];
}

/** @throws UsageError where it is not clear which cluster is meant; PullwrightError where nothing can be read */
export async function readMirrorInput(
  values: InputValues,
  io: CommandIo,
  more: readonly SourceKind[] = [],
  next: readonly NextKinds[] = [],
): Promise<MirrorInput> {
  const { found, problems } = await readMirrorObjects(values, io, [...KINDS, ...more], next);
  return { cluster: chooseCluster(clustersIn(found), values.cluster), found, problems };
}

export interface Found {
  readonly found: readonly Located[];
  readonly problems: readonly string[];
}

const KINDS: readonly SourceKind[] = [
  ...MIRROR_SET_KINDS.map(({ apiVersion, kind }) => ({ apiVersion, kind })),
  IMAGE_CONFIG,
  CLUSTER_VERSION,
  { apiVersion: 'hypershift.openshift.io/v1beta1', kind: 'HostedCluster' },
  ...['worker', 'master'].map((pool) => ({ ...MACHINE_CONFIG, name: `99-${pool}-generated-registries` })),
];

/** Objects of `kinds`, of whatever clusters. @throws PullwrightError where nothing can be read */
export function readMirrorObjects(
  values: InputValues,
  io: CommandIo,
  kinds: readonly SourceKind[],
  next: readonly NextKinds[] = [],
): Promise<Found> {
  const isLive =
    values.from === undefined && (values.kubeconfig !== undefined || values.context !== undefined);
  return isLive ? fromCluster(values, io, kinds, next) : fromFolders(values.from ?? [], io, kinds);
}

async function fromFolders(
  folders: readonly string[],
  io: CommandIo,
  wanted: readonly SourceKind[],
): Promise<Found> {
  const kinds = new Set(wanted.map(({ kind }) => kind));
  const read = await Promise.all(
    folders.map(async (dir) =>
      dir === '-'
        ? folderOf([{ file: 'standard input', text: await textOf(io.stdin) }], kinds)
        : readFolder(dir, kinds),
    ),
  );
  return {
    found: read.flatMap(({ manifests }, at) =>
      manifests.map(({ object, file }) => ({
        object,
        // A second folder is another place, as far as names of files go.
        file: folders.length > 1 ? `${folders[at] ?? ''}/${file}` : file,
        within: file,
      })),
    ),
    problems: read.flatMap((folder) =>
      folder.problems
        // An object of another cluster has its name again; which cluster is meant is asked.
        .filter(({ first }) => first === undefined)
        .map(({ file, line, message }) => `error: ${file}:${line}: ${message}`),
    ),
  };
}

async function textOf(stream: NodeJS.ReadableStream): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(Buffer.from(chunk));
  return Buffer.concat(chunks).toString('utf8');
}

async function fromCluster(
  { from: _from, cluster: _cluster, ...access }: InputValues,
  io: CommandIo,
  kinds: readonly SourceKind[],
  next: readonly NextKinds[],
): Promise<Found> {
  const { store, problems } = await readObjects(access, kinds, io, next);
  const found = [...store].map((object) => ({ object }));
  return { found, problems: problems.map((problem) => `warning: ${problem}`) };
}

/** `unqualified-search-registries` of the nodes, as the Image object or the operator's template says. */
export function searchOf(objects: readonly KubeObject[]): readonly string[] {
  const rendering = renderNodeFiles(objects);
  return rendering.refused ? ['docker.io'] : rendering.search;
}

/** Files of a node. */
export interface NodeConf extends ConfInForce {
  readonly aliases: ReadonlyMap<string, string>;
  /** `unqualified-search-registries`; undefined where no file has it. */
  readonly search?: readonly string[];
}

/**
 * Reads `registries.conf` and drop-ins, in this order; a folder (`registries.conf.d`) stands for its `*.conf` in name order.
 *
 * @throws UsageError, PullwrightError where the runtime would refuse a file
 */
export async function readNodeConf(paths: readonly string[] | undefined): Promise<NodeConf | undefined> {
  if (paths === undefined || paths.length === 0) return undefined;
  const files = (await Promise.all(paths.map(confFiles))).flat();
  const texts = await Promise.all(files.map(readConf));
  const tables = texts.map((text) => {
    const rules = parseRegistriesConf(text, parseToml);
    return { rules, table: asTable(parseToml(text), 'the file') };
  });
  const aliases = new Map(tables.flatMap(({ table }) => [...aliasesOf(table)]));
  const search = tables.findLast(({ table }) => table['unqualified-search-registries'] !== undefined);
  return {
    from: files.join(', '),
    rules: mergeRegistries(tables.map(({ rules }) => rules)),
    aliases,
    ...(search === undefined
      ? {}
      : { search: listOf(search.table, 'unqualified-search-registries') as readonly string[] }),
  };
}

async function confFiles(path: string): Promise<readonly string[]> {
  const info = await stat(path).catch(() => undefined);
  if (info?.isDirectory() !== true) return [path];
  const names = await readdir(path);
  return names
    .filter((name) => name.endsWith('.conf'))
    .sort()
    .map((name) => join(path, name));
}

async function readConf(path: string): Promise<string> {
  return readFile(path, 'utf8').catch(() => {
    throw new UsageError(`Cannot read "${path}": expected a readable registries.conf`);
  });
}

/** Where the pull secret of a cluster is: named by its HostedCluster, else the platform's. */
export function pullSecretPlace(hosted: KubeObject | undefined): {
  readonly namespace: string;
  readonly name: string;
} {
  if (hosted === undefined) return { namespace: 'openshift-config', name: 'pull-secret' };
  const { pullSecret } = (hosted.spec ?? {}) as { pullSecret?: { name?: unknown } | null };
  const name = typeof pullSecret?.name === 'string' ? pullSecret.name : 'pull-secret';
  return { namespace: hosted.metadata.namespace ?? '', name };
}

/** The pull secret that the HostedCluster `wanted` names. */
export function hostedSecrets(wanted: string | undefined): NextKinds {
  return (store) =>
    store
      .list({ apiVersion: 'hypershift.openshift.io/v1beta1', kind: 'HostedCluster' })
      .filter(({ metadata }) => `${metadata.namespace ?? ''}/${metadata.name}` === wanted)
      .map((hosted) => ({ apiVersion: 'v1', kind: 'Secret', ...pullSecretPlace(hosted) }));
}

/** The cluster's own pull secret among `objects`; undefined where it is missing or invalid. */
export function ownPullSecret(
  objects: readonly KubeObject[],
  hosted: KubeObject | undefined,
): AuthSource | undefined {
  const { namespace, name } = pullSecretPlace(hosted);
  const secret = objects.find(
    ({ kind, metadata }) => kind === 'Secret' && metadata.name === name && metadata.namespace === namespace,
  );
  return secret && pullSecretSource(secret as SecretObject);
}
