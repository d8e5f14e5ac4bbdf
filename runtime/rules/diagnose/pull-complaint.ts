/**
 * What a kubelet's event about a failing pull means. Registries and runtimes word it in many ways; the words that decide are few.
 *
 * Source of the rule: texts of containerd, CRI-O and docker-registry as kubelets pass them on in events `Failed`, `BackOff` and
 * `FailedToRetrieveImagePullSecret`.
 */

export type PullComplaint =
  | 'image-name'
  | 'secret-missing'
  | 'rate-limited'
  | 'certificate'
  | 'unreachable'
  | 'signature'
  | 'not-found'
  | 'unauthorized';

/** The first that matches counts: a certificate may not be there for an address that was not found. */
const WORDS: readonly (readonly [PullComplaint, RegExp])[] = [
  ['image-name', /InvalidImageName|couldn't parse image|invalid reference format/i],
  ['rate-limited', /toomanyrequests|too many requests|\b429\b|rate limit/i],
  ['certificate', /x509|tls: |certificate/i],
  [
    'unreachable',
    /i\/o timeout|deadline exceeded|connection refused|no such host|no route to host|dial tcp/i,
  ],
  ['signature', /signature|policy\.json|SignatureValidationFailed/i],
  [
    'unauthorized',
    /unauthorized|authentication required|access (?:to the resource is )?denied|forbidden|no basic auth|\b40[13]\b/i,
  ],
  ['not-found', /manifest unknown|name unknown|not found|does not exist|\b404\b/i],
];

/**
 * The cause that an event states; undefined for one that is about something else, or that only says that it is tried later.
 *
 * @example
 * ```ts
 * import { pullComplaint } from './pull-complaint.ts';
 * import assert from 'node:assert/strict';
 *
 * const said = 'Failed to pull image "r.example.com/a:1": pull access denied, repository does not exist or may require authorization';
 * assert.equal(pullComplaint({ reason: 'Failed', message: said }), 'unauthorized');
 * assert.equal(pullComplaint({ reason: 'Scheduled', message: 'x509' }), undefined);
 * ```
 */
export function pullComplaint(event: {
  readonly reason: string;
  readonly message: string;
}): PullComplaint | undefined {
  const { reason, message } = event;
  if (reason === 'FailedToRetrieveImagePullSecret') return 'secret-missing';
  if (reason === 'InspectFailed') return 'image-name';
  if (!['Failed', 'BackOff', 'ErrImagePull', 'ImagePullBackOff'].includes(reason)) return undefined;
  return WORDS.find(([, words]) => words.test(message))?.[0];
}
