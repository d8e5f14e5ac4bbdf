/**
 * A Secret as a source of credentials: which of its keys counts, and what the API server would say about it.
 *
 * Source of the rule: MakeDockerKeyring of the kubelet 1.36, ValidateSecret of the API server 1.36.
 */
import type { AuthSource } from '../auth-lookup/kubelet.ts';
import { decodeUtf8 } from '../go/bytes.ts';
import { describeObject, type SecretObject } from '../kubernetes/object.ts';
import { type Redacted, redact, reveal } from '../redacted.ts';
import { unmarshalMap } from './upstream.ts';

/** Secret type to the key that holds its document. */
const PULL_SECRET_KEYS: Readonly<Record<string, string>> = {
  'kubernetes.io/dockerconfigjson': '.dockerconfigjson',
  'kubernetes.io/dockercfg': '.dockercfg',
};

/** The key of the data that belongs to `type`; undefined for types that are no pull secret. */
export function pullSecretKey(type: unknown): string | undefined {
  return typeof type === 'string' && Object.hasOwn(PULL_SECRET_KEYS, type)
    ? PULL_SECRET_KEYS[type]
    : undefined;
}

/** The text under a base64 value of a Secret. Bytes that are no UTF-8 become U+FFFD, as in Go. */
export function secretDataText(value: Redacted<string>): Redacted<string> {
  return redact(decodeUtf8(Buffer.from(reveal(value), 'base64')));
}

/**
 * What the kubelet reads of a Secret that a pod lists; undefined for those that it passes over: other types, no data.
 *
 * @example
 * ```ts
 * import { pullSecretSource } from './secret-text.ts';
 * import { redact } from '../redacted.ts';
 * import assert from 'node:assert/strict';
 *
 * const secret = { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'pull', namespace: 'web' } } as const;
 * const data = { '.dockerconfigjson': redact('e30=') };
 * assert.equal(pullSecretSource({ ...secret, type: 'kubernetes.io/dockerconfigjson', data })?.name, 'Secret/web/pull');
 * assert.equal(pullSecretSource({ ...secret, type: 'Opaque', data }), undefined);
 * ```
 */
export function pullSecretSource(secret: SecretObject): AuthSource | undefined {
  const key = pullSecretKey(secret.type);
  const value = key === undefined ? undefined : secret.data?.[key];
  if (value === undefined) return undefined;
  const text = secretDataText(value);
  if (reveal(text) === '') return undefined;
  const { name, namespace } = secret.metadata;
  return {
    name: describeObject({ kind: 'Secret', namespace, name }),
    format: key === '.dockercfg' ? 'dockercfg' : 'config.json',
    text,
  };
}

/** A Secret with its data as texts. */
export interface SecretContent {
  readonly type: string;
  readonly data: Readonly<Record<string, Redacted<string>>>;
}

/** Why the API server refuses a pull secret, in its words; undefined when it takes it (or the type is another). */
export function apiServerSecretFault({ type, data }: SecretContent): string | undefined {
  const key = pullSecretKey(type);
  if (key === undefined) return undefined;
  const text = Object.hasOwn(data, key) ? data[key] : undefined;
  if (text === undefined) return `data[${key}]: Required value`;
  const read = unmarshalMap(text);
  if (read.ok) return undefined;
  return `data[${key}]: Invalid value: "<secret contents redacted>": ${read.goText}`;
}
