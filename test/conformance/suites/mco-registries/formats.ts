import { type RunSuite, runSuite } from './read.ts';

export const suite: RunSuite = runSuite({
  file: 'runtime/registry-overrides/machine-config/faults.ts',
  replace: '[...input.digest, ...input.tag]',
  by: '[...input.tag]',
});
