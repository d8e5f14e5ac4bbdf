/**
 * The catalogs of one hosted cluster: which images they take, and the objects that say so.
 *
 * An override of a whole registry with a path means one thing to HyperShift and another in its documentation: the place of
 * HyperShift is asked first, then the documented one, newest version first, the registry of the catalog after all mirrors. An
 * answer that is not known changes nothing.
 */
import {
  CATALOG_CONTAINERS,
  CATALOG_STREAM,
  catalogImageStream,
  catalogSource,
  catalogsRunBesideControlPlane,
  catalogTriggers,
  TRIGGERS_ANNOTATION,
} from '../../charts/registry-overrides/objects.ts';
import type { Apply, Need, Ref, World } from '../controller/contract.ts';
import {
  isOwnershipUnknown,
  OWNERSHIP_UNKNOWN,
  type OwnershipMode,
  observedIn,
} from '../rules/kubernetes/hypershift-operators.ts';
import type { KubeObject } from '../rules/kubernetes/object.ts';
import type { Verdict } from '../rules/kubernetes/pull-status.ts';
import { type Catalog, catalogsOf } from '../rules/registry-overrides/olm-catalogs.ts';
import { type Chosen, type ClusterSpec, choose, pinned, versionOf } from './catalog-images.ts';
import { deploymentRef } from './deployments.ts';

export interface CatalogPlan {
  readonly apply: readonly Apply[];
  readonly keep: readonly Ref[];
  readonly needs: readonly Need[];
  readonly verdicts: readonly Verdict[];
  /** Why the annotations cannot be used; a person must act. */
  readonly error?: string;
}

/** For hosted clusters whose catalogs are not looked after. */
export const NO_CATALOGS: CatalogPlan = { apply: [], keep: [], needs: [], verdicts: [] };
const MARKETPLACE = 'openshift-marketplace';
const CATALOG_SOURCE = { apiVersion: 'operators.coreos.com/v1alpha1', kind: 'CatalogSource' } as const;

export const STREAM: Omit<Ref, 'namespace'> = {
  role: 'management',
  apiVersion: 'image.openshift.io/v1',
  kind: 'ImageStream',
  name: CATALOG_STREAM,
};

/** Plans the catalogs of `cluster`. Bad annotations change nothing: what is there stays, and the error is said. */
export function planCatalogs(
  world: World,
  cluster: KubeObject,
  mode: OwnershipMode,
  ask: boolean,
): CatalogPlan {
  const spec = (cluster.spec ?? {}) as ClusterSpec;
  const placement = spec.olmCatalogPlacement === 'guest' ? 'guest' : 'management';
  const off = spec.configuration?.operatorhub?.disableAllDefaultSources === true;
  if (placement === 'management' && !catalogsRunBesideControlPlane(placement, off)) return NO_CATALOGS;
  const catalogs = catalogsOf(versionOf(cluster));
  const chosen = choose(world, cluster, catalogs, { judgeOnly: mode === 'observe', ask });
  const kept = keptObjects(world);
  if (chosen === undefined) return { ...NO_CATALOGS, keep: kept };
  if ('error' in chosen) return { ...NO_CATALOGS, keep: kept, error: chosen.error };
  const base = { needs: chosen.needs, verdicts: chosen.verdicts };
  if (!chosen.complete) return { ...NO_CATALOGS, ...base, keep: kept };
  if (placement === 'guest')
    return { ...NO_CATALOGS, ...base, ...guestObjects(world, off ? [] : catalogs, chosen, mode) };
  return { ...NO_CATALOGS, ...base, ...managementObjects(world, catalogs, chosen, mode) };
}

/** What is there stays while it is not known what should be in it. */
function keptObjects(world: World): readonly Ref[] {
  const stream = { ...STREAM, namespace: world.scope.controlPlaneNamespace };
  const sources = world.list({ role: 'hosted', ...CATALOG_SOURCE, namespace: MARKETPLACE }).map(
    ({ metadata }): Ref => ({
      role: 'hosted',
      ...CATALOG_SOURCE,
      namespace: MARKETPLACE,
      name: metadata.name,
    }),
  );
  return [...(world.get(stream) === undefined ? [] : [stream]), ...sources];
}

