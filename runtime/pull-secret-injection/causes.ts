/**
 * Failure causes of copies. Each has its own condition and count, so a tenant's problem neither hides others nor makes the
 * profile not ready.
 */

export interface Cause {
  /** Condition type; status `True` means no problem. */
  readonly type: 'SourcesReady' | 'Granted' | 'NamesFree' | 'WritesAccepted' | 'TargetsFree';
  readonly reasons: readonly string[];
  /** Condition message while the status is `True`. */
  readonly well: string;
}

/** The only cause that namespace owners must fix; the platform fixes all others. */
export const TENANTS_CAUSE: Cause = {
  type: 'TargetsFree',
  reasons: ['ForeignObject', 'Terminating', 'QuotaExceeded'],
  well: 'No copy is blocked by a foreign Secret or a quota',
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
    well: 'No Secret name conflicts with another profile',
  },
  {
    type: 'WritesAccepted',
    reasons: ['Forbidden', 'AdmissionDenied', 'WriteRefused'],
    well: 'No copy is denied by RBAC or an admission policy',
  },
  TENANTS_CAUSE,
];

/** Reports whether the namespace owner must fix a problem with this reason. */
export function isTenants(reason: string): boolean {
  return TENANTS_CAUSE.reasons.includes(reason);
}
