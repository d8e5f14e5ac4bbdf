/**
 * The form in which a pull secret is written: the same content always gives the same bytes, and the kubelet and CRI-O read
 * every entry alike.
 *
 * - `auth` is padded standard base64 without line ends. CRI-O refuses other spellings that the kubelet takes.
 * - An entry with only `username` and `password` gets its `auth`: CRI-O passes over the two fields.
 * - Every other field stays. The bytes are those of Go (see go-json-encode.ts), whole numbers keep all their digits.
 *
 * Source of the rule: facts on both consumers, "portable form both read alike".
 */

import { compareBytes } from '../go/bytes.ts';
import type { JsonMember, JsonNode } from '../go/json.ts';
import { encodeGoJson, encodeGoText } from '../go/json-encode.ts';
import { type Redacted, redact, reveal } from '../redacted.ts';
import type { DockerConfig, DockerConfigEntry } from './docker-config.ts';
import { fieldOf, readTexts } from './fields.ts';
import { decodedAuth } from './go-reader.ts';

/** An entry as it is written: the text of `"key":{...}`. */
export interface EncodedEntry {
  readonly key: string;
  readonly text: Redacted<string>;
}

/** Writes `entry` under `key`. The entry must be without fault. */
export function encodeEntry(entry: DockerConfigEntry, key: string): EncodedEntry {
  const node = withPortableAuth(reveal(entry.value));
  return { key, text: redact(`${encodeGoText(key)}:${encodeGoJson(node, 'exact')}`) };
}

function withPortableAuth(node: JsonNode): JsonNode {
  if (node.kind !== 'object') return node;
  const wanted = portableAuth(node);
  if (wanted === undefined) return node;
  if (isWritten(node, wanted)) return node;
  const others = node.members.filter((member) => fieldOf(member.key, ['auth']) === undefined);
  const auth: JsonMember = {
    key: 'auth',
    at: node.at,
    value: { kind: 'string', at: node.at, value: wanted },
  };
  return { ...node, members: [...others, auth] };
}

/** Whether the only field of this name already holds the value. */
function isWritten(node: JsonNode & { kind: 'object' }, wanted: string): boolean {
  const fields = node.members.filter((member) => fieldOf(member.key, ['auth']) !== undefined);
  const [only] = fields;
  return (
    fields.length === 1 && only?.key === 'auth' && only.value.kind === 'string' && only.value.value === wanted
  );
}

/** The value of `auth` that both consumers read alike, undefined when there is none to write. */
function portableAuth(node: JsonNode): string | undefined {
  const { username = '', password = '', auth = '' } = readTexts(node, ['username', 'password', 'auth']).texts;
  if (auth !== '') {
    const decoded = decodedAuth(auth);
    return decoded.ok ? Buffer.from(decoded.bytes).toString('base64') : undefined;
  }
  // A user name with a colon cannot be told from its password in the pair.
  if ((username === '' && password === '') || username.includes(':')) return undefined;
  return Buffer.from(`${username}:${password}`, 'utf8').toString('base64');
}

/** The whole document from entries and other top-level fields, sorted. */
export function encodeConfig(
  entries: readonly EncodedEntry[],
  fields: readonly JsonMember[],
): Redacted<string> {
  const auths = entries
    .toSorted((a, b) => compareBytes(a.key, b.key))
    .map((entry) => reveal(entry.text))
    .join(',');
  const parts = fields.map((member): readonly [string, string] => [
    member.key,
    `${encodeGoText(member.key)}:${encodeGoJson(member.value, 'exact')}`,
  ]);
  const all = [...parts, ['auths', `"auths":{${auths}}`] as const];
  const sorted = all.toSorted(([a], [b]) => compareBytes(a, b)).map(([, text]) => text);
  return redact(`{${sorted.join(',')}}`);
}

/**
 * Top-level fields that may be written: those that would make a consumer give up the whole document are left out.
 *
 * @returns the fields to write, and the names of those left out
 */
export function usableFields(config: DockerConfig): {
  readonly fields: readonly JsonMember[];
  readonly leftOut: readonly string[];
} {
  const all = [...new Map(reveal(config.fields).map((member) => [member.key, member])).values()];
  const good = all.filter((member) => {
    const textMap = fieldOf(member.key, ['credHelpers', 'HttpHeaders']) !== undefined;
    return !textMap || isTextMap(member.value);
  });
  const kept = new Set(good);
  return { fields: good, leftOut: all.filter((member) => !kept.has(member)).map((member) => member.key) };
}

function isTextMap(node: JsonNode): boolean {
  if (node.kind !== 'object') return node.kind === 'null';
  return node.members.every(({ value }) => value.kind === 'string' || value.kind === 'null');
}
