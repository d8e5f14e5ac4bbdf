/** A row of the table of API faults, and what rows are made of. */
import type { Case } from '../support/suite.ts';
import type { ApiFault, HyperfleetDouble } from './doubles/hyperfleet-api.ts';
import type { Scene } from './scene.ts';

export interface ApiFaultCase extends Case {
  /** Made when the case runs: a date in an answer counts from then. */
  readonly faults?: () => readonly ApiFault[];
  readonly prepare?: (scene: Scene) => void;
  readonly undo?: (scene: Scene) => void;
  readonly baseUrl?: (api: HyperfleetDouble) => string;
  readonly timeoutMs?: number;
  /** What becomes of the message. */
  readonly message: 'done' | 'again' | RegExp;
  /** The last line that is logged; absent: none is. */
  readonly log?: RegExp;
  /** Available and Health as reported while it lasts. */
  readonly reported: readonly [available: string, health: string];
  /** A pause that must have been asked for. */
  readonly pause?: (ms: number) => boolean;
}

/** The Job runs: what is reported when the fault was overcome. */
export const STARTED = ['False JobInProgress', 'True Healthy'] as const;
/** No report has arrived. */
export const NOTHING = ['nothing', 'nothing'] as const;
/** What a proxy or a page to sign in answers; its text must be shown nowhere. */
export const HTML = '<html><body>Sign in</body></html>';

/** The fault at every call, not at the first alone. */
export function always(fault: ApiFault): readonly ApiFault[] {
  return [{ ...fault, times: Number.POSITIVE_INFINITY }];
}

/** A refusal in the API's own form. */
export function problem(status: number, code: string): ApiFault {
  return {
    status,
    headers: { 'content-type': 'application/problem+json' },
    body: JSON.stringify({
      type: 'https://api.hyperfleet.io/errors/x',
      title: 'x',
      status,
      code,
      detail: HTML,
    }),
  };
}

/** The API is overloaded and says, or does not say, how long to stay away. */
export function overloaded(retryAfter: string): ApiFault {
  return { ...problem(429, 'HYPERFLEET-LMT-001'), headers: { 'retry-after': retryAfter } };
}
