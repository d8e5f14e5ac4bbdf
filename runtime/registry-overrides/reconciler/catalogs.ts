/**
 * The catalogs of one hosted cluster: their images, and the objects that set them.
 *
 * An override of a whole registry with a path differs between HyperShift and its documentation: the pull source of HyperShift is
 * tried first, then the documented one, newest version first, then the catalog's own registry. While a look-up is pending nothing
 * changes.
 */

import {
  GLOBAL_PULL_SECRET,
  isOwnershipUnknown,
  OWNERSHIP_UNKNOWN,
  type OwnershipMode,
  observedIn,
} from '../../core/kubernetes/hypershift.ts';
import { type KubeObject, templateContainers } from '../../core/kubernetes/object.ts';
import type { EntryStatus } from '../../core/kubernetes/pull-status.ts';
import { recordsIn, textOf, valueAt } from '../../core/record.ts';
import type { Apply, Lookup, Reader, Ref } from '../../engine/contract.ts';
import { NOT_ASKED } from '../../engine/lookups.ts';
import {
  absenceFromError,
  CATALOG_CONTAINERS,
  CATALOG_STREAM,
  type Catalog,
  type CatalogAnswer,
  type CatalogState,
  catalogAnnotation,
  catalogCandidates,
  catalogImageStream,
  catalogSource,
  catalogsOf,
  catalogTriggers,
  chooseCandidate,
  chooseCatalogImages,
  IS_REGISTRY_OVERRIDES,
  parseCatalogOverrides,
  TRIGGERS_ANNOTATION,
} from '../olm-catalogs.ts';
import { deploymentRef } from './deployments.ts';

// The image of each catalog of a hosted cluster, from annotations and registries.
// A look-up uses the current pull secret of its hosted cluster, so that the result holds for the nodes of that cluster.

type Chosen = Readonly<ReturnType<typeof lookUp>>;

/** A look-up of an image, with the credentials that the nodes of the cluster have. */
type LookupOf = (image: string) => Lookup;

/** A version as the tag of a reference without digest. */
const VERSION_TAG = /:(\d+\.\d[^/:]*)$/;

/** Version of the release, from the status, else from the tag of the release image. */
function versionOf(cluster: KubeObject): string {
  const history = recordsIn(valueAt(cluster.status, 'version.history'));
  const reported = history.map(({ version }) => textOf(version)).find((version) => version !== '');
  const image = textOf(valueAt(cluster.spec, 'release.image'));
  return reported ?? VERSION_TAG.exec(image.split('@', 1)[0] ?? '')?.[1] ?? '';
}

/** Undefined without a decision. @param lookup undefined: validates the annotations only */
function choose(
  reader: Reader,
  cluster: KubeObject,
  catalogs: readonly Catalog[],
  lookup: LookupOf | undefined,
): Chosen | { readonly error: string } | undefined {
  const set = chooseCatalogImages(
    catalogs,
    Object.fromEntries(catalogs.map(({ name }) => [name, annotationOf(cluster, catalogAnnotation(name))])),
  );
  if (set.error !== undefined) return { error: set.error };
  if (set.images !== undefined)
    return {
      images: set.images,
      annotated: true,
      needs: [],
      verdicts: Object.entries(set.images).map(([subject, message]) => ({
        subject,
        verdict: 'Accepted',
        reason: 'Annotated',
        message,
      })),
    };
  return lookup && lookUp(reader, cluster, catalogs, lookup);
}

function annotationOf(cluster: KubeObject, name: string): string {
  return textOf(cluster.metadata.annotations?.[name]);
}

/** Images by the results of look-ups so far. */
function lookUp(reader: Reader, cluster: KubeObject, catalogs: readonly Catalog[], lookup: LookupOf) {
  const { overrides, ignored } = parseCatalogOverrides(annotationOf(cluster, IS_REGISTRY_OVERRIDES));
  const version = versionOf(cluster);
  const states = catalogs.map((catalog) => {
    const candidates = catalogCandidates(catalog, version, overrides);
    const state = chooseCandidate(catalog, candidates, (image) => answerOf(reader, lookup(image)));
    const mirrored = candidates.some(({ from }) => from === 'override');
    return { name: catalog.name, state, verdicts: verdictOf(catalog.name, state, mirrored) };
  });
  const images = Object.fromEntries(
    states.flatMap(({ name, state }) => ('image' in state ? [[name, state.image]] : [])),
  );
  const needs = states.flatMap(({ state }) => ('ask' in state ? [lookup(state.ask)] : []));
  const odd = ignored.map(
    (pair): EntryStatus => ({
      subject: IS_REGISTRY_OVERRIDES,
      verdict: 'Warning',
      reason: 'PairIgnored',
      message: `"${pair.slice(0, 100)}" has no effect: expected "source=destination"`,
    }),
  );
  return {
    /** Known images by catalog name. */
    images,
    /** Whether the annotations set them. */
    annotated: false,
    needs,
    verdicts: [...states.flatMap(({ verdicts }) => verdicts), ...odd],
  };
}

