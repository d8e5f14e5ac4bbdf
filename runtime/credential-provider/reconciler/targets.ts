/** What is rendered and where it goes: a MachineConfig per pool, or the one ConfigMap of a hosted cluster. */
import { executableParts, type OwnExecutable } from '../../../charts/credential-provider/executable.ts';
import {
  hostedConfigMap,
  hostedConfigMapName,
} from '../../../charts/credential-provider/hosted-config-map.ts';
import {
  machineConfig,
  machineConfigName,
  type NodeFile,
} from '../../../charts/credential-provider/machine-config.ts';
import type { Apply, Ref, Scope, World } from '../../controller/contract.ts';
import {
  CREDENTIAL_PROVIDER,
  type PlatformFile,
  platformFile,
} from '../../rules/credential-provider/platform.ts';
import type { KubeObject, OwnerReference } from '../../rules/kubernetes/object.ts';
import { kubeletPointers } from '../installer/plan.ts';
import { type Pool, type Rollout, readPools } from '../pools.ts';
import { unitText } from './ignition-files.ts';
import { type NodePool, readNodePools } from './node-pools.ts';

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

/** What a hosted cluster's nodes get beside the kubelet's file. */
export type HostedExecutable = Omit<OwnExecutable, 'pools'>;

/** All of them; none where there are no pools. `assumed`: the platform where the cluster does not say. */
export function targetsOf(
  world: World,
  assumed: string | undefined,
  executable?: HostedExecutable,
): readonly Target[] {
  const type = platformOf(world) ?? assumed;
  const platform = platformFile(type ?? 'None');
  const unclear =
    type === undefined
      ? `${world.get(INFRASTRUCTURE) === undefined ? 'Infrastructure/cluster is not there' : 'the status of Infrastructure/cluster names no platform'}, so it cannot be told which file the kubelets read: bring it, or set the option "platform" of the section credential-provider`
      : undefined;
  const { hostedCluster } = world.scope;
  if (hostedCluster !== undefined)
    return [hostedTarget(world, hostedCluster, { platform, unclear }, executable)];
  return readPools(world).map((pool) => {
    const ref: Ref = { ...PROVIDER_MACHINE_CONFIG, name: machineConfigName(pool.name) };
    return {
      pool,
      ...fileOfUnit(pool, platform, unclear),
      present: world.get(ref),
      make: (files, owner) =>
        machineConfig({ pool: pool.name, files, ...(owner === undefined ? {} : { owner }) }),
      ref,
      nodePools: [],
    };
  });
}

function platformOf(world: World): string | undefined {
  const status = world.get(INFRASTRUCTURE)?.status as
    | { readonly platformStatus?: { readonly type?: string }; readonly platform?: string }
    | undefined;
  const type = status?.platformStatus?.type ?? status?.platform;
  return type === '' ? undefined : type;
}

/** The pool's own kubelet unit says best where its kubelet looks. */
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
  world: World,
  hosted: NonNullable<Scope['hostedCluster']>,
  file: Pick<Target, 'platform' | 'unclear'>,
  executable: HostedExecutable | undefined,
): Target {
  const name = hostedConfigMapName(hosted.name);
  const { pools, strayOld } = readNodePools(world, hosted, name);
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
    present: world.get(ref),
    make: (files) => hostedConfigMap(hosted, hostedMachineConfig(pool.name, files, executable)),
    ref,
    nodePools: pools,
  };
}

/** NodePools refer to one ConfigMap, so that our executable comes in it. Without a file the kubelet asks no provider. */
function hostedMachineConfig(
  pool: string,
  files: readonly NodeFile[],
  executable: HostedExecutable | undefined,
): KubeObject {
  if (executable === undefined || files.length === 0) return machineConfig({ pool, files });
  const own = executableParts(executable);
  return machineConfig({ pool, files: [...files, ...own.files], units: own.units });
}

function rolloutOf(pools: readonly NodePool[]): Rollout {
  const worst = pools.find(({ refers, rollout }) => refers && rollout === 'Degraded');
  if (worst !== undefined) return 'Degraded';
  const isDone = pools.length > 0 && pools.every(({ refers, rollout }) => refers && rollout === 'Done');
  return isDone ? 'Done' : 'Progressing';
}

/** `make` as the engine takes it. */
export function applyOf({ ref }: Target, object: KubeObject, adopt: boolean): Apply {
  return { role: ref.role, object, ...(adopt ? { adopt } : {}) };
}

/** Platforms whose kubelet unit takes the flags from the variable; of a hosted cluster the unit itself cannot be seen. */
const WITH_VARIABLE: ReadonlySet<string> = new Set(['BareMetal', 'OpenStack', 'VSphere', 'Ovirt', 'Nutanix']);

/** Why the drop-in of a hosted cluster may not reach its kubelets; undefined when it does. */
export function unreachable(world: World, { platform, nodePools }: Target): string | undefined {
  const type = platformOf(world) ?? 'None';
  if (nodePools.length === 0 || platform.isKnownToKubelet || WITH_VARIABLE.has(type)) return undefined;
  return `the kubelet's unit on platform ${type} is not known to read ${CREDENTIAL_PROVIDER.dropInVariable}, and the unit of a hosted cluster cannot be seen from here: look at the flags of a kubelet before you rely on it`;
}
