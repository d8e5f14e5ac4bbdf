import { type RunSuite, runSuite } from './read.ts';

export const suite: RunSuite = runSuite({
  file: 'runtime/registry-overrides/mirror-sets/collect.ts',
  replace: 'return free.sort(byText);',
  by: 'return free.sort(byText).reverse();',
});
