/**
 * Parses a failing pull from the container status and the pod's events: the cause (from a closed list), the host at fault, and
 * the cause at each mirror. An unrecognized pull error has the cause `unknown`.
 *
 * Source of the rule: messages of kubelet 1.25 to 1.36, CRI-O, containerd, docker, containers/image and registries.
 */

import { trimEndOf } from '../../core/text.ts';

/**
 * Category of each cause, and how far the pull got (to choose among the errors of several credentials). `node`: the node or pod
 * fails, no host. `network`: no valid HTTP response. `without`: access denied, which a missing Secret may explain. `credential`:
 * the credential is rejected. `registry`: any other response.
 */
const CAUSES = {
  'no-credential': ['without', 4],
  'auth-required': ['without', 5],
  'credential-rejected': ['credential', 5],
  'credential-expired': ['credential', 5],
  'permission-denied': ['credential', 6],
  'denied-or-missing': ['without', 6],
  'not-found': ['registry', 8],
  'blob-missing': ['registry', 9],
  'platform-mismatch': ['registry', 9],
  'format-unsupported': ['registry', 9],
  'digest-mismatch': ['registry', 9],
  'disk-full': ['node', 9],
  'node-storage': ['node', 9],
  'rate-limited': ['registry', 7],
  'kubelet-throttled': ['node', 1],
  dns: ['network', 2],
  timeout: ['network', 2],
  unreachable: ['network', 2],
  'connection-broken': ['network', 2],
  proxy: ['network', 2],
  'tls-untrusted': ['network', 2],
  'tls-name': ['network', 2],
  'tls-expired': ['network', 2],
  'tls-other': ['network', 2],
  'plain-http': ['network', 2],
  'registry-error': ['registry', 3],
  'unexpected-answer': ['registry', 3],
  'policy-blocked': ['registry', 9],
  'signature-rejected': ['registry', 9],
  'short-name': ['node', 9],
  'image-name': ['node', 9],
  'never-pull': ['node', 9],
  'secret-missing': ['credential', 9],
  'secret-malformed': ['node', 9],
  'runtime-unavailable': ['node', 1],
  cancelled: ['registry', 2],
  unknown: ['registry', 0],
} as const;

export type PullCause = keyof typeof CAUSES;

/** Waiting state of a container; without a reason the container is not waiting. */
export interface ContainerWait extends Partial<PodEvent> {
  readonly image: string;
}

interface PodEvent {
  readonly reason: string;
  readonly message: string;
}

/** Cause found in one message. */
interface Reading {
  readonly cause: PullCause;
  /** The registry, token service, blob store or proxy at fault; undefined if the node or the pod is at fault. */
  readonly host?: string | undefined;
  /** The mirrors and the source in the order tried, as far as the message lists them. */
  readonly places?: readonly { readonly place: string; readonly cause: PullCause }[];
}

export interface PullFailure extends Reading {
  /** The image of the container, of an image volume, or of the pod sandbox. */
  readonly image: string;
  /** The error without the prefixes of kubelet and runtime, and without tokens. */
  readonly text: string;
  /** Secrets that the kubelet could not read. */
  readonly missing?: readonly string[];
}

const FAILING = new Set([
  'ErrImagePull',
  'ImagePullBackOff',
  'RegistryUnavailable',
  'SignatureValidationFailed',
  'ImageInspectError',
  'InvalidImageName',
  'ErrImageNeverPull',
]);

/** Event reasons that follow a successful pull: earlier events are obsolete. */
const PAST_PULL = new Set(['Pulled', 'Created', 'Started']);

/** Patterns by cause. A cause with two patterns of different rank is in two tables of a list. */
type Patterns = Readonly<Partial<Record<PullCause, RegExp>>>;

