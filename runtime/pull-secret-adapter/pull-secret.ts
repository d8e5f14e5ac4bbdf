/**
 * Judges a pull secret before anything is done with it. What the existing job checks (JSON object, non-empty `auths`, same
 * texts), and what the requirement adds: each entry has a base64 `auth` of the form `user:password`, at most 64 KiB.
 */
import { createHash } from 'node:crypto';
import { type Redacted, reveal } from '../rules/redacted.ts';

/** Largest payload that Secret Manager takes. */
export const MAX_PULL_SECRET_BYTES = 65_536;

/** Every problem with one, or none. Messages name the registry and the rule, never a value. */
export interface PullSecretVerdict {
  readonly problems: readonly string[];
  /** Registries of the entries, in order. */
  readonly registries: readonly string[];
}

/**
 * Judges the text of a pull secret.
 *
 * @example
 * ```ts
 * import { judgePullSecret } from './pull-secret.ts';
 * import { redact } from '../rules/redacted.ts';
 * import assert from 'node:assert/strict';
 *
 * assert.deepEqual(judgePullSecret(redact('{"auths":{"quay.io":{"auth":"eDp5"}}}')), { problems: [], registries: ['quay.io'] });
 * assert.deepEqual(judgePullSecret(redact('{"auths":{}}')).problems, ["'auths' must be a non-empty object"]);
 * ```
 */
export function judgePullSecret(secret: Redacted<string>): PullSecretVerdict {
  const text = reveal(secret);
  const size = Buffer.byteLength(text);
  if (size > MAX_PULL_SECRET_BYTES) {
    return failed(`the pull secret has ${size} bytes: at most ${MAX_PULL_SECRET_BYTES} can be stored`);
  }
  if (!text.isWellFormed()) return failed('invalid JSON: the text is not valid Unicode');
  const document = parse(text);
  if (document === undefined) return failed('invalid JSON: wanted an object with the key "auths"');
  const auths = document?.['auths'];
  if (document === null || !('auths' in document)) return failed("missing 'auths' key");
  if (!isRecord(auths) || Object.keys(auths).length === 0)
    return failed("'auths' must be a non-empty object");
  const registries = Object.keys(auths);
  return { registries, problems: registries.flatMap((registry) => judgeEntry(registry, auths[registry])) };
}

/** SHA-256 of the exact text, in hex. */
export function pullSecretHash(secret: Redacted<string>): string {
  return createHash('sha256').update(reveal(secret)).digest('hex');
}

function failed(problem: string): PullSecretVerdict {
  return { problems: [problem], registries: [] };
}

/** An object, null (the existing job treats it as an object without keys), or undefined when it is neither. */
function parse(text: string): Record<string, unknown> | null | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return value === null || isRecord(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function judgeEntry(registry: string, entry: unknown): readonly string[] {
  const shown = JSON.stringify(registry.slice(0, 200));
  if (!/^[A-Za-z0-9*][A-Za-z0-9.*:/_[\]-]*$/.test(registry)) return [`entry ${shown} is no registry host`];
  if (!isRecord(entry)) return [`entry ${shown} is not an object`];
  const { auth } = entry;
  if (typeof auth !== 'string' || auth === '') return [`entry ${shown} has no "auth"`];
  if (!/^[A-Za-z0-9+/]+={0,2}$/.test(auth) || auth.length % 4 !== 0)
    return [`"auth" of entry ${shown} is not base64`];
  const colon = Buffer.from(auth, 'base64').indexOf(':');
  return colon > 0 ? [] : [`"auth" of entry ${shown} does not hold user:password`];
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
