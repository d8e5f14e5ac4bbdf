/**
 * A client of the distribution specification that only reads manifests and verifies their digests.
 *
 * It sends a credential to the registry's own host, and over TLS to the token realm in the Bearer challenge of that host. Never
 * to the target of a redirect.
 *
 * Source of the rule: the OCI distribution specification 1.1 and the distribution token specification.
 */

import { type ImageReference, pullTag } from '../core/image-reference.ts';
import { jsonOf, recordOf, recordsIn, remember, textOf } from '../core/record.ts';
import { type Redacted, redact, reveal } from '../core/redacted.ts';
import type { AddressPolicy } from '../http/addresses.ts';
import { type Challenge, fetchToken, parseChallenge, type RegistryCredentials } from './token.ts';
import {
  checkedBytes,
  digestInPath,
  RegistryError,
  type RegistryTransport,
  type Response,
  readLimited,
  retryAfterSeconds,
} from './transport.ts';

export interface ClientOptions {
  readonly transport: RegistryTransport;
  /** The credential for a repository (`host/path`); undefined for anonymous requests. */
  readonly credentialFor: (repository: string) => RegistryCredentials | undefined;
  /** Who chose the host of an image. @default {always the platform} */
  readonly chosenBy?: ((reference: ImageReference) => AddressPolicy['chosenBy']) | undefined;
  /** Timeout of a request, in milliseconds. @default {15_000} */
  readonly timeoutMs?: number | undefined;
  /** Milliseconds, for the expiry of tokens. @default {Date.now} */
  readonly now?: () => number;
}

const MANIFEST_TYPES = [
  'application/vnd.oci.image.index.v1+json',
  'application/vnd.docker.distribution.manifest.list.v2+json',
  'application/vnd.oci.image.manifest.v1+json',
  'application/vnd.docker.distribution.manifest.v2+json',
].join(', ');
const MAX_MANIFEST = 4 * 1024 * 1024;
const MAX_HOPS = 5;

/** A token is not used in its last seconds: it could expire in transit. */
const MARGIN_MS = 5000;
const MAX_TOKENS = 1000;

interface Ask {
  readonly reference: ImageReference;
  readonly method: 'GET' | 'HEAD';
  readonly signal: AbortSignal;
}

export class RegistryClient {
  readonly #options: ClientOptions;
  readonly #now: () => number;
  /** Authorization headers by host, scope and credential. */
  readonly #tokens = new Map<string, { readonly header: Redacted<string>; readonly until: number }>();

  constructor(options: ClientOptions) {
    this.#options = options;
    this.#now = options.now ?? Date.now;
  }

  /**
   * The digest of the manifest, if it exists.
   *
   * @throws RegistryError
   */
  async headManifest(reference: ImageReference, signal?: AbortSignal): Promise<string> {
    const response = await this.#ask({ reference, method: 'HEAD', signal: this.#deadline(signal) });
    response.discard();
    const digest = response.header('docker-content-digest') ?? '';
    const asked = reference.digest;
    if (digest === '') return asked ?? this.manifest(reference, signal);
    if (asked !== undefined && asked.startsWith('sha256:') && digest !== asked)
      throw new RegistryError('Damaged', `"${reference.domain}" returned another digest than requested`);
    return digest;
  }

  /**
   * The digest of the manifest. Its bytes are verified against the requested digest, else against the digest of the response
   * header.
   *
   * @throws RegistryError; `Damaged` when the digests differ or the body breaks off
   */
  async manifest(reference: ImageReference, signal?: AbortSignal): Promise<string> {
    const response = await this.#ask({ reference, method: 'GET', signal: this.#deadline(signal) });
    const named = response.header('docker-content-digest') ?? '';
    const bytes = await readLimited(response, MAX_MANIFEST);
    return checkedBytes(bytes, reference.digest ?? (named === '' ? undefined : named));
  }

  #deadline(signal: AbortSignal | undefined): AbortSignal {
    const timeout = AbortSignal.timeout(this.#options.timeoutMs ?? 15_000);
    return signal === undefined ? timeout : AbortSignal.any([signal, timeout]);
  }

