import { releaseCandidates } from '../../../../runtime/rules/registry-overrides/lookup.ts';
import type { ConformanceSuite } from '../../suite.ts';
import { acceptsPartial, readCases, textOf, toConformance } from './read.ts';

export const suite: ConformanceSuite<Readonly<Record<string, unknown>>> = {
  cases: (document) => readCases(document).map((one) => toConformance(one)),
  answer: (input) => {
    const image = textOf(input, 'image');
    const [candidate] = releaseCandidates(
      image,
      new Map([[textOf(input, 'source'), [textOf(input, 'mirror')]]]),
    );
    return { candidate: candidate ?? image, matches: candidate !== undefined };
  },
  accepts: acceptsPartial,
  mutation: {
    file: 'runtime/rules/mirrors/mirrors.ts',
    replace: 'const rest = reference.slice(length);',
    by: "const rest = '';",
  },
};
