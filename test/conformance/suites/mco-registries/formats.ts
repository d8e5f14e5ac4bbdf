import { type RunSuite, runSuite } from './read.ts';

export const suite: RunSuite = runSuite({
  file: 'runtime/registry-overrides/machine-config/faults.ts',
  replace: 'entryFaults(input.entries)',
  by: 'entryFaults([])',
});
