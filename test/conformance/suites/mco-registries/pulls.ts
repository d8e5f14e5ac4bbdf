import { type RunSuite, runSuite } from './read.ts';

export const suite: RunSuite = runSuite({
  file: 'runtime/rules/mirrors/mirrors.ts',
  replace: 'refusalByUse(rule.mirrors[at], byDigest) ?? ',
  by: '',
});
