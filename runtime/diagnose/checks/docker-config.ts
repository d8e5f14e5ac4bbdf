/**
 * Validates pull secrets before they are applied: each problem has its path and position.
 *
 * Errors: a consumer rejects the whole document, or the API server rejects the Secret. Warnings: entries that are not used, or
 * that the kubelet and CRI-O read differently.
 */

import { credentialDoubt } from '../../core/docker-config/expiry.ts';
import type { DockerConfigFormat } from '../../core/docker-config/fields.ts';
import {
  type AuthSource,
  apiServerSecretFault,
  type DockerConfig,
  type DockerConfigEntry,
  helperOf,
  isEncrypted,
  parseDockerConfig,
  pullSecretKey,
  secretDataText,
} from '../../core/docker-config/pull-secret.ts';
import { decodeGoBase64 } from '../../core/go/base64.ts';
import { GLOBAL_PULL_SECRET as NAMES } from '../../core/kubernetes/hypershift.ts';
import type { SecretObject } from '../../core/kubernetes/object.ts';
import { type Redacted, reveal } from '../../core/redacted.ts';
import { type TextPosition, withoutUserInfo } from '../../core/text.ts';

/** A problem of a pull secret. */
export type ValidationProblem = ReturnType<typeof problem>;

/**
 * Creates a problem.
 *
 * @param code CamelCase, stable
 * @param path within the document, such as `auths["quay.io"]`; may be empty
 * @param message completes a sentence that starts with the path
 * @param position in the decoded document; undefined if the problem has no position there
 */
export function problem(
  severity: 'error' | 'warning',
  code: string,
  path: string,
  message: string,
  position?: TextPosition,
) {
  return { severity, code, path, message, position };
}

/** Validates a docker config. Without `now`, expiry is not checked. */
export function validateDockerConfig(
  text: Redacted<string>,
  format: DockerConfigFormat = 'config.json',
  now?: Date,
): readonly ValidationProblem[] {
  const parsed = parseDockerConfig(text, format);
  if (!parsed.ok) {
    const { reason, message, position } = parsed.problem;
    if (reason === 'Encrypted') return [problem('warning', reason, '', message)];
    return [problem('error', reason, '', message, position)];
  }
  const { config } = parsed;
  const shape = shapeFault(config);
  if (shape !== undefined) return [problem('error', 'AuthsMissing', '', shape)];
  const path = (key: string): string =>
    format === 'dockercfg' ? `[${JSON.stringify(key)}]` : `auths[${JSON.stringify(key)}]`;
  const problems = config.entries.flatMap((entry): readonly ValidationProblem[] => {
    const at = path(withoutUserInfo(entry.key.written));
    const helper = entry.fault?.reason === 'NoCredential' ? helperOf(config, entry.key.written) : undefined;
    if (helper === undefined) return entryProblems(entry, at, now);
    return [problem('warning', 'CredentialElsewhere', at, helper, entry.position)];
  });
  const warnings = config.warnings.map(({ reason, subject, message }) => {
    const isOfKey = reason === 'DuplicateKey' || reason === 'KeyWithUserInfo';
    return problem('warning', reason, isOfKey ? path(subject) : subject.replaceAll('"', ''), message);
  });
  if (config.kubeletFault === undefined || problems.some(({ severity }) => severity === 'error'))
    return [...problems, ...warnings];
  const unread = 'must be an object with string values: the kubelet discards the whole document';
  return [...problems, ...warnings, problem('error', 'FieldInvalid', 'HttpHeaders', unread)];
}

/** Why no consumer finds an entry in the document; undefined if the entries are where consumers look for them. */
export function shapeFault({ entries, fields, format, hasAuths }: DockerConfig): string | undefined {
  if (format === 'dockercfg' && entries.some(({ key }) => key.written === 'auths'))
    return 'has "auths" around its entries, as in .dockerconfigjson only';
  const named = reveal(fields).filter(({ value }) => value.kind !== 'null');
  if (entries.length === 0 && named.some(({ key }) => /^cred(?:sStore|Helpers)$/i.test(key)))
    return 'has no entry: a credential helper keeps the passwords where the file was written, which nodes cannot access';
  if (hasAuths) return undefined;
  const isOld = named.some(
    ({ value }) => value.kind === 'object' && value.members.some(({ key }) => key === 'auth'),
  );
  return isOld ? 'has entries without "auths" around them, as in .dockercfg only' : 'has no "auths" object';
}

