/**
 * The auth file that the container runtime uses for one pull instead of the node's own: credentials of the namespace for the
 * pull sources that it serves, those of the node for the other ones. Nothing else, because the file may outlive the pull.
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

// One entry of an auth file: its key as the container runtime looks it up, and its credential as the runtime reads it.
// Source of the rule: containers/image `pkg/docker/config` (`authKeyLookupOrder`, `decodeDockerAuth`), Docker's habit of API
// addresses as keys, and the kubelet keyring, which treats `/v1/` and `/v2/` as the host.
// The complete rule of keys (registry-key.ts, with the URL parser of Go behind it) takes longer to load than a run lasts, so
// this file spells keys its own short way. A test holds it against the complete one over all combinations of scheme, host, port
// and path. Documents are read by the reader that everything else has.

/** What an auth file holds for one key. */
export interface RegistryCredential {
  /** Padded base64 of `user:password`. */
  readonly auth: Redacted<string>;
  readonly identityToken?: Redacted<string>;
}

/** Hosts that mean the same registry, and the name under which the runtime looks it up. */
const DOCKER_HUB = /^(?:index\.docker\.io|registry-1\.docker\.io|docker\.io)(?=\/|$)/;

/**
 * The spelling under which the runtime finds the key: no scheme, no API path, no trailing slash, host in lower case, Docker
 * Hub as `docker.io`. Text that cannot be a key gives text that matches nothing.
 */
export function canonicalKey(spelled: string): string {
  if (SIMPLE_KEY.test(spelled) && !spelled.endsWith('docker.io')) return spelled;
  const bare = spelled.replace(/^https?:\/\//i, '');
  const slash = bare.indexOf('/');
  const host = hostOf(bare).toLowerCase();
  const isUrl = bare.length !== spelled.length || DOCKER_HUB.test(host);
  // `/v2/` begins an API address; `quay.io/v2` without a scheme is a namespace of that name, not all of the host.
  const version = isUrl ? /^\/v[12](?=\/|$)/ : /^\/v[12](?=\/)/;
  const path = slash === -1 ? '' : trimEndOf(bare.slice(slash).replace(version, ''), '/');
  return (host + path).replace(DOCKER_HUB, 'docker.io');
}

const SIMPLE_KEY = /^[a-z0-9][a-z0-9.-]*(?::[0-9]+)?$/;

/**
 * The first key for which `has` holds of those that the runtime tries for a repository, most specific first: the repository,
 * each parent, the host.
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
 * The credential of an entry, or why the runtime would not use it. A usable `auth` wins over `username` and `password`, as
 * in the kubelet; unpadded and URL-safe base64 are accepted and written in the form that the runtime reads.
 */
export function credentialOf(entry: JsonNode): RegistryCredential | string {
  if (entry.kind !== 'object') return 'it is not an object';
  const { texts } = readTexts(entry, FIELDS);
  const { auth = '', username = '', password = '', identitytoken: token = '' } = texts;
  const pair = pairOfAuth(auth) ?? pairOfFields(username, password);
  if (token !== '') {
    // The runtime reads an identity token only beside a decodable pair.
    return { auth: redact(pair ?? base64(`${username || '<token>'}:`)), identityToken: redact(token) };
  }
  if (pair !== undefined) return { auth: redact(pair) };
  return auth === ''
    ? 'it has neither auth nor username and password'
    : '"auth" is not base64 of "user:password"';
}

const FIELDS = ['auth', 'username', 'password', 'identitytoken'];

/** Canonical base64 of the pair in `auth`; undefined when the runtime would send nothing for it. */
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
  // A colon in the name would move the border between name and password.
  if (username === '' || password === '' || username.includes(':')) return undefined;
  return base64(`${username}:${password}`);
}

function base64(text: string): string {
  return Buffer.from(text).toString('base64');
}

/** Bytes as a string of code units below 256: base64 of either alphabet, padded or not. */
function decodeBase64(text: string): string | undefined {
  try {
    return atob(/[-_]/.test(text) ? trimEndOf(text.replaceAll('-', '+').replaceAll('_', '/'), '=') : text);
  } catch {
    return undefined;
  }
}

/** Whether the runtime would send the same, without showing either. */
function sameCredential(a: RegistryCredential, b: RegistryCredential): boolean {
  return JSON.stringify(entryJson(a)) === JSON.stringify(entryJson(b));
}

/** Texts by the names of their fields. */
type Texts = Readonly<Record<string, string>>;

/** The node's own auth file, read: what of it may be written for the container runtime. */
export interface GlobalAuth {
  /** Credential helpers by host; closed as well, because a broken file may have anything there. */
  readonly helpers: Redacted<ReadonlyMap<string, string>>;
  /** Entries by key, each with its fields that are texts: the runtime reads no others. */
  readonly auths: Redacted<ReadonlyMap<string, Texts>>;
}

/** No file, or none that can be used. */
export const NO_GLOBAL_AUTH: GlobalAuth = { helpers: redact(new Map()), auths: redact(new Map()) };

