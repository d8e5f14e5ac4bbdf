/**
 * The auth file that the container runtime uses for one pull instead of the node's own: every entry of the node's file, and
 * over them what the namespace adds.
 *
 * Source of the rule: requirement "CRIOCredentialProviderConfig", auth file generation; containers/image look-up order.
 */

import type { PullSource } from '../mirrors/pull-sources.ts';
import { type Redacted, redact, reveal } from '../redacted.ts';
import { canonicalKey, firstLookupKey, type RegistryCredential } from './auth-file-entry.ts';
import type { Choice } from './namespace-credentials.ts';

type Entries = Record<string, unknown>;

/** The node's own auth file, read. */
export interface GlobalAuth {
  /** Everything but `auths`, unchanged: `credHelpers` and whatever else is there. */
  readonly rest: Redacted<Readonly<Entries>>;
  readonly auths: Redacted<Readonly<Entries>>;
}

/** No file, or none that can be used. */
export const NO_GLOBAL_AUTH: GlobalAuth = { rest: redact({}), auths: redact({}) };

/** Reads the node's auth file; undefined when it is no JSON object with an `auths` object. */
export function parseGlobalAuth(text: Redacted<string>): GlobalAuth | undefined {
  try {
    const whole: unknown = JSON.parse(reveal(text));
    if (!isObject(whole)) return undefined;
    const { auths = {}, ...rest } = whole;
    if (auths !== null && !isObject(auths)) return undefined;
    return { rest: redact(rest), auths: redact(auths ?? {}) };
  } catch {
    return undefined;
  }
}

/** Whether the node's own file has something for one of the sources: then a pull can succeed without the namespace. */
export function globalCovers(global: GlobalAuth, sources: readonly PullSource[]): boolean {
  const keys = new Set(Object.keys(reveal(global.auths)).map(canonicalKey));
  const helpers = reveal(global.rest)['credHelpers'];
  return sources.some(
    ({ repository }) =>
      firstLookupKey(repository, (key) => keys.has(key)) !== undefined ||
      (isObject(helpers) && Object.hasOwn(helpers, hostOf(repository))),
  );
}

/** What is to be written. */
export interface AuthFile {
  readonly text: Redacted<string>;
  readonly entries: number;
}

/**
 * The file: tab-indented JSON, entries sorted, as the file has always looked. The namespace wins: entries of the node
 * that the runtime would find before the namespace's are overruled by an entry for the exact repository, other spellings of a
 * written key and credential helpers of a served host are left out.
 *
 * @example
 * ```ts
 * import { authFile, NO_GLOBAL_AUTH } from './namespace-auth-file.ts';
 * import { redact, reveal } from '../redacted.ts';
 * import assert from 'node:assert/strict';
 *
 * const credential = { auth: redact(btoa('user:pass')) };
 * const entries = [{ key: 'mirror.example.com', secret: 'pull', credential, passedOver: [] }];
 * const { text } = authFile({ entries, keyBySource: new Map([['mirror.example.com/a', 'mirror.example.com']]), skipped: [] }, NO_GLOBAL_AUTH);
 * assert.equal(reveal(text), '{\n\t"auths": {\n\t\t"mirror.example.com": {\n\t\t\t"auth": "dXNlcjpwYXNz"\n\t\t}\n\t}\n}\n');
 * ```
 */
export function authFile(choice: Choice, global: GlobalAuth): AuthFile {
  const present = reveal(global.auths);
  const own = ownEntries(choice, present);
  const kept = Object.entries(present).filter(
    ([key]) => !Object.hasOwn(own, key) && !Object.hasOwn(own, canonicalKey(key)),
  );
  const auths = sorted([...kept, ...Object.entries(own)]);
  const rest = withoutHelpers(reveal(global.rest), choice);
  const text = JSON.stringify(sorted([...Object.entries(rest), ['auths', auths]]), null, '\t');
  return {
    text: redact(`${text.replace(/[<>&\u2028\u2029]/g, escaped)}\n`),
    entries: Object.keys(auths).length,
  };
}

function ownEntries(choice: Choice, present: Readonly<Entries>): Entries {
  const own: Entries = {};
  const byKey = new Map(choice.entries.map((entry) => [entry.key, entry.credential]));
  for (const [key, credential] of byKey) own[key] = entryJson(credential);
  if (Object.keys(present).length === 0) return own;
  for (const [repository, key] of choice.keyBySource) {
    const found = firstLookupKey(
      repository,
      (candidate) => candidate === key || Object.hasOwn(present, candidate),
    );
    const credential = byKey.get(key);
    if (found !== key && credential !== undefined) own[repository] = entryJson(credential);
  }
  return own;
}

function entryJson(credential: RegistryCredential): Entries {
  const auth = reveal(credential.auth);
  return credential.identityToken === undefined
    ? { auth }
    : { auth, identitytoken: reveal(credential.identityToken) };
}

/** A helper of a host is asked before any entry, so it would overrule the namespace. */
function withoutHelpers(rest: Readonly<Entries>, choice: Choice): Readonly<Entries> {
  const helpers = rest['credHelpers'];
  if (!isObject(helpers)) return rest;
  const served = new Set([...choice.keyBySource.keys()].map(hostOf));
  return {
    ...rest,
    credHelpers: Object.fromEntries(Object.entries(helpers).filter(([host]) => !served.has(host))),
  };
}

function hostOf(repository: string): string {
  const slash = repository.indexOf('/');
  return slash === -1 ? repository : repository.slice(0, slash);
}

function sorted(entries: readonly (readonly [string, unknown])[]): Entries {
  return Object.fromEntries([...entries].sort(([a], [b]) => (a < b ? -1 : 1)));
}

function escaped(char: string): string {
  return `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
