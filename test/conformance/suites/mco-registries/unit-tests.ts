import { type RunSuite, runSuite } from './read.ts';

export const suite: RunSuite = runSuite({
  file: 'runtime/rules/node-registries/entries.ts',
  replace: 'mirror.location + rest',
  by: 'mirror.location',
});
