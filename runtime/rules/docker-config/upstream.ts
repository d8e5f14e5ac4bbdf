/**
 * What HyperShift's node agent takes for a docker config, so that none is handed to it that it refuses.
 *
 * Source of the rule: HyperShift `sync-global-pullsecret` (validateDockerConfigJSON).
 */

import { type JsonMember, parseGoJson } from '../go/json.ts';
import { firstHugeNumber } from '../go/json-encode.ts';
import { type Redacted, reveal } from '../redacted.ts';

export const MISSING_AUTHS = "missing 'auths' key";

/** Why HyperShift's node agent refuses the content of a pull secret: it wants an object with the exact key `auths`. */
export function upstreamAgentFault(content: Redacted<string>): string | undefined {
  const read = unmarshalMap(content);
  if (!read.ok) return read.goText;
  return read.members.some((member) => member.key === 'auths') ? undefined : MISSING_AUTHS;
}

/** See {@link unmarshalMap}. */
export type UnmarshalledMap =
  | { readonly ok: true; readonly members: readonly JsonMember[] }
  | { readonly ok: false; readonly goText: string };

/** json.Unmarshal into map[string]any: null is an empty map. */
export function unmarshalMap(text: Redacted<string>): UnmarshalledMap {
  const parsed = parseGoJson(reveal(text));
  if (!parsed.ok) return { ok: false, goText: parsed.fault.goText };
  const { value } = parsed;
  if (value.kind !== 'object' && value.kind !== 'null') {
    const goText = `json: cannot unmarshal ${value.kind} into Go value of type map[string]interface {}`;
    return { ok: false, goText };
  }
  const huge = firstHugeNumber(value);
  if (huge !== undefined) {
    return { ok: false, goText: `json: cannot unmarshal number ${huge} into Go value of type float64` };
  }
  return { ok: true, members: value.kind === 'object' ? value.members : [] };
}