/**
 * Reads the node's auth file; undefined when it is not a JSON object with an `auths` object. What is neither an entry nor a
 * helper, or is one of the wrong type, is ignored: the runtime would reject the whole file for it.
 */
export function parseGlobalAuth(text: Redacted<string>): GlobalAuth | undefined {
  const found = readEntryMembers(reveal(text), 'config.json');
  if (found === undefined) return undefined;
  const helpers = found.fields.filter(({ key }) => fieldOf(key, ['credHelpers']) !== undefined);
  return {
    helpers: redact(new Map(helpers.flatMap(({ value }) => Object.entries(textsOf(value))))),
    auths: redact(new Map([...found.entries.values()].flatMap(usableEntry))),
  };
}

function usableEntry({ key, value }: JsonMember): readonly [string, Texts][] {
  if (value.kind !== 'object' || wrongTextField(value) !== undefined) return [];
  return [[key, textsOf(value)]];
}

/** The members that are texts; the last of equal names counts. */
function textsOf(node: JsonNode): Texts {
  const members = node.kind === 'object' ? node.members : [];
  return Object.fromEntries(
    members.flatMap(({ key, value }) => (value.kind === 'string' ? [[key, value.value]] : [])),
  );
}

/** Whether the node's own file has something for one of the sources: then a pull can succeed without the namespace. */
export function globalCovers(global: GlobalAuth, sources: readonly PullSource[]): boolean {
  const keys = new Set([...reveal(global.auths).keys()].map(canonicalKey));
  return sources.some(
    ({ repository }) =>
      firstLookupKey(repository, (key) => keys.has(key)) !== undefined ||
      reveal(global.helpers).has(hostOf(repository)),
  );
}

/** What is to be written. */
export interface AuthFile {
  readonly text: Redacted<string>;
  readonly entries: number;
}

/** A field that the runtime passes over. */
const RECORD = 'pullwright.dev/record';

/** What a file is made of. */
export interface AuthFileParts {
  readonly choice: Choice;
  /** Every pull source of the image. */
  readonly sources: readonly PullSource[];
  readonly global: GlobalAuth;
  /** Who writes it, `<namespace>/<service account>`, so that no other account takes it away; absent in a file that is only looked at. */
  readonly by?: string;
}

/**
 * The file: tab-indented JSON, entries sorted, as the file has always looked, and the record. Of the node's file those entries
 * and helpers are taken that the runtime would use for a pull source without a credential of the namespace. None of them can
 * precede an entry of the namespace: a key above both pull sources would serve both.
 */
export function authFile({ choice, sources, global, by }: AuthFileParts): AuthFile {
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

/** The account that wrote a file; undefined where it has no record, as files of other programs. */
export function writerOf(text: Redacted<string>): string | undefined {
  return textOf(recordOf(recordOf(jsonOf(reveal(text)))[RECORD])['by']) || undefined;
}

function neededEntries(
  present: ReadonlyMap<string, Texts>,
  unserved: readonly PullSource[],
): readonly (readonly [string, Texts])[] {
  if (present.size === 0 || unserved.length === 0) return [];
  const entries = [...present].map((entry) => ({ entry, key: canonicalKey(entry[0]) }));
  // Of a repository of thousands of segments only such keys as can be there: to hash each of its beginnings takes time quadratic in it.
  const lengths = new Set(entries.flatMap(({ key }) => [key.length, hostOf(key).length]));
  const looked = new Set<string>();
  for (const { repository } of unserved)
    firstLookupKey(repository, (key) => {
      if (lengths.has(key.length)) looked.add(key);
      return false;
    });
  return entries
    .filter(({ entry: [spelled], key }) => {
      // Of a key that is a URL the runtime takes the host alone, when nothing else is there.
      return looked.has(key) || (spelled.includes('://') && looked.has(hostOf(key)));
    })
    .map(({ entry }) => entry);
}

/** A helper of a host is tried before any entry, so one of a host that the namespace serves would overrule it. */
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

// Which credential of a namespace goes to which pull source.
// Each source takes the most specific key that some secret of the namespace has for it, on whole path segments, in the order
// in which the container runtime looks keys up in an auth file. Among secrets that offer the same key the first valid one
// wins: the pod's imagePullSecrets, then the ServiceAccount's, then the others by name.
// Source of the rule: requirement "CRIOCredentialProviderConfig", auth file generation; containers/image `authKeyLookupOrder`.

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
 * Chooses one credential per key that a source uses. `order` names secrets from first to last; secrets that it does not name
 * follow by name.
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

// Where the container runtime really pulls an image from: each mirror, then the location itself, with the repository
// rewritten. Credentials are looked up for these names, not for the image's.
// Source of the rule: containers/image `PullSourcesFromReference`; the kubelet names no tag or digest, so mirrors for tags
// and mirrors for digests both count.

export interface PullSource {
  /** Host and path, no tag, no digest. */
  readonly repository: string;
  readonly kind: 'mirror' | 'primary';
}

/**
 * The sources in the order in which the runtime tries them. Empty when the registries change nothing for the image: then
 * the kubelet's own credentials are the right ones. Blocked pull sources are skipped, since no credential should go there.
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
