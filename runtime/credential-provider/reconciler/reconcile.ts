/**
 * Renders `CRIOCredentialProviderConfig/cluster` into a MachineConfig per pool, or, for a hosted cluster, into the ConfigMap that
 * its NodePools refer to.
 *
 * A pool is rendered only when all its nodes accept the file: an older kubelet does not start with it. Until then what is
 * rendered stays. The file is validated by the kubelet's own rules before it is written.
 *
 * Source of the rule: requirement "CRIOCredentialProviderConfig"; the rendering of the Machine Config Operator.
 */

import type { KubeObject, OwnerReference } from '../../core/kubernetes/object.ts';
import {
  CONTROL_PLANE_NAMESPACE,
  HOSTED_CLUSTER_NAMESPACE,
  NODE_POOL_READ,
  type Reader,
  type Reconciler,
  type Result,
  type Watch,
} from '../../engine/contract.ts';
import { pullStatusRef } from '../../engine/pull-status.ts';
import { ignitionText } from '../../kube/ignition.ts';
import { parseShortYaml as parse } from '../../kube/yaml.ts';
import { type CredentialProviderConfig, decodeCredentialProviderConfig, kubeletRefusal } from '../config.ts';
import { readMatchImages } from '../kind.ts';
import { mergeCredentialProviderConfig } from '../merge.ts';
import type { NodeFile } from '../objects.ts';
import { parseReconcilerOptions, type ReconcilerOptions } from '../options.ts';
import { CONFIGS, CREDENTIAL_PROVIDER } from '../platform.ts';
import { SECRETS_ANNOTATION } from '../plugin/secrets.ts';
import {
  HOSTED_CONFIG,
  INFRASTRUCTURE,
  kubeletUnit,
  NODE,
  POOL,
  PROVIDER_MACHINE_CONFIG,
  poolFiles,
  type Target,
  takesFlags,
  targetsOf,
  unreachable,
} from '../pools.ts';
import { contestedOf, managerElsewhere } from './managed.ts';
import { namespaceRolesReconciler } from './namespace-roles.ts';
import { type NodeHold, type PoolState, reportNodes } from './report.ts';

const NAME = 'credential-provider';
const OBJECTS = CONFIGS.map((config) => ({ role: 'hosted' as const, ...config }));
const { kind: KIND, objectName: SINGLETON } = CREDENTIAL_PROVIDER;

const READS: readonly Watch[] = [
  ...OBJECTS.map((object): Watch => ({ ...object, optional: true })),
  { ...INFRASTRUCTURE, optional: true },
  NODE,
  { ...POOL, optional: true },
  { ...PROVIDER_MACHINE_CONFIG, optional: true },
  NODE_POOL_READ,
  {
    ...HOSTED_CONFIG,
    namespace: HOSTED_CLUSTER_NAMESPACE,
    labelSelector: `pullwright.dev/owner=${NAME}`,
  },
  {
    ...pullStatusRef('management', { kind: KIND, name: SINGLETON, namespace: CONTROL_PLANE_NAMESPACE }),
    optional: true,
  },
];

/** Builds the reconcilers from their part of the configuration. */
export function reconcilers(raw: Readonly<Record<string, unknown>>): readonly Reconciler[] {
  const options = parseReconcilerOptions(raw);
  // For the reconciler's own cluster only: Roles of hosted clusters are rendered by the charts.
  const { namespaces } = options('');
  return [
    credentialProviderReconciler(options),
    ...(namespaces === undefined ? [] : [namespaceRolesReconciler(namespaces)]),
  ];
}

/** One request: the object is a singleton. */
export function credentialProviderReconciler(options: (scope: string) => ReconcilerOptions): Reconciler {
  return {
    name: NAME,
    watches: READS,
    requestsFor: (_changed, reader) => [{ scope: reader.scope.name, name: SINGLETON }],
    reconcile: (reader) => reconcile(reader, options(reader.scope.name)),
  };
}

function reconcile(reader: Reader, options: ReconcilerOptions): Result {
  const object = OBJECTS.map((one) => reader.get(one)).find((one) => one !== undefined);
  // Deleted: garbage collection by owner references and pruning by the engine remove what was rendered.
  if (object === undefined || object.metadata.deletionTimestamp !== undefined) return {};
  const targets = targetsOf(reader, options);
  const elsewhere = managerElsewhere(
    options.mode,
    object,
    targets.map(({ present }) => present),
  );
  const input = readMatchImages(object);
  const states = targets.map((target) => stateOf(reader, object, target, input.patterns, options));
  return reportNodes({ reader, object, states, input, elsewhere, options });
}

function stateOf(
  reader: Reader,
  object: KubeObject,
  target: Target,
  patterns: readonly string[],
  options: ReconcilerOptions,
): PoolState {
  const { pool, platform, present } = target;
  const { config, verdicts } = mergeCredentialProviderConfig(templateOf(target), patterns, {
    optionalAnnotationKeys: options.secretAnnotation ? [SECRETS_ANNOTATION] : [],
  });
  const unit = kubeletUnit(pool);
  const isPlaceless = config !== undefined && target.unclear === undefined && !takesFlags(platform, unit);
  const files = isPlaceless ? [] : poolFiles(platform, config);
  const wanted = target.make(files, ownerOf(object));
  const contested = contestedOf(reader, object, present, wanted);
  return {
    ...target,
    verdicts,
    files,
    wanted,
    hold: holdOf(target, files, contested),
    warning: files.length > 0 ? unreachable(reader, target) : undefined,
    noPlace: isPlaceless ? NO_PLACE : undefined,
  };
}

const NO_PLACE = `its kubelet's unit does not read ${CREDENTIAL_PROVIDER.dropInVariable}, and a copied command would break the kubelet when a release changes it. Use your own MachineConfig to put $${CREDENTIAL_PROVIDER.dropInVariable} at the end of the command`;

/** Why the rendered object stays unchanged; undefined when the files may be written. */
function holdOf(
  { pool, platform, unclear }: Target,
  files: readonly NodeFile[],
  takenBy: string | undefined,
): NodeHold | undefined {
  if (files.length > 0 && unclear !== undefined) return { reason: 'PlatformUnclear', message: unclear };
  const file = files.find(({ path }) => path === platform.path);
  const refusal = file && kubeletRefusal(file.text, parse);
  if (refusal !== undefined)
    return { reason: 'KubeletRefuses', message: `the kubelet would reject the file: ${refusal}` };
  if (pool.tooOld.length > 0 && files.length > 0)
    return { reason: 'UnsupportedVersion', message: pool.tooOld.join(', ') };
  if (takenBy === undefined) return undefined;
  return {
    reason: 'Contested',
    message: `${takenBy} overwrote Pullwright's files; they stay unchanged until the entries change. Set mode to observe, or stop ${takenBy}`,
  };
}

/** The platform's file without our provider: from the pool's rendered config, else the platform's default. */
function templateOf({ pool, platform }: Target): CredentialProviderConfig | undefined {
  const text = ignitionText(pool.rendered, platform.path);
  const decoded = text === undefined ? undefined : decodeCredentialProviderConfig(text, parse);
  const found = decoded?.ok === true ? decoded.config : platform.template;
  const providers = found?.providers?.filter(({ name }) => name !== CREDENTIAL_PROVIDER.name) ?? [];
  return found === undefined || providers.length === 0 ? undefined : { ...found, providers };
}

function ownerOf({ apiVersion, kind, metadata }: KubeObject): OwnerReference | undefined {
  return metadata.uid === undefined
    ? undefined
    : { apiVersion, kind, name: metadata.name, uid: metadata.uid };
}
