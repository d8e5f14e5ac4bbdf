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
  cases: (document) => readCases(document).map((one) => toConformance(one)),
  answer: (input) => {
    const has = input['has'] as { icsp: boolean; idms: boolean };
    // What a cluster does not serve cannot be listed.
    const served = [
      ...(has.idms ? objects('ImageDigestMirrorSet', 'config.openshift.io/v1', input['idms']) : []),
      ...(has.icsp
        ? objects('ImageContentSourcePolicy', 'operator.openshift.io/v1alpha1', input['icsp'])
        : []),
    ];
    return toRecord(has.idms || has.icsp ? collectOverrideMap(served) : undefined);
  },
  accepts: acceptsPartial,
  mutation: {
    file: 'runtime/registry-overrides/planes.ts',
    replace: 'a.metadata.name < b.metadata.name ? 1 : -1',
    by: 'a.metadata.name < b.metadata.name ? -1 : 1',
  },
};
