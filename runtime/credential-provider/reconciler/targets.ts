/** What is rendered and where it goes: a MachineConfig per pool, or the one ConfigMap of a hosted cluster. */
import { gunzipSync } from 'node:zlib';
import type { Condition } from '../../core/kubernetes/conditions.ts';
import type { KubeObject, OwnerReference } from '../../core/kubernetes/object.ts';
import {
  type ClusterPair,
  HOSTED_CLUSTER_NAMESPACE,
  type Reader,
  type Ref,
  type Watch,
} from '../../engine/contract.ts';
import { kubeletPointers } from '../installer/plan.ts';
import {
  hostedConfigMap,
  hostedConfigMapName,
  machineConfig,
  machineConfigName,
  type NodeFile,
} from '../objects.ts';
import type { HostedExecutable } from '../options.ts';
import { CREDENTIAL_PROVIDER, type PlatformFile, platformFile } from '../platform.ts';
import { type NodeObject, type Pool, type Rollout, readPools, tooOld } from '../pools.ts';

// Reads files and units out of the Ignition config of a rendered MachineConfig.

/** Unpacked; a larger file is not the configuration of a container runtime or a kubelet. */
const MAX_FILE = 4 * 1024 * 1024;

interface IgnitionConfig {
  readonly storage?: { readonly files?: readonly IgnitionFile[] };
  readonly systemd?: { readonly units?: readonly IgnitionUnit[] };
}

interface IgnitionFile {
  readonly path?: string;
  readonly contents?: { readonly source?: string; readonly compression?: string };
}

interface IgnitionUnit {
  readonly name?: string;
  readonly contents?: string;
  readonly dropins?: readonly { readonly name?: string; readonly contents?: string }[];
}

function configOf(machineConfig: KubeObject | undefined): IgnitionConfig {
  return (machineConfig?.spec as { readonly config?: IgnitionConfig } | undefined)?.config ?? {};
}

/**
 * Text of the file at `path`; undefined when the config has no such file or it cannot be read (a remote source, or more than 4 MiB when unpacked).
 */
export function fileText(machineConfig: KubeObject | undefined, path: string): string | undefined {
  const files = configOf(machineConfig).storage?.files ?? [];
  const { source = '', compression } = files.findLast((one) => one.path === path)?.contents ?? {};
  const match = /^data:([^,]*),(.*)$/s.exec(source);
  return match === null ? undefined : decoded(match[1] ?? '', match[2] ?? '', compression === 'gzip');
}

function decoded(kind: string, body: string, isPacked: boolean): string | undefined {
  try {
    const bytes = kind.endsWith(';base64')
      ? Buffer.from(body, 'base64')
      : Buffer.from(decodeURIComponent(body));
    return (isPacked ? gunzipSync(bytes, { maxOutputLength: MAX_FILE }) : bytes).toString('utf8');
  } catch {
    return undefined;
  }
}

/** A unit with its drop-ins, one after the other, but for the drop-in that is ours. */
export function unitText(machineConfig: KubeObject | undefined, name: string): string | undefined {
  const unit = (configOf(machineConfig).systemd?.units ?? []).findLast((one) => one.name === name);
  if (unit?.contents === undefined) return undefined;
  return [unit.contents, ...(unit.dropins ?? []).map(({ contents }) => contents ?? '')].join('\n');
}

export const PROVIDER_MACHINE_CONFIG: Pick<Ref, 'apiVersion' | 'kind'> & { readonly role: 'hosted' } = {
  role: 'hosted',
  apiVersion: 'machineconfiguration.openshift.io/v1',
  kind: 'MachineConfig',
};
export const INFRASTRUCTURE = {
  role: 'hosted',
  apiVersion: 'config.openshift.io/v1',
  kind: 'Infrastructure',
  name: 'cluster',
} as const;

/** One object to be rendered. */
export interface Target {
  readonly pool: Pool;
  readonly platform: PlatformFile;
  /** Why it cannot be told which file the kubelet of the pool reads. */
  readonly unclear: string | undefined;
  readonly present: KubeObject | undefined;
  /** The object with these files. */
  readonly make: (files: readonly NodeFile[], owner: OwnerReference | undefined) => KubeObject;
  readonly ref: Ref;
  /** For a hosted cluster: its NodePools. */
  readonly nodePools: readonly NodePool[];
}

