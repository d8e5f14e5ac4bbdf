/**
 * The auth file that the container runtime uses for one pull instead of the node's own: credentials of the namespace, and those
 * of the node for pull sources without one. Nothing else, because the file may outlive the pull.
 *
 * Source of the rule: requirement "CRIOCredentialProviderConfig", auth file generation; containers/image look-up order.
 */
import { fieldOf, readEntryMembers, readTexts, wrongTextField } from '../core/docker-config/fields.ts';
import type { JsonMember, JsonNode } from '../core/go/json.ts';
import type { Registry } from '../core/mirrors/registries-conf.ts';
import { compileMirrors, findRule, withoutTagAndDigest } from '../core/mirrors/resolve.ts';
import { jsonOf, recordOf, textOf } from '../core/record.ts';
import { type Redacted, redact, reveal } from '../core/redacted.ts';
import { trimEndOf, trimStartOf } from '../core/text.ts';

// One entry of an auth file: its key as the container runtime looks it up, and its credential as the runtime reads it. Source of
// the rule: containers/image `pkg/docker/config` (`authKeyLookupOrder`, `decodeDockerAuth`), Docker's habit of API addresses as
// keys, and the kubelet keyring, which treats `/v1/` and `/v2/` as the host. registry-key.ts, with its port of Go's URL parser,
// takes longer to load than a run lasts, so this file normalizes keys itself. A test compares both over all combinations of
// scheme, host, port and path.

/** Credential for one key of an auth file. */
export interface RegistryCredential {
  /** Padded base64 of `user:password`. */
  readonly auth: Redacted<string>;
  readonly identityToken?: Redacted<string>;
}

/** Hosts that mean the same registry, and the name under which the runtime looks it up. */
const DOCKER_HUB = /^(?:index\.docker\.io|registry-1\.docker\.io|docker\.io)(?=\/|$)/;

/**
 * The key as the runtime looks it up: no scheme, API path or trailing slash, host in lower case, Docker Hub as `docker.io`.
 * Invalid text gives a key that matches nothing.
 */
