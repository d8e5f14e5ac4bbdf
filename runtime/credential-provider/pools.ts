/** The pools of a cluster: versions of their nodes, what is rendered for them, and the state of the rollout. */
import { conditionIn } from '../core/kubernetes/conditions.ts';
import { NODE_POOL } from '../core/kubernetes/hypershift.ts';
import { readSelector, selects } from '../core/kubernetes/label-selector.ts';
import type { KubeObject, OwnerReference } from '../core/kubernetes/object.ts';
import { recordsIn, textOf, valueAt } from '../core/record.ts';
import type { ClusterPair, Reader, Ref } from '../engine/contract.ts';
import { ignitionOf } from '../kube/ignition.ts';
import { toYaml } from '../kube/yaml.ts';
import type { CredentialProviderConfig } from './config.ts';
import { flagVariable, kubeletCommand, kubeletPointers, serviceSettings } from './kubelet-unit.ts';
import {
  type HostedExecutable,
  hostedConfigMap,
  hostedConfigMapName,
  machineConfig,
  machineConfigName,
  type NodeFile,
  variableDropIn,
} from './objects.ts';
import type { ReconcilerOptions } from './options.ts';
import { CREDENTIAL_PROVIDER, kubeletFlags, type PlatformFile, platformFile } from './platform.ts';

/** Label of pools that the Machine Config Operator creates; others inherit the configs of `worker`. */
const BUILT_IN = 'machineconfiguration.openshift.io/mco-built-in';

export type Pool = Readonly<ReturnType<typeof readPools>[number]>;

export type Rollout = 'Done' | 'Progressing' | 'Degraded' | 'Paused';

const MCO = { role: 'hosted', apiVersion: 'machineconfiguration.openshift.io/v1' } as const;
export const POOL = { ...MCO, kind: 'MachineConfigPool' } as const;
export const PROVIDER_MACHINE_CONFIG = { ...MCO, kind: 'MachineConfig' } as const;
export const NODE = { role: 'hosted', apiVersion: 'v1', kind: 'Node' } as const;