function managementObjects(
  world: World,
  catalogs: readonly Catalog[],
  chosen: Chosen,
  mode: OwnershipMode,
): Pick<CatalogPlan, 'apply' | 'verdicts'> {
  const { apiVersion, kind } = STREAM;
  const hasStreams = world.serves({ role: 'management', apiVersion, kind });
  const streamed = catalogStreamWanted(hasStreams, chosen.annotated);
  const namespace = world.scope.controlPlaneNamespace;
  const stream = world.get({ ...STREAM, namespace });
  const apply: Apply[] = [];
  const verdicts = [...chosen.verdicts];
  /** Whether an object is ours to write; that nobody can tell is said. */
  const isOurs = (subject: string, object: KubeObject | undefined): boolean => {
    const isUnknown = isOwnershipUnknown(mode, object);
    if (isUnknown) verdicts.push(unknown(subject));
    return !isUnknown && observedIn(mode, object) === undefined;
  };
  if (streamed && isOurs(`ImageStream/${CATALOG_STREAM}`, stream))
    apply.push({
      role: 'management',
      object: catalogImageStream(namespace, chosen.images),
      adopt: mode === 'own',
    });
  for (const catalog of catalogs) {
    const ref = deploymentRef(world, `${catalog.name}-catalog`);
    const deployment = world.get(ref);
    if (deployment?.metadata.uid === undefined || !isOurs(`Deployment/${ref.name}`, deployment)) continue;
    const part = { ...ref, uid: deployment.metadata.uid };
    const image = streamed ? undefined : pinned(world, chosen, catalog.name);
    apply.push({ part, fields: catalogFields(deployment, catalog.name, image), take: mode === 'own' });
    if (image !== undefined && !hasImage(deployment, image)) verdicts.push(notInPlace(ref.name, image));
  }
  return { apply, verdicts };
}

function hasImage(deployment: KubeObject, image: string): boolean {
  const containers = podSpecOf(deployment)?.containers ?? [];
  return containers.every(
    ({ name, image: present }) => name !== CATALOG_CONTAINERS.container || present === image,
  );
}

function unknown(subject: string): Verdict {
  return { subject, verdict: 'Pending', reason: 'OwnershipUnknown', message: OWNERSHIP_UNKNOWN };
}

function notInPlace(name: string, image: string): Verdict {
  const message = `its containers do not have ${image} yet; if this stays, another manager claims the field, and the events say which: choose mode "own", or let it give the field up`;
  return { subject: `Deployment/${name}`, verdict: 'Pending', reason: 'ImageNotInPlace', message };
}

/** Without an image, the Deployment follows the stream; with one, it has no trigger and the image in both containers. */
function catalogFields(
  deployment: KubeObject,
  name: string,
  image: string | undefined,
): { readonly metadata?: Partial<KubeObject['metadata']>; readonly spec?: unknown } {
  const triggers = (value: unknown): Partial<KubeObject['metadata']> => ({
    annotations: { [TRIGGERS_ANNOTATION]: JSON.stringify(value) },
  });
  if (image === undefined) return { metadata: triggers(catalogTriggers(name)) };
  const pod = podSpecOf(deployment);
  const containers = named(pod?.containers, CATALOG_CONTAINERS.container, image);
  const initContainers = named(pod?.initContainers, CATALOG_CONTAINERS.initContainer, image);
  return {
    // Server-side apply cannot take away what another manager set: an empty list is no trigger.
    ...(TRIGGERS_ANNOTATION in (deployment.metadata.annotations ?? {}) ? { metadata: triggers([]) } : {}),
    spec: { template: { spec: { ...containers('containers'), ...initContainers('initContainers') } } },
  };
}

function podSpecOf(deployment: KubeObject): PodSpec | undefined {
  return (deployment.spec as { template?: { spec?: PodSpec } } | undefined)?.template?.spec;
}

interface PodSpec {
  readonly containers?: readonly { readonly name?: string; readonly image?: string }[];
  readonly initContainers?: readonly { readonly name?: string }[];
}

/** Only a container that is there gets an image: applying would otherwise make one. */
function named(
  list: readonly { readonly name?: string }[] | undefined,
  name: string,
  image: string,
): (field: string) => Readonly<Record<string, unknown>> {
  const there = list?.some((container) => container.name === name) === true;
  return (field) => (there ? { [field]: [{ name, image }] } : {});
}

/** In the hosted cluster the pods run there; a CatalogSource names the image. */
function guestObjects(
  world: World,
  catalogs: readonly Catalog[],
  chosen: Chosen,
  mode: OwnershipMode,
): Pick<CatalogPlan, 'apply' | 'verdicts'> {
  const verdicts = [...chosen.verdicts];
  const apply = catalogs.flatMap((catalog): Apply[] => {
    const image = chosen.images[catalog.name] ?? '';
    const object = catalogSource(catalog, { placement: 'guest', image });
    const { apiVersion, kind } = object;
    if (!world.serves({ role: 'hosted', apiVersion, kind })) return [];
    const ref: Ref = { role: 'hosted', apiVersion, kind, namespace: MARKETPLACE, name: catalog.name };
    const present = world.get(ref);
    if (isOwnershipUnknown(mode, present)) verdicts.push(unknown(`CatalogSource/${catalog.name}`));
    if (isOwnershipUnknown(mode, present) || observedIn(mode, present) !== undefined) return [];
    return [{ role: 'hosted', object, adopt: mode === 'own' }];
  });
  return { apply, verdicts };
}

/**
 * Whether the ImageStream `catalogs` should exist: only where the cluster has the API and no catalog image is set by annotation.
 * The existing system looks at the annotation of one catalog; since all or none must be set, any of them says the same.
 */
export function catalogStreamWanted(hasImageStreams: boolean, imagesAreSet: boolean): boolean {
  return hasImageStreams && !imagesAreSet;
}
