/** Registry keys as globs against images. */
import type { ConformanceSuite } from '../../suite.ts';
import { type GlobAnswer, type GlobInput, globAccepts, globAnswer, globCases } from './urls-match.ts';

export const suite: ConformanceSuite<GlobInput, GlobAnswer> = {
  cases: globCases,
  answer: globAnswer,
  accepts: globAccepts,
  mutation: {
    file: 'runtime/core/docker-config/match-images.ts',
    replace: '!target.path.startsWith(glob.path)',
    by: 'target.path !== glob.path',
  },
};
