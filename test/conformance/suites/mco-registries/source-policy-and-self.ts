import { type RunSuite, runSuite } from './read.ts';

export const suite: RunSuite = runSuite({
  file: 'runtime/registry-overrides/machine-config/faults.ts',
  replace: "entry.policy !== 'NeverContactSource' ||",
  by: "entry.policy === 'NeverContactSource' ||",
});