/** Patterns of causes, most specific first. They match text from {@link withoutNames}, with the HTTP status as `{401}`. */
const WORDS: readonly Patterns[] = [
  {
    'runtime-unavailable':
      /dial unix|code = (?:Unavailable|14) desc = (?!.*(?:failed to pull|unable to pull|initializing source|pinging))|server is not initialized yet|client connection is closing|Cannot connect to the Docker daemon|unknown service runtime\./,
    'kubelet-throttled': /pull QPS exceeded/i,
    'never-pull': /not present with pull policy of Never/,
    'short-name':
      /short[- ]name (?:mode is enforcing|resolution)|did not resolve to an alias|returns ambiguous list|no registries configured/i,
    'unexpected-answer':
      /["'\s](?:\\ufeff|\ufeff)?<(?:!doctype|html|head|body|title|\?xml|h1)|decoding bearer token|did not include a token|invalid character '[<ï]'|media type "?text\/html/i,
    'image-name':
      /invalid (?:image )?reference format|couldn't parse image|repository name must be lowercase|invalid image name/i,
    'secret-malformed':
      /unable to parse auth field|illegal base64|reading (?:JSON|config) file .*(?:invalid|unexpected end)|unmarshaling JSON at |json: cannot unmarshal .*(?:DockerConfig|dockercfg)/i,
    'policy-blocked': /is blocked in|is rejected by policy|blocked pull of|blocked by (?:policy|registries)/i,
    'signature-rejected':
      /signature was required|Required email|signatures? (?:were|was|is) (?:not )?accepted|signature verification failed|no signature exists|Signature for identity|Source image rejected|invalid (?:GPG )?signature|(?:Fulcio|Rekor|OIDC issuer)\b|not signed by cosign|checking signature of/i,
    'disk-full': /no space left on device|disk quota exceeded|not enough (?:free )?(?:disk )?space/i,
    'platform-mismatch':
      /no match for platform|no image found in (?:manifest list|image index) for architecture|no matching manifest for|cannot be used on this platform|does not support platform|does not (?:match|provide) the specified platform/i,
    'format-unsupported':
      /no longer supported since containerd|mismatched image rootfs and manifest layers|layers from manifest don't match|schema ?(?:version )?1\b|unsupported docker v2s2 media type|(?:unsupported|unknown|unexpected|unrecognized|invalid) (?:manifest |image |layer |config )?(?:media|mime) ?type|(?:unsupported|unknown) (?:manifest|image|schema)(?: image)?(?: format| version| type)|encountered unknown type|mediaType in manifest should be|image-specific operation|invalid rootfs|manifest\.v1\+(?:json|prettyjws)/i,
    'digest-mismatch':
      /unexpected commit digest|failed size validation|Digest did not match|does not match (?:provided|expected) (?:manifest )?digest|unexpected commit size|verification failed for digest|digest (?:mismatch|verification failed)|digests? (?:do|does) not match|would not match destination/i,
    'blob-missing':
      /could not fetch content descriptor.*(?:not found|\{404\})|blob unknown|unknown blob|BLOB_UNKNOWN|https:\/\/HOST\/blobs"?:? (?:not found|404)|(?:fetching|reading|copying) blob.*(?:\{404\}|not found)/is,
    cancelled: /failed to (?:extract layer|prepare extraction snapshot).*context canceled/is,
    'node-storage':
      /failed to extract layer|convert whiteout|lchown|read-only file system|image pull (?:intent|record|credential)|pulled record|failed to register layer|input\/output error|mount callback failed|failed to prepare extraction snapshot|failed to (?:stat|commit|create) snapshot|: commit failed: |(?:lease|snapshot \S+) does not exist|failed to unpack image on snapshotter|(?:image|layer) not known|locating (?:image|item)|adding layer with blob|(?:creating|error) (?:overlay|read-write layer)|structure needs cleaning|insufficient UIDs|too many open files|failed to create (?:temp|ingest)|metadata\.db|(?<!\bload [^:]*: )\b(?:chmod|link|mkdir|open|readlink|remove|rename|l?stat|symlink|unlinkat|write) PATH(?: PATH)?: |locked: unavailable|ref \S+ locked for|database (?:not open|is locked)|archive\/tar/i,
    'rate-limited':
      /toomanyrequests|too many requests|\{429\}|rate limit|rate exceeded|(?:pull|traffic) quota|quota (?:exceeded|for|has|is)\b|ThrottlingException/i,
    'credential-expired':
      /token (?:has|is|failed verification:|included in the request is) expired|expired ?token|(?:credentials?|password|secret)(?: keys?)? (?:has|have|is|are) expired/i,
    'no-credential':
      /failed to fetch anonymous token:.*\{40[13]\}|no basic auth credentials|Unauthenticated request|anonymous (?:access|pull|request|user)s? (?:is|are) (?:not|dis|only)/is,
    'credential-rejected':
      /failed to fetch oauth token:.*\{40[13]\}|incorrect (?:username|user name|email) or password|Invalid Username or Password|bad[ _](?:username|credentials?)|HTTP Basic: Access denied|password or token is incorrect|could not find robot|wrong (?:username|password)|token is (?:invalid|revoked)|cannot be authenticated|credentials are not valid|must log in with a Personal Access Token/is,
    'denied-or-missing': /\(or it may not exist\)/,
    'permission-denied':
      /not authorized to perform: \w+:|read_package|permission_denied|do(?:es)?(?: not|n't) have (?:the )?(?:permission|access)|Permission "?\S+ denied on|AccessDeniedException|lacks? permission|missing permission|is not allowed access/i,
  },
  {
    'denied-or-missing':
      /insufficient_scope|requested access to the resource is denied|access to the (?:requested )?resource is not authorized|does not exist or|denied: denied|access forbidden|pull access denied|Requesting bearer token:.*\{403\}|project or repository|not found or no access/is,
    proxy: /proxyconnect tcp|Proxy Authentication Required|\{407\}|socks connect/i,
  },
];

/** Patterns of failures below HTTP. They are skipped if the message has an HTTP status. */
const NETWORK: readonly Patterns[] = [
  {
    proxy: /\b(?:Get|Head|Post) "?https:\/\/HOST(?:\/blobs)?"?: [A-Z][a-z-]+(?: [A-Za-z-]+)*(?=$|[\n;,\])])/m,
    'tls-expired': /has expired or is not yet valid|certificate (?:has|is) expired/i,
    'tls-name':
      /is valid for .*, not |IP SANs|legacy Common Name|not valid for any names|cannot validate certificate for/i,
    'tls-untrusted':
      /signed by unknown authority|certificate is not trusted|self[- ]signed certificate|unable to get local issuer|not authorized to sign other certificates/i,
    'plain-http':
      /server gave HTTP response to HTTPS client|first record does not look like a TLS handshake|oversized record received/i,
    'connection-broken': /bad record MAC/i,
    'tls-other': /\btls: |x509: /,
    dns: /\blookup \S+|no such host|server misbehaving|name resolution|Name or service not known/i,
    timeout:
      /i\/o timeout|deadline exceeded|Client\.Timeout|handshake timeout|timed? ?out\b|timeout awaiting|timeout: no recent|did not properly respond/i,
    unreachable:
      /connection refused|no route to host|is unreachable|dial \w+ \S+ connect(?:ex)?: (?!connection reset)/i,
  },
  {
    'connection-broken':
      /connection reset|\bEOF\b|INTERNAL_ERROR|PROTOCOL_ERROR|REFUSED_STREAM|stream error|broken pipe|GOAWAY|closed (?:network connection|pipe)|forcibly closed|server closed|connection (?:was )?(?:closed|aborted|lost)|short read/,
  },
];

