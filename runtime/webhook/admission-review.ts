/**
 * AdmissionReview v1: reading what the API server asks, and writing what it is told. Objects stay raw JSON, so that a field
 * that this program does not know survives the patch.
 */

import { isRecord } from '../rules/record.ts';

/** What is asked, as far as webhooks here look. */
export interface AdmissionRequest {
  readonly uid: string;
  readonly operation: string;
  readonly resource: { readonly group: string; readonly version: string; readonly resource: string };
  readonly subResource?: string;
  readonly namespace?: string;
  readonly dryRun?: boolean;
  /** The object as it would be stored. */
  readonly object: Readonly<Record<string, unknown>>;
}

/** What is answered. Requests are never refused: what cannot be done is said in a warning. */
export interface AdmissionAnswer {
  /** JSON patch; absent or empty: nothing changes. */
  readonly patch?: readonly unknown[];
  /** Shown to whoever made the request. */
  readonly warnings?: readonly string[];
  /** For the metric: `injected`, `unchanged`, `skipped`. */
  readonly outcome: string;
}

/** The API server shortens a warning beyond this length, and all of them beyond 4096. */
const MAX_WARNING = 256;
const MAX_WARNINGS = 8;

/**
 * Reads the body of a request.
 *
 * @example
 * ```ts
 * import { answerText, readReview } from './admission-review.ts';
 * import assert from 'node:assert/strict';
 *
 * assert.equal(readReview('{}'), undefined);
 * const answer = JSON.parse(answerText('u1', { outcome: 'injected', patch: [{ op: 'add', path: '/a', value: 1 }] }));
 * assert.equal(answer.response.allowed, true);
 * assert.equal(Buffer.from(answer.response.patch, 'base64').toString(), '[{"op":"add","path":"/a","value":1}]');
 * ```
 *
 * @returns undefined when the text is no AdmissionReview v1 with a request and an object
 */
export function readReview(text: string): AdmissionRequest | undefined {
  let review: unknown;
  try {
    review = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (!isRecord(review) || review['apiVersion'] !== 'admission.k8s.io/v1') return undefined;
  const request = review['request'];
  if (!isRecord(request) || typeof request['uid'] !== 'string') return undefined;
  if (!isRecord(request['object']) || !isRecord(request['resource'])) return undefined;
  if (typeof request['operation'] !== 'string') return undefined;
  // Absent, or a text: for objects without a namespace, and where it is no sub-resource.
  if (['namespace', 'subResource'].some((name) => !['string', 'undefined'].includes(typeof request[name])))
    return undefined;
  return request as unknown as AdmissionRequest;
}

/** The body of the answer. */
export function answerText(uid: string, answer: AdmissionAnswer): string {
  const { patch = [], warnings = [] } = answer;
  const patched =
    patch.length === 0
      ? {}
      : { patchType: 'JSONPatch', patch: Buffer.from(JSON.stringify(patch)).toString('base64') };
  const shown = warnings.slice(0, MAX_WARNINGS).map((warning) => warning.slice(0, MAX_WARNING));
  return JSON.stringify({
    apiVersion: 'admission.k8s.io/v1',
    kind: 'AdmissionReview',
    response: { uid, allowed: true, ...patched, ...(shown.length === 0 ? {} : { warnings: shown }) },
  });
}
