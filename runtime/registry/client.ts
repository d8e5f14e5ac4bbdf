/**
 * A client of the distribution specification that only reads: manifests and blobs, their digests checked.
 *
 * Where a credential goes: to the registry's own host, and over TLS to the token realm that this host names in its Bearer
 * challenge. Never to the target of a redirect.
 *
 * Source of the rule: the OCI distribution specification 1.1 and the distribution token specification.
 */

import type { AddressPolicy } from '../http/addresses.ts';
import { retryAfterMs } from '../http/retry.ts';
import type { ImageReference } from '../rules/auth-lookup/image-reference.ts';
import { pullTag } from '../rules/auth-lookup/image-reference.ts';
import { type Redacted, redact, reveal } from '../rules/redacted.ts';
import { type Challenge, parseChallenge } from './challenge.ts';
import { checkedBytes, digestInPath, readLimited, streamChecked } from './digest.ts';
import { RegistryError } from './registry-error.ts';
import { fetchToken, type RegistryCredentials, TokenCache } from './token.ts';
import type { RegistryTransport, Response } from './transport.ts';

/** What `HEAD` says of a manifest. */
export interface ManifestInfo {
  readonly digest: string;
  readonly mediaType: string;
  readonly size: number;
}

export interface RegistryManifest extends ManifestInfo {
  readonly bytes: Uint8Array;
}

export interface ClientOptions {
  readonly transport: RegistryTransport;
  /** The credential for a repository (`host/path`); undefined to go without. */
  readonly credentialFor: (repository: string) => RegistryCredentials | undefined;
  /** Who named the host of an image. @default {always the platform} */
  readonly chosenBy?: (reference: ImageReference) => AddressPolicy['chosenBy'];
  /** For one answer, in milliseconds. @default {15_000} */
  readonly timeoutMs?: number;
  /** For a whole blob, in milliseconds. @default {300_000} */
  readonly blobTimeoutMs?: number;
  /** Milliseconds; for the life of tokens. @default {Date.now} */
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

interface Ask {
  readonly reference: ImageReference;
  readonly method: 'GET' | 'HEAD';
  readonly path: string;
  readonly accept: string;
  readonly signal: AbortSignal;
}

export class RegistryClient {
  readonly #options: ClientOptions;
  readonly #tokens: TokenCache;

  constructor(options: ClientOptions) {
    this.#options = options;
    this.#tokens = new TokenCache(options.now ?? Date.now);
  }

  /**
   * Whether the manifest is there, and its digest.
   *
   * @throws RegistryError
   */
  async headManifest(reference: ImageReference, signal?: AbortSignal): Promise<ManifestInfo> {
    const response = await this.#ask(manifestAsk(reference, 'HEAD', this.#deadline(signal)));
    response.discard();
    const info = infoOf(response);
    const asked = reference.digest;
    if (info.digest === '')
      return { ...info, digest: asked ?? (await this.manifest(reference, signal)).digest };
    if (asked !== undefined && asked.startsWith('sha256:') && info.digest !== asked)
      throw new RegistryError(
        'Damaged',
        `"${reference.domain}" answers with another digest than was asked for`,
      );
    return info;
  }

  /**
   * The manifest, its bytes checked against the digest that was asked for, else against the one that the registry names.
   *
   * @throws RegistryError; `Damaged` when the digests differ or the body breaks off
   */
  async manifest(reference: ImageReference, signal?: AbortSignal): Promise<RegistryManifest> {
    const response = await this.#ask(manifestAsk(reference, 'GET', this.#deadline(signal)));
    const info = infoOf(response);
    const bytes = await readLimited(response, MAX_MANIFEST);
    const digest = checkedBytes(bytes, reference.digest ?? (info.digest === '' ? undefined : info.digest));
    return { digest, mediaType: info.mediaType, size: bytes.length, bytes };
  }

  /**
   * A blob as a stream whose end rejects unless the whole of it has the digest: use nothing of it before.
   *
   * @throws RegistryError
   */
  async blob(
    reference: ImageReference,
    digest: string,
    signal?: AbortSignal,
  ): Promise<AsyncIterable<Uint8Array>> {
    const path = `/v2/${reference.path}/blobs/${digestInPath(digest)}`;
    const deadline = this.#deadline(signal, this.#options.blobTimeoutMs ?? 300_000);
    const response = await this.#ask({ reference, method: 'GET', path, accept: '*/*', signal: deadline });
    return streamChecked(response, digest);
  }

