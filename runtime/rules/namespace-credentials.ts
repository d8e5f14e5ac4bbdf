/**
 * Which credential of a namespace goes to which pull source.
 *
 * Each source takes the most specific key that some secret of the namespace has for it, on whole path segments, in the order
 * in which the container runtime looks keys up in an auth file. Among secrets that offer the same key the first valid one
 * wins: the pod's imagePullSecrets, then the ServiceAccount's, then the others by name.
 *
 * Source of the rule: requirement "CRIOCredentialProviderConfig", auth file generation; containers/image `authKeyLookupOrder`.
 */
import {
  canonicalKey,
  credentialOf,
  lookupKeys,
  type RegistryCredential,
  sameCredential,
} from './auth-file-entry.ts';
import type { PullSource } from './pull-sources.ts';
import { type Redacted, reveal } from './redacted.ts';

/** A Secret that may hold registry credentials. */
export interface PullSecret {
  readonly name: string;
  readonly type: string;
  /** Base64 of the value under the key that belongs to the type; absent when the Secret lacks it. */
  readonly body: Redacted<string> | undefined;
}

/** One secret offers one credential for one key. */
export interface Offer {
  readonly secret: string;
  readonly credential: RegistryCredential;
}

export interface Offers {
  /** By canonical key; only keys that some source looks up. */
  readonly byKey: ReadonlyMap<string, readonly Offer[]>;
  /** Secrets and entries that were passed over, for the log; names only. */
  readonly skipped: readonly string[];
}

/** One entry for the auth file. */
export interface ChosenEntry {
  readonly key: string;
  readonly secret: string;
  readonly credential: RegistryCredential;
  /** Secrets that offer something else for the key. */
  readonly passedOver: readonly string[];
}

export interface Choice {
  readonly entries: readonly ChosenEntry[];
  /** Per source the key that serves it. Sources without a credential of the namespace are absent. */
  readonly keyBySource: ReadonlyMap<string, string>;
}

/** The data key of each type of Secret that is understood. */
export const BODY_KEY: Readonly<Record<string, string>> = {
  'kubernetes.io/dockerconfigjson': '.dockerconfigjson',
  'kubernetes.io/dockercfg': '.dockercfg',
  'kubernetes.io/podmanconfigjson': '.podmanconfigjson',
};

/** Reads the secrets and keeps what some source can use, each key's offers in the order of `secrets`. */
export function collectOffers(secrets: readonly PullSecret[], sources: readonly PullSource[]): Offers {
  const wanted = new Set<string>();
  for (const { repository } of sources) for (const key of lookupKeys(repository)) wanted.add(key);
  const byKey = new Map<string, Offer[]>();
  const skipped: string[] = [];
  for (const secret of secrets) {
    const entries = entriesOf(secret);
    if (typeof entries === 'string') skipped.push(`secret "${secret.name}": ${entries}`);
    else collectEntries(secret.name, entries, wanted, { byKey, skipped });
  }
  return { byKey, skipped };
}

function collectEntries(
  secret: string,
  entries: Readonly<Record<string, unknown>>,
  wanted: ReadonlySet<string>,
  into: { readonly byKey: Map<string, Offer[]>; readonly skipped: string[] },
): void {
  for (const spelled in entries) {
    const key = canonicalKey(spelled);
    if (!wanted.has(key)) continue;
    const credential = credentialOf(entries[spelled]);
    if (typeof credential === 'string') {
      into.skipped.push(`secret "${secret}", entry "${spelled}": ${credential}`);
      continue;
    }
    const offers = into.byKey.get(key);
    if (offers === undefined) into.byKey.set(key, [{ secret, credential }]);
    // Two spellings of one key in one secret: the canonical one counts, else the first.
    else if (offers.at(-1)?.secret !== secret) offers.push({ secret, credential });
    else if (spelled === key) offers[offers.length - 1] = { secret, credential };
  }
}

/** The entries of a Secret, or why there are none. */
function entriesOf(secret: PullSecret): Readonly<Record<string, unknown>> | string {
  const name = BODY_KEY[secret.type];
  if (name === undefined) return `type "${secret.type}" holds no registry credentials`;
  if (secret.body === undefined) return `it has no key "${name}"`;
  try {
    const text = atob(reveal(secret.body));
    // Bytes beyond ASCII need decoding; most bodies have none.
    const body: unknown = JSON.parse(isAscii(text) ? text : Buffer.from(text, 'latin1').toString('utf8'));
    const entries = secret.type === 'kubernetes.io/dockercfg' ? body : member(body, 'auths');
    return typeof entries === 'object' && entries !== null && !Array.isArray(entries)
      ? (entries as Readonly<Record<string, unknown>>)
      : 'it has no entries';
  } catch {
    return `"${name}" is no JSON`;
  }
}

function member(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[name] : undefined;
}

function isAscii(text: string): boolean {
  return !/[^\0-\x7f]/.test(text);
}

/**
 * Chooses one credential per key that a source uses. `order` names secrets from first to last; secrets that it does not name
 * follow by name.
 *
 * @example
 * ```ts
 * import { chooseCredentials, collectOffers } from './namespace-credentials.ts';
 * import { redact } from './redacted.ts';
 * import assert from 'node:assert/strict';
 *
 * const secret = (name: string, auth: string) => ({
 *   name,
 *   type: 'kubernetes.io/dockerconfigjson',
 *   body: redact(btoa(JSON.stringify({ auths: { 'mirror.example.com': { auth: btoa(auth) } } }))),
 * });
 * const sources = [{ repository: 'mirror.example.com/library/nginx', kind: 'mirror' }] as const;
 * const offers = collectOffers([secret('a', 'u1:p1'), secret('b', 'u2:p2')], sources);
 * assert.equal(chooseCredentials(offers, sources, ['b']).entries[0]?.secret, 'b');
 * assert.deepEqual(chooseCredentials(offers, sources, []).entries[0]?.passedOver, ['b']);
 * ```
 */
export function chooseCredentials(
  offers: Offers,
  sources: readonly PullSource[],
  order: readonly string[],
): Choice {
  const keyBySource = new Map<string, string>();
  for (const { repository } of sources) {
    const key = lookupKeys(repository).find((candidate) => offers.byKey.has(candidate));
    if (key !== undefined) keyBySource.set(repository, key);
  }
  const rank = new Map(order.map((name, index) => [name, index]));
  const entries = [...new Set(keyBySource.values())].map((key) =>
    chosenEntry(key, offers.byKey.get(key) ?? [], rank),
  );
  return { entries: entries.filter((entry) => entry !== undefined), keyBySource };
}

function chosenEntry(
  key: string,
  offers: readonly Offer[],
  rank: ReadonlyMap<string, number>,
): ChosenEntry | undefined {
  const [first, ...others] =
    offers.length === 1 ? offers : [...offers].sort((a, b) => compareOffers(a, b, rank));
  if (first === undefined) return undefined;
  const passedOver = others
    .filter((other) => !sameCredential(other.credential, first.credential))
    .map(({ secret }) => secret);
  return { key, secret: first.secret, credential: first.credential, passedOver };
}

function compareOffers(a: Offer, b: Offer, rank: ReadonlyMap<string, number>): number {
  const byRank = (rank.get(a.secret) ?? Infinity) - (rank.get(b.secret) ?? Infinity);
  if (byRank !== 0 && !Number.isNaN(byRank)) return byRank;
  return a.secret < b.secret ? -1 : 1;
}
