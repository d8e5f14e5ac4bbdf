/** The pools of a cluster: what their nodes run, what is rendered for them, and how far it is rolled out. */
import { conditionIn } from '../core/kubernetes/conditions.ts';
import { readSelector, selects } from '../core/kubernetes/label-selector.ts';
import type { KubeObject, OwnerReference } from '../core/kubernetes/object.ts';
import { recordsIn, textOf, valueAt } from '../core/record.ts';
import {
  type ClusterPair,
  HOSTED_CLUSTER_NAMESPACE,
  type Reader,
  type Ref,
  type Watch,
} from '../engine/contract.ts';
import { ignitionOf } from '../kube/ignition.ts';
import { toYaml } from '../kube/yaml.ts';
import type { CredentialProviderConfig } from './config.ts';
import { flagVariable, kubeletCommand, kubeletPointers, serviceSettings } from './kubelet-unit.ts';
import {
  hostedConfigMap,
  hostedConfigMapName,
  machineConfig,
  machineConfigName,
  type NodeFile,
  variableDropIn,
} from './objects.ts';
import type { HostedExecutable } from './options.ts';
import { CREDENTIAL_PROVIDER, kubeletFlags, type PlatformFile, platformFile } from './platform.ts';

/** A pool that the Machine Config Operator creates; others inherit the configs of `worker`. */
const BUILT_IN = 'machineconfiguration.openshift.io/mco-built-in';

export interface Pool {
  readonly name: string;
  /** The MachineConfig that the pool goes towards. */
  readonly rendered: KubeObject | undefined;
  /** `node: what it runs`, for nodes that would not start with the file. */
  readonly tooOld: readonly string[];
  readonly rollout: Rollout;
}

export type Rollout = 'Done' | 'Progressing' | 'Degraded' | 'Paused';

const POOL = {
  role: 'hosted',
  apiVersion: 'machineconfiguration.openshift.io/v1',
  kind: 'MachineConfigPool',
} as const;
const NODE = { role: 'hosted', apiVersion: 'v1', kind: 'Node' } as const;

/** The built-in pools, by name. */
function readPools(reader: Reader): readonly Pool[] {
  const nodes = reader.list(NODE);
  return reader
    .list(POOL)
    .filter(({ metadata }) => metadata.labels !== undefined && BUILT_IN in metadata.labels)
    .map((pool) => ({
      name: pool.metadata.name,
      rendered: renderedConfig(reader, pool),
      tooOld: nodes.filter((node) => isOf(pool, node)).flatMap(tooOld),
      rollout: rolloutOf(pool),
    }));
}

function isOf(pool: KubeObject, node: KubeObject): boolean {
  const selector = readSelector(valueAt(pool.spec, 'nodeSelector'));
  return selector.ok && selects(selector.requirements, node.metadata.labels ?? {});
}

function renderedConfig(reader: Reader, pool: KubeObject): KubeObject | undefined {
  const name = textOf(valueAt(pool.spec, 'configuration.name'));
  return name === '' ? undefined : reader.get({ ...POOL, kind: 'MachineConfig', name });
}

function rolloutOf(pool: KubeObject): Rollout {
  const isTrue = (type: string): boolean => conditionIn(pool, type)?.status === 'True';
  if (isTrue('Degraded')) return 'Degraded';
  const wanted = machineConfigName(pool.metadata.name);
  const sources = recordsIn(valueAt(pool.status, 'configuration.source'));
  if (sources.some(({ name }) => name === wanted) && isTrue('Updated')) return 'Done';
  return valueAt(pool.spec, 'paused') === true ? 'Paused' : 'Progressing';
}

/** What a node runs that refuses the file; a node that does not say what it runs is not trusted with it. */
export function tooOld({ metadata, status }: KubeObject): readonly string[] {
  const kubelet = textOf(valueAt(status, 'nodeInfo.kubeletVersion')) || 'unknown';
  const runtime = textOf(valueAt(status, 'nodeInfo.containerRuntimeVersion')) || 'unknown';
  const isNew =
    isNewEnough(/^v?(\d+)\.(\d+)/.exec(kubelet)) && isNewEnough(/^cri-o:\/\/(\d+)\.(\d+)/.exec(runtime));
  return isNew ? [] : [`${metadata.name} (kubelet ${kubelet}, ${runtime})`];
}