/** Generic patterns, used if no specific one matches. */
const GENERAL: readonly Patterns[] = [
  {
    'not-found':
      /was deleted or has expired|manifest[ _]unknown|name[ _]unknown|not found or deleted|artifact NAME not found|no resolve hosts|manifest for \S+ not found|repository NAME not found/i,
    'auth-required':
      /authentication required|unauthorized to access repository|Please login|unauthorized|invalid username\/password|authorization failed|\{401\}|log ?in required|must (?:log ?in|authenticate)/i,
    'denied-or-missing': /\{403\}|forbidden|denied/i,
    'unexpected-answer': /(?:token|pinging \w+ registry).*\{404\}/is,
    'registry-error':
      /\{5\d\d\}|internal (?:server )?error|Service Unavailable|Bad Gateway|Gateway Time-?out|unknown: unknown error/i,
  },
  {
    'not-found': /not found|\{404\}|does not exist|no such manifest|does not use the \S+ tag/i,
    cancelled: /cancell?ed/i,
    'unexpected-answer':
      /\{[1-4]\d\d\}|error parsing HTTP|StatusCode: |invalid character|unexpected (?:HTTP )?status|unexpected end of JSON|stopped after \d+ redirects|malformed HTTP/i,
  },
];

/** For these causes the contacted host is at fault: not only the registry responds with them. */
const OF_WHO_ANSWERS: ReadonlySet<PullCause> = new Set(['registry-error', 'unexpected-answer']);

/** Reports whether a registry rejects the pull for lack of a valid credential. */
export function isRefusal(cause: PullCause | undefined): boolean {
  return cause !== undefined && ['without', 'credential'].includes(CAUSES[cause][0]);
}

