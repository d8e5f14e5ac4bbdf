/**
 * The canonical form of a pull secret: the same content always gives the same bytes, and the kubelet and CRI-O read every entry
 * alike.
 *
 * - `auth` is padded standard base64 without line breaks. CRI-O rejects other forms that the kubelet accepts.
 * - An entry with only `username` and `password` gets an `auth`, because CRI-O ignores the two fields.
 * - Every other field stays. The bytes are those of Go (see runtime/core/go/json.ts); integers keep all digits.
 *
 * Source of the rule: the kubelet and containers/image, in the versions that pull-secret.ts names.
 */

import { createHash, hash } from 'node:crypto';
import { encodeGoJson, encodeGoText, type JsonMember, type JsonNode } from '../go/json.ts';
import { type Redacted, redact, reveal } from '../redacted.ts';
import { decodedAuth, fieldOf, readTexts } from './fields.ts';

/** An entry in canonical form. */
export type EncodedEntry = Readonly<ReturnType<typeof encodeEntry>>;

/** Encodes an entry under `key`. It must be valid. */
export function encodeEntry({ value }: { readonly value: Redacted<JsonNode> }, key: string) {
  return { key, value: redact(withPortableAuth(reveal(value))) };
}

/** Size of the entry in a document in bytes, including the comma. */
export function entrySize({ key, value }: EncodedEntry): number {
  return Buffer.byteLength(encodeGoText(key)) + Buffer.byteLength(encodeGoJson(reveal(value))) + 2;
}

function withPortableAuth(node: JsonNode): JsonNode {
  if (node.kind !== 'object') return node;
  const wanted = portableAuth(node);
  if (wanted === undefined) return node;
  const others = node.members.filter((member) => fieldOf(member.key, ['auth']) === undefined);
  const { at } = node;
  const auth: JsonMember = { key: 'auth', at, value: { kind: 'string', at, value: wanted } };
  return { ...node, members: [...others, auth] };
}

/** The value of `auth` that both consumers read in the same way; undefined if none is written. */
function portableAuth(node: JsonNode): string | undefined {
  const { username = '', password = '', auth = '' } = readTexts(node, ['username', 'password', 'auth']).texts;
  if (auth !== '') {
    const decoded = decodedAuth(auth);
    return decoded.ok ? Buffer.from(decoded.value).toString('base64') : undefined;
  }
  // The pair separates user name and password by a colon, so the user name cannot contain one.
  if ((username === '' && password === '') || username.includes(':')) return undefined;
  return Buffer.from(`${username}:${password}`, 'utf8').toString('base64');
}

/** The whole document of entries and other top-level fields, sorted. */
export function encodeConfig(
  entries: readonly EncodedEntry[],
  fields: readonly JsonMember[],
): Redacted<string> {
  return encodeUsable(
    entries.map(({ key, value }) => ({ key, value: reveal(value) })),
    fields,
  );
}

/** Values with their keys. */
export type Nodes = readonly Pick<JsonMember, 'key' | 'value'>[];

/** The document of these entries and fields, unchanged but sorted. */
export function encodeUsable(entries: Nodes, fields: Nodes): Redacted<string> {
  const objectOf = (nodes: Nodes): JsonNode => ({
    kind: 'object',
    at: 0,
    members: nodes.map((node) => ({ ...node, at: 0 })),
  });
  return redact(encodeGoJson(objectOf([...fields, { key: 'auths', value: objectOf(entries) }])));
}

/**
 * Digest of the meaning of entries and fields. White space, order, and a user name and password next to an `auth` do not change
 * it.
 */
export function usableDigest(entries: Nodes, fields: Nodes): string {
  const meanings = entries.map(({ key, value }) => ({ key, value: meaningOf(value) }));
  return hash('sha256', reveal(encodeUsable(meanings, fields)));
}

/** Digest of a document that its consumers reject; differs from that of any other document. */
export function unusableDigest(bytes: Uint8Array): string {
  return createHash('sha256').update('unusable ').update(bytes).digest('hex');
}

/** Digest of one value, ignoring white space and the order of keys. */
export function digestOfNode(node: JsonNode): string {
  return hash('sha256', encodeGoJson(node));
}

/**
 * An entry as its consumers read it. If there is an `auth`, the kubelet prefers it to user name and password, and CRI-O reads
 * only `auth`. `kubectl create secret docker-registry` writes all three.
 */
export function meaningOf(node: JsonNode): JsonNode {
  if (node.kind !== 'object' || !isPair(readTexts(node, ['auth']).texts['auth'] ?? '')) return node;
  const members = node.members.filter(({ key }) => fieldOf(key, ['username', 'password']) === undefined);
  return { ...node, members };
}

/** Whether every consumer decodes the text to a user name and a password. */
function isPair(auth: string): boolean {
  return /^[A-Za-z0-9+/]+={0,2}$/.test(auth) && Buffer.from(auth, 'base64').includes(':');
}
