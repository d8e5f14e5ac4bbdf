/**
 * Validates a pull secret before it is used, with the parser in `runtime/core/docker-config`. Errors of the existing job keep its
 * texts (JSON object, non-empty `auths`). The requirement is stricter than the consumers: at most 64 KiB, and every entry must
 * have a base64 `auth` for both the kubelet and CRI-O. Otherwise a partly working secret would be reported as available.
 */

import { hash } from 'node:crypto';
import {
  type ConfigProblem,
  type DockerConfigEntry,
  parseDockerConfig,
} from '../core/docker-config/pull-secret.ts';
import { isRecord, jsonOf } from '../core/record.ts';
import { type Redacted, reveal } from '../core/redacted.ts';
import { withoutUserInfo } from '../core/text.ts';

// Hints for common mistakes, such as a base64 value or a whole Secret instead of a pull secret.

/** For text without trailing whitespace. */
const BASE64 = /^[A-Za-z0-9+/\s]+={0,2}$/;

/**
 * Returns a suffix for the error message that says what to provide instead, or an empty string. Contains no value.
 *
 * @param text at most 64 KiB
 */
export function pullSecretHint(text: string): string {
  const value = jsonOf(text);
  if (value === undefined) return hintOfText(text);
  return typeof value === 'string' ? hintOfText(value) : hintOfObject(value);
}

function hintOfText(text: string): string {
  const decoded = BASE64.test(text.trimEnd())
    ? jsonOf(Buffer.from(text, 'base64').toString('utf8'))
    : undefined;
  if (hasAuths(decoded)) return '; the value is base64-encoded: use the output of "base64 --decode"';
  if (hasAuths(jsonOf(text))) return '; the value is a JSON string: use the object itself';
  return /^kind: ?Secret$/m.test(text) ? WHOLE_SECRET : '';
}

function hintOfObject(value: unknown): string {
  if (!isRecord(value) || 'auths' in value) return '';
  if (value['kind'] === 'Secret' || '.dockerconfigjson' in value) return WHOLE_SECRET;
  const entries = Object.values(value);
  const isBare = entries.length > 0 && entries.every((entry) => isRecord(entry) && 'auth' in entry);
  return isBare ? '; the entries are at the top level: put them under "auths"' : '';
}

const WHOLE_SECRET =
  '; the value is a Kubernetes Secret: use its key ".dockerconfigjson", decoded by "base64 --decode"';

function hasAuths(value: unknown): boolean {
  return isRecord(value) && isRecord(value['auths']);
}

/** Largest payload that Secret Manager accepts. */
export const MAX_PULL_SECRET_BYTES = 65_536;

/** Validates a pull secret and returns all problems. Messages name the registry and the rule, never a value. */
export function judgePullSecret(secret: Redacted<string>): readonly string[] {
  const text = reveal(secret);
  const size = Buffer.byteLength(text);
  if (size > MAX_PULL_SECRET_BYTES) {
    return [`the pull secret has ${size} bytes: at most ${MAX_PULL_SECRET_BYTES} can be stored`];
  }
  if (!text.isWellFormed()) return ['invalid JSON: the text is not valid Unicode'];
  const parsed = parseDockerConfig(secret);
  if (!parsed.ok) return [`${documentProblem(parsed.problem, text)}${pullSecretHint(text)}`];
  const { hasAuths, entries, kubeletFault } = parsed.config;
  if (!hasAuths)
    return [`missing 'auths' key, or it is null: 'auths' must be a non-empty object${pullSecretHint(text)}`];
  if (entries.length === 0) return ["'auths' must be a non-empty object"];
  const problems = entries.flatMap(entryProblem);
  if (problems.length === 0 && kubeletFault !== undefined)
    return ['a field beside "auths" has a wrong type: the kubelet discards the whole document'];
  return problems;
}

/** Hex SHA-256 of the exact text. */
export function pullSecretHash(secret: Redacted<string>): string {
  return hash('sha256', reveal(secret));
}

/** The message of the existing job, which treats the document `null` as an empty object. */
function documentProblem({ reason, message, position }: ConfigProblem, text: string): string {
  if (reason === 'AuthsNotAnObject') return "'auths' must be a non-empty object";
  if (text.trim() === 'null') return "missing 'auths' key";
  const at = position === undefined ? '' : ` at line ${position.line}, column ${position.column}`;
  return `invalid JSON: the pull secret ${message}${at}`;
}

function entryProblem(entry: DockerConfigEntry): readonly string[] {
  const shown = `entry ${JSON.stringify(withoutUserInfo(entry.key.written).slice(0, 200))}`;
  if (entry.fault !== undefined) return [`${shown} ${entry.fault.message}`];
  if (entry.containers === undefined)
    return [`${shown} has an "auth" that CRI-O cannot read: expected padding`];
  return entry.containers.username === '' ? [`${shown} has no "auth" with a user name`] : [];
}
