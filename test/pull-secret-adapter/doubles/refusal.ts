/** Errors in the form of Google's APIs: canonical code, HTTP status, body with google.rpc details. */

/** Reason of google.rpc.ErrorInfo, or its metadata as well. */
export interface ErrorInfo {
  readonly reason: string;
  readonly domain?: string;
  readonly metadata?: Readonly<Record<string, string>>;
}

const HTTP: Readonly<Record<string, number>> = {
  NOT_FOUND: 404,
  ALREADY_EXISTS: 409,
  PERMISSION_DENIED: 403,
  FAILED_PRECONDITION: 400,
  INVALID_ARGUMENT: 400,
  OUT_OF_RANGE: 400,
  UNAUTHENTICATED: 401,
  RESOURCE_EXHAUSTED: 429,
  ABORTED: 409,
  CANCELLED: 499,
  UNIMPLEMENTED: 501,
  UNAVAILABLE: 503,
  DEADLINE_EXCEEDED: 504,
};

/** A refused call. `status` is the canonical code, such as `NOT_FOUND`. */
export class Refusal extends Error {
  readonly status: string;
  readonly info: ErrorInfo | undefined;

  constructor(status: string, message: string, info?: ErrorInfo) {
    super(message);
    this.status = status;
    this.info = info;
  }

  get http(): number {
    return HTTP[this.status] ?? 500;
  }

  get body(): unknown {
    const { info, message, status, http: code } = this;
    const details = [{ '@type': 'type.googleapis.com/google.rpc.ErrorInfo', ...info }];
    return { error: { code, message, status, ...(info === undefined ? {} : { details }) } };
  }
}

/** The refusal of a permission, as the service words it: it does not tell whether the resource is there. */
export function permissionDenied(permission: string, resource: string): Refusal {
  return new Refusal(
    'PERMISSION_DENIED',
    `Permission '${permission}' denied for resource '${resource}' (or it may not exist).`,
    { reason: 'IAM_PERMISSION_DENIED', domain: 'iam.googleapis.com', metadata: { permission, resource } },
  );
}

export function invalid(message: string): Refusal {
  return new Refusal('INVALID_ARGUMENT', message);
}

/** @throws Refusal when the caller names another state than the present one */
export function assertEtag(present: number, etag: unknown): void {
  if (etag !== undefined && etag !== '' && etag !== `"${present}"`) {
    throw new Refusal(
      'FAILED_PRECONDITION',
      'The etag provided does not match the current etag of the resource.',
    );
  }
}