/** All targets; none without pools. `assumed`: the platform where the cluster has none. */
export function targetsOf(
  reader: Reader,
  assumed: string | undefined,
  executable?: HostedExecutable,
): readonly Target[] {
  const type = platformOf(reader) ?? assumed;
  const platform = platformFile(type ?? 'None');
  const unclear =
    type === undefined
      ? `${reader.get(INFRASTRUCTURE) === undefined ? 'Infrastructure/cluster not found' : 'the status of Infrastructure/cluster names no platform'}, so the file that the kubelets read is unknown: create it, or set the option "platform" of the section credential-provider`
      : undefined;
  const { hostedCluster } = reader.scope;
  if (hostedCluster !== undefined)
    return [hostedTarget(reader, hostedCluster, { platform, unclear }, executable)];
  return readPools(reader).map((pool) => {
    const ref: Ref = { ...PROVIDER_MACHINE_CONFIG, name: machineConfigName(pool.name) };
    return {
      pool,
      ...fileOfUnit(pool, platform, unclear),
      present: reader.get(ref),
      make: (files, owner) =>
        machineConfig({ pool: pool.name, files, ...(owner === undefined ? {} : { owner }) }),
      ref,
      nodePools: [],
    };
  });
}

function platformOf(reader: Reader): string | undefined {
  const status = reader.get(INFRASTRUCTURE)?.status as
    | { readonly platformStatus?: { readonly type?: string }; readonly platform?: string }
    | undefined;
  const type = status?.platformStatus?.type ?? status?.platform;
  return type === '' ? undefined : type;
}

/** The pool's own kubelet unit is the best evidence of the file that its kubelet reads. */
function fileOfUnit(
  pool: Pool,
  platform: PlatformFile,
  unclear: string | undefined,
): Pick<Target, 'platform' | 'unclear'> {
  const unit = unitText(pool.rendered, 'kubelet.service');
  const { config } = kubeletPointers(unit === undefined ? [] : [unit]);
  if (unclear !== undefined || config === undefined || config === platform.path) {
    const isKnownToKubelet = unit === undefined ? platform.isKnownToKubelet : config === platform.path;
    return { platform: { ...platform, isKnownToKubelet }, unclear };
  }
  return {
    platform,
    unclear: `its kubelet reads "${config}" already, where "${platform.path}" is what its platform says: to render that would take the providers in the present file away. Correct the platform in Infrastructure/cluster`,
  };
}

function hostedTarget(
  reader: Reader,
  hosted: NonNullable<ClusterPair['hostedCluster']>,
  file: Pick<Target, 'platform' | 'unclear'>,
  executable: HostedExecutable | undefined,
): Target {
  const name = hostedConfigMapName(hosted.name);
  const { pools, strayOld } = readNodePools(reader, hosted, name);
  // Only nodes that take the ConfigMap can be hurt by it.
  const taking = pools.filter(({ refers }) => refers);
  const pool: Pool = {
    name: 'worker',
    rendered: undefined,
    tooOld: [...strayOld, ...taking.flatMap(({ tooOld }) => tooOld)],
    rollout: rolloutOf(pools),
  };
  const ref: Ref = {
    role: 'management',
    apiVersion: 'v1',
    kind: 'ConfigMap',
    namespace: hosted.namespace,
    name,
  };
  return {
    pool,
    ...file,
    present: reader.get(ref),
    make: (files) => hostedConfigMap(hosted, files, executable),
    ref,
    nodePools: pools,
  };
}

function rolloutOf(pools: readonly NodePool[]): Rollout {
  const worst = pools.find(({ refers, rollout }) => refers && rollout === 'Degraded');
  if (worst !== undefined) return 'Degraded';
  const isDone = pools.length > 0 && pools.every(({ refers, rollout }) => refers && rollout === 'Done');
  return isDone ? 'Done' : 'Progressing';
}

/** Platforms whose kubelet unit takes the flags from the variable; of a hosted cluster the unit itself cannot be seen. */
const WITH_VARIABLE: ReadonlySet<string> = new Set(['BareMetal', 'OpenStack', 'VSphere', 'Ovirt', 'Nutanix']);

/** Why the drop-in of a hosted cluster may not reach its kubelets; undefined when it does. */
export function unreachable(reader: Reader, { platform, nodePools }: Target): string | undefined {
  const type = platformOf(reader) ?? 'None';
  if (nodePools.length === 0 || platform.isKnownToKubelet || WITH_VARIABLE.has(type)) return undefined;
  return `the kubelet's unit on platform ${type} is not known to read ${CREDENTIAL_PROVIDER.dropInVariable}, and the unit of a hosted cluster cannot be seen from here: look at the flags of a kubelet before you rely on it`;
}

// The NodePools of a hosted cluster: which of them take our ConfigMap, what their nodes run, how far they are.
//
// A NodePool gates itself: all of a hosted cluster share one ConfigMap and may be versions apart, so only nodes count whose
// NodePool refers to it.

