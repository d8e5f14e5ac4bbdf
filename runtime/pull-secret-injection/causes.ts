/**
 * The causes that keep a profile from being ready. Each has its own condition and count, so one tenant's problem neither hides
 * others nor counts as the platform's.
 */

export interface Cause {
  /** Type of the condition: `True` when nothing is wrong. */
  readonly type: 'SourcesReady' | 'Granted' | 'NamesFree' | 'WritesAccepted' | 'TargetsFree';
  readonly reasons: readonly string[];
  /** Message of the condition while it is `True`. */
  readonly well: string;
}

/** The only cause that namespace owners can fix; all others are the platform's. */
export const TENANTS_CAUSE: Cause = {
  type: 'TargetsFree',
  reasons: ['ForeignObject', 'Terminating', 'QuotaExceeded'],
  well: 'No foreign Secret and no quota prevents a copy',
};

/** Most urgent first. */
export const CAUSES: readonly Cause[] = [
  {
    type: 'SourcesReady',
    reasons: ['SourceUnread', 'SourceMissing', 'SourceEmpty', 'SourceInvalid', 'SourceCollision', 'TooLarge'],
    well: 'Every source can be read',
  },
  {
    type: 'Granted',
    reasons: ['GrantUnclear', 'NotGranted'],
    well: 'Every source is granted to every selected namespace',
  },
  {
    type: 'NamesFree',
    reasons: ['Collision', 'SourceInPlace'],
    well: 'No other profile holds a name that this one asks for',
  },
  {
    type: 'WritesAccepted',
    reasons: ['Forbidden', 'AdmissionDenied', 'WriteRefused'],
    well: 'Neither rights nor an admission policy refuse a copy',
  },
  TENANTS_CAUSE,
];

/** Reports whether a problem with this reason is for the owner of the namespace. */
export function isTenants(reason: string): boolean {
  return TENANTS_CAUSE.reasons.includes(reason);
}