/** Reports whether the pull failed without a valid HTTP response. */
export function isBelowHttp(cause: PullCause | undefined): boolean {
  return cause !== undefined && CAUSES[cause][0] === 'network';
}

/**
 * Returns the failing pull of a container; undefined if no pull fails, even if the container fails otherwise. Never throws.
 *
 * @param events events of the container and of the pod, oldest first
 */
export function pullFailure(wait: ContainerWait, events: readonly PodEvent[]): PullFailure | undefined {
  const { image, reason = '', message = '' } = wait;
  const past = events.findLastIndex((event) => PAST_PULL.has(event.reason));
  const said = events
    .slice(past + 1)
    .map((event) => ({ ...event, message: event.message.replace(/^\(combined from similar events\): /, '') }))
    .toReversed();
  const isText =
    reason !== '' &&
    !/^[A-Z]\w*$/.test(reason) &&
    (reason === message || said.some((event) => event.message === `Error: ${reason}`));
  const isProven = FAILING.has(reason) || isText;
  if (!isProven && /^(?!ContainerCreating$|PodInitializing$)./.test(reason))
    return message.includes('checking signature of') ? failureOf([message], image, []) : undefined;
  const texts = said.filter(tellsOfPull).map((event) => event.message);
  if (!isProven && texts.length === 0) return undefined;
  const own = isText && SECRET_JSON.test(message) ? `unable to parse auth field: ${message}` : message;
  return failureOf([...(isProven ? [own] : []), ...texts], image, missingSecrets(said), reason);
}

/** Go's error for a Secret with invalid JSON; in a registry's response the same text has another cause. */
const SECRET_JSON = /^(?:json: |invalid character|unexpected end of JSON|illegal base64)/;

function tellsOfPull({ reason, message }: PodEvent): boolean {
  if (reason === 'FailedCreatePodSandBox') return SANDBOX_PULL.test(message);
  return (
    ['InspectFailed', 'ErrImageNeverPull'].includes(reason) || message.startsWith('Failed to pull image ')
  );
}

/** CRI-O adds no word of its own to the errors of the pull. */
const SANDBOX_PULL =
  /failed to get sandbox image|failed pulling image|failed to pull image|initializing source docker:|error creating pod sandbox with name "[^"]*": (?:copying|reading manifest|Source image|(?:error )?pinging|choosing image|parsing image configuration|writing blob|unable to retrieve auth|Requesting bearer|\(Mirrors)/;

function missingSecrets(events: readonly PodEvent[]): readonly string[] {
  const event = events.find(({ reason }) => reason === 'FailedToRetrieveImagePullSecret');
  const [, names = ''] = /\(([^()]*)/.exec(event?.message ?? '') ?? [];
  return names
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '');
}

/** Uses the first text with a known cause; without one, quotes the first non-empty text. */
function failureOf(
  texts: readonly string[],
  image: string,
  missing: readonly string[],
  reason = '',
): PullFailure {
  for (const text of texts) {
    const pulled = pulledImage(text) ?? image;
    const core = unwrapped(text);
    const reading = readingOf(core, pulled);
    if (reading.cause === 'unknown') continue;
    const isMissing = missing.length > 0 && CAUSES[reading.cause][0] === 'without';
    return {
      image: pulled,
      ...reading,
      ...(isMissing && { cause: 'secret-missing', missing }),
      text: withoutTokens(core),
    };
  }
  const cause = OF_REASON[reason] ?? 'unknown';
  const text = texts.map(unwrapped).find((one) => one !== '') ?? '';
  const pulled = texts.map(pulledImage).find((one) => one !== undefined) ?? image;
  const hasHost = CAUSES[cause][0] !== 'node' && text !== '' && !/panic/.test(text);
  return { image: pulled, cause, host: hasHost ? registryOf(pulled) : undefined, text: withoutTokens(text) };
}

/** Waiting reasons that determine the cause if no text does. */
const OF_REASON: Readonly<Record<string, PullCause>> = {
  InvalidImageName: 'image-name',
  ErrImageNeverPull: 'never-pull',
  SignatureValidationFailed: 'signature-rejected',
};

const NAMED =
  /(?:Back-off pulling image|[Ff]ailed to pull image|failed pulling image|sandbox image|failed to pull and unpack image|failed to resolve image|Failed to inspect image) "([^"\s]+)"|image pull failed for (\S+) because|docker:\/\/([^\s:]+(?::\d+\/[^\s:]+)?(?::[^\s:]+)?)/;

