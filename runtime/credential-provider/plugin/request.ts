/** The kubelet's request on stdin, and the response on stdout. */
import { PullwrightError } from '../../core/errors.ts';
import { isRecord, stringsIn } from '../../core/record.ts';
import { redact } from '../../core/redacted.ts';

/** A `CredentialProviderRequest`. */
export type ProviderRequest = Readonly<ReturnType<typeof parseRequest>>;

const VERSIONS: readonly string[] = ['v1', 'v1beta1', 'v1alpha1'].map(
  (version) => `credentialprovider.kubelet.k8s.io/${version}`,
);
const KIND = 'CredentialProviderRequest';
const DEFAULT_VERSION = 'credentialprovider.kubelet.k8s.io/v1';

/** Bounds the lookups per path segment. A host has at most 253 characters, a path 255, a digest 135. */
const LONGEST_IMAGE = 4096;

/**
 * Reads the first JSON value of `text`. Like the kubelet's own decoders: field names match in any case, unknown fields and
 * trailing data are ignored.
 */
export function parseRequest(text: string) {
  const value = firstValue(text);
  if (!isRecord(value)) throw unreadable('it is not a JSON object');
  const fields = new Map(Object.entries(value).map(([key, field]) => [key.toLowerCase(), field]));
  const token = textField(fields, 'serviceAccountToken');
  // Both may be missing in a request written by hand.
  const apiVersion = textField(fields, 'apiVersion') || DEFAULT_VERSION;
  const kind = textField(fields, 'kind') || KIND;
  if (kind !== KIND) throw notARequest('kind');
  if (!VERSIONS.includes(apiVersion)) throw notARequest('apiVersion');
  const image = textField(fields, 'image');
  if (image.length > LONGEST_IMAGE)
    throw unreadable(`"image" has ${image.length} characters, expected at most ${LONGEST_IMAGE}`);
  return {
    apiVersion,
    /** Repository, normally without tag and digest. */
    image,
    /** Absent for static pods. */
    token: token === '' ? undefined : redact(token),
    annotations: stringsIn(fields.get('serviceaccountannotations')),
  };
}

function textField(fields: ReadonlyMap<string, unknown>, name: string): string {
  const value = fields.get(name.toLowerCase()) ?? '';
  if (typeof value !== 'string') throw unreadable(`"${name}" is ${typeof value}, expected a string`);
  return value;
}

function firstValue(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    const end = endOfObject(text);
    if (end === -1) throw unreadable(text.trim() === '' ? 'EOF' : 'it is not JSON', error);
    return firstValue(text.slice(0, end));
  }
}

/** Index after the object at the start of `text`; -1 when it is incomplete, or the whole text. */
function endOfObject(text: string): number {
  let depth = 0;
  for (const { 0: part, index } of text.matchAll(/"(?:[^"\\]|\\.)*"?|[{}]/gs)) {
    if (part === '{') depth += 1;
    else if (part === '}') depth -= 1;
    if (part === '}' && depth === 0) return index + 1 === text.length ? -1 : index + 1;
  }
  return -1;
}

/** Without the value, which may be the token in a malformed request. */
function notARequest(field: 'apiVersion' | 'kind'): PullwrightError {
  const wanted = field === 'kind' ? KIND : VERSIONS.join(' or ');
  return new PullwrightError(
    `unable to parse credential provider request from stdin: invalid ${field}: must be ${wanted}`,
    {
      code: 'RequestUnreadable',
      hint: "Set apiVersion of the provider in the kubelet's file to credentialprovider.kubelet.k8s.io/v1",
    },
  );
}

/** More than the API server stores of a pod and its ServiceAccount. */
export const MOST_REQUEST_BYTES: number = 4 * 1024 * 1024;

/** Error for input beyond {@link MOST_REQUEST_BYTES}. */
export function requestTooLarge(): PullwrightError {
  return unreadable(`it has more than ${MOST_REQUEST_BYTES / 1024 / 1024} MiB`);
}

function unreadable(state: string, cause?: unknown): PullwrightError {
  return new PullwrightError(`unable to parse credential provider request from stdin: ${state}`, {
    code: 'RequestUnreadable',
    cause,
  });
}

/**
 * The response. It is never cached, so that every pull of every container gets its own auth file. With `keepPrivate` it holds an
 * entry for the image with an empty user name, which the container runtime ignores. For it the kubelet records that the image was
 * pulled with credentials, so that other namespaces on the node cannot use it without their own.
 */
export function responseText(request: Pick<ProviderRequest, 'apiVersion' | 'image'>, keepPrivate: boolean) {
  const response = {
    kind: 'CredentialProviderResponse',
    apiVersion: request.apiVersion,
    cacheKeyType: 'Image',
    cacheDuration: '0s',
    ...(keepPrivate ? { auth: { [request.image]: { username: '', password: '' } } } : {}),
  };
  return `${JSON.stringify(response)}\n`;
}

/** The empty response, also without a request. */
export const EMPTY_RESPONSE: string = responseText({ apiVersion: DEFAULT_VERSION, image: '' }, false);