  /** Sends the request with a cached token or none; after a challenge, sends it again with authorization. */
  async #ask(ask: Ask): Promise<Response> {
    const { reference } = ask;
    const credential = this.#options.credentialFor(reference.repository);
    const scope = `repository:${reference.path}:pull`;
    const key = [reference.domain, scope, credential?.fingerprint ?? ''].join(' ');
    const token = this.#tokens.get(key);
    const known = token !== undefined && token.until > this.#now() ? token.header : undefined;
    const first = await this.#send(ask, known);
    if (first.status !== 401) return this.#judge(first, ask, known !== undefined);
    const challenge = parseChallenge(first.header('www-authenticate') ?? '');
    first.discard();
    const header = await this.#authorization(ask, challenge, credential, key);
    const second = await this.#send(ask, header);
    return this.#judge(second, ask, credential !== undefined);
  }

  async #authorization(
    ask: Ask,
    challenge: Challenge | undefined,
    credential: RegistryCredentials | undefined,
    key: string,
  ): Promise<Redacted<string>> {
    const { domain, path } = ask.reference;
    if (challenge === undefined)
      throw new RegistryError(
        'Invalid',
        `"${domain}" requires a credential of unknown scheme: must be Basic or Bearer`,
      );
    if (challenge.scheme === 'basic') {
      const basic = credential?.basic;
      if (basic === undefined)
        throw new RegistryError('Invalid', `"${domain}" requires a credential, and none is configured`);
      return redact(`Basic ${reveal(basic)}`);
    }
    const token = await fetchToken(this.#options.transport, {
      challenge,
      domain,
      scope: challenge.scope ?? `repository:${path}:pull`,
      credential,
      chosenBy: this.#chooserOf(ask.reference),
      signal: ask.signal,
    });
    const header = redact(`Bearer ${reveal(token.value)}`);
    const until = this.#now() + token.seconds * 1000 - MARGIN_MS;
    remember(this.#tokens, key, { header, until }, MAX_TOKENS);
    return header;
  }

  /** Sends one request and follows its redirects: another origin gets no credential. */
  #send({ reference, method, signal }: Ask, header: Redacted<string> | undefined): Promise<Response> {
    const { transport } = this.#options;
    const { path, digest } = reference;
    const named = digest === undefined ? pullTag(reference) : digestInPath(digest);
    const host = reference.domain === 'docker.io' ? 'registry-1.docker.io' : reference.domain;
    const scheme = transport.isPlain(host) ? 'http' : 'https';
    return transport.send({
      method,
      url: new URL(`${scheme}://${host}/v2/${path}/manifests/${named}`),
      headers: {
        accept: MANIFEST_TYPES,
        'user-agent': 'pullwright',
        ...(header === undefined ? {} : { authorization: reveal(header) }),
      },
      signal,
      redirects: MAX_HOPS,
      chosenBy: this.#chooserOf(reference),
    });
  }

  #chooserOf(reference: ImageReference): AddressPolicy['chosenBy'] {
    return this.#options.chosenBy?.(reference) ?? 'platform';
  }

  async #judge(response: Response, ask: Ask, withCredential: boolean): Promise<Response> {
    if (response.status === 200) return response;
    const { domain, repository } = ask.reference;
    const code = ask.method === 'HEAD' ? '' : await errorCode(response);
    const seconds = retryAfterSeconds(response);
    response.discard();
    const what = code === '' ? `${response.status}` : `${response.status} ${code}`;
    switch (response.status) {
      case 401:
        throw new RegistryError(
          'Invalid',
          withCredential
            ? `"${domain}" rejects the credential for "${repository}": ${what}`
            : `"${domain}" requires a credential for "${repository}", none found: ${what}`,
        );
      case 403:
        throw new RegistryError('Forbidden', `"${domain}" denies pulling "${repository}": ${what}`);
      case 404:
        throw new RegistryError('NotFound', `"${repository}" not found (manifest unknown): ${what}`);
      case 429:
        throw new RegistryError(
          'RateLimited',
          `"${domain}" limits the request rate${seconds === undefined ? '' : `, retry after ${seconds} s`}: ${what}`,
          seconds,
        );
      default:
        throw new RegistryError('Unreachable', `"${domain}" returned ${what}`);
    }
  }
}

/** The first error code of the body, such as MANIFEST_UNKNOWN. Nothing else of a body is ever shown. */
async function errorCode(response: Response): Promise<string> {
  const bytes = await readLimited(response, 64 * 1024).catch(() => new Uint8Array());
  const [first] = recordsIn(recordOf(jsonOf(new TextDecoder().decode(bytes)))['errors']);
  const code = textOf(first?.['code']);
  return /^[A-Z_]{1,40}$/.test(code) ? code : '';
}