function pulledImage(text: string): string | undefined {
  return NAMED.exec(text)?.slice(1).find(Boolean);
}

/** Prefixes that the kubelet and the runtime add to an error. */
const WRAPPERS: readonly RegExp[] = [
  /^Error: /,
  /^Back-off pulling image "[^"]*"(?:: )?/,
  /^Failed to (?:pull|inspect) image "[^"]*"(?:: |$)/,
  /^(?:ErrImagePull|ImagePullBackOff|RegistryUnavailable|SignatureValidationFailed|ImageInspectError): /,
  /^image pull failed for \S+ because the (?:registry is unavailable|signature validation failed)(?:: |\.?$)/,
  /^unable to pull image or OCI artifact: pull image err: /,
];

function unwrapped(text: string): string {
  let rest = text.trim();
  for (let before = ''; before !== rest; ) {
    before = rest;
    for (const wrapper of WRAPPERS) rest = rest.replace(wrapper, '');
  }
  return rest.split(`${rest.startsWith('[') ? ']' : ''}; artifact err:`, 1)[0] ?? '';
}

/** Parses one error, a list with one error per credential, or the errors of the mirrors and the source. */
function readingOf(text: string, image: string): Reading {
  // Event messages are truncated at 1024 bytes, so the closing bracket may be missing.
  if (text.startsWith('[')) {
    const each = text
      .slice(1)
      .replace(/\]$/, '')
      .split(NEXT_ERROR)
      .map((one) => {
        const reading = readingOf(unwrapped(one), image);
        const [, rank] = CAUSES[reading.cause];
        return { reading, rank: rank > 0 && PAST_MANIFEST.test(one) ? rank + 10 : rank };
      });
    return each.reduce((best, one) => (one.rank > best.rank ? one : best)).reading;
  }
  return mirrorsReading(text, image) ?? plainReading(text, image);
}

/** The credential of such an error was accepted for the manifest. */
const PAST_MANIFEST =
  /failed to copy|httpReadSeeker|writing blob|parsing image configuration|error pulling image configuration/;

