/** Anything that was thrown, as an error whose text is safe to show. */
import { PullwrightError } from '../rules/errors.ts';

/** `error` itself when it is one of ours; else only its code, because a runtime's text may quote what was on the wire. */
export function asPullwrightError(error: unknown): PullwrightError {
  if (error instanceof PullwrightError) return error;
  const code = typeof error === 'object' && error !== null && 'code' in error ? error.code : undefined;
  const name = typeof code === 'string' && /^\w{1,64}$/.test(code) ? ` (${code})` : '';
  return new PullwrightError(`Cannot speak with the API server: the connection was lost${name}`, {
    code: 'ConnectionLost',
  });
}
