/**
 * What is wrong with a pull secret, or not as its author thinks, before it is applied: each problem with its path and place.
 *
 * Errors make a consumer give up the whole document or are refused by the API server; warnings are entries that are not used,
 * or that the kubelet and CRI-O read differently.
 */

import { credentialDoubt } from '../../core/docker-config/expiry.ts';
import type { DockerConfigFormat } from '../../core/docker-config/fields.ts';
import {
  type AuthSource,
  apiServerSecretFault,
  type DockerConfigEntry,
  helperOf,
  isEncrypted,
  parseDockerConfig,
  pullSecretKey,
  secretDataText,
  withHelper,
} from '../../core/docker-config/pull-secret.ts';
import { decodeGoBase64 } from '../../core/go/base64.ts';
import { GLOBAL_PULL_SECRET as NAMES } from '../../core/kubernetes/hypershift.ts';
import type { SecretObject } from '../../core/kubernetes/object.ts';
import { type Redacted, reveal } from '../../core/redacted.ts';
import { type TextPosition, withoutUserInfo } from '../../core/text.ts';

/** One problem. */
export interface ValidationProblem {
  readonly severity: 'error' | 'warning';
  /** CamelCase, stable. */
  readonly code: string;
  /** Within the document: `auths["quay.io"]`, or empty. */
  readonly path: string;
  /** In the decoded document; absent for what has no place there. */
  readonly position?: TextPosition;
  /** The end of a sentence that begins with the path. */
  readonly message: string;
}

/**
 * Validates a document.
 */
export function validateDockerConfig(
  text: Redacted<string>,
  format: DockerConfigFormat = 'config.json',
  now?: Date,
): readonly ValidationProblem[] {
  const parsed = parseDockerConfig(text, format);
  if (!parsed.ok) {
    const { reason, message, position } = parsed.problem;
    if (reason === 'Encrypted') return [{ severity: 'warning', code: reason, path: '', message }];
    return [
      { severity: 'error', code: reason, path: '', message, ...(position === undefined ? {} : { position }) },
    ];
  }
  const { config } = parsed;
  if (!config.hasAuths) {
    return [{ severity: 'error', code: 'AuthsMissing', path: '', message: 'has no "auths" object' }];
  }
  const path = (key: string): string =>
    format === 'dockercfg' ? `[${JSON.stringify(key)}]` : `auths[${JSON.stringify(key)}]`;
  const problems = config.entries.flatMap((entry): readonly ValidationProblem[] => {
    const at = path(withoutUserInfo(entry.key.written));
    const helper = entry.fault?.reason === 'NoCredential' ? helperOf(config, entry.key.written) : undefined;
    if (helper === undefined) return entryProblems(entry, at, now);
    const { position } = entry;
    return [
      { severity: 'warning', code: 'CredentialElsewhere', path: at, position, message: withHelper(helper) },
    ];
  });
  const warnings = config.warnings.map(({ reason, subject, message }): ValidationProblem => {
    const at =
      reason === 'DuplicateKey' || reason === 'KeyWithUserInfo' ? path(subject) : subject.replaceAll('"', '');
    return { severity: 'warning', code: reason, path: at, message };
  });
  const whole = problems.some(({ severity }) => severity === 'error') || config.kubeletFault === undefined;
  return [...problems, ...warnings, ...(whole ? [] : [BAD_FIELD])];
}

const BAD_FIELD: ValidationProblem = {
  severity: 'error',
  code: 'FieldInvalid',
  path: 'HttpHeaders',
  message: 'must be an object with string values: the kubelet discards the whole document',
};

function entryProblems(
  entry: DockerConfigEntry,
  path: string,
  now: Date | undefined,
): readonly ValidationProblem[] {
  const { fault, position, readable } = entry;
  if (fault !== undefined) {
    const effect = readable ? 'it is not used' : 'a pod that lists this secret can pull no image at all';
    return [
      {
        severity: readable ? 'warning' : 'error',
        code: fault.reason,
        path,
        position,
        message: `${fault.message}: ${effect}`,
      },
    ];
  }
  const doubt = entry.kubelet === undefined ? undefined : credentialDoubt(entry.kubelet, now);
  const doubts = doubt === undefined ? [] : [doubt];
  return [
    ...doubts.map(
      (message): ValidationProblem => ({
        severity: 'warning',
        code: 'CredentialRefused',
        path,
        position,
        message,
      }),
    ),
    ...differences(entry).map(
      (message): ValidationProblem => ({ severity: 'warning', code: 'NotPortable', path, position, message }),
    ),
  ];
}

