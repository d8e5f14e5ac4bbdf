/** The definition of v1alpha1, held against a real API server. */

import { crdSuite } from '../../../credential-provider/support/crd-suite.ts';
import type { ConformanceSuite } from '../../suite.ts';

export const suite: ConformanceSuite = crdSuite;
