import { formatImageOverrides } from '../../../../runtime/registry-overrides/overrides.ts';
import type { ConformanceSuite } from '../../suite.ts';
import { acceptsPartial, readCases, toConformance, toMap } from './read.ts';

export const suite: ConformanceSuite<Readonly<Record<string, unknown>>> = {
  cases: (document) => readCases(document).map((one) => toConformance(one)),
  answer: (input) => ({ value: formatImageOverrides(toMap(input['overrides'])) }),
  accepts: acceptsPartial,
  mutation: {
    file: 'runtime/registry-overrides/overrides.ts',
    replace: "pairs.length === 0 ? NO_OVERRIDES : pairs.join(',')",
    by: "pairs.join(',')",
  },
};
