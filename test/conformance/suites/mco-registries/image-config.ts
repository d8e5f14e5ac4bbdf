import { type RunSuite, runSuite } from './read.ts';

export const suite: RunSuite = runSuite({
  file: 'runtime/rules/node-registries/payload.ts',
  replace: 'scope !== payload',
  by: 'scope === payload',
});
