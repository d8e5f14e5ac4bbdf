/**
 * Which image each catalog of a hosted cluster takes, as far as annotations and registries have said it.
 *
 * A look-up asks with the pull secret of the hosted cluster it is for, read anew each time: with one file for all, the answer
 * said nothing of what the nodes of that cluster may pull.
 */

import type { Need, World } from '../controller/contract.ts';
import { NOT_ASKED } from '../controller/lookups.ts';
import { GLOBAL_PULL_SECRET } from '../rules/kubernetes/global-pull-secret.ts';
import type { KubeObject } from '../rules/kubernetes/object.ts';
import type { Verdict } from '../rules/kubernetes/pull-status.ts';
import {
  absenceFromError,
  type Catalog,
  type CatalogAnswer,
  type CatalogState,
  catalogAnnotation,
  catalogCandidates,
  chooseCandidate,
  chooseCatalogImages,
  IS_REGISTRY_OVERRIDES,
  parseCatalogOverrides,
} from '../rules/registry-overrides/olm-catalogs.ts';
import { upToAny } from '../rules/text/trim.ts';

export interface Chosen {
  /** Images by catalog name: what is known so far. */
  readonly images: Readonly<Record<string, string>>;
  /** Whether the annotations name them. */
  readonly annotated: boolean;
  readonly needs: readonly Need[];
  readonly verdicts: readonly Verdict[];
  readonly complete: boolean;
  /** Registries are asked with the cluster's own pull secret. */
  readonly ask: boolean;
}

export interface ClusterSpec {
  readonly olmCatalogPlacement?: string;
  readonly configuration?: { readonly operatorhub?: { readonly disableAllDefaultSources?: boolean } };
  readonly release?: { readonly image?: string };
}

/** A version as the tag of a reference without digest. */
const VERSION_TAG = /:(\d+\.\d[^/:]*)$/;

/** Version of the release: as the cluster reports it, else out of the release image's tag. */
export function versionOf(cluster: KubeObject): string {
  const status = cluster.status as { version?: { history?: readonly { version?: string }[] } } | undefined;
  const reported = status?.version?.history?.find((entry) => (entry.version ?? '') !== '')?.version;
  const image = ((cluster.spec ?? {}) as ClusterSpec).release?.image ?? '';
  return reported ?? VERSION_TAG.exec(upToAny(image, '@'))?.[1] ?? '';
}

/** Undefined where nothing would be written. */
export function choose(
  world: World,
  cluster: KubeObject,
  catalogs: readonly Catalog[],
  { judgeOnly, ask }: { readonly judgeOnly: boolean; readonly ask: boolean },
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
      complete: true,
      ask,
    };
  // Nobody needs the answers of registries where nothing would be written.
  return judgeOnly ? undefined : lookUp(world, cluster, catalogs, ask);
}

function annotationOf(cluster: KubeObject, name: string): string {
  const value = cluster.metadata.annotations?.[name];
  return typeof value === 'string' ? value : '';
}

/** What registries have, as far as they have answered. */
function lookUp(world: World, cluster: KubeObject, catalogs: readonly Catalog[], ask: boolean): Chosen {
  const { overrides, ignored } = parseCatalogOverrides(annotationOf(cluster, IS_REGISTRY_OVERRIDES));
  const version = versionOf(cluster);
  const states = catalogs.map((catalog) => {
    const candidates = catalogCandidates(catalog, version, overrides);
    const state = chooseCandidate(catalog, candidates, (image) =>
      answerOf(world, needFor(world, image, ask)),
    );
    return { name: catalog.name, state, mirrored: candidates.some(({ from }) => from === 'override') };
  });
  const images = Object.fromEntries(
    states.flatMap(({ name, state }) => ('image' in state ? [[name, state.image]] : [])),
  );
  const needs = states.flatMap(({ state }): Need[] =>
    'ask' in state ? [needFor(world, state.ask, ask)] : [],
  );
  const odd = ignored.map(
    (pair): Verdict => ({
      subject: IS_REGISTRY_OVERRIDES,
      verdict: 'Warning',
      reason: 'PairIgnored',
      message: `"${pair.slice(0, 100)}" has no effect: expected "source=destination"`,
    }),
  );
  return {
    images,
    annotated: false,
    needs,
    verdicts: [...states.flatMap(verdictOf), ...odd],
    complete: states.every(({ state }) => 'image' in state),
    ask,
  };
}

/** With the credentials that the nodes of this cluster have. */
function needFor({ scope }: World, image: string, ask: boolean): Need {
  const pullSecret = { namespace: scope.controlPlaneNamespace, name: GLOBAL_PULL_SECRET.platform };
  return { kind: 'registry-digest', image, pullSecret, ...(ask ? { asked: true } : {}) };
}

interface Searched {
  readonly name: string;
  readonly state: CatalogState;
  /** Whether the annotation names a place for it. */
  readonly mirrored: boolean;
}

function verdictOf({ name, state, mirrored }: Searched): readonly Verdict[] {
  if ('ask' in state) return [];
  if ('error' in state)
    return [{ subject: name, verdict: 'Rejected', reason: 'CatalogImageMissing', message: state.error }];
  const { image, from } = state;
  if (!mirrored || from === 'override')
    return [{ subject: name, verdict: 'Accepted', reason: 'Found', message: image }];
  const message = `${image} is used: no place that ${IS_REGISTRY_OVERRIDES} names has the catalog`;
  return [{ subject: name, verdict: 'Warning', reason: 'FellBack', message }];
}

function answerOf(world: World, need: Need): CatalogAnswer {
  const fact = world.fact(need);
  if (fact === undefined) return 'unknown';
  if (fact.ok) return 'there';
  if (fact.reason === NOT_ASKED) return 'unknown';
  return absenceFromError(fact.reason) ? 'absent' : 'failed';
}

/** An annotated image is by digest already; another one is pinned to what was found. */
export function pinned(world: World, chosen: Chosen, name: string): string {
  const image = chosen.images[name] ?? '';
  const fact = chosen.annotated ? undefined : world.fact(needFor(world, image, chosen.ask));
  return fact?.ok === true ? `${image.replace(/:[^:/]*$/, '')}@${fact.value}` : image;
}
