/** What a pass comes to that starts nothing: the work is gated, or done, or has failed and waits. */
import { outcomeClass } from '../outcome.ts';
import type { Plan } from '../plan.ts';
import { attemptData, availability, failureVerdicts, livingReport, work } from './living-report.ts';
import { type Attempt, attemptOf, currentStored, type StoredState, storedOf } from './memory.ts';
import { type ClusterOutcome, type Situation, secretRemoval } from './situation.ts';
import type { AvailabilityVerdict } from './status-report.ts';

/** Nothing may start now. */
export function gated(
  situation: Situation,
  plan: Exclude<Plan, { verdict: 'ready' | 'deleting' }>,
): ClusterOutcome {
  const unmet: AvailabilityVerdict = [false, plan.reason, plan.message];
  const stored = currentStored(situation);
  const own = situation.statuses.find((status) => status.adapter === situation.settings.adapterName);
  return {
    phase: plan.verdict,
    effects: secretRemoval(situation),
    afterReport: [],
    report: livingReport(
      situation,
      {
        available: availability(stored, unmet),
        applied: unmet,
        stored: storedOf(situation),
        data: {
          ...attemptData(situation),
          preconditions: plan.preconditions,
          retriable: plan.verdict === 'waiting',
        },
        ...(attemptOf(situation)?.failed === true
          ? { metadata: (own?.metadata ?? {}) as Readonly<Record<string, string | number>> }
          : {}),
      },
      false,
    ),
    ...(plan.retryAfterMs === undefined ? {} : { requeueAfterMs: plan.retryAfterMs }),
  };
}

/** It is stored, and nothing is to be done until it is proved again. */
export function standing(situation: Situation, stored: StoredState, dueMs: number): ClusterOutcome {
  const { details } = stored;
  return {
    phase: 'stored',
    effects: secretRemoval(situation),
    afterReport: [],
    report: livingReport(
      situation,
      {
        available: availability(stored, [false, '', '']),
        applied: [true, 'SecretCreated', stored.message],
        stored,
        data: { ...details, ...work(situation) },
        metadata: ownMetadata(situation),
      },
      false,
    ),
    ...(Number.isFinite(dueMs) ? { requeueAfterMs: dueMs } : {}),
  };
}

function ownMetadata({ statuses, settings }: Situation): Readonly<Record<string, string | number>> {
  const own = statuses.find((status) => status.adapter === settings.adapterName);
  return (own?.metadata ?? {}) as Readonly<Record<string, string | number>>;
}

export function failedBefore(situation: Situation, attempt: Attempt): ClusterOutcome {
  const { reason, message, verifyRequest } = attempt;
  const kind = outcomeClass(reason, undefined);
  return {
    phase: 'failed',
    effects: secretRemoval(situation),
    afterReport: [],
    report: livingReport(
      situation,
      {
        ...failureVerdicts(situation, reason, message),
        applied: [false, 'JobFailed', message],
        data: {
          ...work(situation),
          failed: true,
          failure: { reason, message, verifyRequest },
          retriable: kind !== 'terminal',
        },
        metadata: ownMetadata(situation),
      },
      false,
    ),
  };
}
