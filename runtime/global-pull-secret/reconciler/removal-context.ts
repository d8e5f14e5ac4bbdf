/** What decides about a removal or a takeover besides the objects: the release payload, the platform, the confirmations. */
import {
  HOSTED_CLUSTER_NAME,
  HOSTED_CLUSTER_NAMESPACE,
  type Read,
  type Ref,
  type World,
} from '../../controller/contract.ts';
import { parseImageReference } from '../../rules/auth-lookup/image-reference.ts';
import {
  CONFIRM_REMOVAL,
  confirmedRemovals,
  type HeldEntryRemoval,
  type RemovalOptions,
} from '../../rules/docker-config/removal-guard.ts';
import { GLOBAL_PULL_SECRET as NAMES } from '../../rules/kubernetes/global-pull-secret.ts';
import type { KubeObject } from '../../rules/kubernetes/object.ts';
import type { RemovalContext } from './platform.ts';
import { PLATFORM_STATUS } from './platform-report.ts';
import { TAKEOVER_ANNOTATION, type TakeoverContext } from './takeover.ts';

const HOSTED_CLUSTER = {
  role: 'management',
  apiVersion: 'hypershift.openshift.io/v1beta1',
  kind: 'HostedCluster',
} as const;
const CLUSTER_VERSION = {
  role: 'hosted',
  apiVersion: 'config.openshift.io/v1',
  kind: 'ClusterVersion',
  name: 'version',
} as const;

const COPY: Ref = {
  role: 'hosted',
  apiVersion: 'v1',
  kind: 'Secret',
  namespace: NAMES.namespace,
  name: NAMES.original,
};

export const REMOVAL_READS: readonly Read[] = [
  { ...HOSTED_CLUSTER, namespace: HOSTED_CLUSTER_NAMESPACE, name: HOSTED_CLUSTER_NAME, optional: true },
  { ...CLUSTER_VERSION, optional: true },
];

/** Gathers it from the world. */
export function removalContext(world: World, options: RemovalOptions = {}): RemovalContext {
  const held = heldBefore(world);
  return {
    release: releaseRepository(hostedClusterOf(world), world.get(CLUSTER_VERSION)),
    confirmed: confirmations(world, CONFIRM_REMOVAL).flatMap(confirmedRemovals),
    ...(held === undefined ? {} : { held }),
    options,
    now: world.now,
  };
}

/** What decides about taking over the objects of others. */
export function takeoverContext(world: World): TakeoverContext {
  const spec = hostedClusterOf(world)?.spec as
    | { readonly platform?: { readonly type?: unknown } }
    | undefined;
  const type = spec?.platform?.type;
  return {
    platform: typeof type === 'string' ? type : undefined,
    confirmed: confirmations(world, TAKEOVER_ANNOTATION),
  };
}

function hostedClusterOf(world: World): KubeObject | undefined {
  const { hostedCluster } = world.scope;
  return hostedCluster === undefined ? undefined : world.get({ ...HOSTED_CLUSTER, ...hostedCluster });
}

/** Values of an annotation where a person can confirm: on the HostedCluster, or on the platform's Secret. */
export function confirmations(world: World, annotation: string): readonly string[] {
  const namespace = world.scope.controlPlaneNamespace;
  const secret = world.get({
    role: 'management',
    apiVersion: 'v1',
    kind: 'Secret',
    namespace,
    name: NAMES.platform,
  });
  return [hostedClusterOf(world), secret]
    .map((object) => object?.metadata.annotations?.[annotation])
    .filter((value) => typeof value === 'string');
}

/** Where a person can do something about the platform's pull secret: the HostedCluster, or the Secret itself. */
export function platformOwner({ scope }: World): Ref {
  if (scope.hostedCluster !== undefined) return { ...HOSTED_CLUSTER, ...scope.hostedCluster };
  const { controlPlaneNamespace: namespace } = scope;
  return { role: 'management', apiVersion: 'v1', kind: 'Secret', namespace, name: NAMES.platform };
}

function releaseRepository(
  cluster: KubeObject | undefined,
  version: KubeObject | undefined,
): string | undefined {
  const spec = cluster?.spec as { readonly release?: { readonly image?: unknown } } | undefined;
  const status = version?.status as { readonly desired?: { readonly image?: unknown } } | undefined;
  const image = spec?.release?.image ?? status?.desired?.image;
  const parsed = typeof image === 'string' ? parseImageReference(image) : undefined;
  return parsed?.ok ? parsed.reference.repository : undefined;
}

/**
 * On the copy, beside the entries that stay: what is held, and since when. A report that somebody deletes takes nothing with it.
 */
export const HELD_ANNOTATION = 'pullwright.dev/held-removal';

/** Value of {@link HELD_ANNOTATION}. */
export function heldAnnotation({ hash, since }: HeldEntryRemoval): string {
  return `${hash} ${since}`;
}

function heldBefore(world: World): RemovalContext['held'] {
  const copy = world.get(COPY)?.metadata.annotations?.[HELD_ANNOTATION];
  const [hash, since] = typeof copy === 'string' ? copy.split(' ') : heldInReport(world);
  if (typeof hash !== 'string' || typeof since !== 'string' || Number.isNaN(Date.parse(since)))
    return undefined;
  return { hash, since };
}

/** Where versions before wrote it alone. */
function heldInReport(world: World): readonly unknown[] {
  const status = world.get(PLATFORM_STATUS)?.status as
    | { readonly summary?: Readonly<Record<string, unknown>> }
    | undefined;
  return [status?.summary?.['heldRemoval'], status?.summary?.['heldSince']];
}
