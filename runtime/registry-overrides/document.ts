/**
 * The full truth about the mirrors of one hosted cluster, as a JSON document with a version and a hash: the order that the
 * administrator wrote, for which pulls each mirror serves, and whether the source may be contacted. The text format of
 * `OPENSHIFT_IMG_OVERRIDES` can say none of these.
 */
import { createHash } from 'node:crypto';
import type { MirrorRule } from '../rules/mirrors/mirrors.ts';

export interface OverridesDocument {
  readonly version: 1;
  readonly rules: readonly DocumentRule[];
}

export interface DocumentRule {
  readonly source: string;
  readonly mirrors: readonly {
    readonly location: string;
    readonly pullFrom: 'all' | 'digest-only' | 'tag-only';
  }[];
  readonly mirrorSourcePolicy: 'AllowContactingSource' | 'NeverContactSource';
}

/**
 * The document of `rules`, its text, and the hash of the text (hexadecimal SHA-256). Equal rules give equal texts.
 *
 * @example
 * ```ts
 * import { overridesDocument } from './document.ts';
 * import assert from 'node:assert/strict';
 *
 * const rule = { prefix: 'quay.io', location: 'quay.io', blocked: true, insecure: false, mirrors: [{ location: 'm.example.com', pullFrom: 'all' as const }] };
 * const { text, hash } = overridesDocument([rule]);
 * assert.equal(hash.length, 64);
 * assert.deepEqual(JSON.parse(text).rules[0].mirrorSourcePolicy, 'NeverContactSource');
 * ```
 */
export function overridesDocument(rules: readonly MirrorRule[]): {
  readonly document: OverridesDocument;
  readonly text: string;
  readonly hash: string;
} {
  const document: OverridesDocument = { version: 1, rules: rules.map(documentRule) };
  const text = `${JSON.stringify(document)}\n`;
  return { document, text, hash: createHash('sha256').update(text).digest('hex') };
}

function documentRule(rule: MirrorRule): DocumentRule {
  return {
    source: rule.prefix,
    mirrors: rule.mirrors.map(({ location, pullFrom }) => ({ location, pullFrom })),
    mirrorSourcePolicy: rule.blocked ? 'NeverContactSource' : 'AllowContactingSource',
  };
}
