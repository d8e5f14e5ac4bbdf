import type { KubeObject } from '../../../../runtime/core/kubernetes/object.ts';
import { collectOverrideMap } from '../../../../runtime/registry-overrides/planes.ts';
import type { ConformanceSuite } from '../../suite.ts';
import { acceptsPartial, readCases, toConformance, toRecord } from './read.ts';

type Entry = Readonly<Record<string, unknown>>;

function objects(kind: string, apiVersion: string, list: unknown): readonly KubeObject[] {
  return ((list ?? []) as readonly Entry[]).map(({ name, ...spec }) => ({
    apiVersion,
    kind,
    metadata: { name: typeof name === 'string' ? name : '' },
    spec,
  }));
}

export const suite: ConformanceSuite<Entry> = {
  // Without either kind, upstream returns no map; it results in the same variable as our empty one.
  cases: (document) =>
    readCases(document).map((one) => toConformance({ ...one, expected: one.expected ?? {} })),
  answer: (input) => {
    const has = { icsp: true, idms: true, ...(input['has'] as object | undefined) };
    // A cluster can only list kinds that it serves.
    const served = [
      ...(has.idms ? objects('ImageDigestMirrorSet', 'config.openshift.io/v1', input['idms']) : []),
      ...(has.icsp
        ? objects('ImageContentSourcePolicy', 'operator.openshift.io/v1alpha1', input['icsp'])
        : []),
    ];
    return toRecord(collectOverrideMap(served));
  },
  accepts: acceptsPartial,
  mutation: {
    file: 'runtime/registry-overrides/planes.ts',
    replace: 'a.metadata.name < b.metadata.name ? 1 : -1',
    by: 'a.metadata.name < b.metadata.name ? -1 : 1',
  },
};
