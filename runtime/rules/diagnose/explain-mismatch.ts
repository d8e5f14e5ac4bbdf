/** Why the kubelet does not use an entry for an image, in words: what an answer to "why does this not pull?" consists of. */
import { kubeletKey } from '../auth-lookup/kubelet.ts';
import { parseSchemelessBytes, parseSchemelessUrl, type SchemelessUrl } from '../auth-lookup/match-images.ts';
import { registryKey } from '../docker-config/registry-key.ts';
import { fromByteText } from '../go/bytes.ts';

/** How near a key is to the image: `host` when it is about the same registry, so that it is worth showing first. */
export interface Mismatch {
  readonly near: 'host' | 'other';
  readonly why: string;
}

/**
 * Says why `written` does not match `repository` for the kubelet. Only for keys that do not match.
 *
 * @example
 * ```ts
 * import { explainMismatch } from './explain-mismatch.ts';
 * import assert from 'node:assert/strict';
 *
 * assert.equal(explainMismatch('Quay.io', 'quay.io/team/app').why, 'the host is compared as it is written: "Quay.io" is not "quay.io"');
 * assert.equal(explainMismatch('quay.io/web', 'quay.io/team/app').why, 'the image is not below "/web"');
 * ```
 */
export function explainMismatch(written: string, repository: string): Mismatch {
  const bytes = kubeletKey(written);
  const key = bytes === undefined ? undefined : parseSchemelessBytes(bytes);
  const target = parseSchemelessUrl(repository);
  if (key === undefined || !key.ok || !target.ok) {
    return { near: 'other', why: 'the key is no host with an optional path, so the kubelet passes it over' };
  }
  const [registry = ''] = registryKey(written).meaning.split('/', 1);
  const near = isAbout({ url: key.url, registry }, aboutImage(repository)) ? 'host' : 'other';
  return { near, why: difference(key.url, target.url, near) };
}

/** What is compared of a key and of an image to know whether they are about one registry. */
export interface About {
  /** Host that is meant. */
  readonly registry: string;
  /** Undefined when nothing can match. */
  readonly url: SchemelessUrl | undefined;
}

/** Takes an image apart, once for all the keys that it is compared with. */
export function aboutImage(repository: string): About {
  const target = parseSchemelessUrl(repository);
  const [host = ''] = repository.split('/', 1);
  return { registry: registryKey(host).meaning, url: target.ok ? target.url : undefined };
}

/**
 * Whether a key is about the registry of an image, without saying why it does not match.
 *
 * @example
 * ```ts
 * import { aboutImage, isAbout } from './explain-mismatch.ts';
 * import assert from 'node:assert/strict';
 *
 * const image = aboutImage('quay.io/team/app');
 * assert.equal(isAbout(aboutImage('quay.io/web'), image), true);
 * assert.equal(isAbout(aboutImage('r.io/web'), image), false);
 * ```
 */
export function isAbout(key: About, image: About): boolean {
  if (key.url === undefined || image.url === undefined) return false;
  return key.registry === image.registry || isMeantFor(key.url, image.url);
}

/** Whether who wrote `*.example.com` probably meant this host too: a deeper one, or the domain itself. */
function isMeantFor(key: SchemelessUrl, target: SchemelessUrl): boolean {
  const host = hostOf(key);
  const suffix = host.slice(host.lastIndexOf('*') + 1);
  return host.includes('*') && suffix.includes('.') && `.${hostOf(target)}`.endsWith(suffix);
}

function hostOf({ labels }: SchemelessUrl): string {
  return fromByteText(labels.join('.'));
}

function difference(key: SchemelessUrl, target: SchemelessUrl, near: Mismatch['near']): string {
  const host = hostOf(key);
  const imageHost = hostOf(target);
  if (host.includes('*') && key.labels.length !== target.labels.length)
    return `a star stands for one part of a host name, so the number of parts must be the same: "${host}" is not for "${imageHost}"`;
  const spelling =
    near === 'host' && !host.includes('*') ? hostDifference(host, imageHost, key.path) : undefined;
  if (spelling !== undefined) return spelling;
  if (key.port !== target.port) return portDifference(key.port, target.port);
  return near === 'host' ? `the image is not below "${fromByteText(key.path)}"` : 'another registry';
}

/** What differs between two spellings of one host. */
function hostDifference(host: string, imageHost: string, path: string): string | undefined {
  if (host === imageHost) return undefined;
  if (host === 'index.docker.io' && path === '') {
    return 'it counts for Docker Hub only when no other key of the same list matches';
  }
  if (host.toLowerCase() !== imageHost.toLowerCase()) {
    return `"${host}" is another name of Docker Hub, which the kubelet does not take for "${imageHost}"`;
  }
  return `the host is compared as it is written: "${host}" is not "${imageHost}"`;
}

function portDifference(key: string, target: string): string {
  const name = (port: string): string => (port === '' ? 'none' : port);
  return `ports are compared as they are written: the key has ${name(key)}, the image ${name(target)}`;
}
