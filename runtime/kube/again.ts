/** Whether a request to an API server is sent again. */
import { isPassingStatus, type Tried } from '../http/retry.ts';
import { PullwrightError } from '../rules/errors.ts';

/** Failures that are the same a moment later. */
const FOR_GOOD: readonly string[] = ['AnswerTooLarge', 'CertificateNotTrusted', 'NotLeader', 'TlsWanted'];

/** Whether another try may help, and when. */
export function again<T>(
  call: { readonly once?: boolean },
  tried: Tried<T>,
): { readonly afterMs?: number | undefined } | undefined {
  if ('value' in tried || !(tried.error instanceof PullwrightError)) return undefined;
  const failure = tried.error;
  const status = 'status' in failure ? Number(failure.status) : undefined;
  if (FOR_GOOD.includes(failure.code)) return undefined;
  if (status === undefined)
    return call.once === true && failure.code !== 'ConnectionRefused' ? undefined : {};
  if (!isPassingStatus(status)) return undefined;
  // Only these two say that nothing was done.
  return call.once === true && status !== 429 && status !== 503 ? undefined : { afterMs: failure.afterMs };
}
