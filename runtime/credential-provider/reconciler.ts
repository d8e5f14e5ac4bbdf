/**
 * `CRIOCredentialProviderConfig/cluster` into a MachineConfig per pool, or, for a hosted cluster, into the ConfigMap that its
 * NodePools refer to.
 *
 * A pool is rendered only when every node of it takes the file: an older kubelet refuses it and does not start. What is
 * rendered already stays then. The file is held against the kubelet's own rules before it is written.
 *
 * Source of the rule: requirement "CRIOCredentialProviderConfig"; the rendering of the Machine Config Operator.
 */

import { hostedConfigMap, hostedConfigMapName } from '../../charts/credential-provider/hosted-config-map.ts';
import {
  MACHINE_CONFIG_API_VERSION,
  machineConfig,
  machineConfigName,
  type NodeFile,
} from '../../charts/credential-provider/machine-config.ts';
import {
  type Apply,
  CONTROL_PLANE_NAMESPACE,
  HOSTED_CLUSTER_NAMESPACE,
  type Outcome,
  type Read,
  type Reconciler,
  type Ref,
  type World,
} from '../controller/contract.ts';
import { parseYaml as parse } from '../kube/yaml.ts';
import {
  type CredentialProviderConfig,
  decodeCredentialProviderConfig,
} from '../rules/credential-provider-config.ts';
import { kubeletRefusal } from '../rules/credential-provider-config-check.ts';
import { type MatchImageVerdict, mergeCredentialProviderConfig } from '../rules/credential-provider-merge.ts';
import {
  CREDENTIAL_PROVIDER,
  type PlatformFile,
  platformFile,
} from '../rules/credential-provider-platform.ts';
import type { KubeObject, OwnerReference } from '../rules/kube-object.ts';
import { PULL_STATUS_API_VERSION, PULL_STATUS_KIND, pullStatusName } from '../rules/pull-status.ts';
import { fileText, unitText } from './ignition-files.ts';
import { oldNodes, type Pool, readPools } from './pools.ts';
import { parseReconcilerOptions, type ReconcilerOptions } from './reconciler-options.ts';
import { poolFiles } from './render.ts';
import { managerElsewhere, type PoolState, report } from './report.ts';
import { SECRETS_ANNOTATION } from './secrets.ts';

const NAME = 'credential-provider';
const OBJECT = {
  role: 'hosted',
  kind: CREDENTIAL_PROVIDER.kind,
  name: CREDENTIAL_PROVIDER.objectName,
} as const;
const VERSIONS = ['v1', 'v1alpha1'].map((version) => `${CREDENTIAL_PROVIDER.group}/${version}`);
const INFRASTRUCTURE = {
  role: 'hosted',
  apiVersion: 'config.openshift.io/v1',
  kind: 'Infrastructure',
  name: 'cluster',
} as const;
const MACHINE_CONFIG = {
  role: 'hosted',
  apiVersion: MACHINE_CONFIG_API_VERSION,
  kind: 'MachineConfig',
} as const;

const READS: readonly Read[] = [
  ...VERSIONS.map((apiVersion): Read => ({ ...OBJECT, apiVersion, optional: true })),
  { ...INFRASTRUCTURE, optional: true },
  { role: 'hosted', apiVersion: 'v1', kind: 'Node' },
  { ...MACHINE_CONFIG, kind: 'MachineConfigPool', optional: true },
  { ...MACHINE_CONFIG, optional: true },
  {
    role: 'management',
    apiVersion: 'v1',
    kind: 'ConfigMap',
    namespace: HOSTED_CLUSTER_NAMESPACE,
    labelSelector: `pullwright.dev/owner=${NAME}`,
  },
  {
    role: 'management',
    apiVersion: PULL_STATUS_API_VERSION,
    kind: PULL_STATUS_KIND,
    namespace: CONTROL_PLANE_NAMESPACE,
    name: pullStatusName(CREDENTIAL_PROVIDER.kind, CREDENTIAL_PROVIDER.objectName),
    optional: true,
  },
];

/** Makes the reconciler from its part of the configuration. */
export function reconcilers(raw: Readonly<Record<string, unknown>>): readonly Reconciler[] {
  return [credentialProviderReconciler(parseReconcilerOptions(raw))];
}

/** One key: the object is a singleton. */
export function credentialProviderReconciler(options: ReconcilerOptions): Reconciler {
  return {
    name: NAME,
    reads: READS,
    keysFor: (_changed, world) => [{ scope: world.scope.name, name: CREDENTIAL_PROVIDER.objectName }],
    reconcile: (world) => reconcile(world, options),
  };
}

