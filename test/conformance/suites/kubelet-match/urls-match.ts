/** matchImages patterns against images. */
import { type GlobSuite, globSuite } from '../keyring/urls-match.ts';

export const suite: GlobSuite = globSuite('glob.port === target.port', 'true');
