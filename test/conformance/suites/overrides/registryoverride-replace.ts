import { replaceRegistry } from '../../../../runtime/registry-overrides/overrides.ts';
import type { ConformanceSuite } from '../../suite.ts';
import { acceptsPartial, readCases, textOf, toConformance, toMap } from './read.ts';

export const suite: ConformanceSuite<Readonly<Record<string, unknown>>> = {
  cases: (document) => readCases(document).map((one) => toConformance(one)),
  answer: (input) => ({ result: replaceRegistry(textOf(input, 'image'), toMap<string>(input['overrides'])) }),
  accepts: acceptsPartial,
  mutation: {
    file: 'runtime/registry-overrides/overrides.ts',
    replace: "{ ports: 'exact' }",
    by: "{ ports: 'runtime' }",
  },
};