export function canonicalKey(spelled: string): string {
  if (SIMPLE_KEY.test(spelled) && !spelled.endsWith('docker.io')) return spelled;
  const bare = spelled.replace(/^https?:\/\//i, '');
  const slash = bare.indexOf('/');
  const host = hostOf(bare).toLowerCase();
  const isUrl = bare.length !== spelled.length || DOCKER_HUB.test(host);
  // `/v2/` begins an API address; `quay.io/v2` without a scheme is a namespace called v2.
  const version = isUrl ? /^\/v[12](?=\/|$)/ : /^\/v[12](?=\/)/;
  const path = slash === -1 ? '' : trimEndOf(bare.slice(slash).replace(version, ''), '/');
  return (host + path).replace(DOCKER_HUB, 'docker.io');
}

const SIMPLE_KEY = /^[a-z0-9][a-z0-9.-]*(?::[0-9]+)?$/;

/**
 * The first key of a repository for which `has` returns true, in the lookup order of the runtime: the repository, each parent,
 * the host.
 */
export function firstLookupKey(repository: string, has: (key: string) => boolean): string | undefined {
  for (let key = repository; ; ) {
    if (has(key)) return key;
    const slash = key.lastIndexOf('/');
    if (slash <= 0) return undefined;
    key = key.slice(0, slash);
  }
}

/**
 * The credential of an entry, or why the runtime would not use it. A valid `auth` wins over `username` and `password`, as in the
 * kubelet. Unpadded and URL-safe base64 are accepted and rewritten for the runtime.
 */
export function credentialOf(entry: JsonNode): RegistryCredential | string {
  if (entry.kind !== 'object') return 'it is not an object';
  const { texts } = readTexts(entry, FIELDS);
  const { auth = '', username = '', password = '', identitytoken: token = '' } = texts;
  const pair = pairOfAuth(auth) ?? pairOfFields(username, password);
  if (token !== '') {
    // The runtime reads an identity token only with a decodable pair.
    return { auth: redact(pair ?? base64(`${username || '<token>'}:`)), identityToken: redact(token) };
  }
  if (pair !== undefined) return { auth: redact(pair) };
  return auth === ''
    ? 'it has neither auth nor username and password'
    : '"auth" is not base64 of "user:password"';
}

const FIELDS = ['auth', 'username', 'password', 'identitytoken'];

/** Canonical base64 of the pair in `auth`; undefined when the runtime would not use it. */
function pairOfAuth(auth: string): string | undefined {
  const bytes = decodeBase64(auth);
  const colon = bytes?.indexOf(':') ?? -1;
  if (bytes === undefined || colon <= 0) return undefined;
  const password = bytes.slice(colon + 1);
  // The runtime trims NUL bytes, which some tools append.
  const trimmed = trimStartOf(trimEndOf(password, '\0'), '\0');
  if (trimmed === '') return undefined;
  return trimmed === password && CANONICAL_BASE64.test(auth)
    ? auth
    : btoa(`${bytes.slice(0, colon)}:${trimmed}`);
}

const CANONICAL_BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

function pairOfFields(username: string, password: string): string | undefined {
  // A colon in the name would split name and password in the wrong place.
  if (username === '' || password === '' || username.includes(':')) return undefined;
  return base64(`${username}:${password}`);
}

function base64(text: string): string {
  return Buffer.from(text).toString('base64');
}

/** Decodes base64 of either alphabet, padded or not, into a string with one character per byte. */
function decodeBase64(text: string): string | undefined {
  try {
    return atob(/[-_]/.test(text) ? trimEndOf(text.replaceAll('-', '+').replaceAll('_', '/'), '=') : text);
  } catch {
    return undefined;
  }
}

/** Whether the runtime would send the same credential. */
function sameCredential(a: RegistryCredential, b: RegistryCredential): boolean {
  return JSON.stringify(entryJson(a)) === JSON.stringify(entryJson(b));
}

/** String fields by name. */
type Texts = Readonly<Record<string, string>>;

/** Parts of the node's own auth file that may be copied. */
export type GlobalAuth = Readonly<NonNullable<ReturnType<typeof parseGlobalAuth>>>;

/** For a missing or unusable file. */
export const NO_GLOBAL_AUTH: GlobalAuth = { helpers: redact(new Map()), auths: redact(new Map()) };

/**
 * Reads the node's auth file; undefined when it is not a JSON object with an `auths` object. Ignores entries and
 * helpers of a wrong type, for which the runtime would reject the whole file.
 */
export function parseGlobalAuth(text: Redacted<string>) {
  const found = readEntryMembers(reveal(text), 'config.json');
  if (found === undefined) return undefined;
  const helpers = found.fields.filter(({ key }) => fieldOf(key, ['credHelpers']) !== undefined);
  return {
    /** Credential helpers by host; redacted, because a broken file may hold anything there. */
    helpers: redact(new Map(helpers.flatMap(({ value }) => Object.entries(textsOf(value))))),
    /** String fields of the entries, by key: the runtime reads no others. */
    auths: redact(new Map([...found.entries.values()].flatMap(usableEntry))),
  };
}

function usableEntry({ key, value }: JsonMember): readonly [string, Texts][] {
  if (value.kind !== 'object' || wrongTextField(value) !== undefined) return [];
  return [[key, textsOf(value)]];
}

/** The members that are strings; the last one wins among equal names. */
function textsOf(node: JsonNode): Texts {
  const members = node.kind === 'object' ? node.members : [];
  return Object.fromEntries(
    members.flatMap(({ key, value }) => (value.kind === 'string' ? [[key, value.value]] : [])),
  );
}

/** Whether the node's own file has an entry or helper for a source, so that a pull can succeed without the namespace. */
export function globalCovers(global: GlobalAuth, sources: readonly PullSource[]): boolean {
  const keys = new Set([...reveal(global.auths).keys()].map(canonicalKey));
  return sources.some(
    ({ repository }) =>
      firstLookupKey(repository, (key) => keys.has(key)) !== undefined ||
      reveal(global.helpers).has(hostOf(repository)),
  );
}

/** The file to write, and its number of entries. */
export type AuthFile = Readonly<ReturnType<typeof authFile>>;

/** A field that the runtime ignores. */
const RECORD = 'pullwright.dev/record';

/** Input of {@link authFile}. */
export interface AuthFileParts {
  readonly choice: Choice;
  /** Every pull source of the image. */
  readonly sources: readonly PullSource[];
  readonly global: GlobalAuth;
  /** Its writer, `<namespace>/<service account>`: no other account removes the file. Absent in a dry run. */
  readonly by?: string;
}

/**
 * The file: tab-indented JSON with sorted entries, as upstream writes it, and the record. Copies those entries and helpers of the
 * node that the runtime would use for pull sources without a credential of the namespace. None of them overrides an entry of the
 * namespace: a key above both pull sources would serve both.
 */
export function authFile({ choice, sources, global, by }: AuthFileParts) {
  const own = choice.entries.map(({ key, credential }) => [key, entryJson(credential)] as const);
  const unserved = sources.filter(({ repository }) => !choice.keyBySource.has(repository));
  const auths = sorted([...neededEntries(reveal(global.auths), unserved), ...own]);
  const helpers = neededHelpers(reveal(global.helpers), unserved, choice);
  const fields = [
    ['auths', auths],
    ...(helpers.length === 0 ? [] : [['credHelpers', sorted(helpers)] as const]),
    ...(by === undefined ? [] : [[RECORD, { by }] as const]),
  ];
  const text = JSON.stringify(Object.fromEntries(fields), null, '\t');
  return {
    text: redact(`${text.replace(/[<>&\u2028\u2029]/g, escaped)}\n`),
    entries: Object.keys(auths).length,
  };
}

/** The account that wrote a file; undefined without a record, as in files of other programs. */
export function writerOf(text: Redacted<string>): string | undefined {
  return textOf(recordOf(recordOf(jsonOf(reveal(text)))[RECORD])['by']) || undefined;
}

function neededEntries(present: ReadonlyMap<string, Texts>, unserved: readonly PullSource[]) {
  if (present.size === 0 || unserved.length === 0) return [];
  const entries = [...present].map((entry) => ({ entry, key: canonicalKey(entry[0]) }));
  // Hash only prefixes with the length of a key: hashing every prefix of a long repository takes quadratic time.
  const lengths = new Set(entries.flatMap(({ key }) => [key.length, hostOf(key).length]));
  const looked = new Set<string>();
  for (const { repository } of unserved)
    firstLookupKey(repository, (key) => {
      if (lengths.has(key.length)) looked.add(key);
      return false;
    });
  return entries
    .filter(({ entry: [spelled], key }) => {
      // The runtime matches a key that is a URL by its host, when no other key matches.
      return looked.has(key) || (spelled.includes('://') && looked.has(hostOf(key)));
    })
    .map(({ entry }) => entry);
}

/** The runtime tries a helper before any entry, so a helper would override the namespace's credential for its host. */
function neededHelpers(
  helpers: ReadonlyMap<string, string>,
  unserved: readonly PullSource[],
  choice: Choice,
): readonly (readonly [string, string])[] {
  const served = new Set([...choice.keyBySource.keys()].map(hostOf));
  const wanted = new Set(unserved.map(({ repository }) => hostOf(repository)));
  return [...helpers].filter(([host]) => wanted.has(host) && !served.has(host));
}

function entryJson(credential: RegistryCredential): Texts {
  const auth = reveal(credential.auth);
  return credential.identityToken === undefined
    ? { auth }
    : { auth, identitytoken: reveal(credential.identityToken) };
}

function hostOf(repository: string): string {
  const slash = repository.indexOf('/');
  return slash === -1 ? repository : repository.slice(0, slash);
}

function sorted(entries: readonly (readonly [string, unknown])[]): Readonly<Record<string, unknown>> {
  return Object.fromEntries([...entries].sort(([a], [b]) => (a < b ? -1 : 1)));
}

function escaped(char: string): string {
  return `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`;
}

// The credential of a namespace for each pull source. Each source gets the most specific key that a Secret of the namespace has
// for it, by whole path segments, in the lookup order of the container runtime. Among Secrets with the same key the first valid
// one wins: the pod's imagePullSecrets, then the ServiceAccount's, then the others by name. Source of the rule: requirement
// "CRIOCredentialProviderConfig", auth file generation; containers/image `authKeyLookupOrder`.

/** A Secret that may hold registry credentials. */
export interface NamespacePullSecret {
  readonly name: string;
  readonly type: string;
  /** Base64 of the value under the data key of the type; absent when the Secret lacks it. */
  readonly body: Redacted<string> | undefined;
}

/** Entry of a Secret for one key, validated only when a source needs the key. */
interface Offer {
  readonly secret: string;
  /** The key as it is written in the secret. */
  readonly spelled: string;
  readonly entry: Redacted<JsonNode>;
}

/** One entry for the auth file. */
type ChosenEntry = NonNullable<ReturnType<typeof chosenEntry>>;

export type Choice = Readonly<ReturnType<typeof chooseCredentials>>;

/** Data key of each supported type of Secret. */
export const BODY_KEY: Readonly<Record<string, string>> = {
  'kubernetes.io/dockerconfigjson': '.dockerconfigjson',
  'kubernetes.io/dockercfg': '.dockercfg',
  'kubernetes.io/podmanconfigjson': '.podmanconfigjson',
};

/** Reads the Secrets: the offers of each key, in the order of `secrets`. */
export function collectOffers(secrets: readonly NamespacePullSecret[]) {
  /** By canonical key. */
  const byKey = new Map<string, Offer[]>();
  /** Names of skipped Secrets, for the log. */
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

export type Offers = Readonly<ReturnType<typeof collectOffers>>;

function addOffer(byKey: Map<string, Offer[]>, offer: Offer): void {
  const key = canonicalKey(offer.spelled);
  const offers = byKey.get(key);
  if (offers === undefined) byKey.set(key, [offer]);
  // Two spellings of one key in one Secret: the canonical one wins, else the first.
  else if (offers.at(-1)?.secret !== offer.secret) offers.push(offer);
  else if (offer.spelled === key) offers[offers.length - 1] = offer;
}

/** The entries of a Secret, or why it has none. */
function entriesOf(secret: NamespacePullSecret): Iterable<JsonMember> | string {
  const name = BODY_KEY[secret.type];
  if (name === undefined) return `type "${secret.type}" has no registry credentials`;
  if (secret.body === undefined) return `it has no key "${name}"`;
  const text = bodyText(secret.body);
  if (text === undefined) return `"${name}" is not base64`;
  const format = secret.type === 'kubernetes.io/dockercfg' ? 'dockercfg' : 'config.json';
  const found = readEntryMembers(text, format);
  if (found === undefined) return `"${name}" is not a JSON object with entries`;
  return found.present ? found.entries.values() : 'it has no entries';
}

function bodyText(body: Redacted<string>): string | undefined {
  try {
    const text = atob(reveal(body));
    // Bytes beyond ASCII need decoding; most bodies have none.
    return !/[^\0-\x7f]/.test(text) ? text : Buffer.from(text, 'latin1').toString('utf8');
  } catch {
    return undefined;
  }
}

/**
 * Chooses one credential per key that a source uses. `order`: names of Secrets, first to last; others follow by name.
 */
export function chooseCredentials(offers: Offers, sources: readonly PullSource[], order: readonly string[]) {
  /** Sources without a credential of the namespace are absent. */
  const keyBySource = new Map<string, string>();
  const entries = new Map<string, ChosenEntry | undefined>();
  /** Entries that the runtime would not use, for the log; names only. */
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
    // Most of a thousand mirrors have no Secret, and one lookup by host is faster than one per path segment.
    if (!hosts.has(hostOf(repository))) continue;
    const key = firstLookupKey(repository, serves);
    if (key !== undefined) keyBySource.set(repository, key);
  }
  const used = new Set(keyBySource.values());
  const chosen = [...entries.values()].filter((entry) => entry !== undefined && used.has(entry.key));
  return { entries: chosen as readonly ChosenEntry[], keyBySource, skipped };
}

/** The first valid offer. */
function chosenEntry(key: string, offers: readonly Offer[], skipped: string[]) {
  let first: { readonly secret: string; readonly credential: RegistryCredential } | undefined;
  /** Secrets with another credential for the key. */
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

// Pull sources of an image: each mirror, then the location itself, with the repository rewritten. Credentials are looked up for
// these names, not for the image's.
// Source of the rule: containers/image `PullSourcesFromReference`; the kubelet names no tag or digest, so mirrors for tags
// and mirrors for digests both count.

export interface PullSource {
  /** Host and path, no tag, no digest. */
  readonly repository: string;
  readonly kind: 'mirror' | 'primary';
}

/**
 * The sources in the order in which the runtime tries them, without blocked ones. Empty when no mirror or rewrite applies: then
 * the kubelet's own credentials are the right ones.
 */
export function pullSources(registries: readonly Registry[], image: string): readonly PullSource[] {
  const index = compileMirrors(registries);
  const repository = withoutTagAndDigest(image);
  const found = findRule(index, repository);
  if (found === undefined) return [];
  const { location, mirrors } = found.rule;
  const rest = repository.slice(found.length);
  const primary = location === '' ? repository : location + rest;
  if (mirrors.length === 0 && primary === repository) return [];
  const sources: readonly PullSource[] = [
    ...mirrors.map((mirror) => ({ repository: mirror.location + rest, kind: 'mirror' as const })),
    { repository: primary, kind: 'primary' },
  ];
  if (!index.hasBlocked) return sources;
  return sources.filter((source) => findRule(index, source.repository)?.rule.blocked !== true);
}
