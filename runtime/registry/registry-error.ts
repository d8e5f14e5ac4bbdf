/** What a registry, or the way to it, said instead of an answer. */

/**
 * `Invalid`: the credential is wrong, or one is missing. `Forbidden`: it is right and not enough. `Untrusted`: its certificate
 * does not verify. `Refused`: the address or the redirect is one that we do not follow. `NotAsked`: a tenant's name led to an address
 * that we do not contact for tenants, and nodes may. `Damaged`: what came is not what was
 * asked for.
 */
export type RegistryFailure =
  | 'Invalid'
  | 'Forbidden'
  | 'NotFound'
  | 'RateLimited'
  | 'Unreachable'
  | 'Untrusted'
  | 'Refused'
  | 'NotAsked'
  | 'Damaged';

/** Never holds a credential, a token or a body. */
export class RegistryError extends Error {
  readonly failure: RegistryFailure;
  /** For `RateLimited`: what the registry asked for, in seconds. */
  readonly retryAfterSeconds: number | undefined;
  /** Whether nobody answered at all, so that other questions to the same host need not be asked. */
  readonly silence: boolean;

  constructor(failure: RegistryFailure, message: string, retryAfterSeconds?: number, silence = false) {
    super(message);
    this.name = 'RegistryError';
    this.failure = failure;
    this.retryAfterSeconds = retryAfterSeconds;
    this.silence = silence;
  }
}
