import {
  catalogsRunBesideControlPlane,
  catalogTriggers,
  TRIGGERS_ANNOTATION,
} from '../../../../runtime/registry-overrides/objects.ts';
import {
  type Catalog,
  catalogAnnotation,
  catalogsOf,
  chooseCatalogImages,
} from '../../../../runtime/registry-overrides/olm-catalogs.ts';
import { catalogStreamWanted } from '../../../../runtime/registry-overrides/reconciler/catalogs.ts';
import { deployment, deploymentOf, hostedCluster, podSpec, run } from '../../../registry-overrides/world.ts';
import type { ConformanceSuite } from '../../suite.ts';
import { acceptsPartial, readCases, textOf, toConformance } from './read.ts';

type Input = Readonly<Record<string, unknown>>;

const NAMES = catalogsOf('4.21.0').map((catalog) => catalog.name as string);

/** Three catalogs, or four where a case speaks of the fourth. */
function catalogs(input: Input): readonly Catalog[] {
  return catalogsOf('redhat-marketplace' in input ? '4.21.0' : '4.22.0');
}

/** What a pass makes of a catalog's Deployment that follows the stream, when all images are named by digest. */
function pinnedCatalog(): unknown {
  const image = `quay.io/team/index@sha256:${'c'.repeat(64)}`;
  const annotations = Object.fromEntries(
    catalogsOf('4.22.0').map(({ name }) => [catalogAnnotation(name), image]),
  );
  const before = deployment('redhat-operators-catalog');
  const trigger = { [TRIGGERS_ANNOTATION]: JSON.stringify(catalogTriggers('redhat-operators')) };
  const following = { ...before, metadata: { ...before.metadata, annotations: trigger } };
  const out = run([hostedCluster(annotations), following], { options: { catalogs: true, mode: 'own' } });
  const after = deploymentOf(out, 'redhat-operators-catalog');
  const pod = podSpec(after);
  const withImage = (list: string, containers: readonly { name: string; image?: string }[]): string[] =>
    containers.flatMap((one) => (one.image === image ? [`${list}/${one.name}`] : []));
  // An empty list of triggers is none.
  const left = after?.metadata.annotations?.[TRIGGERS_ANNOTATION] ?? '[]';
  return {
    deploymentAnnotationRemoved: left === '[]' ? TRIGGERS_ANNOTATION : null,
    imageSetOn: [
      ...withImage('containers', pod.containers),
      ...withImage('initContainers', pod.initContainers ?? []),
    ],
  };
}

function answer(input: Input): unknown {
  const values = Object.fromEntries(
    NAMES.map((name) => [name, input[name] === undefined ? undefined : textOf(input, name)]),
  );
  const choice = chooseCatalogImages(catalogs(input), values);
  if (input['allByDigest'] === true) return pinnedCatalog();
  if ('placement' in input) {
    const placement = input['placement'] === 'guest' ? 'guest' : 'management';
    return {
      componentsEnabled: catalogsRunBesideControlPlane(placement, input['disableAllDefaultSources'] === true),
    };
  }
  if ('redhatAnnotation' in input) {
    return {
      imageStream: catalogStreamWanted(
        input['capabilityImageStream'] === true,
        input['redhatAnnotation'] === true,
      ),
    };
  }
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
