/** matchImages patterns against images. */
import type { ConformanceSuite } from '../../suite.ts';
import {
  type GlobAnswer,
  type GlobInput,
  globAccepts,
  globAnswer,
  globCases,
} from '../keyring/urls-match.ts';

export const suite: ConformanceSuite<GlobInput, GlobAnswer> = {
  cases: globCases,
  answer: globAnswer,
  accepts: globAccepts,
  mutation: {
    file: 'runtime/rules/auth-lookup/match-images.ts',
    replace: 'glob.port !== target.port',
    by: 'false',
  },
};