  #deadline(
    signal: AbortSignal | undefined,
    milliseconds: number = this.#options.timeoutMs ?? 15_000,
  ): AbortSignal {
    const timeout = AbortSignal.timeout(milliseconds);
    return signal === undefined ? timeout : AbortSignal.any([signal, timeout]);
  }

  /** Asks once without, then once with what the challenge wants; a known token is used at once. */
  async #ask(ask: Ask): Promise<Response> {
    const { reference } = ask;
    const credential = this.#options.credentialFor(reference.repository);
    const scope = `repository:${reference.path}:pull`;
    const key = [reference.domain, scope, credential?.fingerprint ?? ''].join(' ');
    const known = this.#tokens.get(key);
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
        `"${domain}" asks for a credential and does not say which kind: expected Basic or Bearer`,
      );
    if (challenge.scheme === 'basic') {
      const basic = credential?.basic;
      if (basic === undefined)
        throw new RegistryError('Invalid', `"${domain}" asks for a credential and there is none for it`);
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
    this.#tokens.set(key, header, token.seconds);
    return header;
  }

  /** One request, and the redirects that it leads to: another origin gets no credential. */
  #send(
    { reference, method, path, accept, signal }: Ask,
    header: Redacted<string> | undefined,
  ): Promise<Response> {
    const { transport } = this.#options;
    const host = endpointOf(reference.domain);
    const scheme = transport.isPlain(host) ? 'http' : 'https';
    return transport.send({
      method,
      url: new URL(`${scheme}://${host}${path}`),
      headers: {
        accept,
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
    const waitMs = retryAfterMs(response.header('retry-after'), Date.now());
    response.discard();
    const what = code === '' ? `${response.status}` : `${response.status} ${code}`;
    switch (response.status) {
      case 401:
        throw new RegistryError(
          'Invalid',
          withCredential
            ? `"${domain}" does not take the credential for "${repository}": ${what}`
            : `"${domain}" asks for a credential for "${repository}" and there is none: ${what}`,
        );
      case 403:
        throw new RegistryError('Forbidden', `"${domain}" does not allow to pull "${repository}": ${what}`);
      case 404:
        throw new RegistryError('NotFound', `"${repository}" is not there (manifest unknown): ${what}`);
      case 429:
        throw new RegistryError(
          'RateLimited',
          `"${domain}" asks to wait${waitMs === undefined ? '' : ` ${Math.ceil(waitMs / 1000)} s`}: ${what}`,
          waitMs === undefined ? undefined : Math.ceil(waitMs / 1000),
        );
      default:
        throw new RegistryError('Unreachable', `"${domain}" answers ${what}`);
    }
  }
}

function manifestAsk(reference: ImageReference, method: 'GET' | 'HEAD', signal: AbortSignal): Ask {
  const { digest } = reference;
  const named = digest === undefined ? (pullTag(reference) ?? 'latest') : digestInPath(digest);
  const path = `/v2/${reference.path}/manifests/${named}`;
  return { reference, method, path, accept: MANIFEST_TYPES, signal };
}

/** Docker Hub's registry has another name than its images. */
function endpointOf(domain: string): string {
  return domain === 'docker.io' ? 'registry-1.docker.io' : domain;
}

function infoOf(response: Response): ManifestInfo {
  return {
    digest: response.header('docker-content-digest') ?? '',
    mediaType: (response.header('content-type') ?? '').split(';')[0]?.trim() ?? '',
    size: Number(response.header('content-length') ?? 0),
  };
}

/** The first error code of the body, such as MANIFEST_UNKNOWN. Nothing else of a body is ever shown. */
async function errorCode(response: Response): Promise<string> {
  try {
    const text = new TextDecoder().decode(await readLimited(response, 64 * 1024));
    const code = (JSON.parse(text) as { errors?: readonly { code?: unknown }[] }).errors?.[0]?.code;
    return typeof code === 'string' && /^[A-Z_]{1,40}$/.test(code) ? code : '';
  } catch {
    return '';
  }
}
