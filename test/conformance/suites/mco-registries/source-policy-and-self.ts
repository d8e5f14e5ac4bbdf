import { type RunSuite, runSuite } from './read.ts';

export const suite: RunSuite = runSuite({
  file: 'runtime/registry-overrides/mirror-sets/collect.ts',
  replace: "if (policy !== 'NeverContactSource' ||",
  by: "if (policy === 'NeverContactSource' ||",
});