/** @param mirrored whether the annotation has a mirror for it */
function verdictOf(name: string, state: CatalogState, mirrored: boolean): readonly EntryStatus[] {
  if ('ask' in state) return [];
  if ('error' in state)
    return [{ subject: name, verdict: 'Rejected', reason: 'CatalogImageMissing', message: state.error }];
  const { image, from } = state;
  if (!mirrored || from === 'override')
    return [{ subject: name, verdict: 'Accepted', reason: 'Found', message: image }];
  const message = `${image} is used: no registry that ${IS_REGISTRY_OVERRIDES} names has the catalog`;
  return [{ subject: name, verdict: 'Warning', reason: 'FellBack', message }];
}

function answerOf(reader: Reader, need: Lookup): CatalogAnswer {
  const fact = reader.lookup(need);
  if (fact === undefined) return 'unknown';
  if (fact.ok) return 'there';
  if (fact.reason === NOT_ASKED) return 'unknown';
  return absenceFromError(fact.reason) ? 'absent' : 'failed';
}

/** The image by digest: as annotated, or as found. */
function pinned({ reader, chosen, lookup }: Placing, name: string): string {
  const image = chosen.images[name] ?? '';
  const fact = chosen.annotated ? undefined : reader.lookup(lookup(image));
  return fact?.ok === true ? `${image.replace(/:[^:/]*$/, '')}@${fact.value}` : image;
}

/** Input for building the objects. */
interface Placing {
  readonly reader: Reader;
  readonly mode: OwnershipMode;
  readonly chosen: Chosen;
  readonly lookup: LookupOf;
}

export interface CatalogPlan {
  readonly apply: readonly Apply[];
  readonly keep: readonly Ref[];
  readonly needs: readonly Lookup[];
  readonly verdicts: readonly EntryStatus[];
  /** Why the annotations are invalid. */
  readonly error?: string;
}

/** For hosted clusters whose catalogs are not reconciled. */
export const NO_CATALOGS: CatalogPlan = { apply: [], keep: [], needs: [], verdicts: [] };

export const CATALOG_SOURCES = {
  role: 'hosted',
  apiVersion: 'operators.coreos.com/v1alpha1',
  kind: 'CatalogSource',
  namespace: 'openshift-marketplace',
} as const;

export const STREAM: Omit<Ref, 'namespace'> = {
  role: 'management',
  apiVersion: 'image.openshift.io/v1',
  kind: 'ImageStream',
  name: CATALOG_STREAM,
};

/** Plans the catalogs of `cluster`. With invalid annotations the current objects stay, and the error is reported. */
export function planCatalogs(reader: Reader, cluster: KubeObject, mode: OwnershipMode, ask: boolean) {
  const isGuest = valueAt(cluster.spec, 'olmCatalogPlacement') === 'guest';
  const off = valueAt(cluster.spec, 'configuration.operatorhub.disableAllDefaultSources') === true;
  // With management placement, catalogs run only while default sources are enabled.
  if (!isGuest && off) return NO_CATALOGS;
  const catalogs = catalogsOf(versionOf(cluster));
  const pullSecret = { namespace: reader.scope.controlPlaneNamespace, name: GLOBAL_PULL_SECRET.platform };
  const lookup: LookupOf = (image) => ({
    kind: 'registry-digest',
    image,
    pullSecret,
    ...(ask ? { asked: true } : {}),
  });
  // In mode observe nothing is written, so look-ups are not needed.
  const chosen = choose(reader, cluster, catalogs, mode === 'observe' ? undefined : lookup);
  const kept = { ...NO_CATALOGS, keep: keptObjects(reader) };
  if (chosen === undefined) return kept;
  if ('error' in chosen) return { ...kept, error: chosen.error };
  const { needs, verdicts } = chosen;
  if (catalogs.some(({ name }) => chosen.images[name] === undefined)) return { ...kept, needs, verdicts };
  const placing = { reader, mode, chosen, lookup };
  const brought = isGuest ? guestObjects(placing, off ? [] : catalogs) : managementObjects(placing, catalogs);
  const apply = brought.apply.map((one) => ({ ...one, forceOwnership: mode === 'own' }));
  return { ...NO_CATALOGS, needs, apply, verdicts: [...verdicts, ...brought.verdicts] };
}

type Brought = Pick<CatalogPlan, 'apply' | 'verdicts'>;

