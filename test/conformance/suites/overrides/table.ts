/** Suites of one function each. */
import {
  formatImageOverrides,
  parseImageOverrides,
  replaceRegistry,
} from '../../../../runtime/registry-overrides/overrides.ts';
import type { ConformanceSuite } from '../../suite.ts';
import { acceptsPartial, readCases, textOf, toConformance, toMap, toRecord } from './read.ts';

type Input = Readonly<Record<string, unknown>>;

function suite(answer: (input: Input) => unknown, replace: string, by: string): ConformanceSuite<Input> {
  return {
    cases: (document) => readCases(document).map((one) => toConformance(one)),
    answer,
    accepts: acceptsPartial,
    mutation: { file: 'runtime/registry-overrides/overrides.ts', replace, by },
  };
}

export const suites: Readonly<Record<string, ConformanceSuite<Input>>> = {
  'override-string-parse': suite(
    (input) => ({ overrides: toRecord(parseImageOverrides(textOf(input, 'value'))) }),
    "if (source === '' || mirror === '') continue;",
    '',
  ),
  'override-string-serialize': suite(
    (input) => ({ value: formatImageOverrides(toMap(input['overrides'])) }),
    "pairs.length === 0 ? NO_OVERRIDES : pairs.join(',')",
    "pairs.join(',')",
  ),
  'registryoverride-replace': suite(
    (input) => ({ result: replaceRegistry(textOf(input, 'image'), toMap<string>(input['overrides'])) }),
    "(rules, 'exact')",
    "(rules, 'runtime')",
  ),
};