/** Where the kubelet and CRI-O read a good entry differently. */
function differences({ key, containers }: DockerConfigEntry): readonly string[] {
  const found: string[] = [];
  if (key.portable.includes('*')) found.push('is a wildcard, which CRI-O does not know');
  else if (/^https?:\/\//.test(key.written) && key.portable.includes('/')) {
    found.push(`is taken for the whole host by CRI-O: write "${key.portable}"`);
  } else if (key.written !== key.portable && !/^https?:\/\//.test(key.written)) {
    found.push(`is not read alike by the kubelet and CRI-O: write "${key.portable}"`);
  }
  if (containers === undefined) found.push('has an "auth" without padding, which CRI-O refuses');
  else if (containers.username === '')
    found.push('has no "auth", and CRI-O reads no "username" and "password"');
  return found;
}

/** Why a consumer cannot read a document at all, as the end of a sentence, in the words of `validate`. Shows no value. */
export function documentFault({ text, format }: Pick<AuthSource, 'text' | 'format'>): string {
  const found = validateDockerConfig(text, format).find(({ severity }) => severity === 'error');
  return found === undefined ? 'cannot be read' : faultText(found);
}

/** Warnings of `validate` after which nothing of a Secret can be used as it stands. */
const NO_USE: ReadonlySet<string> = new Set(['WrongType', 'Encrypted', 'Masked']);

/** Why a pod that lists a Secret gets nothing of it; undefined where it gets something. In the words of `validate`. */
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
 * Validates a Secret, if it is or should be a pull secret; the path begins with the key of the data.
 *
 * @param wanted the Secret is used as a pull secret, whatever its type
 * @param now when its credentials are to be used; without it, expiry is not checked
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
    ...(typed === undefined
      ? [{ severity: 'warning', code: 'WrongType', path: 'type', message } as const]
      : []),
    ...dataProblems(secret, key, now),
  ];
}

function dataProblems(secret: SecretObject, key: string, now?: Date): readonly ValidationProblem[] {
  const value = secret.data?.[key];
  const data = `data[${JSON.stringify(key)}]`;
  if (value === undefined)
    return [{ severity: 'error', code: 'KeyMissing', path: data, message: 'is missing' }];
  if (!isEncrypted(value) && !decodeGoBase64(reveal(value), 'padded').ok)
    return [{ severity: 'error', code: 'NotBase64', path: data, message: 'is not base64' }];
  const format = key === '.dockercfg' ? 'dockercfg' : 'config.json';
  const text = secretDataText(value);
  const inner = validateDockerConfig(text, format, now);
  return [
    ...inner.map((one) => ({ ...one, path: one.path === '' ? data : `${data}: ${one.path}` })),
    ...(inner.some(({ code }) => code === 'Encrypted' || code === 'Masked')
      ? []
      : refusal(secret.type ?? 'Opaque', { [key]: text })),
  ];
}

/** Copies of the platform's pull secret, which node agents read whatever their type is. */
function isOfNodes({ metadata: { namespace, name } }: SecretObject): boolean {
  const { original, global, additional } = NAMES;
  return namespace === NAMES.namespace && [original, global, additional].includes(name as never);
}

/** What the API server will say: such a Secret cannot be created, whatever else is wrong with it. */
function refusal(
  type: string,
  data: Readonly<Record<string, Redacted<string>>>,
): readonly ValidationProblem[] {
  const fault = apiServerSecretFault({ type, data });
  if (fault === undefined) return [];
  return [
    {
      severity: 'error',
      code: 'ApiServerRefuses',
      path: '',
      message: `is refused by the API server: ${fault}`,
    },
  ];
}
