/**
 * The catalogs of the Operator Lifecycle Manager: their names, their images, and the annotations on a HostedCluster that override
 * them.
 *
 * Source of the rule: requirement 3, "OLM Catalogs", and HyperShift's `computeCatalogImages` and
 * `checkCatalogImageOverides`; but validates the whole digest, and applies overrides of any source.
 */
import { parseWrittenReference } from '../core/image-reference.ts';
import { customObject } from '../core/kubernetes/custom-kinds.ts';
import type { KubeObject } from '../core/kubernetes/object.ts';
import { compileMirrors, resolveMirrors } from '../core/mirrors/resolve.ts';
import { type OverrideMap, overrideRules, parseImageOverrides } from './overrides.ts';

export interface Catalog {
  readonly name: string;
  /** Last part of the image's repository. */
  readonly index: string;
  readonly displayName: string;
  /** Priority of the CatalogSource; higher is preferred. */
  readonly priority: number;
}

export const CATALOGS: readonly Catalog[] = (
  [
    ['certified-operators', 'certified-operator-index', 'Certified Operators', -200],
    ['community-operators', 'community-operator-index', 'Community Operators', -400],
    ['redhat-marketplace', 'redhat-marketplace-index', 'Red Hat Marketplace', -300],
    ['redhat-operators', 'redhat-operator-index', 'Red Hat Operators', -100],
  ] as const
).map(([name, index, displayName, priority]) => ({ name, index, displayName, priority }));

export const IS_REGISTRY_OVERRIDES = 'hypershift.openshift.io/olm-catalogs-is-registry-overrides';
const DEFAULT_HOST = 'registry.redhat.io';
export const DEFAULT_REGISTRY = 'registry.redhat.io/redhat';
/** The newest release with published catalogs, and the number of minor versions that are tried. */
const NEWEST = { major: 4, minor: 22 };
const TRIED_MINORS = 4;

/** Annotation on the HostedCluster that names one catalog's image. */
export function catalogAnnotation(name: string): string {
  return `hypershift.openshift.io/${name}-catalog-image`;
}

/** `major.minor` of a release version such as `4.19.3` or `5.0.0-0.nightly-…`; undefined for other text. */
export function minorOf(version: string): { readonly major: number; readonly minor: number } | undefined {
  const match = /^v?(\d+)\.(\d+)(?:[.\-+]|$)/.exec(version);
  return match === null ? undefined : { major: Number(match[1]), minor: Number(match[2]) };
}

/** The catalogs of a release, by name: four up to 4.21, three from 4.22 on and for an unknown version. */
export function catalogsOf(version: string): readonly Catalog[] {
  const release = minorOf(version);
  const four = release !== undefined && (release.major < 4 || (release.major === 4 && release.minor <= 21));
  return CATALOGS.filter((catalog) => four || catalog.name !== 'redhat-marketplace');
}

/**
 * Validates the catalog image annotations: all or none, and only by digest. Reports missing digests first.
 *
 * @returns `images` by catalog name, or neither when the annotations do not override the catalogs
 */
export function chooseCatalogImages(
  catalogs: readonly Catalog[],
  values: Readonly<Record<string, string | undefined>>,
): { readonly images?: CatalogImages; readonly error?: string } {
  const given = catalogs.flatMap((catalog) => {
    const image = values[catalog.name] ?? '';
    return image === '' ? [] : [{ name: catalog.name, image }];
  });
  if (given.length === 0) return {};
  if (given.some(({ image }) => !image.includes('@sha256:')))
    return { error: 'images for OLM catalogs should be referenced only by digest' };
  if (given.length < catalogs.length) {
    return {
      error: `if OLM catalog images are overridden, all the values for the ${catalogs.length} default catalogs should be provided`,
    };
  }
  for (const { name, image } of given) {
    const parsed = parseWrittenReference(image);
    if (!parsed.ok)
      return { error: `catalog image "${image}" for ${name} is not an image reference: ${parsed.goText}` };
  }
  return { images: Object.fromEntries(given.map(({ name, image }) => [name, image])) };
}

/** One pull source for a catalog's image. */
interface CatalogCandidate {
  readonly image: string;
  /** `override`: from the annotation; `default`: the catalog's own, tried after all of these. */
  readonly from: 'override' | 'default';
}

/**
 * Candidates for one catalog, in order: newest version first (that of the release, at most the newest published one, then up to
 * three minors down) with every mirror of the overrides for each; after these the default source.
 */
export function catalogCandidates(catalog: Catalog, version: string, overrides: OverrideMap | undefined) {
  const tags = tagsOf(version);
  const repositories = overriddenRepositories(catalog, overrides);
  return [
    ...tags.flatMap((tag) =>
      repositories.map((repository) => ({ image: `${repository}:${tag}`, from: 'override' as const })),
    ),
    ...tags.map((tag) => ({
      image: `${DEFAULT_REGISTRY}/${catalog.index}:${tag}`,
      from: 'default' as const,
    })),
  ];
}

function tagsOf(version: string): readonly string[] {
  const release = minorOf(version);
  if (release === undefined) return [];
  const newer =
    release.major > NEWEST.major || (release.major === NEWEST.major && release.minor > NEWEST.minor);
  const { major, minor } = newer ? NEWEST : release;
  const count = Math.min(TRIED_MINORS, minor + 1);
  return Array.from({ length: count }, (_, down) => `v${major}.${minor - down}`);
}