/** Whether we may write an object; adds a verdict for an unknown owner. */
function isOurs({ mode }: Placing, subject: string, object: KubeObject | undefined, verdicts: EntryStatus[]) {
  const isUnknown = isOwnershipUnknown(mode, object);
  if (isUnknown)
    verdicts.push({ subject, verdict: 'Pending', reason: 'OwnershipUnknown', message: OWNERSHIP_UNKNOWN });
  return !isUnknown && observedIn(mode, object) === undefined;
}

/** Objects to retain while their desired content is unknown. */
function keptObjects(reader: Reader): readonly Ref[] {
  const stream = { ...STREAM, namespace: reader.scope.controlPlaneNamespace };
  const sources = reader
    .list(CATALOG_SOURCES)
    .map(({ metadata: { name } }) => ({ ...CATALOG_SOURCES, name }));
  return [...(reader.get(stream) === undefined ? [] : [stream]), ...sources];
}

function managementObjects(placing: Placing, catalogs: readonly Catalog[]): Brought {
  const { reader, chosen } = placing;
  const { apiVersion, kind } = STREAM;
  const streamed = !chosen.annotated && reader.serves({ role: 'management', apiVersion, kind });
  const namespace = reader.scope.controlPlaneNamespace;
  const stream = reader.get({ ...STREAM, namespace });
  const apply: Apply[] = [];
  const verdicts: EntryStatus[] = [];
  if (streamed && isOurs(placing, `ImageStream/${CATALOG_STREAM}`, stream, verdicts))
    apply.push({ role: 'management', object: catalogImageStream(namespace, chosen.images) });
  for (const catalog of catalogs) {
    const ref = deploymentRef(namespace, `${catalog.name}-catalog`);
    const deployment = reader.get(ref);
    if (deployment?.metadata.uid === undefined) continue;
    if (!isOurs(placing, `Deployment/${ref.name}`, deployment, verdicts)) continue;
    const part = { ...ref, uid: deployment.metadata.uid };
    const image = streamed ? undefined : pinned(placing, catalog.name);
    apply.push({ part, fields: catalogFields(deployment, catalog.name, image) });
    if (image !== undefined && !hasImage(deployment, image)) verdicts.push(notInPlace(ref.name, image));
  }
  return { apply, verdicts };
}

function hasImage(deployment: KubeObject, image: string): boolean {
  return templateContainers(deployment).every(
    ({ name, image: present }) => name !== CATALOG_CONTAINERS.container || present === image,
  );
}

function notInPlace(name: string, image: string): EntryStatus {
  const message = `its containers do not have ${image} yet; if this persists, another field manager owns the field (see events): choose mode "own", or make it release the field`;
  return { subject: `Deployment/${name}`, verdict: 'Pending', reason: 'ImageNotInPlace', message };
}

/** Without an image the Deployment follows the stream; with one, both containers have the image, and no trigger. */
function catalogFields(deployment: KubeObject, name: string, image: string | undefined) {
  const triggers = (value: unknown): Partial<KubeObject['metadata']> => ({
    annotations: { [TRIGGERS_ANNOTATION]: JSON.stringify(value) },
  });
  if (image === undefined) return { metadata: triggers(catalogTriggers(name)) };
  // For existing containers only: server-side apply would add a missing one.
  const imageOf = (container: string, field: 'containers' | 'initContainers'): object =>
    recordsIn(valueAt(deployment.spec, `template.spec.${field}`)).some((one) => one['name'] === container)
      ? { [field]: [{ name: container, image }] }
      : {};
  const { container, initContainer } = CATALOG_CONTAINERS;
  const spec = { ...imageOf(container, 'containers'), ...imageOf(initContainer, 'initContainers') };
  return {
    // Server-side apply cannot remove fields of another manager, so set an empty list.
    ...(TRIGGERS_ANNOTATION in (deployment.metadata.annotations ?? {}) ? { metadata: triggers([]) } : {}),
    spec: { template: { spec } },
  };
}

/** With guest placement: CatalogSources in the hosted cluster. */
function guestObjects(placing: Placing, catalogs: readonly Catalog[]): Brought {
  const { reader, chosen } = placing;
  const verdicts: EntryStatus[] = [];
  const apply = catalogs.flatMap((catalog): Apply[] => {
    const image = chosen.images[catalog.name] ?? '';
    if (!reader.serves(CATALOG_SOURCES)) return [];
    const present = reader.get({ ...CATALOG_SOURCES, name: catalog.name });
    if (!isOurs(placing, `CatalogSource/${catalog.name}`, present, verdicts)) return [];
    return [{ role: 'hosted', object: catalogSource(catalog, image) }];
  });
  return { apply, verdicts };
}