/** The built-in pools, by name. */
function readPools(reader: Reader) {
  const nodes = reader.list(NODE);
  return reader
    .list(POOL)
    .filter(({ metadata }) => metadata.labels !== undefined && BUILT_IN in metadata.labels)
    .map((pool) => ({
      name: pool.metadata.name,
      /** The desired rendered MachineConfig of the pool. */
      rendered: renderedConfig(reader, pool),
      /** Nodes whose kubelet would not start with the file, with their versions. */
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
  return name === '' ? undefined : reader.get({ ...PROVIDER_MACHINE_CONFIG, name });
}

function rolloutOf(pool: KubeObject): Rollout {
  const isTrue = (type: string): boolean => conditionIn(pool, type)?.status === 'True';
  if (isTrue('Degraded')) return 'Degraded';
  const wanted = machineConfigName(pool.metadata.name);
  const sources = recordsIn(valueAt(pool.status, 'configuration.source'));
  if (sources.some(({ name }) => name === wanted) && isTrue('Updated')) return 'Done';
  return valueAt(pool.spec, 'paused') === true ? 'Paused' : 'Progressing';
}

/** The node with its versions if one of them is too old or unknown. */
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

// Files of a pool's nodes: the kubelet's file and, where its flags do not name that yet, a drop-in.

/** YAML as the Machine Config Operator writes it: keys sorted, lists not indented, single quotes. */
export function configText(config: CredentialProviderConfig): string {
  return toYaml(config, { sortMapEntries: true, indentSeq: false, singleQuote: true, lineWidth: 0 });
}

/** Files of a pool; none when no entry is rendered. */
export function poolFiles(platform: PlatformFile, config: CredentialProviderConfig | undefined) {
  if (config === undefined) return [];
  const file = { path: platform.path, text: configText(config) };
  if (platform.isKnownToKubelet) return [file];
  return [file, { path: CREDENTIAL_PROVIDER.dropIn, text: variableDropIn(kubeletFlags(platform.path)) }];
}

/**
 * Whether the kubelet reads the platform's file, or the variable with the flags that name it. Without a unit the platform's
 * default is assumed.
 */
export function takesFlags({ isKnownToKubelet }: PlatformFile, unit: string | undefined): boolean {
  if (isKnownToKubelet || unit === undefined) return true;
  const settings = serviceSettings([unit]);
  return flagVariable(settings, [], kubeletCommand(settings))?.name === CREDENTIAL_PROVIDER.dropInVariable;
}

// Rendered objects: a MachineConfig per pool, or the one ConfigMap of a hosted cluster.

/** The pool's kubelet unit followed by its drop-ins; undefined when not found. */
export function kubeletUnit({ rendered }: Pool): string | undefined {
  const unit = (ignitionOf(rendered).systemd?.units ?? []).findLast(({ name }) => name === 'kubelet.service');
  if (unit?.contents === undefined) return undefined;
  return [unit.contents, ...(unit.dropins ?? []).map(({ contents }) => contents ?? '')].join('\n');
}

export const INFRASTRUCTURE = {
  role: 'hosted',
  apiVersion: 'config.openshift.io/v1',
  kind: 'Infrastructure',
  name: 'cluster',
} as const;

export const HOSTED_CONFIG = { role: 'management', apiVersion: 'v1', kind: 'ConfigMap' } as const;

/** One object to render. */
export interface Target {
  readonly pool: Pool;
  readonly platform: PlatformFile;
  /** Why the file that the kubelet of the pool reads is unknown. */
  readonly unclear: string | undefined;
  readonly present: KubeObject | undefined;
  /** Builds the object with these files. */
  readonly make: (files: readonly NodeFile[], owner: OwnerReference | undefined) => KubeObject;
  readonly ref: Ref;
  /** NodePools of a hosted cluster. */
  readonly nodePools: readonly NodePool[];
}

/** All targets; none without pools. */
export function targetsOf(reader: Reader, options: ReconcilerOptions): readonly Target[] {
  const type = platformOf(reader) ?? options.platform;
  const platform = platformFile(type ?? 'None');
  const unclear =
    type === undefined
      ? `${reader.get(INFRASTRUCTURE) === undefined ? 'Infrastructure/cluster not found' : 'the status of Infrastructure/cluster names no platform'}, so the file that the kubelets read is unknown: create it, or set the option "platform" of the section credential-provider`
      : undefined;
  const { hostedCluster } = reader.scope;
  if (hostedCluster !== undefined)
    return [hostedTarget(reader, hostedCluster, { platform, unclear }, options.executable)];
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

/** The pool's own kubelet unit, if found, determines the file that its kubelet reads. */
function fileOfUnit(pool: Pool, platform: PlatformFile, unclear: string | undefined) {
  const unit = kubeletUnit(pool);
  const { config } = kubeletPointers(unit ?? '');
  if (unclear !== undefined || config === undefined || config === platform.path) {
    const isKnownToKubelet = unit === undefined ? platform.isKnownToKubelet : config === platform.path;
    return { platform: { ...platform, isKnownToKubelet }, unclear };
  }
  return {
    platform,
    unclear: `its kubelet reads "${config}" already, where "${platform.path}" is what its platform says: rendering that would remove the providers in its current file. Correct the platform in Infrastructure/cluster`,
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
  // The ConfigMap affects only nodes whose NodePool refers to it.
  const taking = pools.filter(({ refers }) => refers);
  const pool: Pool = {
    name: 'worker',
    rendered: undefined,
    tooOld: [...strayOld, ...taking.flatMap(({ tooOld }) => tooOld)],
    rollout: hostedRollout(pools),
  };
  const ref: Ref = { ...HOSTED_CONFIG, namespace: hosted.namespace, name };
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
  if (pools.some(({ refers, rollout }) => refers && rollout === 'Degraded')) return 'Degraded';
  const isDone = pools.length > 0 && pools.every(({ refers, rollout }) => refers && rollout === 'Done');
  return isDone ? 'Done' : 'Progressing';
}

/** Platforms whose kubelet unit reads the variable; the units of a hosted cluster are not visible. */
const WITH_VARIABLE: ReadonlySet<string> = new Set(['BareMetal', 'OpenStack', 'VSphere', 'Ovirt', 'Nutanix']);

/** Why the drop-in of a hosted cluster may not reach its kubelets; undefined when it will. */
export function unreachable(reader: Reader, { platform, nodePools }: Target): string | undefined {
  const type = platformOf(reader) ?? 'None';
  if (nodePools.length === 0 || platform.isKnownToKubelet || WITH_VARIABLE.has(type)) return undefined;
  return `the kubelet's unit on platform ${type} may not read ${CREDENTIAL_PROVIDER.dropInVariable}, and units of a hosted cluster are not visible here: check the flags of a kubelet first`;
}

// The NodePools of a hosted cluster: whether they refer to our ConfigMap, versions of their nodes, state of the rollout.
//
// All NodePools of a hosted cluster share one ConfigMap and may differ in version, so only those that refer to it gate the
// rendering.

/** Label of a hosted cluster's nodes with the name of the NodePool. */
export const NODE_POOL_LABEL = 'hypershift.openshift.io/nodePool';
/** Maximum length of `spec.config` by the definition. */
const MAX_CONFIGS = 10;

export type NodePool = Readonly<ReturnType<typeof nodePool>>;

/** The NodePools, and too old nodes that belong to none of them. */
function readNodePools(reader: Reader, hosted: NonNullable<ClusterPair['hostedCluster']>, configMap: string) {
  const objects = reader
    .list({ role: 'management', ...NODE_POOL })
    .filter(
      ({ metadata, spec }) =>
        metadata.namespace === hosted.namespace && valueAt(spec, 'clusterName') === hosted.name,
    );
  const names = new Set(objects.map(({ metadata }) => metadata.name));
  const poolOf = ({ metadata }: KubeObject): string => metadata.labels?.[NODE_POOL_LABEL] ?? '';
  const nodes = reader.list(NODE);
  const byPool = Map.groupBy(nodes, poolOf);
  return {
    pools: objects.map((object) => nodePool(object, byPool.get(object.metadata.name) ?? [], configMap)),
    strayOld: nodes.filter((node) => !names.has(poolOf(node))).flatMap(tooOld),
  };
}

function nodePool(object: KubeObject, nodes: readonly KubeObject[], configMap: string) {
  const configs = recordsIn(valueAt(object.spec, 'config')).map(({ name }) => textOf(name));
  return {
    namespace: object.metadata.namespace ?? '',
    name: object.metadata.name,
    /** Names in `spec.config`. */
    configs,
    /** Whether our ConfigMap is one of them. */
    refers: configs.includes(configMap),
    /** Nodes whose kubelet would not start with the file. */
    tooOld: nodes.flatMap(tooOld),
    rollout: nodePoolRollout(object),
  };
}

/** From HyperShift's conditions; those of an older generation do not describe the current `spec.config`. */
function nodePoolRollout(pool: KubeObject): Rollout {
  const now = (type: string): string | undefined => {
    const { observedGeneration = Number.MAX_SAFE_INTEGER, status } = conditionIn(pool, type) ?? {};
    return observedGeneration >= (pool.metadata.generation ?? 0) ? status : undefined;
  };
  if (now('ValidMachineConfig') === 'False') return 'Degraded';
  return now('UpdatingConfig') === 'False' ? 'Done' : 'Progressing';
}

/** What to do about a NodePool that does not refer to the ConfigMap. */
export function howToRefer(pool: NodePool, configMap: string) {
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
  const configs = [...pool.configs, configMap].map((config) => `  - name: ${config}`);
  return {
    reason: 'NotReferenced',
    message: `${name} does not refer to ConfigMap ${configMap}, so its nodes do not get the configuration. Set in it:\nspec:\n  config:\n${configs.join('\n')}`,
  };
}
