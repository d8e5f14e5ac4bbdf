/**
 * Validation and merge exactly as HyperShift does them: keys compared as texts, only `auths` survives, one bad entry refuses
 * all, Go's error texts. Where HyperShift crashes, there is an error. For comparison and for clusters that must not differ;
 * what Pullwright does by itself is in docker-config-merge.ts.
 *
 * Source of the rule: HyperShift `globalps` (validateAdditionalPullSecret, mergePullSecrets) and `sync-global-pullsecret`
 * (validateDockerConfigJSON).
 */

import { compareBytes } from '../go/bytes.ts';
import { type JsonMember, type JsonNode, parseGoJson } from '../go/json.ts';
import { encodeGoJson, firstHugeNumber } from '../go/json-encode.ts';
import { type Redacted, redact, reveal } from '../redacted.ts';
import { parseDockerConfig } from './docker-config.ts';

/** Data of a Secret, decoded. */
export type SecretTexts = Readonly<Record<string, Redacted<string>>>;

const DATA_KEY = '.dockerconfigjson';

/**
 * Why HyperShift refuses an additional pull secret; undefined when it accepts it.
 *
 * @example
 * ```ts
 * import { upstreamAdditionalFault } from './upstream.ts';
 * import { redact } from '../redacted.ts';
 * import assert from 'node:assert/strict';
 *
 * assert.equal(
 *   upstreamAdditionalFault({ '.dockerconfigjson': redact('{"auths":{}}') }),
 *   'docker config json must contain at least one auth entry',
 * );
 * ```
 */
export function upstreamAdditionalFault(data: SecretTexts): string | undefined {
  const text = Object.hasOwn(data, DATA_KEY) ? data[DATA_KEY] : undefined;
  if (text === undefined) return 'pull secret data is not a valid docker config json';
  const parsed = parseDockerConfig(text);
  const fault = parsed.ok ? parsed.config.kubeletFault : parsed.problem.kubeletFault;
  if (fault !== undefined) return `invalid docker config json format: ${fault}`;
  const entries = parsed.ok ? parsed.config.entries.length : 0;
  return entries > 0 ? undefined : 'docker config json must contain at least one auth entry';
}

/** Why HyperShift's node agent refuses the content of a pull secret: it wants an object with the exact key `auths`. */
export function upstreamAgentFault(content: Redacted<string>): string | undefined {
  const read = unmarshalMap(content);
  if (!read.ok) return read.goText;
  return read.members.some((member) => member.key === 'auths') ? undefined : "missing 'auths' key";
}

export type UpstreamMerge =
  | {
      readonly ok: true;
      readonly text: Redacted<string>;
      /** Keys of both, for each of which HyperShift logs a line. Sorted. */
      readonly conflicts: readonly string[];
    }
  | { readonly ok: false; readonly message: string };

/**
 * Merges as HyperShift does.
 *
 * @example
 * ```ts
 * import { mergeAsUpstream } from './upstream.ts';
 * import { redact, reveal } from '../redacted.ts';
 * import assert from 'node:assert/strict';
 *
 * const merged = mergeAsUpstream(redact('{"auths":{"quay.io":{"auth":"YTpi"}}}'), redact('{"auths":{"quay.io/":{},"quay.io":{}}}'));
 * assert.ok(merged.ok);
 * assert.equal(reveal(merged.text), '{"auths":{"quay.io":{"auth":"YTpi"},"quay.io/":{}}}');
 * assert.deepEqual(merged.conflicts, ['quay.io']);
 * ```
 */
export function mergeAsUpstream(original: Redacted<string>, additional: Redacted<string>): UpstreamMerge {
  const platform = readAuths(original, 'original');
  if (!platform.ok) return platform;
  const tenant = readAuths(additional, 'user provided');
  if (!tenant.ok) return tenant;
  const keys = new Set(platform.members.map((member) => member.key));
  const conflicts = new Set(
    tenant.members.filter((member) => keys.has(member.key)).map((member) => member.key),
  );
  const auths: JsonNode = { kind: 'object', at: 0, members: [...tenant.members, ...platform.members] };
  const merged: JsonNode = { kind: 'object', at: 0, members: [{ key: 'auths', at: 0, value: auths }] };
  return {
    ok: true,
    text: redact(encodeGoJson(merged, 'float64')),
    conflicts: [...conflicts].sort(compareBytes),
  };
}

type Auths =
  | { readonly ok: true; readonly members: readonly JsonMember[] }
  | { readonly ok: false; readonly message: string };

function readAuths(text: Redacted<string>, which: 'original' | 'user provided'): Auths {
  const read = unmarshalMap(text);
  if (!read.ok) return { ok: false, message: `invalid ${which} pull secret format: ${read.goText}` };
  const auths = read.members.findLast((member) => member.key === 'auths')?.value;
  if (auths?.kind === 'object') return { ok: true, members: auths.members };
  const present = auths === undefined ? 'has no "auths"' : `has "auths" as ${auths.kind}`;
  return { ok: false, message: `invalid ${which} pull secret format: it ${present}, wanted an object` };
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
