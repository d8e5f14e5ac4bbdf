import type { Mutation } from '../../suite.ts';
import { type RunSuite, runSuite } from './read.ts';

const RENDER = 'runtime/registry-overrides/machine-config/render.ts';
const COLLECT = 'runtime/registry-overrides/mirror-sets/collect.ts';
const RESOLVE = 'runtime/core/mirrors/resolve.ts';
const ENTRIES: Mutation = {
  file: RENDER,
  replace: 'entryFaults(input.entries)',
  by: 'entryFaults([])',
};
const REST: Mutation = { file: RENDER, replace: 'mirror.location + rest', by: 'mirror.location' };
const ORDER: Mutation = {
  file: COLLECT,
  replace: 'return free.sort();',
  by: 'return free.sort().reverse();',
};

export const suites: Readonly<Record<string, RunSuite>> = {
  formats: runSuite(ENTRIES),
  validation: runSuite(ENTRIES),
  'image-config': runSuite({ file: RENDER, replace: 'scope !== payload', by: 'scope === payload' }),
  nested: runSuite(REST),
  'unit-tests': runSuite(REST),
  order: runSuite(ORDER),
  random: runSuite(ORDER),
  'random-order': runSuite(ORDER),
  pulls: runSuite({ file: RESOLVE, replace: 'refusalByUse(rule.mirrors[at], byDigest) ?? ', by: '' }),
  'source-policy-and-self': runSuite({
    file: COLLECT,
    replace: "if (policy !== 'NeverContactSource' ||",
    by: "if (policy === 'NeverContactSource' ||",
  }),
};
