import { catalogsRunBesideControlPlane } from '../../../../charts/registry-overrides/objects.ts';
import { catalogStreamWanted } from '../../../../runtime/registry-overrides/catalog-stream.ts';
import {
  type Catalog,
  catalogsOf,
  chooseCatalogImages,
} from '../../../../runtime/rules/registry-overrides/olm-catalogs.ts';
import type { ConformanceSuite } from '../../suite.ts';
import { acceptsPartial, readCases, textOf, toConformance } from './read.ts';

type Input = Readonly<Record<string, unknown>>;

const NAMES = catalogsOf('4.21.0').map((catalog) => catalog.name as string);

/** Three catalogs, or four where a case speaks of the fourth. */
function catalogs(input: Input): readonly Catalog[] {
  return catalogsOf('redhat-marketplace' in input ? '4.21.0' : '4.22.0');
}

function answer(input: Input): unknown {
  const values = Object.fromEntries(
    NAMES.map((name) => [name, input[name] === undefined ? undefined : textOf(input, name)]),
  );
  const choice = chooseCatalogImages(catalogs(input), values);
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
    file: 'runtime/rules/registry-overrides/olm-catalogs.ts',
    replace: "!image.includes('@sha256:')",
    by: "image === '-'",
  },
};
