/**
 * Finds the entries of a pull secret, before validation. Shared by all readers: from the credential provider, which reads the few
 * entries of one pull, to `validate`, which reads all.
 *
 * Source of the rule: encoding/json of Go for the structs that pull-secret.ts names. Field names ignore case, a second `auths`
 * adds to the first, `null` empties it, and the last of duplicate keys wins.
 */

import { decodeGoBase64 } from '../go/base64.ts';
import { type JsonMember, type JsonNode, parseGoJson } from '../go/json.ts';
import type { GoResult } from '../go/text.ts';
import { withoutUserInfo } from '../text.ts';

// Fields of the structs that Go decodes a pull secret into. Separate from the rest of the reader, so that a run of the credential
// provider loads only this.
// Source of the rule: encoding/json of Go 1.26.

/** `config.json`: entries under `auths`. `dockercfg`: the legacy format with entries at the top level. */
export type DockerConfigFormat = 'config.json' | 'dockercfg';

/** Result of {@link readTexts}. */
export interface Texts {
  readonly texts: Readonly<Record<string, string>>;
  readonly wrong?: { readonly field: string; readonly kind: JsonNode['kind'] };
}

/** Reads string fields of a struct: the last value wins, null changes nothing, the first wrong type is reported. */
export function readTexts(node: JsonNode, names: readonly string[]): Texts {
  const texts: Record<string, string> = {};
  let wrong: Texts['wrong'];
  for (const member of node.kind === 'object' ? node.members : []) {
    const field = fieldOf(member.key, names);
    if (field === undefined || member.value.kind === 'null') continue;
    if (member.value.kind === 'string') texts[field] = member.value.value;
    else wrong ??= { field, kind: member.value.kind };
  }
  return wrong === undefined ? { texts } : { texts, wrong };
}

/** The field that Go decodes `key` into: an exact match, otherwise one that ignores case. */
export function fieldOf(key: string, names: readonly string[]): string | undefined {
  if (names.includes(key)) return key;
  const folded = fold(key);
  return names.find((name) => fold(name) === folded);
}

/** Go also folds the long s to s and the Kelvin sign to k. */
function fold(text: string): string {
  return text.replaceAll('\u017f', 's').replaceAll('\u212a', 'k').toLowerCase();
}

// strings.TrimSpace trims other blanks than String.trim.
const ENDS_PADDED = /=[\t-\r \u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]*$/;

/** Decodes an `auth` field like the kubelet: with padding if it ends in `=`, otherwise without. */
export function decodedAuth(auth: string): GoResult<Uint8Array> {
  return decodeGoBase64(auth, ENDS_PADDED.test(auth) ? 'padded' : 'raw');
}

/** The first field of an entry that a consumer expects as a string but that has another type. */
export function wrongTextField(node: JsonNode): Texts['wrong'] {
  return readTexts(node, ['auth', 'username', 'password', 'email', 'identitytoken']).wrong;
}

/** Valid content that is probably unintended. */
export interface ConfigWarning {
  readonly reason: 'DuplicateKey' | 'FieldCase' | 'FieldIgnored' | 'KeyWithUserInfo';
  /** A registry key, or a field name in quotes. */
  readonly subject: string;
  readonly message: string;
}

/** Finds the entries among the top-level members of a document. */
export function entryMembers(members: readonly JsonMember[], format: DockerConfigFormat) {
  /** By key as written, in document order. */
  const entries = new Map<string, JsonMember>();
  const warnings: ConfigWarning[] = [];
  if (format === 'dockercfg') {
    addAll(entries, members, warnings);
    return { entries, present: true, fields: [], warnings };
  }
  /** Top-level fields other than `auths`, including duplicates. */
  const fields = members.filter((member) => !isAuths(member));
  /** Whether there is an `auths` object (always true for `dockercfg`). */
  let present = false;
  for (const member of members) {
    if (!isAuths(member)) continue;
    if (member.key !== 'auths') {
      const message = `is read as "auths" by the kubelet and CRI-O, but not by every program: write "auths"`;
      warnings.push({ reason: 'FieldCase', subject: `"${member.key}"`, message });
    }
    if (member.value.kind === 'null') entries.clear();
    else if (member.value.kind !== 'object')
      // A value of another type where an object is expected: the whole document is unusable.
      return { entries, present, fields, warnings, wrong: member.value };
    else addAll(entries, member.value.members, warnings);
    present ||= member.value.kind === 'object';
  }
  return { entries, present, fields, warnings };
}

/** Parses a text and finds its entries. Undefined if the text or its `auths` is not a JSON object. */
export function readEntryMembers(text: string, format: DockerConfigFormat) {
  const parsed = parseGoJson(text);
  if (!parsed.ok || parsed.value.kind !== 'object') return undefined;
  const found = entryMembers(parsed.value.members, format);
  return found.wrong === undefined ? found : undefined;
}

function isAuths(member: JsonMember): boolean {
  return fieldOf(member.key, ['auths', 'HttpHeaders']) === 'auths';
}

function addAll(
  entries: Map<string, JsonMember>,
  members: readonly JsonMember[],
  warnings: ConfigWarning[],
): void {
  for (const member of members) {
    const shown = withoutUserInfo(member.key);
    if (entries.delete(member.key)) {
      const message = 'is duplicated in the document: the last one is used, remove the other';
      warnings.push({ reason: 'DuplicateKey', subject: shown, message });
    }
    if (shown !== member.key) {
      const message = 'key contains user info: remove it and rotate that password';
      warnings.push({ reason: 'KeyWithUserInfo', subject: shown, message });
    }
    entries.set(member.key, member);
  }
}