/**
 * Mirrors of the default repository. A rule for the whole registry with a path in its target is ambiguous: HyperShift replaces
 * `redhat` with the path, the requirement appends `redhat` to it; both are candidates.
 */
function overriddenRepositories({ index }: Catalog, overrides: OverrideMap = new Map()): readonly string[] {
  const rules = compileMirrors(overrideRules(overrides), 'exact');
  const { rule, candidates } = resolveMirrors(rules, `${DEFAULT_REGISTRY}/${index}`);
  const repositories = candidates
    .filter((candidate) => candidate.kind === 'mirror')
    .flatMap(({ reference, location }) =>
      rule?.prefix === DEFAULT_HOST && location.includes('/')
        ? [`${location}/${index}`, reference]
        : [reference],
    );
  return [...new Set(repositories)];
}

/** Result of a look-up of a catalog's digest. `failed`: unknown whether the image exists. */
export type CatalogAnswer = 'there' | 'absent' | 'failed' | 'unknown';

/**
 * Whether an error of a registry means that an image does not exist (else its existence is unknown). A denial counts as absent,
 * since no pull with this secret would succeed. A HEAD response has no body, so only the verdict before the message is
 * significant.
 */
export function absenceFromError(message: string): boolean {
  return (
    /^(?:NotFound|Invalid|Forbidden): /.test(message) ||
    message.includes('manifest unknown') ||
    message.includes('access to the requested resource is not authorized')
  );
}

/** State of the search for one catalog's image. */
export type CatalogState = CatalogCandidate | { readonly ask: string } | { readonly error: string };

/**
 * Chooses the first candidate that exists. Returns the candidate to look up next, or an error when none exists. A failed look-up
 * ends the search with an error, because another version would be a silent downgrade.
 */
export function chooseCandidate(
  catalog: Catalog,
  candidates: readonly CatalogCandidate[],
  answer: (image: string) => CatalogAnswer,
): CatalogState {
  for (const candidate of candidates) {
    const known = answer(candidate.image);
    if (known === 'there') return candidate;
    if (known === 'unknown') return { ask: candidate.image };
    if (known === 'failed') return { error: `failed to get image digest of ${candidate.image}` };
  }
  return { error: `failed to fetch image digest for 4 previous versions of ${catalog.name}` };
}

/** The overrides of the annotation {@link IS_REGISTRY_OVERRIDES}, and invalid pairs in it. */
export function parseCatalogOverrides(text: string) {
  const pairs = text.split(',').filter((pair) => pair !== '' && pair !== '=');
  const ignored = pairs.filter((pair) => !/^[^=]+=./.test(pair));
  return { overrides: parseImageOverrides(text), ignored };
}

// Plain objects of the catalogs of the Operator Lifecycle Manager, shared by the charts and the reconciler.
//
// Source of the rule: HyperShift's assets for the catalogs, field by field.

/** Images by catalog name. */
type CatalogImages = Readonly<Record<string, string>>;

export const CATALOG_STREAM = 'catalogs';
export const TRIGGERS_ANNOTATION = 'image.openshift.io/triggers';
/** Containers of a catalog Deployment that run the catalog's image. */
export const CATALOG_CONTAINERS = { initContainer: 'extract-content', container: 'registry' } as const;

/** ImageStream `catalogs` of a control plane namespace: one scheduled tag per catalog, by name. */
export function catalogImageStream(namespace: string, images: CatalogImages): KubeObject {
  const tags = Object.entries(images)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, image]) => ({
      name,
      from: { kind: 'DockerImage', name: image },
      importPolicy: { scheduled: true, importMode: 'PreserveOriginal' },
      referencePolicy: { type: 'Local' },
    }));
  const metadata = { name: CATALOG_STREAM, namespace };
  return customObject('ImageStream', metadata, { lookupPolicy: { local: true }, tags });
}

/** Image triggers that keep a catalog Deployment's containers at the ImageStream's tag. */
export function catalogTriggers(catalog: string): readonly object[] {
  const from = { kind: 'ImageStreamTag', name: `${CATALOG_STREAM}:${catalog}` };
  const { initContainer, container } = CATALOG_CONTAINERS;
  return [
    { from, fieldPath: `spec.template.spec.initContainers[?(@.name=="${initContainer}")].image` },
    { from, fieldPath: `spec.template.spec.containers[?(@.name=="${container}")].image` },
  ];
}

/** CatalogSource in the hosted cluster, with the catalog's image. */
export function catalogSource(catalog: Catalog, image: string): KubeObject {
  const metadata = {
    name: catalog.name,
    namespace: 'openshift-marketplace',
    annotations: { 'target.workload.openshift.io/management': '{"effect": "PreferredDuringScheduling"}' },
  };
  return customObject('CatalogSource', metadata, {
    sourceType: 'grpc',
    displayName: catalog.displayName,
    publisher: 'Red Hat',
    priority: catalog.priority,
    grpcPodConfig: { securityContextConfig: 'restricted' },
    updateStrategy: { registryPoll: { interval: '10m' } },
    image,
  });
}
