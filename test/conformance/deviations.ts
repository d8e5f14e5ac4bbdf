/**
 * Deliberate differences from the peer: for each suite, predicates over the input, with a reason. A case that such a
 * predicate selects counts as passed when we answer differently; when we answer the same, the entry is out of date for that
 * input and nothing is excused.
 */
import { patternsMeet } from '../../runtime/credential-provider/merge.ts';
import { platformFile } from '../../runtime/credential-provider/platform.ts';
import { scopesConflict } from '../credential-provider/support/scope-rule.ts';
import { ADAPTER_DEVIATIONS } from './adapter-deviations.ts';
import { GLOBALPS_DEVIATIONS } from './globalps-deviations.ts';
import { KRUISE_DEVIATIONS } from './kruise-deviations.ts';
import { OVERRIDES_DEVIATIONS } from './overrides-deviations.ts';
import type { Deviation } from './suite.ts';

/** Whether the kubelet's matching and a text comparison differ for an entry and a pattern of the platform's providers. */
function conflictRulesDiffer(matchImages: readonly string[], template: unknown): boolean {
  const { providers = [] } = (template ?? {}) as {
    providers?: readonly { matchImages?: readonly string[] }[];
  };
  const patterns = providers.flatMap((provider) => provider.matchImages ?? []);
  return matchImages.some((entry) =>
    patterns.some((pattern) => patternsMeet(entry, pattern) !== scopesConflict(entry, pattern)),
  );
}

const CONFLICT_RULE =
  "conflicts are found by the kubelet's own matching; the peer compares texts, drops entries that cannot meet and keeps some that do";

export const DEVIATIONS: Readonly<Record<string, readonly Deviation[]>> = {
  ...ADAPTER_DEVIATIONS,
  ...GLOBALPS_DEVIATIONS,
  ...KRUISE_DEVIATIONS,
  ...OVERRIDES_DEVIATIONS,
  'mco/rendered-machineconfigs': [
    {
      when: (input) => {
        const { platform, matchImages } = input as { platform: string; matchImages: readonly string[] };
        return conflictRulesDiffer(matchImages, platformFile(platform).template);
      },
      reason: CONFLICT_RULE,
    },
  ],
  'mco/helpers-unit': [
    {
      when: (input) => {
        const { row } = input as { row: { matchImages?: readonly string[]; template?: unknown } };
        return conflictRulesDiffer(row.matchImages ?? [], row.template);
      },
      reason: CONFLICT_RULE,
    },
  ],
};
