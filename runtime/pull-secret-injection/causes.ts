/**
 * Why a profile is not as it should be, by cause: each has a condition and a count of its own, so that one tenant's trouble neither
 * hides that of everybody else nor counts as the platform's.
 */

/** Who can do something about it. */
export type Whose = 'platform' | 'tenant';

export interface Cause {
  /** Type of the condition: `True` when nothing is wrong. */
  readonly type: 'SourcesReady' | 'Granted' | 'NamesFree' | 'WritesAccepted' | 'TargetsFree';
  readonly reasons: readonly string[];
  readonly whose: Whose;
  /** What the condition says when all is well. */
  readonly well: string;
}

/** The most urgent one first. */
export const CAUSES: readonly Cause[] = [
  {
    type: 'SourcesReady',
    reasons: ['SourceUnread', 'SourceMissing', 'SourceEmpty', 'SourceInvalid', 'SourceCollision', 'TooLarge'],
    whose: 'platform',
    well: 'Every source can be read',
  },
  {
    type: 'Granted',
    reasons: ['GrantUnclear', 'NotGranted'],
    whose: 'platform',
    well: 'Every source is granted to every selected namespace',
  },
  {
    type: 'NamesFree',
    reasons: ['Collision', 'SourceInPlace'],
    whose: 'platform',
    well: 'No other profile holds a name that this one asks for',
  },
  {
    type: 'WritesAccepted',
    reasons: ['Forbidden', 'AdmissionDenied', 'WriteRefused'],
    whose: 'platform',
    well: 'Neither rights nor an admission policy refuse a copy',
  },
  {
    type: 'TargetsFree',
    reasons: ['ForeignObject', 'Terminating', 'QuotaExceeded'],
    whose: 'tenant',
    well: 'No Secret of somebody else and no quota is in the way',
  },
];

/**
 * Who can do something about a trouble.
 */
export function whoseTrouble(reason: string): Whose {
  return CAUSES.find(({ reasons }) => reasons.includes(reason))?.whose ?? 'platform';
}
