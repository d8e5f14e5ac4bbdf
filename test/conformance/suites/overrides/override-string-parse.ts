import { parseImageOverrides } from '../../../../runtime/registry-overrides/overrides.ts';
import type { ConformanceSuite } from '../../suite.ts';
import { acceptsPartial, readCases, textOf, toConformance, toRecord } from './read.ts';

export const suite: ConformanceSuite<Readonly<Record<string, unknown>>> = {
  cases: (document) => readCases(document).map((one) => toConformance(one)),
  answer: (input) => ({ overrides: toRecord(parseImageOverrides(textOf(input, 'value'))) }),
  accepts: acceptsPartial,
  mutation: {
    file: 'runtime/registry-overrides/overrides.ts',
    replace: "if (source === '' || mirror === '') continue;",
    by: '',
  },
};
