/**
 * What our own report remembers: what is stored, and how the last attempt ended. It is kept from report to report, whatever these
 * say otherwise, and across generations: labels of a cluster may change without anything changing for its pull secret.
 */
import { isRecord } from '../../rules/record.ts';
import type { AdapterStatus } from '../cluster.ts';
import { contentHash, ownStatus, type Situation, targetHash } from './situation.ts';

/** What a Job stored, and proved by reading it back. */
export interface StoredState {
  readonly content: string;
  readonly target: string;
  readonly message: string;
  /** When it was last proved. */
  readonly verifiedTime: string;
  /** The request that was answered by that. */
  readonly verifyRequest: string;
  /** What the Job said of it. */
  readonly details: Readonly<Record<string, unknown>>;
}

/** The last attempt, if it failed. */
export interface Attempt {
  readonly number: number;
  readonly failed: boolean;
  readonly reason: string;
  readonly message: string;
  /** The request that it answered. */
  readonly verifyRequest: string;
  /** Since it ended. */
  readonly ageMs: number;
}

type Data = Readonly<Record<string, unknown>>;

/** Whatever was stored last, for this cluster's content and places or for others. */
export function storedOf(situation: Situation): StoredState | undefined {
  const own = ownStatus(situation);
  const { stored } = own?.data ?? {};
  return isRecord(stored) ? readStored(stored) : storedBefore(situation, own);
}

/** What is stored, if it is what the cluster wants now. */
export function currentStored(situation: Situation): StoredState | undefined {
  const stored = storedOf(situation);
  const { cluster, settings } = situation;
  const isCurrent =
    stored?.content === contentHash(cluster) && stored.target === targetHash(cluster, settings);
  return isCurrent && stored.content !== '' ? stored : undefined;
}

function readStored(stored: Data): StoredState {
  const text = (name: string): string => {
    const { [name]: value } = stored;
    return typeof value === 'string' ? value : '';
  };
  const { details } = stored;
  return {
    content: text('content'),
    target: text('target'),
    message: text('message'),
    verifiedTime: text('verifiedTime'),
    verifyRequest: text('verifyRequest'),
    details: isRecord(details) ? details : {},
  };
}

/** A report from before that was remembered says it for its own generation. */
function storedBefore(
  { cluster, settings }: Situation,
  own: AdapterStatus | undefined,
): StoredState | undefined {
  const available = own?.conditions.find((condition) => condition.type === 'Available');
  if (own === undefined || available?.status !== 'True') return undefined;
  if (own.observed_generation !== cluster.generation || own.data?.['content'] !== contentHash(cluster))
    return undefined;
  const finished = own.metadata?.['completed_time'] ?? own.last_report_time;
  const { places: _places, content: _content, ...details } = own.data;
  return {
    content: contentHash(cluster),
    target: targetHash(cluster, settings),
    message: available.message ?? '',
    verifiedTime: typeof finished === 'string' ? finished : '',
    verifyRequest: '',
    details,
  };
}

/** The last attempt at this content and these places; undefined: there was none. */
export function attemptOf(situation: Situation): Attempt | undefined {
  const own = ownStatus(situation);
  if (own === undefined || !speaksOfThis(own, situation)) return undefined;
  const { failed, failure } = own.data ?? {};
  const available = own.conditions.find((condition) => condition.type === 'Available');
  const { reason, message, verifyRequest }: Data = isRecord(failure) ? failure : { ...available };
  return {
    number: Number(own.metadata?.['attempt']) || 0,
    failed: failed === true,
    reason: typeof reason === 'string' ? reason : '',
    message: typeof message === 'string' ? message : '',
    verifyRequest: typeof verifyRequest === 'string' ? verifyRequest : '',
    ageMs: situation.now.getTime() - endOf(own),
  };
}

/** A failure counts for its generation: whoever changes anything of the cluster wants it to be tried again. */
function speaksOfThis(own: AdapterStatus, { cluster, settings }: Situation): boolean {
  const { content, target = targetHash(cluster, settings) } = own.data ?? {};
  return (
    own.observed_generation === cluster.generation &&
    content === contentHash(cluster) &&
    target === targetHash(cluster, settings)
  );
}

/** When the attempt that a report speaks of ended; 0 when it does not say. */
function endOf(own: AdapterStatus): number {
  const finished = own.metadata?.['completed_time'] ?? own.last_report_time;
  return typeof finished === 'string' ? Date.parse(finished) : 0;
}
