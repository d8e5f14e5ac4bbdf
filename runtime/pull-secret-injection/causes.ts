/**
 * Why a profile is not ready, by cause: each has a condition and a count of its own, so that one tenant's problem neither
 * hides those of others nor counts as the platform's.
 */

export interface Cause {
  /** Type of the condition: `True` when nothing is wrong. */
  readonly type: 'SourcesReady' | 'Granted' | 'NamesFree' | 'WritesAccepted' | 'TargetsFree';
  readonly reasons: readonly string[];
  /** What the condition says when all is well. */
  readonly well: string;
}

/** The only cause that the owners of namespaces can do something about; all others are the platform's. */
export const TENANTS_CAUSE: Cause = {
  type: 'TargetsFree',
  reasons: ['ForeignObject', 'Terminating', 'QuotaExceeded'],
  well: 'No foreign Secret and no quota prevents a copy',
};

/** The most urgent one first. */
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

/** Whether the owner of the namespace has to act, by the reason of a problem. */
export function isTenants(reason: string): boolean {
  return TENANTS_CAUSE.reasons.includes(reason);
}
