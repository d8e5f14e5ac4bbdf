import { type RunSuite, runSuite } from './read.ts';

export const suite: RunSuite = runSuite({
  file: 'runtime/rules/node-registries/faults.ts',
  replace: "entry.policy !== 'NeverContactSource' ||",
  by: "entry.policy === 'NeverContactSource' ||",
});
