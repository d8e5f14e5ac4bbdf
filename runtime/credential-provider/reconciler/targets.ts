/** What is rendered and where it goes: a MachineConfig per pool, or the one ConfigMap of a hosted cluster. */
import { gunzipSync } from 'node:zlib';
import type { KubeObject, OwnerReference } from '../../core/kubernetes/object.ts';
import type { ClusterPair, Reader, Ref } from '../../engine/contract.ts';
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
import { type Pool, type Rollout, readPools } from '../pools.ts';
import { type NodePool, readNodePools } from './node-pools.ts';

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