const NEXT_ERROR =
  /, (?=rpc error: code = |failed to pull and unpack image |(?:unable to pull|initializing|reading manifest|pinging|copying|writing|parsing|Requesting bearer|Source image|Error response|short-name|choosing|unable to retrieve|pull QPS|\(Mirrors) ?)/;

const MIRRORS = '(Mirrors also failed: [';

/** Separates the errors of two pull sources: `A: E] [B: E`, optionally with a line feed. */
const NEXT_SOURCE = /\](?:(?=\s*\n)\s*\[| \[(?=[^"\s\]:.]*[.:][^"\s\]]*: ))/;

function mirrorsReading(text: string, image: string): Reading | undefined {
  const start = text.indexOf(MIRRORS);
  if (start === -1) return undefined;
  const rest = text.slice(start + MIRRORS.length);
  const end = rest.indexOf(']): ');
  const parts = (end === -1 ? rest : rest.slice(0, end)).split(NEXT_SOURCE);
  if (end !== -1) parts.push(rest.slice(end + ']): '.length));
  const tried = parts.map((part) => {
    const [name = ''] = part.split(/:\s/, 1);
    const error = part.slice(name.length).replace(/^:\s+/, '');
    const pinged = PINGED.exec(error)?.[1];
    return { place: pinged ?? registryOf(name), ...plainReading(error, name) };
  });
  const source = end === -1 ? undefined : tried.at(-1);
  const best = tried.reduce((first, one) => (rankOf(one.cause) > rankOf(first.cause) ? one : first));
  const chosen = best.cause === 'not-found' && source?.cause === 'not-found' ? source : best;
  return {
    cause: chosen.cause,
    host: chosen.host ?? (CAUSES[chosen.cause][0] === 'node' ? undefined : registryOf(image)),
    places: tried.map(({ place, cause }) => ({ place, cause })),
  };
}

/** Ranks causes: other errors over not-found, not-found over unreachable, cancelled or blocked, those over unknown. */
function rankOf(cause: PullCause): number {
  if (cause === 'unknown') return 0;
  if (cause === 'not-found') return 2;
  const isReached = cause.startsWith('tls-') || cause === 'plain-http';
  return !isReached && (isBelowHttp(cause) || cause === 'cancelled' || cause === 'policy-blocked') ? 1 : 3;
}

function plainReading(text: string, image: string): Reading {
  const words = withoutNames(text, image);
  const cause = causeIn(words);
  const [, asked, path = ''] = [...text.matchAll(ASKED)].at(-1) ?? [];
  const host = hostFor(cause, text, image, asked);
  // containerd adds `ns=`, the image's registry, to requests to a mirror.
  if (asked === undefined || !path.includes('ns=')) return { cause, host };
  return { cause, host, places: [{ place: asked, cause }] };
}

function causeIn(words: string): PullCause {
  const isAnswered = /\{\d{3}\}/.test(words);
  const tables = isAnswered ? [...WORDS, ...GENERAL] : [...WORDS, ...NETWORK, ...GENERAL];
  const rows = tables.flatMap((table) => Object.entries(table) as [PullCause, RegExp][]);
  return rows.find(([, pattern]) => pattern.test(words))?.[0] ?? 'unknown';
}

/** URLs that were requested, as opposed to URLs that a response mentions. */
const ASKED =
  /(?:\b(?:Get|Head|Post|Put|request to|status code|last URL|content at|status from \w+ request to) "?)https?:\/\/([^/\s"?]+)([^\s"]*)/g;

/** @param asked host of the last request */
function hostFor(cause: PullCause, text: string, image: string, asked: string | undefined) {
  if (CAUSES[cause][0] === 'node') return undefined;
  if (isBelowHttp(cause) || cause === 'cancelled') return hostBelow(cause, text, image, asked);
  const isMirror = /https?:\/\/[^\s"]*[?&]ns=/.test(text);
  if (asked === undefined || (!isMirror && !OF_WHO_ANSWERS.has(cause))) return readFrom(text, image);
  return HUB.has(asked) ? 'docker.io' : asked;
}

const PROXY =
  /proxyconnect tcp: .*?(?:lookup |dial \w+ (?!lookup))(\[[^\]]+\]:\d+|[^\s:]+(?::\d+)?)(?: on |: )|socks connect \w+ (\S+?)->/;
/** Host that CRI-O or containerd read from. A mirror that is the only pull source appears only here. */
const READ_FROM = /\breading manifest \S+ in ([^\s/]+)\/|\bpulling from host (\S+) failed /;

function readFrom(text: string, image: string): string {
  const host = READ_FROM.exec(text)?.slice(1).find(Boolean);
  return registryOf(host === undefined ? image : `${host}/`);
}

const PINGED = /pinging (?:container|docker) registry (\S+?):\s/;

function hostBelow(cause: PullCause, text: string, image: string, asked: string | undefined) {
  if (cause === 'proxy') return PROXY.exec(text)?.slice(1).find(Boolean) ?? asked ?? registryOf(image);
  const name = cause === 'dns' ? /\blookup ([^\s:]+)/.exec(text)?.[1] : undefined;
  if (name !== undefined && asked?.startsWith(name) !== true) return name;
  // A timeout or cancellation without a registry or image is that of the kubelet's CRI call.
  const isOwnCall =
    ['timeout', 'cancelled'].includes(cause) &&
    !/dial |copying|docker:\/\/|image "|reference "|in \S+\/\S+|blob|layer|registry/.test(text);
  return asked ?? PINGED.exec(text)?.[1] ?? (isOwnCall ? undefined : registryOf(image));
}

const HUB = new Set(['registry-1.docker.io', 'index.docker.io']);

/** Registry host of an image reference; `docker.io` by default. */
function registryOf(image: string): string {
  const [first = '', ...rest] = image.split('/');
  const isHost = rest.length > 0 && (/[.:]/.test(first) || first === 'localhost');
  return !isHost || HUB.has(first) ? 'docker.io' : first;
}

const STATUS =
  /(?:request to|status code) https:\/\/HOST\S*: ([1-5]\d\d)\b|\bStatusCode: ([1-5]\d\d)\b|\b(?:status(?: code)?|HTTP code):? "?([1-5]\d\d)\b|[:\s"]([1-5]\d\d) (?=\(?[A-Z][a-z])|: ([1-5]\d\d) ?$|\bstatus code from registry ([1-5]\d\d)\b/m;

/** Removes user info and query strings from URLs, because they may contain tokens. */
function withoutTokens(text: string): string {
  return text
    .replace(/(https?:\/\/)(?:[^\s"@/]*@)?([^\s"?]*)\?[^\s"]*?(?=[:,;]?(?:[\s"]|$))/g, '$1$2')
    .replace(/(https?:\/\/)[^\s"@/]*@/g, '$1');
}

/** Replaces names, hosts, paths and digests, which may contain any pattern, and appends the HTTP status. */
function withoutNames(text: string, image: string): string {
  const hosts = new Set([registryOf(image)]);
  let rest = text
    .replace(/docker:\/\/[^\s"]+/g, (name) => (/[:,;]$/.test(name) ? `NAME${name.slice(-1)}` : 'NAME'))
    .replace(/https?:\/\/(?:[^\s"@/]*@)?([^/\s"?]*)([^\s"]*)/g, (_url, host: string, path: string) => {
      const bare = trimEndOf(host, ':,;.');
      if (bare !== '') hosts.add(bare);
      const tail = /[:,;]$/.exec(path === '' ? host : path)?.[0] ?? '';
      return `https://HOST${path.includes('/blobs/') ? '/blobs' : ''}${tail}`;
    });
  for (const found of text.matchAll(/pinging (?:container|docker) registry (\S+?):\s|\blookup ([^\s:]+)/g))
    hosts.add(found[1] ?? found[2] ?? '');
  rest = rest.replace(/(could not fetch content descriptor )sha256:[0-9a-f]+/g, '$1DIGEST');
  rest = rest
    .replace(/"[^"\s<>{}]*"/g, (quoted) =>
      /[/:@]/.test(quoted) && !quoted.startsWith('"https:') ? '"NAME"' : quoted,
    )
    .replace(/'[\w.:/@-]{2,}'/g, "'NAME'")
    .replace(
      /\b(?:short-name|image name|image|reference|repository|tag|artifact|for|ref) "[^"\s]+"/gi,
      'image "NAME"',
    );
  for (const name of namesOf(image)) rest = rest.replaceAll(name, 'NAME');
  rest = withoutReferences(rest)
    .replace(
      /\b(reading manifest|Tag|manifest for|image name) (?!NAME)\S+ (in|was|not|returns)\b/g,
      '$1 NAME $2',
    )
    .replace(/\b(repository|artifact|image|for):? [\w.-]+\/[\w./-]+(?::[\w.-]+)?(?:@\S+)?/gi, '$1 NAME')
    .replace(/\bsha256:[0-9a-f]+/g, 'DIGEST')
    .replace(/(^|[\s"(])(\/etc\b)?\/[\w.@+-]+(?:\/[\w.@+-]*)*/g, '$1$2PATH');
  for (const host of [...hosts].filter((one) => one !== '').toSorted((a, b) => b.length - a.length))
    rest = rest.replaceAll(host, 'HOST');
  const status = STATUS.exec(rest)?.slice(1).find(Boolean);
  return status === undefined ? rest : `${rest} {${status}}`;
}

/** Words to check for an image reference: a host (with a dot or a port, or localhost), a slash and a path. */
const WORD = /[\w.:[\]@/-]+/g;

function withoutReferences(text: string): string {
  return text.replace(WORD, (word) => {
    const slash = word.indexOf('/');
    const host = word.slice(0, slash);
    const [name = '', port] = host.split(':', 2);
    const isNamed = name.includes('.') || name === 'localhost' || port !== undefined;
    const isHost = host.startsWith('[') || (isNamed && (port === undefined || /^\d+$/.test(port)));
    if (slash <= 0 || !isHost || word.startsWith('.')) return word;
    const end = trimEndOf(word, ':.-/[]@');
    return end.length > slash + 1 ? `NAME${word.slice(end.length)}` : word;
  });
}

/** Names of the image in messages, longest first. Plain words are skipped: they may be part of other words. */
function namesOf(image: string): readonly string[] {
  const registry = registryOf(image);
  const path = image.startsWith(`${registry}/`) ? image.slice(registry.length + 1) : image;
  const [named = ''] = path.split('@', 1);
  const colon = named.lastIndexOf(':');
  const bare = colon > named.lastIndexOf('/') ? named.slice(0, colon) : named;
  return [image, path, `library/${path}`, bare, `${bare}:latest`, `library/${bare}`]
    .filter((name) => /[/:@]/.test(name))
    .toSorted((a, b) => b.length - a.length);
}