function entryProblems(
  entry: DockerConfigEntry,
  path: string,
  now: Date | undefined,
): readonly ValidationProblem[] {
  const { fault, position, readable, kubelet } = entry;
  if (fault !== undefined) {
    const effect = readable ? 'it is not used' : 'a pod that lists this Secret cannot pull any image';
    const severity = readable ? 'warning' : 'error';
    return [problem(severity, fault.reason, path, `${fault.message}: ${effect}`, position)];
  }
  const doubt = kubelet && credentialDoubt(kubelet, now);
  return [
    ...(doubt === undefined ? [] : [problem('warning', 'CredentialRefused', path, doubt, position)]),
    ...differences(entry).map((one) => problem('warning', 'NotPortable', path, one, position)),
  ];
}

/** Describes how the kubelet and CRI-O read a valid entry differently. */
function differences({ key, containers }: DockerConfigEntry): readonly string[] {
  const found: string[] = [];
  if (key.portable.includes('*')) found.push('is a wildcard, which CRI-O does not support');
  else if (/^https?:\/\//.test(key.written) && key.portable.includes('/')) {
    found.push(`matches the whole host in CRI-O: write "${key.portable}"`);
  } else if (key.written !== key.portable && !/^https?:\/\//.test(key.written)) {
    found.push(`is read differently by the kubelet and CRI-O: write "${key.portable}"`);
  }
  if (containers === undefined) found.push('has an "auth" without padding, which CRI-O rejects');
  else if (containers.username === '')
    found.push('has no "auth", and CRI-O ignores "username" and "password"');
  return found;
}

/** Why consumers cannot read the document, as `validate` words it. Completes a sentence and contains no value. */
export function documentFault({ text, format }: Pick<AuthSource, 'text' | 'format'>): string {
  const found = validateDockerConfig(text, format).find(({ severity }) => severity === 'error');
  return found === undefined ? 'cannot be read' : faultText(found);
}

/** Warnings of `validate` that make the whole Secret unusable. */
const NO_USE: ReadonlySet<string> = new Set(['WrongType', 'Encrypted', 'Masked']);

/** Why a pod that lists the Secret gets no credential from it, as `validate` words it; undefined if it gets one. */
export function secretFault(secret: SecretObject): string | undefined {
  const found = validateSecret(secret, true).find(
    ({ severity, code }) => severity === 'error' || NO_USE.has(code),
  );
  return found && faultText(found);
}

function faultText({ path, message, position }: ValidationProblem): string {
  const at = position === undefined ? '' : ` (line ${position.line}, column ${position.column})`;
  return `${[path, message].filter((part) => part !== '').join(' ')}${at}`;
}

/**
 * Validates a Secret that is or should be a pull secret; paths start with the data key.
 *
 * @param wanted validate it as a pull secret regardless of its type
 * @param now time of use; without it, expiry is not checked
 */
export function validateSecret(
  secret: SecretObject,
  wanted = false,
  now?: Date,
): readonly ValidationProblem[] {
  const type = secret.type ?? 'Opaque';
  const typed = pullSecretKey(type);
  const held = ['.dockerconfigjson', '.dockercfg'].find((one) => secret.data?.[one] !== undefined);
  if (typed === undefined && !wanted && (held === undefined || isOfNodes(secret))) return [];
  const key = typed ?? held ?? '.dockerconfigjson';
  const right = key === '.dockercfg' ? 'kubernetes.io/dockercfg' : 'kubernetes.io/dockerconfigjson';
  const message = `is "${type}", expected "${right}": a pod that lists the Secret ignores it`;
  return [
    ...(typed === undefined ? [problem('warning', 'WrongType', 'type', message)] : []),
    ...dataProblems(secret, key, now),
  ];
}

function dataProblems(secret: SecretObject, key: string, now?: Date): readonly ValidationProblem[] {
  const value = secret.data?.[key];
  const data = `data[${JSON.stringify(key)}]`;
  if (value === undefined) return [problem('error', 'KeyMissing', data, 'is missing')];
  if (!isEncrypted(value) && !decodeGoBase64(reveal(value), 'padded').ok)
    return [problem('error', 'NotBase64', data, 'is not base64')];
  const text = secretDataText(value);
  const inner = validateDockerConfig(text, key === '.dockercfg' ? 'dockercfg' : 'config.json', now);
  const isHidden = inner.some(({ code }) => code === 'Encrypted' || code === 'Masked');
  // Reported in addition to other problems: the API server rejects such a Secret.
  const refused = apiServerSecretFault({ type: secret.type ?? 'Opaque', data: { [key]: text } });
  return [
    ...inner.map((one) => ({ ...one, path: one.path === '' ? data : `${data}: ${one.path}` })),
    ...(isHidden || refused === undefined
      ? []
      : [problem('error', 'ApiServerRefuses', '', `is rejected by the API server: ${refused}`)]),
  ];
}

/** Whether the Secret is one of the node agents' pull secrets, which are read regardless of type. */
function isOfNodes({ metadata: { namespace, name } }: SecretObject): boolean {
  const { original, global, additional } = NAMES;
  return namespace === NAMES.namespace && [original, global, additional].includes(name as never);
}