/** Label of the hosted cluster's nodes; its value is the NodePool's name. */
const NODE_POOL_LABEL = 'hypershift.openshift.io/nodePool';
/** The definition allows no more entries in `spec.config`. */
const MAX_CONFIGS = 10;

const NODE_POOL = {
  role: 'management',
  apiVersion: 'hypershift.openshift.io/v1beta1',
  kind: 'NodePool',
} as const;

export const NODE_POOL_READ: Watch = { ...NODE_POOL, namespace: HOSTED_CLUSTER_NAMESPACE, optional: true };

export interface NodePool {
  readonly namespace: string;
  readonly name: string;
  /** Names in `spec.config`. */
  readonly configs: readonly string[];
  /** Whether our ConfigMap is one of them. */
  readonly refers: boolean;
  /** Its nodes that would not start with the file. */
  readonly tooOld: readonly string[];
  readonly rollout: Rollout;
}

interface NodePoolObject extends KubeObject {
  readonly spec?: {
    readonly clusterName?: string;
    readonly config?: readonly { readonly name?: string }[];
  };
  readonly status?: {
    readonly conditions?: readonly (Condition & { readonly observedGeneration?: number })[];
  };
}

/** The NodePools, by name, and what nodes that belong to none of them run. */
export function readNodePools(
  reader: Reader,
  hosted: NonNullable<ClusterPair['hostedCluster']>,
  configMap: string,
): { readonly pools: readonly NodePool[]; readonly strayOld: readonly string[] } {
  const nodes = reader.list({ role: 'hosted', apiVersion: 'v1', kind: 'Node' }) as readonly NodeObject[];
  const objects = (reader.list(NODE_POOL) as readonly NodePoolObject[]).filter(
    ({ metadata, spec }) => metadata.namespace === hosted.namespace && spec?.clusterName === hosted.name,
  );
  const names = new Set(objects.map(({ metadata }) => metadata.name));
  const poolOf = ({ metadata }: NodeObject): string => metadata.labels?.[NODE_POOL_LABEL] ?? '';
  return {
    pools: objects.map((object) =>
      nodePool(
        object,
        nodes.filter((node) => poolOf(node) === object.metadata.name),
        configMap,
      ),
    ),
    strayOld: nodes.filter((node) => !names.has(poolOf(node))).flatMap(tooOld),
  };
}

function nodePool(object: NodePoolObject, nodes: readonly NodeObject[], configMap: string): NodePool {
  const configs = (object.spec?.config ?? []).map(({ name }) => (typeof name === 'string' ? name : ''));
  return {
    namespace: object.metadata.namespace ?? '',
    name: object.metadata.name,
    configs,
    refers: configs.includes(configMap),
    tooOld: nodes.flatMap(tooOld),
    rollout: nodePoolRollout(object),
  };
}

/** By HyperShift's own conditions; those of an older generation do not speak of the present `spec.config`. */
function nodePoolRollout({ metadata, status }: NodePoolObject): Rollout {
  const now = (type: string): string | undefined =>
    status?.conditions?.find(
      (one) =>
        one.type === type &&
        (one.observedGeneration ?? Number.MAX_SAFE_INTEGER) >= (metadata.generation ?? 0),
    )?.status;
  if (now('ValidMachineConfig') === 'False') return 'Degraded';
  return now('UpdatingConfig') === 'False' ? 'Done' : 'Progressing';
}

/**
 * How a NodePool is made to take the ConfigMap: the YAML to paste, with what is there already.
 */
export function configToPaste(configs: readonly string[], configMap: string): string {
  return ['spec:', '  config:', ...[...configs, configMap].map((name) => `  - name: ${name}`)].join('\n');
}

/** What is missing for a NodePool that does not refer to the ConfigMap, and what to do. */
export function howToRefer(
  pool: Pick<NodePool, 'namespace' | 'name' | 'configs' | 'tooOld'>,
  configMap: string,
): { readonly reason: string; readonly message: string } {
  const name = `NodePool ${pool.namespace}/${pool.name}`;
  if (pool.tooOld.length > 0)
    return {
      reason: 'UnsupportedVersion',
      message: `${name} does not refer to ConfigMap ${configMap}, and must not yet: its kubelets would not start. Too old: ${pool.tooOld.slice(0, 5).join(', ')}`,
    };
  if (pool.configs.length >= MAX_CONFIGS)
    return {
      reason: 'NotReferenced',
      message: `${name} does not refer to ConfigMap ${configMap}, and its spec.config has ${pool.configs.length} entries already, the most that are allowed: put two of them into one ConfigMap, then add this one`,
    };
  return {
    reason: 'NotReferenced',
    message: `${name} does not refer to ConfigMap ${configMap}, so its nodes do not get the configuration. Set in it:\n${configToPaste(pool.configs, configMap)}`,
  };
}
