import {
  catalogImageStream,
  catalogService,
  catalogSource,
  catalogTriggers,
  TRIGGERS_ANNOTATION,
} from '../../../../charts/registry-overrides/objects.ts';
import { catalogsOf } from '../../../../runtime/rules/registry-overrides/olm-catalogs.ts';
import type { ConformanceSuite } from '../../suite.ts';
import { acceptsPartial, readCases, textOf, toConformance } from './read.ts';

type Input = Readonly<Record<string, unknown>>;

function source(name: string): unknown {
  const catalog = catalogsOf('4.21.0').find((one) => one.name === name);
  if (catalog === undefined) throw new TypeError(`unknown catalog "${name}"`);
  const whole = catalogSource(catalog, { placement: 'management' });
  const { address, ...spec } = whole.spec as Readonly<Record<string, unknown>>;
  const guest = catalogSource(catalog, { placement: 'guest', image: 'resolved catalog image' });
  const { image } = guest.spec as { image: string };
  return { ...whole, spec, placementDependent: { management: { address }, guest: { image } } };
}

function answer(input: Input): unknown {
  const catalog = textOf(input, 'catalog', '');
  switch (input['kind']) {
    case 'CatalogSource':
      return source(catalog);
    case 'Service':
      return catalogService(textOf(input, 'namespace', ''), catalog);
    case 'ImageStream':
      return catalogImageStream(
        textOf(input, 'namespace', ''),
        (input['images'] ?? {}) as Readonly<Record<string, string>>,
      );
    default:
      return { [TRIGGERS_ANNOTATION]: catalogTriggers(catalog) };
  }
}

export const suite: ConformanceSuite<Input> = {
  cases: (document) =>
    readCases(document).map((one) => {
      const namespace = (one.expected?.['metadata'] as Input | undefined)?.['namespace'];
      return toConformance(one, { namespace, ...one.input, kind: one.expected?.['kind'] });
    }),
  answer,
  accepts: acceptsPartial,
  mutation: {
    file: 'charts/registry-overrides/objects.ts',
    replace: '`${CATALOG_STREAM}:${catalog}`',
    by: 'catalog',
  },
};
