/**
 * What makes the operator reject the whole configuration of a cluster, in the order in which it checks.
 *
 * Source of the rule: the Machine Config Operator's `validateRegistriesConfScopes` and `updatePolicyJSON`. It stops at the first
 * fault; here all are found, so that they can be corrected together.
 */

import { PullwrightError } from '../../core/errors.ts';
import { goQuote } from '../../core/go/text.ts';
import { registriesOf } from '../../core/mirrors/registries-conf.ts';
import type { MirrorRule, RuleOrigin } from '../../core/mirrors/resolve.ts';
import { trimEndOf } from '../../core/text.ts';
import { entryFaults, type RegistriesFault } from '../mirror-sets/collect.ts';
import { IMAGE_CONFIG, isScope, type NodeInput } from './input.ts';

const CONF = 'could not update registries config with new changes: ';
const POLICY = 'could not update policy json with new changes: ';

/** Faults of the scopes and entries that go into `registries.conf`. `blocked` is the derived list (payload.ts). */
export function confFaults(input: NodeInput, blocked: readonly string[]): readonly RegistriesFault[] {
  return [
    ...scopeFaults('insecure', input.sources.insecure ?? [], CONF),
    ...scopeFaults('blocked', blocked, CONF),
    ...entryFaults(input.entries).map((fault) => ({ ...fault, text: CONF + fault.text })),
  ];
}

/** Faults of the lists that go into `policy.json`; `payload` is the repository of the release. */
export function policyFaults(
  blocked: readonly string[],
  allowed: readonly string[],
  payload: string | undefined,
): readonly RegistriesFault[] {
  const both = blocked.length > 0 && allowed.length > 0;
  if (both && !(allowed.length === 1 && allowed[0] === payload)) {
    const text = 'invalid images config: only one of AllowedRegistries or BlockedRegistries may be specified';
    const message = 'lists registries as allowed and as blocked: keep one of the two lists';
    return [
      { code: 'AllowedAndBlocked', origin: imageOrigin('blockedRegistries'), text: POLICY + text, message },
    ];
  }
  return [...scopeFaults('blocked', blocked, POLICY), ...scopeFaults('allowed', allowed, POLICY)];
}

/** Where a list of the Image object is. */
export function imageOrigin(list: string): RuleOrigin {
  const path = list === '' ? 'spec.registrySources' : `spec.registrySources.${list}`;
  return { kind: IMAGE_CONFIG.kind, name: IMAGE_CONFIG.name, path };
}

/** A wildcard source cannot hand its mirrors down to a scope below it. */
export function wildcardFault(source: string, scope: string, origin: RuleOrigin): RegistriesFault {
  const text = `internal error: mirrorsAdjustedForNestedScope for a wildcard scope ${goQuote(source)}`;
  const message = `has the wildcard source "${source}", and Image/cluster names "${scope}" below it as insecure or blocked: give "${scope}" mirrors of its own, or take it out`;
  return { code: 'WildcardOverScope', origin, text: CONF + text, message };
}

export function releaseFault(image: string): RegistriesFault {
  const origin: RuleOrigin = { kind: 'ClusterVersion', name: 'version', path: 'status.desired.image' };
  const message = `has the release image "${image}": expected a reference with host, repository and tag or digest`;
  return { code: 'ReleaseImageInvalid', origin, text: 'error parsing reference of release image', message };
}

function scopeFaults(
  list: 'insecure' | 'blocked' | 'allowed',
  scopes: readonly string[],
  head: string,
): readonly RegistriesFault[] {
  return scopes
    .filter((scope) => !isScope(scope))
    .map((scope) => ({
      code: 'ScopeInvalid',
      origin: imageOrigin(`${list}Registries`),
      text: `${head}invalid entry for ${list} registries ${goQuote(scope)}`,
      message: `has the entry "${scope}": expected a host with optional port and path, or "*.example.com"`,
    }));
}

// Whether the runtime can load what the operator wrote: some scopes that the operator takes make CRI-O refuse the whole file, and
// then it keeps the rules that it has, or does not start.

/**
 * The runtime's reason for refusing a file with these entries and this list of search registries; undefined where it loads.
 */
export function loadProblem(
  rules: readonly MirrorRule[],
  search: readonly string[] = [],
): string | undefined {
  try {
    registriesOf({
      'unqualified-search-registries': search,
      registry: rules.map(({ prefix, location, blocked, insecure, mirrors }) => ({
        prefix: prefix.startsWith('*.') ? prefix : '',
        location,
        blocked,
        insecure,
        mirror: mirrors.map(({ pullFrom, ...mirror }) => ({
          location: mirror.location,
          'pull-from-mirror': pullFrom,
        })),
      })),
    });
    return undefined;
  } catch (error) {
    if (error instanceof PullwrightError) return error.message;
    throw error;
  }
}

/** The entries as the runtime has them when it has loaded the file: without trailing slashes, and of equal ones the first. */
export function loadedRules(rules: readonly MirrorRule[]): readonly MirrorRule[] {
  if (!rules.some(({ prefix }) => prefix.endsWith('/'))) return rules;
  const seen = new Set<string>();
  return rules
    .map((rule) => ({ ...rule, prefix: withoutSlash(rule.prefix), location: withoutSlash(rule.location) }))
    .filter(({ prefix }) => !seen.has(prefix) && seen.add(prefix));
}

function withoutSlash(place: string): string {
  return trimEndOf(place, '/');
}
