/** What somebody gave in place of a pull secret, by its shape: mistakes that are made again and again. */
import { isRecord } from '../rules/record.ts';

/** Of a text without blanks at its end. */
const BASE64 = /^[A-Za-z0-9+/\s]+={0,2}$/;

/**
 * The end of a sentence that says what to give instead; empty when nothing is known. Shows no value.
 *
 * @param text of at most 64 KiB
 *
 * @example
 * ```ts
 * import { pullSecretHint } from './pull-secret-hint.ts';
 * import assert from 'node:assert/strict';
 *
 * const encoded = Buffer.from('{"auths":{"quay.io":{"auth":"eDp5"}}}').toString('base64');
 * assert.match(pullSecretHint(encoded), /base64 of a pull secret/);
 * assert.match(pullSecretHint('{"quay.io":{"auth":"eDp5"}}'), /under "auths"/);
 * assert.equal(pullSecretHint('{"auths":{}}'), '');
 * ```
 */
export function pullSecretHint(text: string): string {
  const value = jsonOf(text);
  if (value === undefined) return hintOfText(text);
  return typeof value === 'string' ? hintOfText(value) : hintOfObject(value);
}

function hintOfText(text: string): string {
  const decoded = BASE64.test(text.trimEnd())
    ? jsonOf(Buffer.from(text, 'base64').toString('utf8'))
    : undefined;
  if (hasAuths(decoded))
    return '; it is base64 of a pull secret: give the text that "base64 --decode" prints';
  if (hasAuths(jsonOf(text))) return '; it is JSON in a text: give the object itself';
  return /^kind: ?Secret$/m.test(text) ? WHOLE_SECRET : '';
}

function hintOfObject(value: unknown): string {
  if (!isRecord(value) || 'auths' in value) return '';
  if (value['kind'] === 'Secret' || '.dockerconfigjson' in value) return WHOLE_SECRET;
  const entries = Object.values(value);
  const isBare = entries.length > 0 && entries.every((entry) => isRecord(entry) && 'auth' in entry);
  return isBare ? '; it holds the entries themselves: put them under "auths"' : '';
}

const WHOLE_SECRET =
  '; it is a Secret of Kubernetes: give what its key ".dockerconfigjson" holds, decoded by "base64 --decode"';

function hasAuths(value: unknown): boolean {
  return isRecord(value) && isRecord(value['auths']);
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
