import { crdSuite } from '../../../credential-provider/support/crd-suite.ts';
import type { ConformanceSuite } from '../../suite.ts';

const suite: ConformanceSuite = crdSuite;

export const suites: Readonly<Record<string, ConformanceSuite>> = {
  'criocredentialproviderconfig-v1': suite,
  'criocredentialproviderconfig-v1alpha1': suite,
};
