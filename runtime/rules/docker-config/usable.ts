/**
 * The part of a pull secret that may be written where the kubelet and CRI-O read it: every entry and field over which neither
 * stumbles. One bad `auth` costs the kubelet the whole file, with every credential in it.
 *
 * Source of the rule: go-reader.ts, that is DockerConfigJSON of the kubelet 1.36 and dockerConfigFile of containers/image.
 */
import { createHash } from 'node:crypto';
import type { JsonMember, JsonNode } from '../go/json.ts';
import { encodeGoJson } from '../go/json-encode.ts';
import { type Redacted, redact, reveal } from '../redacted.ts';
import { usableFields } from './canonical.ts';
import type { DockerConfig, DockerConfigEntry } from './docker-config.ts';
import { fieldOf, readTexts } from './fields.ts';

/** Values by their keys. */
export type Nodes = Iterable<readonly [string, JsonNode]>;

/** See {@link usablePart}. */
export interface UsablePart {
  /** Whether the document may be written as it stands: nothing is left out, and both consumers take all of it. */
  readonly whole: boolean;
  readonly entries: readonly DockerConfigEntry[];
  /** Entries for which a consumer would give up the whole document. */
  readonly broken: readonly DockerConfigEntry[];
  /** Fields beside `auths`. */
  readonly fields: readonly JsonMember[];
  /** Names of the fields that are left out for the same reason. */
  readonly leftOut: readonly string[];
}

/**
 * Splits a document.
 *
 * @example
 * ```ts
 * import { parseDockerConfig } from './docker-config.ts';
 * import { usablePart } from './usable.ts';
 * import { redact } from '../redacted.ts';
 * import assert from 'node:assert/strict';
 *
 * const parsed = parseDockerConfig(redact('{"auths":{"a.io":{"auth":"dTpw"},"b.io":{"auth":"-"},"c.io":{}}}'));
 * assert.ok(parsed.ok);
 * const { whole, entries, broken } = usablePart(parsed.config);
 * assert.equal(whole, false);
 * assert.deepEqual(entries.map(({ key }) => key.written), ['a.io', 'c.io']);
 * assert.deepEqual(broken.map(({ key }) => key.written), ['b.io']);
 * ```
 */
export function usablePart(config: DockerConfig): UsablePart {
  const broken = config.entries.filter((entry) => !entry.readable);
  const { fields, leftOut } = usableFields(config);
  return {
    // A fault without a broken entry: a field, or the first of two equal keys.
    whole: broken.length === 0 && config.kubeletFault === undefined && config.containersFault === undefined,
    entries: config.entries.filter((entry) => entry.readable),
    broken,
    fields,
    leftOut,
  };
}

/** The document of these entries and fields as they are, sorted. */
export function encodeUsable(entries: Nodes, fields: Nodes): Redacted<string> {
  const auths: JsonNode = { kind: 'object', at: 0, members: [...entries].map(memberOf) };
  const members = [...[...fields].map(memberOf), memberOf(['auths', auths])];
  return redact(encodeGoJson({ kind: 'object', at: 0, members }, 'exact'));
}

function memberOf([key, value]: readonly [string, JsonNode]): JsonMember {
  return { key, at: 0, value };
}

/**
 * Digest of what entries and fields say to their readers: the same for other white space, another order, and a user name and
 * a password beside the `auth` that says the same.
 */
export function usableDigest(entries: Nodes, fields: Nodes): string {
  const meanings = [...entries].map(([key, value]) => [key, meaningOf(value)] as const);
  return createHash('sha256')
    .update(reveal(encodeUsable(meanings, fields)))
    .digest('hex');
}

/** Digest of one value as it is written, but for white space and the order of keys. */
export function digestOfNode(node: JsonNode): string {
  return createHash('sha256').update(encodeGoJson(node, 'exact')).digest('hex');
}

/**
 * An entry as its readers take it: where there is an `auth`, the kubelet prefers it to user name and password, and CRI-O reads
 * nothing else. `kubectl create secret docker-registry` writes all three.
 */
export function meaningOf(node: JsonNode): JsonNode {
  if (node.kind !== 'object' || !isPair(readTexts(node, ['auth']).texts['auth'] ?? '')) return node;
  const members = node.members.filter(({ key }) => fieldOf(key, ['username', 'password']) === undefined);
  return { ...node, members };
}

/** Whether the text is base64 of a user name and a password for every reader. */
function isPair(auth: string): boolean {
  return /^[A-Za-z0-9+/]+={0,2}$/.test(auth) && Buffer.from(auth, 'base64').includes(':');
}
