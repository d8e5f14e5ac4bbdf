/**
 * Which of the blocked registries are really blocked: a cluster must be able to pull its own release.
 *
 * Source of the rule: the Machine Config Operator's `getValidBlockedAndAllowedRegistries`. What it leaves out, it says in its log
 * only.
 */
import { parseImageReference } from '../auth-lookup/image-reference.ts';
import { goQuote } from '../go/quote.ts';
import { compileMirrors, resolveMirrors } from '../mirrors/mirrors.ts';
import { isCanonical } from '../mirrors/reference-text.ts';
import { editEntries } from './entries.ts';
import type { NodeInput } from './input.ts';
import { loadProblem } from './load.ts';
import { isInside } from './scopes.ts';

/** The lists that go into the two files. */
export interface DerivedLists {
  /** Blocked in `registries.conf`. */
  readonly registries: readonly string[];
  /** Blocked in `policy.json`. */
  readonly policy: readonly string[];
  readonly allowed: readonly string[];
  /** Why something was left out, in the words of the operator's log. */
  readonly skipped?: string;
}

const NOTHING = { registries: [], policy: [], allowed: [] } as const;

/** Repository of the release, without tag and digest; undefined for text that is no full reference. */
export function payloadRepository(release: string): string | undefined {
  const parsed = parseImageReference(release);
  return parsed.ok && isCanonical(release) ? parsed.reference.repository : undefined;
}

/**
 * Derives the lists. Without a known release nothing is left out.
 *
 * @example
 * ```ts
 * import { derivedLists } from './payload.ts';
 * import assert from 'node:assert/strict';
 *
 * const lists = derivedLists({
 *   digest: [], tag: [], hasSets: false, release: 'quay.io/ocp/release:4.20',
 *   sources: { blocked: ['quay.io', 'bad.example.com'], allowed: [] },
 * });
 * assert.deepEqual(lists.registries, ['bad.example.com']);
 * ```
 */
export function derivedLists(input: NodeInput): DerivedLists {
  const { sources, release } = input;
  const payload = release === undefined ? undefined : payloadRepository(release);
  if (release === undefined || payload === undefined)
    return { registries: sources.blocked, policy: sources.blocked, allowed: sources.allowed };
  const covering = new Set(sources.blocked.filter((scope) => isInside(payload, scope)));
  if (covering.size === 0)
    return { registries: sources.blocked, policy: sources.blocked, allowed: sources.allowed };
  const left = hasPlaceLeft(input, release);
  if (typeof left === 'string') return { ...NOTHING, skipped: left };
  const kept = sources.blocked.filter((scope) => left || !covering.has(scope));
  const dropped = sources.blocked.filter((scope) => !left && covering.has(scope));
  const mirrored = sources.blocked.filter((scope) => left && covering.has(scope));
  return {
    registries: kept,
    policy: kept.filter((scope) => scope !== payload),
    allowed: [...mirrored.map(() => payload), ...sources.allowed],
    ...(dropped.length === 0
      ? {}
      : {
          skipped: `error adding [${dropped.map(goQuote).join(' ')}] to blocked registries, cannot block the repository being used by the payload`,
        }),
  };
}

/** Whether the release can be pulled although every blocked scope is blocked; text where that cannot be found out. */
function hasPlaceLeft({ digest, sources }: NodeInput, release: string): boolean | string {
  const { insecure = [], blocked } = sources;
  const { rules, faults } = editEntries({ digest, tag: [], insecure, blocked });
  const fault = faults[0]?.text.replace(/^could not update registries config with new changes: /, '');
  const unloadable = fault ?? loadProblem(rules);
  if (unloadable !== undefined) return unloadable;
  const { candidates, skipped, refusal } = resolveMirrors(compileMirrors(rules), release);
  if (refusal !== undefined) return refusal;
  const places = [...candidates, ...skipped.filter(({ reason }) => reason === 'Blocked')];
  return places.some(({ reference }) => {
    const parsed = parseImageReference(reference);
    const name = parsed.ok ? parsed.reference.repository : reference;
    return !blocked.some((scope) => isInside(name, scope));
  });
}
