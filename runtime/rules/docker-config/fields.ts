/**
 * The fields of the structs into which Go decodes a pull secret. Apart from the rest of the reader, because a run of the
 * credential provider needs no more of it.
 *
 * Source of the rule: encoding/json of Go 1.26.
 */
import type { JsonNode } from '../go/json.ts';

/** `config.json`: entries below `auths`. `dockercfg`: the legacy form, entries at the top. */
export type DockerConfigFormat = 'config.json' | 'dockercfg';

/** What {@link readTexts} found. */
export interface Texts {
  readonly texts: Readonly<Record<string, string>>;
  readonly wrong?: { readonly field: string; readonly kind: JsonNode['kind'] };
}

/** The text fields of a struct: last wins, null changes nothing, the first wrong type is noted. */
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

/** The field that Go decodes `key` into: by its exact name, else without regard to case. */
export function fieldOf(key: string, names: readonly string[]): string | undefined {
  if (names.includes(key)) return key;
  const folded = fold(key);
  return names.find((name) => fold(name) === folded);
}

/** Go folds the long s and the Kelvin sign to s and k as well. */
function fold(text: string): string {
  return text.replaceAll('\u017f', 's').replaceAll('\u212a', 'k').toLowerCase();
}

/** The first field of an entry that one of the consumers wants as a text and that is something else. */
export function wrongTextField(
  node: JsonNode,
): { readonly field: string; readonly kind: JsonNode['kind'] } | undefined {
  return readTexts(node, ['auth', 'username', 'password', 'email', 'identitytoken']).wrong;
}