function reconcile(world: World, options: ReconcilerOptions): Outcome {
  const object = VERSIONS.map((apiVersion) => world.get({ ...OBJECT, apiVersion })).find(
    (one) => one !== undefined,
  );
  // Deleted: what was rendered goes, by the owner references and because the engine prunes.
  if (object === undefined || object.metadata.deletionTimestamp !== undefined) return {};
  const targets = targetsOf(world, options);
  const states = targets.map((target) => stateOf(target, object, options));
  const elsewhere = managerElsewhere(
    options.mode,
    object,
    targets.map(({ present }) => present),
  );
  return report({
    world,
    object,
    states,
    elsewhere,
    isServed: targets.length > 0,
    ...(elsewhere === undefined ? split(states) : { apply: [], keep: [] }),
  });
}

/** What is rendered, and where it goes: one per pool, or the one ConfigMap of a hosted cluster. */
interface Target {
  readonly pool: Pool;
  readonly platform: PlatformFile;
  readonly present: KubeObject | undefined;
  /** The object with these files. */
  readonly make: (files: readonly NodeFile[], owner: OwnerReference | undefined) => Apply;
  readonly ref: Ref;
}

function targetsOf(world: World, options: ReconcilerOptions): readonly Target[] {
  const platform = platformFile(platformOf(world) ?? options.platform);
  const hosted = world.scope.hostedCluster;
  if (hosted !== undefined) {
    const pool: Pool = {
      name: 'worker',
      rendered: undefined,
      tooOld: oldNodes(world),
      rollout: 'Progressing',
    };
    const ref: Ref = {
      role: 'management',
      apiVersion: 'v1',
      kind: 'ConfigMap',
      namespace: hosted.namespace,
      name: hostedConfigMapName(hosted.name),
    };
    const make = (files: readonly NodeFile[]): Apply => ({
      role: 'management',
      object: hostedConfigMap(hosted, machineConfig({ pool: pool.name, files })),
    });
    return [{ pool, platform, present: world.get(ref), make, ref }];
  }
  return readPools(world).map((pool) => {
    const ref: Ref = { ...MACHINE_CONFIG, name: machineConfigName(pool.name) };
    const make = (files: readonly NodeFile[], owner: OwnerReference | undefined): Apply => ({
      role: 'hosted',
      object: machineConfig({ pool: pool.name, files, ...(owner === undefined ? {} : { owner }) }),
    });
    return { pool, platform, present: world.get(ref), make, ref };
  });
}

function platformOf(world: World): string | undefined {
  const status = world.get(INFRASTRUCTURE)?.status as
    | { readonly platformStatus?: { readonly type?: string }; readonly platform?: string }
    | undefined;
  return status?.platformStatus?.type ?? status?.platform;
}

interface State extends PoolState {
  readonly target: Target;
  readonly apply: Apply | undefined;
}

function stateOf(target: Target, object: KubeObject, options: ReconcilerOptions): State {
  const { pool, platform, present } = target;
  const spec = object.spec as { readonly matchImages?: readonly string[] } | undefined;
  const { config, verdicts } = mergeCredentialProviderConfig(templateOf(target), spec?.matchImages ?? [], {
    optionalAnnotationKeys: options.secretAnnotation ? [SECRETS_ANNOTATION] : [],
  });
  const files = poolFiles(platform, config, unitText(pool.rendered, 'kubelet.service'));
  const refusal = refusalOf(files, platform);
  const isHeld = refusal !== undefined || (pool.tooOld.length > 0 && files.length > 0);
  const apply = isHeld ? undefined : target.make(files, ownerOf(object));
  return {
    target,
    pool,
    verdicts: verdicts satisfies readonly MatchImageVerdict[],
    refusal,
    files,
    present,
    apply,
  };
}

/** The platform's file without our part: from the pool's own rendering, else as the platform is known to make it. */
function templateOf({ pool, platform }: Target): CredentialProviderConfig | undefined {
  const text = fileText(pool.rendered, platform.path);
  const decoded = text === undefined ? undefined : decodeCredentialProviderConfig(text, parse);
  const found = decoded?.ok === true ? decoded.config : platform.template;
  const providers = found?.providers?.filter(({ name }) => name !== CREDENTIAL_PROVIDER.name) ?? [];
  return found === undefined || providers.length === 0 ? undefined : { ...found, providers };
}

function refusalOf(files: readonly NodeFile[], platform: PlatformFile): string | undefined {
  const file = files.find(({ path }) => path === platform.path);
  return file === undefined ? undefined : kubeletRefusal(file.text, parse);
}

function ownerOf({ apiVersion, kind, metadata }: KubeObject): OwnerReference | undefined {
  return metadata.uid === undefined
    ? undefined
    : { apiVersion, kind, name: metadata.name, uid: metadata.uid };
}

function split(states: readonly State[]): {
  readonly apply: readonly Apply[];
  readonly keep: readonly Ref[];
} {
  return {
    apply: states.flatMap(({ apply }) => (apply === undefined ? [] : [apply])),
    keep: states.filter(({ apply }) => apply === undefined).map(({ target }) => target.ref),
  };
}
