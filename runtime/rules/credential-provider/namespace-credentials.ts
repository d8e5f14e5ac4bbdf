/**
 * Which credential of a namespace goes to which pull source.
 *
 * Each source takes the most specific key that some secret of the namespace has for it, on whole path segments, in the order
 * in which the container runtime looks keys up in an auth file. Among secrets that offer the same key the first valid one
 * wins: the pod's imagePullSecrets, then the ServiceAccount's, then the others by name.
 *
 * Source of the rule: requirement "CRIOCredentialProviderConfig", auth file generation; containers/image `authKeyLookupOrder`.
 */

import { readEntryMembers } from '../docker-config/entry-members.ts';
import type { JsonMember, JsonNode } from '../go/json.ts';
import type { PullSource } from '../mirrors/pull-sources.ts';
import { type Redacted, redact, reveal } from '../redacted.ts';
import {
  canonicalKey,
  credentialOf,
  firstLookupKey,
  type RegistryCredential,
  sameCredential,
} from './auth-file-entry.ts';

/** A Secret that may hold registry credentials. */
export interface NamespacePullSecret {
  readonly name: string;
  readonly type: string;
  /** Base64 of the value under the key that belongs to the type; absent when the Secret lacks it. */
  readonly body: Redacted<string> | undefined;
}

/** One secret offers an entry for one key; whether it is a credential is looked at only when some source needs the key. */
interface Offer {
  readonly secret: string;
  /** The key as it is written in the secret. */
  readonly spelled: string;
  readonly entry: Redacted<JsonNode>;
}

export interface Offers {
  /** By canonical key. */
  readonly byKey: ReadonlyMap<string, readonly Offer[]>;
  /** Secrets that were passed over, for the log; names only. */
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
  /** Entries that the runtime would not use, for the log; names only. */
  readonly skipped: readonly string[];
}

/** The data key of each type of Secret that is understood. */
export const BODY_KEY: Readonly<Record<string, string>> = {
  'kubernetes.io/dockerconfigjson': '.dockerconfigjson',
  'kubernetes.io/dockercfg': '.dockercfg',
  'kubernetes.io/podmanconfigjson': '.podmanconfigjson',
};

/** Reads the secrets: each key's offers in the order of `secrets`. */
export function collectOffers(secrets: readonly NamespacePullSecret[]): Offers {
  const byKey = new Map<string, Offer[]>();
  const skipped: string[] = [];
  for (const secret of secrets) {
    const entries = entriesOf(secret);
    if (typeof entries === 'string') skipped.push(`secret "${secret.name}": ${entries}`);
    else
      for (const { key: spelled, value } of entries)
        addOffer(byKey, { secret: secret.name, spelled, entry: redact(value) });
  }
  return { byKey, skipped };
}

function addOffer(byKey: Map<string, Offer[]>, offer: Offer): void {
  const key = canonicalKey(offer.spelled);
  const offers = byKey.get(key);
  if (offers === undefined) byKey.set(key, [offer]);
  // Two spellings of one key in one secret: the canonical one counts, else the first.
  else if (offers.at(-1)?.secret !== offer.secret) offers.push(offer);
  else if (offer.spelled === key) offers[offers.length - 1] = offer;
}

/** The entries of a Secret, or why there are none. */
function entriesOf(secret: NamespacePullSecret): Iterable<JsonMember> | string {
  const name = BODY_KEY[secret.type];
  if (name === undefined) return `type "${secret.type}" holds no registry credentials`;
  if (secret.body === undefined) return `it has no key "${name}"`;
  const text = bodyText(secret.body);
  if (text === undefined) return `"${name}" is no base64`;
  const format = secret.type === 'kubernetes.io/dockercfg' ? 'dockercfg' : 'config.json';
  const found = readEntryMembers(text, format);
  if (found === undefined) return `"${name}" is no JSON object with entries`;
  return found.present ? found.entries.values() : 'it has no entries';
}

function bodyText(body: Redacted<string>): string | undefined {
  try {
    const text = atob(reveal(body));
    // Bytes beyond ASCII need decoding; most bodies have none.
    return isAscii(text) ? text : Buffer.from(text, 'latin1').toString('utf8');
  } catch {
    return undefined;
  }
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
 * import { redact } from '../redacted.ts';
 * import assert from 'node:assert/strict';
 *
 * const secret = (name: string, auth: string) => ({
 *   name,
 *   type: 'kubernetes.io/dockerconfigjson',
 *   body: redact(btoa(JSON.stringify({ auths: { 'mirror.example.com': { auth: btoa(auth) } } }))),
 * });
 * const sources = [{ repository: 'mirror.example.com/library/nginx', kind: 'mirror' }] as const;
 * const offers = collectOffers([secret('a', 'u1:p1'), secret('b', 'u2:p2')]);
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
  const entries = new Map<string, ChosenEntry | undefined>();
  const skipped: string[] = [];
  const rank = new Map(order.map((name, index) => [name, index]));
  const serves = (key: string): boolean => {
    const offered = offers.byKey.get(key);
    if (offered === undefined) return false;
    if (!entries.has(key)) entries.set(key, chosenEntry(key, inOrder(offered, rank), skipped));
    return entries.get(key) !== undefined;
  };
  const hosts = new Set(Array.from(offers.byKey.keys(), hostOf));
  for (const { repository } of sources) {
    // Of a thousand mirrors most have no secret, and a host is looked up faster than each path below it.
    if (!hosts.has(hostOf(repository))) continue;
    const key = firstLookupKey(repository, serves);
    if (key !== undefined) keyBySource.set(repository, key);
  }
  const used = new Set(keyBySource.values());
  const chosen = [...entries.values()].filter((entry) => entry !== undefined && used.has(entry.key));
  return { entries: chosen as readonly ChosenEntry[], keyBySource, skipped };
}

function hostOf(place: string): string {
  const slash = place.indexOf('/');
  return slash === -1 ? place : place.slice(0, slash);
}

/** The first offer that is a credential; what else is offered is skipped. */
function chosenEntry(key: string, offers: readonly Offer[], skipped: string[]): ChosenEntry | undefined {
  let first: { readonly secret: string; readonly credential: RegistryCredential } | undefined;
  const passedOver: string[] = [];
  for (const { secret, spelled, entry } of offers) {
    const credential = credentialOf(reveal(entry));
    if (typeof credential === 'string') skipped.push(`secret "${secret}", entry "${spelled}": ${credential}`);
    else if (first === undefined) first = { secret, credential };
    else if (!sameCredential(credential, first.credential)) passedOver.push(secret);
  }
  return first === undefined ? undefined : { key, ...first, passedOver };
}

function inOrder(offers: readonly Offer[], rank: ReadonlyMap<string, number>): readonly Offer[] {
  if (offers.length === 1) return offers;
  const last = rank.size;
  return [...offers].sort((a, b) => {
    const byRank = (rank.get(a.secret) ?? last) - (rank.get(b.secret) ?? last);
    if (byRank !== 0) return byRank;
    return a.secret < b.secret ? -1 : 1;
  });
}
