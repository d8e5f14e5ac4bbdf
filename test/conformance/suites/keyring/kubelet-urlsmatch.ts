/** Registry keys as globs against images. */
import { type GlobSuite, globSuite } from './urls-match.ts';

export const suite: GlobSuite = globSuite('target.path.startsWith(glob.path)', 'target.path === glob.path');
