import type { ConformanceSuite } from '../../suite.ts';
import {
  acceptsPartial,
  firstPlace,
  placesOf,
  readCases,
  textOf,
  toConformance,
  wholeDigests,
} from './read.ts';

export const suite: ConformanceSuite<Readonly<Record<string, unknown>>> = {
  cases: (document) => readCases(wholeDigests(document)).map((one) => toConformance(one)),
  answer: async (input) => {
    const image = textOf(input, 'image');
    const candidate = await firstPlace(
      image,
      placesOf({ [textOf(input, 'source')]: [textOf(input, 'mirror')] }),
    );
    return { candidate, matches: candidate !== image };
  },
  accepts: acceptsPartial,
  mutation: {
    file: 'runtime/core/mirrors/resolve.ts',
    replace: 'placesOf(rule, reference, reference.slice(length))',
    by: "placesOf(rule, reference, '')",
  },
};
