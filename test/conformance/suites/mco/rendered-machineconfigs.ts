/** Files, Ignition, names and conditions for a platform and a list of patterns. */

import { mergeCredentialProviderConfig } from '../../../../runtime/credential-provider/merge.ts';
import { machineConfig } from '../../../../runtime/credential-provider/objects.ts';
import { platformFile } from '../../../../runtime/credential-provider/platform.ts';
import { poolFiles } from '../../../../runtime/credential-provider/pools.ts';
import { validated } from '../../../../runtime/credential-provider/reconciler/report.ts';
import type { ConformanceSuite } from '../../suite.ts';

interface Input {
  readonly platform: string;
  readonly matchImages: readonly string[];
}

interface Rendered {
  readonly conditions: readonly unknown[];
  readonly files: Readonly<Record<string, string>>;
  readonly ignition: unknown;
  readonly machineConfigs: readonly unknown[];
  readonly overlapped: readonly string[] | null;
}

export const suite: ConformanceSuite<Input, Rendered> = {
  cases(document) {
    const { cases } = document as { cases: readonly (Input & { expect: Rendered })[] };
    return cases.map(({ platform, matchImages, expect }) => ({
      name: `${platform}: ${matchImages.join(' ')}`,
      input: { platform, matchImages },
      expected: expect,
    }));
  },
  answer({ platform, matchImages }) {
    const file = platformFile(platform);
    const { config, verdicts } = mergeCredentialProviderConfig(file.template, matchImages);
    const files = poolFiles(file, config);
    const [first, second] = ['master', 'worker'].map((pool) => machineConfig(pool, files));
    const overlapped = verdicts.filter(({ verdict }) => verdict === 'Conflict').map(({ pattern }) => pattern);
    return {
      conditions: [
        validated(verdicts),
        {
          type: 'MachineConfigRendered',
          status: 'True',
          reason: 'MachineConfigRenderingSucceeded',
          message: 'Success',
        },
      ],
      files: Object.fromEntries(files.map(({ path, text }) => [path, text])),
      ignition: (first?.spec as { config: unknown } | undefined)?.config,
      machineConfigs: [first, second].map((one) => ({
        labels: one?.metadata.labels,
        name: one?.metadata.name,
      })),
      overlapped: overlapped.length === 0 ? null : overlapped.sort(),
    };
  },
  mutation: {
    file: 'runtime/credential-provider/merge.ts',
    replace: "return { pattern, verdict: 'Rendered', message: '' };",
    by: "return { pattern, verdict: 'Conflict', message: '' };",
  },
};
