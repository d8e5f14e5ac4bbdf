import type { KubeObject } from '../../../../runtime/core/kubernetes/object.ts';
import {
  type Catalog,
  catalogAnnotation,
  catalogsOf,
  catalogTriggers,
  chooseCatalogImages,
  TRIGGERS_ANNOTATION,
} from '../../../../runtime/registry-overrides/olm-catalogs.ts';
import { KNOWN, OTHER_STREAM, stream } from '../../../registry-overrides/catalog-objects.ts';
import {
  deployment,
  deploymentOf,
  hostedCluster,
  podSpec,
  run,
} from '../../../registry-overrides/run-once.ts';
import type { ConformanceSuite } from '../../suite.ts';
import { acceptsPartial, readCases, textOf, toConformance } from './read.ts';

type Input = Readonly<Record<string, unknown>>;

const NAMES = catalogsOf('4.21.0').map(({ name }) => name);

/** Three catalogs, or four where a case speaks of the fourth. */
function catalogs(input: Input): readonly Catalog[] {
  return catalogsOf('redhat-marketplace' in input ? '4.21.0' : '4.22.0');
}

const IMAGE = `quay.io/team/index@sha256:${'c'.repeat(64)}`;
const BY_DIGEST = Object.fromEntries(
  catalogsOf('4.22.0').map(({ name }) => [catalogAnnotation(name), IMAGE]),
);

/** A catalog's Deployment that follows the stream, after a pass in which all images are named by digest. */
function afterPass(spec: Input = {}): KubeObject | undefined {
  const before = deployment('redhat-operators-catalog');
  const trigger = { [TRIGGERS_ANNOTATION]: JSON.stringify(catalogTriggers('redhat-operators')) };
  const following = { ...before, metadata: { ...before.metadata, annotations: trigger } };
  const cluster = hostedCluster(BY_DIGEST);
  const own = { ...cluster, spec: { ...(cluster.spec as object), ...spec } };
  const out = run([own, following], { options: { catalogs: true, mode: 'own' } });
  return deploymentOf(out, 'redhat-operators-catalog');
}

function pinnedCatalog(): unknown {
  const after = afterPass();
  // An empty list of triggers is none.
  const left = after?.metadata.annotations?.[TRIGGERS_ANNOTATION] ?? '[]';
  return {
    deploymentAnnotationRemoved: left === '[]' ? TRIGGERS_ANNOTATION : null,
    imageSetOn: imagesSet(after),
  };
}

function imagesSet(after: KubeObject | undefined): readonly string[] {
  const pod = podSpec(after);
  const withImage = (list: string, containers: readonly { name: string; image?: string }[]): string[] =>
    containers.flatMap((one) => (one.image === IMAGE ? [`${list}/${one.name}`] : []));
  return [
    ...withImage('containers', pod.containers),
    ...withImage('initContainers', pod.initContainers ?? []),
  ];
}

/** Whether a reconcile creates the ImageStream. */
function makesStream(isServed: boolean, isAnnotated: boolean): boolean {
  const cluster = hostedCluster(isAnnotated ? BY_DIGEST : {});
  const out = run([cluster, ...(isServed ? [OTHER_STREAM] : [])], {
    options: { catalogs: true, mode: 'own' },
    facts: KNOWN,
  });
  return stream(out) !== undefined;
}

function answer(input: Input): unknown {
  const values = Object.fromEntries(
    NAMES.map((name) => [name, input[name] === undefined ? undefined : textOf(input, name)]),
  );
  const choice = chooseCatalogImages(catalogs(input), values);
  if (input['allByDigest'] === true) return pinnedCatalog();
  if ('placement' in input) {
    const after = afterPass({
      olmCatalogPlacement: input['placement'],
      configuration: {
        operatorhub: { disableAllDefaultSources: input['disableAllDefaultSources'] === true },
      },
    });
    return { componentsEnabled: imagesSet(after).length > 0 };
  }
  if ('redhatAnnotation' in input)
    return {
      imageStream: makesStream(input['capabilityImageStream'] === true, input['redhatAnnotation'] === true),
    };
  if ('capabilityImageStream' in input) return { overrides: choice.images ?? null };
  return { override: choice.images !== undefined, error: choice.error ?? null };
}

export const suite: ConformanceSuite<Input> = {
  cases: (document) => readCases(document).map((one) => toConformance(one)),
  answer,
  accepts: acceptsPartial,
  mutation: {
    file: 'runtime/registry-overrides/olm-catalogs.ts',
    replace: "!image.includes('@sha256:')",
    by: "image === '-'",
  },
};
