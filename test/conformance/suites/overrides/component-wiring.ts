import { isDeepStrictEqual } from 'node:util';
import { overridesEnv } from '../../../../runtime/registry-overrides/env.ts';
import { LOOKUP_FOLLOWS, type Plane } from '../../../../runtime/registry-overrides/release-lookup.ts';
import {
  parseImageOverrides,
  parseOverridesFlag,
  withFlagOverrides,
} from '../../../../runtime/rules/registry-overrides/registry-overrides.ts';
import type { ConformanceSuite } from '../../suite.ts';
import { acceptsPartial, readCases, textOf, toConformance, toRecord } from './read.ts';

type Input = Readonly<Record<string, unknown>>;

/** Sets of mirrors that upstream's own test goes through, each with another order of the same. */
const SHAPES: readonly (readonly (readonly [string, readonly string[]])[])[] = [
  [],
  [['quay.io/a', ['m1.example.com', 'm2.example.com']]],
  [
    ['quay.io/b', ['m2.example.com']],
    ['quay.io/a', ['m3.example.com', 'm1.example.com', 'm2.example.com']],
  ],
];

function envIsStable(absent: readonly string[]): unknown {
  const outcomes = SHAPES.map((shape) => {
    const one = overridesEnv(new Map(shape));
    const two = overridesEnv(
      new Map(shape.toReversed().map(([source, mirrors]) => [source, mirrors.toReversed()])),
    );
    return { same: isDeepStrictEqual(one, two), names: one.map((variable) => variable.name) };
  });
  return {
    deterministic: outcomes.every(({ same }) => same),
    absentEnv: absent.filter((name) => outcomes.every(({ names }) => !names.includes(name))),
  };
}

function answer(input: Input): unknown {
  if (typeof input['case'] === 'string') return envIsStable((input['absent'] as readonly string[]) ?? []);
  if (typeof input['provider'] === 'string') {
    const follows = LOOKUP_FOLLOWS[input['provider'] as Plane];
    return {
      registryOverrides: follows.registryOverrides ? true : null,
      imageRegistryMirrors: follows.imageRegistryMirrors,
    };
  }
  const flag = parseOverridesFlag(textOf(input, 'flag', ''));
  if (flag === undefined) return { error: true };
  return {
    imageRegistryOverrides: toRecord(withFlagOverrides(parseImageOverrides(textOf(input, 'env', '')), flag)),
  };
}

export const suite: ConformanceSuite<Input> = {
  cases: (document) =>
    readCases(document).map((one) =>
      toConformance(one, {
        ...one.input,
        ...(one.expected?.['absentEnv'] === undefined ? {} : { absent: one.expected['absentEnv'] }),
      }),
    ),
  answer,
  accepts: acceptsPartial,
  mutation: {
    file: 'runtime/rules/registry-overrides/registry-overrides.ts',
    replace: "source !== '' && target !== ''",
    by: 'true',
  },
};
