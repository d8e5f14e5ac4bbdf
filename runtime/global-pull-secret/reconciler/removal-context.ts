/** What decides about a removal besides the documents: the release payload, the confirmations, and what was held before. */
import {
  HOSTED_CLUSTER_NAME,
  HOSTED_CLUSTER_NAMESPACE,
  type Read,
  type Ref,
  type World,
} from '../../controller/contract.ts';
import { parseImageReference } from '../../rules/auth-lookup/image-reference.ts';
import { GLOBAL_PULL_SECRET as NAMES } from '../../rules/kubernetes/global-pull-secret.ts';
import type { KubeObject } from '../../rules/kubernetes/object.ts';
import type { RemovalContext } from './platform.ts';
import { PLATFORM_STATUS } from './platform-report.ts';
import { CONFIRM_ANNOTATION, type RemovalOptions } from './removal-guard.ts';

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

export const REMOVAL_READS: readonly Read[] = [
  { ...HOSTED_CLUSTER, namespace: HOSTED_CLUSTER_NAMESPACE, name: HOSTED_CLUSTER_NAME, optional: true },
  { ...CLUSTER_VERSION, optional: true },
];

/** Gathers it from the world. */
export function removalContext(world: World, options: RemovalOptions = {}): RemovalContext {
  const { hostedCluster, controlPlaneNamespace } = world.scope;
  const cluster =
    hostedCluster === undefined ? undefined : world.get({ ...HOSTED_CLUSTER, ...hostedCluster });
  const platform = world.get({
    role: 'management',
    apiVersion: 'v1',
    kind: 'Secret',
    namespace: controlPlaneNamespace,
    name: NAMES.platform,
  });
  const held = heldBefore(world.get(PLATFORM_STATUS));
  return {
    release: releaseRepository(cluster, world.get(CLUSTER_VERSION)),
    confirmed: [cluster, platform]
      .map((object) => object?.metadata.annotations?.[CONFIRM_ANNOTATION])
      .filter((value) => typeof value === 'string'),
    ...(held === undefined ? {} : { held }),
    options,
    now: world.now,
  };
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

function heldBefore(status: KubeObject | undefined): RemovalContext['held'] {
  const summary = (status?.status as { readonly summary?: Readonly<Record<string, unknown>> } | undefined)
    ?.summary;
  const { heldRemoval: hash, heldSince: since } = summary ?? {};
  if (typeof hash !== 'string' || typeof since !== 'string' || Number.isNaN(Date.parse(since)))
    return undefined;
  return { hash, since };
}
