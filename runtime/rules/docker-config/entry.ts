/**
 * One entry of `auths`: what each consumer would use of it, and why it cannot be used.
 *
 * Source of the rule: the kubelet's and containers/image's own strictness (docker-config-go.ts); an entry is good when both
 * can read it and at least the kubelet finds a credential in it.
 */

import type { JsonMember, JsonNode } from '../go/json.ts';
import { encodeGoJson } from '../go/json-encode.ts';
import { type Redacted, redact, reveal } from '../redacted.ts';
import type { TextPosition } from '../text/position.ts';
import { wrongTextField } from './fields.ts';
import {
  type ContainersCredential,
  containersCredential,
  type KubeletCredential,
  kubeletEntry,
} from './go-reader.ts';
import { type RegistryKey, registryKey } from './registry-key.ts';

export type EntryFaultReason =
  | 'KeyInvalid'
  | 'EntryNotObject'
  | 'FieldNotText'
  | 'AuthNotBase64'
  | 'AuthWithoutColon'
  | 'NoCredential'
  | 'EntryTooLarge';

/** Why an entry cannot be used. */
export interface EntryFault {
  readonly reason: EntryFaultReason;
  /** The end of a sentence that begins with the entry: `has an "auth" that is not base64`. Shows no value. */
  readonly message: string;
}

/** One entry; of several under the same key, the last, as Go has it. */
export interface DockerConfigEntry {
  readonly key: RegistryKey;
  readonly position: TextPosition;
  readonly value: Redacted<JsonNode>;
  /** Whether no consumer stumbles over it, be it good for anything or not. */
  readonly readable: boolean;
  /** Absent when the entry is good. */
  readonly fault?: EntryFault;
  /** What the kubelet would use; absent when it cannot read the entry. */
  readonly kubelet?: KubeletCredential;
  /** What containers/image would use; absent when it cannot read the entry, empty when it goes on without. */
  readonly containers?: ContainersCredential;
}

/** Largest entry, as compact JSON in bytes: more than any registry takes in a header. */
export const MAX_ENTRY_BYTES: number = 64 * 1024;

/** Judges `member`. */
export function judgeEntry(member: JsonMember, position: TextPosition): DockerConfigEntry {
  const key = registryKey(member.key);
  const kubelet = kubeletEntry(member.value);
  const containers = containersCredential(member.value);
  const fault = keyFault(key) ?? valueFault(member.value, kubelet);
  return {
    key,
    position,
    value: redact(member.value),
    readable: kubelet.ok && wrongTextField(member.value) === undefined,
    ...(fault === undefined ? {} : { fault }),
    ...(kubelet.ok ? { kubelet: kubelet.value } : {}),
    ...(containers.ok ? { containers: containers.value } : {}),
  };
}

function keyFault(key: RegistryKey): EntryFault | undefined {
  return key.fault === undefined ? undefined : { reason: 'KeyInvalid', message: key.fault };
}

function valueFault(node: JsonNode, kubelet: ReturnType<typeof kubeletEntry>): EntryFault | undefined {
  if (node.kind !== 'object' && node.kind !== 'null') {
    return { reason: 'EntryNotObject', message: `is ${describeKind(node.kind)}, expected an object` };
  }
  const wrong = wrongTextField(node);
  if (wrong !== undefined) {
    const message = `has "${wrong.field}" as ${describeKind(wrong.kind)}, expected a text`;
    return { reason: 'FieldNotText', message };
  }
  if (!kubelet.ok) return authFault(kubelet.goText);
  if (kubelet.value.username === '' && reveal(kubelet.value.password) === '') {
    return { reason: 'NoCredential', message: 'has no "auth" with a user name or a password' };
  }
  const size = mayBeLarge(node) ? Buffer.byteLength(encodeGoJson(node, 'exact')) : 0;
  if (size <= MAX_ENTRY_BYTES) return undefined;
  return { reason: 'EntryTooLarge', message: `has ${size} bytes, at most ${MAX_ENTRY_BYTES} are taken` };
}

/** Whether it is worth while to measure: fewer units than this cannot become that many bytes. */
function mayBeLarge(node: JsonNode): boolean {
  let units = 0;
  const work: JsonNode[] = [node];
  for (let next = work.pop(); next !== undefined; next = work.pop()) {
    units += 8;
    if (next.kind === 'string') units += next.value.length;
    else if (next.kind === 'number') units += next.literal.length;
    else if (next.kind === 'array') work.push(...next.items);
    else if (next.kind === 'object') {
      for (const member of next.members) {
        units += member.key.length;
        work.push(member.value);
      }
    }
    // A unit takes six bytes at most.
    if (units * 6 > MAX_ENTRY_BYTES) return true;
  }
  return false;
}

function authFault(goText: string): EntryFault {
  const byte = /input byte (\d+)$/.exec(goText)?.[1];
  if (byte === undefined) {
    return {
      reason: 'AuthWithoutColon',
      message: 'has an "auth" without a colon, expected base64(user:password)',
    };
  }
  const hint = 'expected base64(user:password) in the standard alphabet, without blanks';
  return { reason: 'AuthNotBase64', message: `has an "auth" that is not base64 at byte ${byte}, ${hint}` };
}

/** `an array`, `a number`, `null`. */
export function describeKind(kind: JsonNode['kind']): string {
  if (kind === 'null') return 'null';
  if (kind === 'string') return 'a text';
  return kind === 'array' || kind === 'object' ? `an ${kind}` : `a ${kind}`;
}
