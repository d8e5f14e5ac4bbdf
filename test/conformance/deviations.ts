/**
 * Where we answer differently on purpose: for each suite, predicates over the input, with a reason. A case that such a
 * predicate selects counts as passed when we answer differently; when we answer the same, the entry is out of date for that
 * input and nothing is excused.
 */

import { patternsMeet } from '../../runtime/rules/credential-provider/glob-algebra.ts';
import { platformFile } from '../../runtime/rules/credential-provider/platform.ts';
import { scopesConflict } from '../credential-provider/support/scope-rule.ts';
import { ADAPTER_DEVIATIONS } from './adapter-deviations.ts';
import { GLOBALPS_DEVIATIONS } from './globalps-deviations.ts';
import { type Deviation, text } from './suite.ts';

function hostOf(place: string): string {
  return place.split('/')[0] ?? '';
}

const OVERRIDES: Readonly<Record<string, readonly Deviation[]>> = {
  'overrides/mirror-override-resolve': [
    {
      when: (input) => text(input, 'source').startsWith('*.'),
      reason:
        'a wildcard source covers every subdomain, as it does for the container runtime; the peer refuses it',
    },
    {
      when: (input) =>
        text(input, 'source').split('/').length > 2 && text(input, 'mirror').split('/').length <= 2,
      reason: 'a mirror may have one path element; the peer cannot compose the reference',
    },
    {
      when: (input) => hostOf(text(input, 'source')) !== hostOf(text(input, 'image')),
      reason: 'a rule for one host says nothing about another; the peer compares hosts only sometimes',
    },
    {
      when: (input) => /^[^/]+:\d+$/.test(text(input, 'source')),
      reason: 'a source may be a host with its port; the peer reads the port as a tag',
    },
    {
      when: (input) =>
        text(input, 'source').split('/').length === 2 && text(input, 'mirror').split('/').length !== 2,
      reason: 'a mirror may have any number of path elements; the peer drops or misses some',
    },
    {
      when: (input) =>
        text(input, 'source').split('/').length > 2 &&
        text(input, 'image').startsWith(`${text(input, 'source')}/`),
      reason: 'a source covers everything below it, as it does for the container runtime',
    },
    {
      when: (input) => /^docker\.io\/[^/]+$/.test(text(input, 'image')),
      reason:
        'an image of the Docker library is looked up with its namespace; the peer cannot compose the reference',
    },
  ],
  'overrides/release-lookup-match': [
    {
      when: (input) => {
        const rest = text(input, 'image').slice(text(input, 'source').length);
        return !text(input, 'image').startsWith(text(input, 'source')) || !/^(?:$|[/:@])/.test(rest);
      },
      reason: 'a source matches whole path segments from the start; the peer finds its text anywhere',
    },
  ],
  'overrides/olm-annotation-overrides': [
    {
      when: (input) =>
        Object.values(input as object).some((value) => /@sha256:(?![0-9a-f]{64}$)/.test(String(value))),
      reason:
        'a digest has 64 hexadecimal digits; the peer looks for "@sha256:" only, and the pods fail later',
    },
  ],
  'overrides/olm-catalog-images': [
    {
      when: (input) =>
        Object.keys((input as { overrides?: object | null }).overrides ?? {}).length > 0 &&
        ((input as { existing?: readonly string[] }).existing ?? []).some((image) =>
          image.startsWith('registry.redhat.io/redhat/'),
        ),
      reason: 'a catalog that no mirror has is taken from its own registry; the peer gives up',
    },
  ],
};

/** Whether some entry and some pattern of the platform's providers are judged differently by the kubelet and by text. */
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
  ...OVERRIDES,
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
