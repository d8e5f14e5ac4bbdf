/** The merge into a template, the conditions' defaults, and the kubelet's flags per platform. */

import type { CredentialProviderConfig } from '../../../../runtime/credential-provider/config.ts';
import { mergeCredentialProviderConfig } from '../../../../runtime/credential-provider/merge.ts';
import { kubeletFlags, platformFile } from '../../../../runtime/credential-provider/platform.ts';
import { conditionOf } from '../../../../runtime/credential-provider/reconciler/report.ts';
import type { ConformanceCase, ConformanceSuite } from '../../suite.ts';

interface MergeRow {
  readonly name: string;
  readonly matchImages: readonly string[];
  readonly template: CredentialProviderConfig | null;
  readonly want: unknown;
  readonly wantOverlapped?: readonly string[];
}

interface ConditionRow {
  readonly name: string;
  readonly err: string | null;
  readonly conditionType: string;
  readonly reason: string;
  readonly args?: readonly string[] | null;
  readonly want: unknown;
}

interface FlagRow {
  readonly platform: string;
  readonly want: string;
}

type Input =
  | { readonly table: 'merge'; readonly row: MergeRow }
  | { readonly table: 'condition'; readonly row: ConditionRow }
  | { readonly table: 'flag'; readonly row: FlagRow };

export const suite: ConformanceSuite<Input> = {
  cases(document) {
    const { source: _, ...tables } = document as Record<string, readonly never[]>;
    const { updateCredentialProviderConfig, conditions, credentialProviderConfigFlag, ...others } = tables;
    if (Object.keys(others).length > 0) throw new Error(`unknown tables ${Object.keys(others).join()}`);
    return [
      ...(updateCredentialProviderConfig ?? []).map(mergeCase),
      ...(conditions ?? []).map(conditionCase),
      ...(credentialProviderConfigFlag ?? []).map(flagCase),
    ];
  },
  answer(input) {
    if (input.table === 'merge') return merged(input.row);
    if (input.table === 'condition') return condition(input.row);
    const file = platformFile(input.row.platform);
    return file.isKnownToKubelet ? kubeletFlags(file.path) : '';
  },
  mutation: {
    file: 'runtime/credential-provider/merge.ts',
    replace: 'matchImages: [...new Set(kept)].sort()',
    by: 'matchImages: [...new Set(kept)].sort().reverse()',
  },
};

function mergeCase(row: MergeRow): ConformanceCase<Input> {
  const expected = { config: row.want, overlapped: row.wantOverlapped ?? [] };
  return { name: row.name, input: { table: 'merge', row }, expected };
}

function conditionCase(row: ConditionRow): ConformanceCase<Input> {
  return { name: row.name, input: { table: 'condition', row }, expected: row.want };
}

function flagCase(row: FlagRow): ConformanceCase<Input> {
  return { name: row.platform, input: { table: 'flag', row }, expected: row.want };
}

function merged({ template, matchImages }: MergeRow): unknown {
  const { config, verdicts } = mergeCredentialProviderConfig(template ?? undefined, matchImages);
  const overlapped = verdicts.filter(({ verdict }) => verdict === 'Conflict').map(({ pattern }) => pattern);
  return { config: config ?? null, overlapped: overlapped.sort() };
}

/** For an error, our helper always gets a reason and a message; the peer's helper fills them in. */
function condition({ err, conditionType, reason, args }: ConditionRow): unknown {
  const type = (conditionType || 'MachineConfigRendered') as 'Validated';
  if (err === null && reason === '') return conditionOf(type);
  // The table's arguments are a Go format and what goes into it.
  const [format = '', ...values] = args ?? [];
  const message = format.replace(/%s/g, () => values.shift() ?? '') || `Error: ${err}`;
  return conditionOf(type, { reason: reason || 'MachineConfigRenderingFailed', message });
}
