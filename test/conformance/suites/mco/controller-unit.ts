/** The controller's unit tests, played to the reconciler: which objects appear per pool, and which files are in them. */

import type { KubeObject } from '../../../../runtime/core/kubernetes/object.ts';
import { filesOf } from '../../../credential-provider/support/machine-config-files.ts';
import { reconcile } from '../../../credential-provider/support/reconcile-once.ts';
import type { ConformanceSuite } from '../../suite.ts';

interface Input {
  readonly name: string;
  readonly platform: string;
  readonly matchImages: readonly string[] | null;
  readonly updatedTo?: readonly string[];
  readonly dropinPath: string;
}

interface Case extends Input {
  readonly wantProviderImages?: readonly string[];
  readonly wantDropin?: boolean;
  readonly wantFiles?: number;
}

interface Outcome {
  readonly pools: readonly string[];
  readonly images: readonly string[];
  readonly hasDropIn: boolean;
  readonly isEmpty: boolean;
}

export const suite: ConformanceSuite<Input, Outcome> = {
  cases(document) {
    const { cases, dropinPath } = document as { cases: readonly Case[]; dropinPath: string };
    return cases.map((one) => ({
      name: `${one.platform} ${one.name}`,
      input: { ...one, dropinPath },
      expected: {
        pools: ['master', 'worker'],
        images: one.wantProviderImages ?? [],
        hasDropIn: one.wantDropin ?? (one.wantFiles !== 0 && one.platform === 'None'),
        isEmpty: one.wantFiles === 0,
      },
    }));
  },
  answer({ platform, matchImages, updatedTo, dropinPath }) {
    let made: readonly KubeObject[] = [];
    for (const images of [matchImages, ...(updatedTo === undefined ? [] : [updatedTo])])
      made = reconcile({ platform, matchImages: images, more: made }, { platform: 'None' }).configs;
    const files = filesOf(made[0]);
    const own =
      [...files.values()]
        .join('\n')
        .split('name: crio-credential-provider')[0]
        ?.split('matchImages:')
        .at(-1) ?? '';
    return {
      pools: made.map(({ metadata }) => metadata.labels?.['machineconfiguration.openshift.io/role'] ?? ''),
      images:
        files.size === 0 ? [] : [...own.matchAll(/^ {2}- '?([^'\n]+)'?$/gm)].map(([, image]) => image ?? ''),
      hasDropIn: files.has(dropinPath),
      isEmpty: files.size === 0,
    };
  },
  mutation: {
    file: 'runtime/credential-provider/pools.ts',
    replace: 'BUILT_IN in metadata.labels',
    by: '!(BUILT_IN in metadata.labels)',
  },
};
