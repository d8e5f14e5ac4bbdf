import { type RunSuite, runSuite } from './read.ts';

export const suite: RunSuite = runSuite({
  file: 'runtime/core/mirrors/resolve.ts',
  replace: 'refusalByUse(rule.mirrors[at], byDigest) ?? ',
  by: '',
});
