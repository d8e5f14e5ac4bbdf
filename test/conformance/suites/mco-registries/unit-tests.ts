import { type RunSuite, runSuite } from './read.ts';

export const suite: RunSuite = runSuite({
  file: 'runtime/registry-overrides/machine-config/render.ts',
  replace: 'mirror.location + rest',
  by: 'mirror.location',
});