function isNewEnough(version: RegExpExecArray | null): boolean {
  if (version === null) return false;
  const [major, minor] = [Number(version[1]), Number(version[2])];
  return major > 1 || (major === 1 && minor >= CREDENTIAL_PROVIDER.minimumMinor);
}

// The files that a pool's nodes need: the kubelet's file and, where the kubelet does not know it yet, a drop-in.

/** The text, as the Machine Config Operator writes it: keys sorted, lists not indented, single quotes. */
export function configText(config: CredentialProviderConfig): string {
  return toYaml(config, { sortMapEntries: true, indentSeq: false, singleQuote: true, lineWidth: 0 });
}

/** What is known of the pool's kubelet unit: its whole text, drop-ins included; undefined when it was not found. */
type KubeletUnit = string | undefined;

/** Files of a pool; none when no entry is left to render. */
export function poolFiles(
  platform: PlatformFile,
  config: CredentialProviderConfig | undefined,
): readonly NodeFile[] {
  if (config === undefined) return [];
  const file = { path: platform.path, text: configText(config) };
  if (platform.isKnownToKubelet) return [file];
  return [file, { path: CREDENTIAL_PROVIDER.dropIn, text: variableDropIn(kubeletFlags(platform.path)) }];
}

/**
 * Whether the kubelet reads the platform's file, or the variable that points it there. A unit that was not found is taken to
 * be as the platform is known to make it.
 */
export function takesFlags({ isKnownToKubelet }: PlatformFile, unit: KubeletUnit): boolean {
  if (isKnownToKubelet || unit === undefined) return true;
  const settings = serviceSettings([unit]);
  return flagVariable(settings, [], kubeletCommand(settings))?.name === CREDENTIAL_PROVIDER.dropInVariable;
}

// What is rendered and where it goes: a MachineConfig per pool, or the one ConfigMap of a hosted cluster.

/** A unit with its drop-ins, one after the other, but for the drop-in that is ours. */
export function unitText(machineConfig: KubeObject | undefined, name: string): string | undefined {
  const unit = (ignitionOf(machineConfig).systemd?.units ?? []).findLast((one) => one.name === name);
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
      make: (files, owner) => machineConfig(pool.name, files, owner),
      ref,
      nodePools: [],
    };
  });
}

function platformOf(reader: Reader): string | undefined {
  const status = reader.get(INFRASTRUCTURE)?.status;
  return textOf(valueAt(status, 'platformStatus.type') ?? valueAt(status, 'platform')) || undefined;
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
    rollout: hostedRollout(pools),
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

function hostedRollout(pools: readonly NodePool[]): Rollout {
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

/** The NodePools, by name, and what nodes that belong to none of them run. */
function readNodePools(
  reader: Reader,
  hosted: NonNullable<ClusterPair['hostedCluster']>,
  configMap: string,
): { readonly pools: readonly NodePool[]; readonly strayOld: readonly string[] } {
  const nodes = reader.list(NODE);
  const objects = reader
    .list(NODE_POOL)
    .filter(
      ({ metadata, spec }) =>
        metadata.namespace === hosted.namespace && valueAt(spec, 'clusterName') === hosted.name,
    );
  const names = new Set(objects.map(({ metadata }) => metadata.name));
  const poolOf = ({ metadata }: KubeObject): string => metadata.labels?.[NODE_POOL_LABEL] ?? '';
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

function nodePool(object: KubeObject, nodes: readonly KubeObject[], configMap: string): NodePool {
  const configs = recordsIn(valueAt(object.spec, 'config')).map(({ name }) => textOf(name));
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
function nodePoolRollout(pool: KubeObject): Rollout {
  const now = (type: string): string | undefined => {
    const { observedGeneration = Number.MAX_SAFE_INTEGER, status } = conditionIn(pool, type) ?? {};
    return observedGeneration >= (pool.metadata.generation ?? 0) ? status : undefined;
  };
  if (now('ValidMachineConfig') === 'False') return 'Degraded';
  return now('UpdatingConfig') === 'False' ? 'Done' : 'Progressing';
}

/**
 * How a NodePool is made to take the ConfigMap: the YAML to paste, with what is there already.
 */
function configToPaste(configs: readonly string[], configMap: string): string {
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
