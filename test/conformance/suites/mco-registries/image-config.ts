import { type RunSuite, runSuite } from './read.ts';

export const suite: RunSuite = runSuite({
  file: 'runtime/registry-overrides/machine-config/render.ts',
  replace: 'scope !== payload',
  by: 'scope === payload',
});
