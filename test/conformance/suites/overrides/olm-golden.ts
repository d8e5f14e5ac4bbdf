import {
  catalogCandidates,
  catalogImageStream,
  catalogSource,
  catalogsOf,
  catalogTriggers,
  TRIGGERS_ANNOTATION,
} from '../../../../runtime/registry-overrides/olm-catalogs.ts';
import { DIGEST, OTHER_STREAM, stream } from '../../../registry-overrides/catalog-objects.ts';
import { hostedCluster, run } from '../../../registry-overrides/run-once.ts';
import type { ConformanceSuite } from '../../suite.ts';
import { acceptsNamed, acceptsPartial, readCases, textOf, toConformance } from './read.ts';

type Input = Readonly<Record<string, unknown>>;

function source(name: string): unknown {
  const catalog = catalogsOf('4.21.0').find((one) => one.name === name);
  if (catalog === undefined) throw new TypeError(`unknown catalog "${name}"`);
  const whole = catalogSource(catalog, 'resolved catalog image');
  const { image, ...spec } = whole.spec as Readonly<Record<string, unknown>>;
  return { ...whole, spec, placementDependent: { guest: { image } } };
}

/** The stream of a release whose images are all there; the cases leave the namespace out. */
function streamOf(version: string): unknown {
  const there = (image: string): [string, { ok: true; value: string }] => [
    image,
    { ok: true, value: DIGEST },
  ];
  const candidates = catalogsOf(`${version}.0`).flatMap((catalog) =>
    catalogCandidates(catalog, `${version}.0`, undefined),
  );
  const cluster = { ...hostedCluster(), status: { version: { history: [{ version: `${version}.0` }] } } };
  const out = run([cluster, OTHER_STREAM], {
    options: { catalogs: true, mode: 'own' },
    facts: Object.fromEntries(candidates.map(({ image }) => there(image))),
  });
  const { apiVersion, kind, spec, metadata } = stream(out) ?? {
    apiVersion: '',
    kind: '',
    metadata: { name: '' },
  };
  return { apiVersion, kind, metadata: { name: metadata.name }, spec };
}

function answer(input: Input): unknown {
  const catalog = textOf(input, 'catalog', '');
  switch (input['kind']) {
    case 'CatalogSource':
      return source(catalog);
    case 'Service':
      return {};
    case 'ImageStream':
      return 'version' in input
        ? streamOf(textOf(input, 'version'))
        : catalogImageStream(
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
      const kind = 'version' in one.input ? 'ImageStream' : one.expected?.['kind'];
      // The CatalogSource beside the control plane is made by HyperShift.
      delete (one.expected?.['placementDependent'] as { management?: unknown } | undefined)?.management;
      return toConformance(one, { namespace, ...one.input, kind });
    }),
  answer,
  accepts: (actual, expected) =>
    'kind' in (expected as object) ? acceptsPartial(actual, expected) : acceptsNamed(actual, expected),
  mutation: {
    file: 'runtime/registry-overrides/olm-catalogs.ts',
    replace: '`${CATALOG_STREAM}:${catalog}`',
    by: 'catalog',
  },
};
