/** What becomes of a request to the API server that was not answered, or answered that it may be another time. */
import { HttpError } from '../../http/http-error.ts';
import type { WholeAnswer } from '../../http/request.ts';
import { isPassingStatus, pause, retry, retryAfterMs, type Tried } from '../../http/retry.ts';
import { PullwrightError } from '../../rules/errors.ts';
import type { ApiServer } from './api-server.ts';

const TRIES = 2;
const RETRY_DELAY_MS = 150;
/** A pull waits meanwhile: longer than this, the kubelet's own next try is the better one. */
const LONGEST_WAIT_MS = 5000;
/** Failures that are the same a moment later. */
const FOR_GOOD: readonly string[] = ['CertificateNotTrusted', 'TlsFailed', 'TlsWanted', 'AnswerTooLarge'];

/**
 * The answer of the second try, where there is one.
 *
 * @throws PullwrightError when there is no answer
 */
export async function tryAgain(
  first: Tried<WholeAnswer>,
  once: () => Promise<WholeAnswer>,
  { server, signal }: { readonly server: ApiServer; readonly signal: AbortSignal },
): Promise<WholeAnswer> {
  let made: Tried<WholeAnswer> | undefined = first;
  const attempt = async (): Promise<WholeAnswer> => {
    const tried = made;
    made = undefined;
    if (tried === undefined) return once();
    if ('error' in tried) throw tried.error;
    return tried.value;
  };
  try {
    return await retry(attempt, {
      tries: TRIES,
      waitMs: () => RETRY_DELAY_MS * (1 + Math.random()),
      longestWaitMs: LONGEST_WAIT_MS,
      again: (tried) => (signal.aborted ? undefined : again(tried)),
      pause: (ms) => pause(ms, signal),
    });
  } catch (error) {
    throw unreachable(server, error, signal);
  }
}

function again(tried: Tried<WholeAnswer>): { readonly afterMs?: number | undefined } | undefined {
  if ('error' in tried)
    return tried.error instanceof HttpError && !FOR_GOOD.includes(tried.error.failure) ? {} : undefined;
  const { status } = tried.value;
  return isPassingStatus(status)
    ? { afterMs: retryAfterMs(tried.value.header('retry-after'), Date.now()) }
    : undefined;
}

function unreachable(server: ApiServer, error: unknown, signal: AbortSignal): PullwrightError {
  const known = error instanceof HttpError ? error : undefined;
  const reason = signal.aborted ? 'no answer within the budget' : (known?.message ?? 'unknown failure');
  return new PullwrightError(`unable to get secrets: "${server.url}" cannot be reached: ${reason}`, {
    code: 'ApiUnreachable',
    hint:
      known?.failure === 'CertificateNotTrusted'
        ? 'The certificate of the API server does not come from the CA of this node: check the CA files or set --ca-file'
        : 'Check the address in apiserver-url.env and the connection of this node to the API server',
    cause: error,
  });
}
