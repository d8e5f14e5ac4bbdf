/** The pools of a cluster: what their nodes run, what is rendered for them, and how far it is rolled out. */

import type { Condition } from '../core/kubernetes/conditions.ts';
import { readSelector, selects } from '../core/kubernetes/label-selector.ts';
import type { KubeObject } from '../core/kubernetes/object.ts';
import type { Reader } from '../engine/contract.ts';
import { toYaml } from '../kube/yaml.ts';
import type { CredentialProviderConfig } from './config.ts';
import { flagVariable, kubeletCommand, serviceSettings } from './kubelet-unit.ts';
import { machineConfigName, type NodeFile, variableDropIn } from './objects.ts';
import { CREDENTIAL_PROVIDER, kubeletFlags, type PlatformFile } from './platform.ts';

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

interface PoolObject extends KubeObject {
  readonly spec?: {
    readonly nodeSelector?: unknown;
    readonly paused?: boolean;
    readonly configuration?: {
      readonly name?: string;
      readonly source?: readonly { readonly name?: string }[];
    };
  };
  readonly status?: {
    readonly configuration?: { readonly source?: readonly { readonly name?: string }[] };
    readonly conditions?: readonly Condition[];
  };
}

export interface NodeObject extends KubeObject {
  readonly status?: {
    readonly nodeInfo?: { readonly kubeletVersion?: string; readonly containerRuntimeVersion?: string };
  };
}

const POOL = {
  role: 'hosted',
  apiVersion: 'machineconfiguration.openshift.io/v1',
  kind: 'MachineConfigPool',
} as const;
const NODE = { role: 'hosted', apiVersion: 'v1', kind: 'Node' } as const;

/** The built-in pools, by name. */
export function readPools(reader: Reader): readonly Pool[] {
  const nodes = reader.list(NODE) as readonly NodeObject[];
  return (reader.list(POOL) as readonly PoolObject[])
    .filter(({ metadata }) => metadata.labels !== undefined && BUILT_IN in metadata.labels)
    .map((pool) => ({
      name: pool.metadata.name,
      rendered: renderedConfig(reader, pool),
      tooOld: nodes.filter((node) => isOf(pool, node)).flatMap(tooOld),
      rollout: rolloutOf(pool),
    }));
}

function isOf(pool: PoolObject, node: NodeObject): boolean {
  const selector = readSelector(pool.spec?.nodeSelector);
  return selector.ok && selects(selector.requirements, node.metadata.labels ?? {});
}

function renderedConfig(reader: Reader, pool: PoolObject): KubeObject | undefined {
  const name = pool.spec?.configuration?.name;
  return name === undefined ? undefined : reader.get({ ...POOL, kind: 'MachineConfig', name });
}

function rolloutOf(pool: PoolObject): Rollout {
  const isTrue = (type: string): boolean =>
    pool.status?.conditions?.some((condition) => condition.type === type && condition.status === 'True') ===
    true;
  if (isTrue('Degraded')) return 'Degraded';
  const wanted = machineConfigName(pool.metadata.name);
  const isIn = pool.status?.configuration?.source?.some(({ name }) => name === wanted) === true;
  if (isIn && isTrue('Updated')) return 'Done';
  return pool.spec?.paused === true ? 'Paused' : 'Progressing';
}

/** What a node runs that refuses the file; a node that does not say what it runs is not trusted with it. */
export function tooOld({ metadata, status }: NodeObject): readonly string[] {
  const kubelet = status?.nodeInfo?.kubeletVersion ?? 'unknown';
  const runtime = status?.nodeInfo?.containerRuntimeVersion ?? 'unknown';
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
export type KubeletUnit = string | undefined;

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
