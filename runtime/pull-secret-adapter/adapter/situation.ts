/**
 * What a pass over a cluster is made of, and the rules that storing and deleting share.
 *
 * A permission is granted without any change of the document of the cluster, so a refusal is looked at again after an hour;
 * only what a change of the cluster alone can cure waits for one.
 */

import { createHash } from 'node:crypto';
import { exponentialMs } from '../../rules/back-off.ts';
import type { AdapterStatus, HyperfleetCluster } from '../cluster.ts';
import { type OutcomeClass, outcomeClass } from '../outcome.ts';
import { uniquePlaces, wantedPlaces } from '../places.ts';
import { pullSecretHash } from '../pull-secret.ts';
import type { JobView, NamespaceState, RecordView, SecretView } from './observe.ts';
import type { AdapterSettings } from './settings.ts';
import type { StatusReport } from './status-report.ts';

/** All that is known. */
export interface Situation {
  readonly cluster: HyperfleetCluster;
  readonly statuses: readonly AdapterStatus[];
  readonly jobs: readonly JobView[];
  readonly secret: SecretView | undefined;
  /** Where this cluster's pull secret was ever written. */
  readonly record: RecordView | undefined;
  /** Of every namespace that a place names, looked at with rights of the whole cluster. */
  readonly namespaces: Readonly<Record<string, NamespaceState>>;
  readonly settings: AdapterSettings;
  readonly now: Date;
}

/** One thing to do, in order. */
export type Effect =
  /** Before anything is written anywhere. */
  | { readonly do: 'record'; readonly places: readonly string[] }
  /** Binding, temporary Secret, Job, and the Job as owner of the Secret. */
  | {
      readonly do: 'start';
      readonly purpose: 'store' | 'delete';
      readonly job: string;
      readonly attempt: number;
      /** What a Job that deletes goes to. */
      readonly places: readonly string[];
    }
  /** The running Job's Secret is missing, has other content or no owner. */
  | { readonly do: 'repair-secret'; readonly jobUid: string; readonly job: string }
  /** Labels of a Job that stays are not as they were made: only these are put back, nothing of it starts anew. */
  | {
      readonly do: 'repair-labels';
      readonly job: string;
      readonly jobUid: string;
      readonly labels: Readonly<Record<string, string>>;
    }
  | { readonly do: 'remove-secret'; readonly uid: string }
  | { readonly do: 'remove-job'; readonly job: string; readonly uid: string; readonly waitForPods: boolean }
  | { readonly do: 'remove-binding'; readonly namespace: string }
  | { readonly do: 'remove-record'; readonly uid: string };

/** What a pass comes to. */
export interface ClusterOutcome {
  readonly effects: readonly Effect[];
  readonly report: StatusReport;
  /** Only once the report is stored: what the report must remember first. */
  readonly afterReport: readonly Effect[];
  readonly requeueAfterMs?: number;
  /** One word for the log and the metric. */
  readonly phase:
    | 'waiting'
    | 'invalid'
    | 'started'
    | 'running'
    | 'stored'
    | 'failed'
    | 'deleting'
    | 'deleted';
}

/** First pause before a failed Job is made again; doubles up to {@link MAX_RETRY_MS}. */
export const FIRST_RETRY_MS = 30_000;
export const MAX_RETRY_MS = 900_000;

/** Sixteen hex digits are enough to tell one secret from the next; nothing can be guessed from them. */
export function contentHash(cluster: HyperfleetCluster): string {
  return cluster.pullSecret === undefined ? '' : pullSecretHash(cluster.pullSecret).slice(0, 16);
}

/** What the places of a cluster's pull secret are now, in short. */
export function targetHash(cluster: HyperfleetCluster, settings: AdapterSettings): string {
  const text = wantedPlaces(cluster, settings).join('\n');
  return createHash('sha256').update(text).digest('hex').slice(0, 16);
}

/** Our own report, of whatever generation. */
export function ownStatus({
  statuses,
  settings,
}: Pick<Situation, 'statuses' | 'settings'>): AdapterStatus | undefined {
  return statuses.find((status) => status.adapter === settings.adapterName);
}

/** Every place that is known to have been written to: by the record, by the report, by Jobs that are there. */
export function recordedPlaces(situation: Situation): readonly string[] {
  const own = ownStatus(situation);
  return uniquePlaces([
    ...(situation.record?.places ?? []),
    ...placesOfReport(own),
    ...situation.jobs.flatMap((job) => job.places),
  ]);
}

/** Also of a report from before places were recorded, and of the existing adapter's. */
function placesOfReport(own: AdapterStatus | undefined): readonly string[] {
  const { places, secretPath, gcpProject: project, secretName: secret, managementSecret } = own?.data ?? {};
  const [namespace, name] = typeof managementSecret === 'string' ? managementSecret.split('/') : [];
  return [
    ...(Array.isArray(places) ? places.filter((one) => typeof one === 'string') : []),
    ...(typeof secretPath === 'string' ? [secretPath] : []),
    ...(secretPath === undefined && typeof project === 'string' && typeof secret === 'string'
      ? [`projects/${project}/secrets/${secret}`]
      : []),
    ...(namespace === undefined ? [] : [`namespaces/${namespace}/secrets/${name ?? ''}`]),
  ];
}

/** Pause before the next attempt; undefined: only a change of the cluster helps. */
export function retryPauseMs(
  kind: OutcomeClass,
  attempt: number,
  settings: Pick<AdapterSettings, 'deniedRetrySeconds'>,
): number | undefined {
  if (kind === 'terminal') return undefined;
  if (kind === 'denied')
    return settings.deniedRetrySeconds === 0 ? undefined : settings.deniedRetrySeconds * 1000;
  return exponentialMs({ firstMs: FIRST_RETRY_MS, maxMs: MAX_RETRY_MS }, attempt - 1);
}

/** For a Job that left no result: its image did not start, it ran out of time or memory. */
function failureText(job: JobView): string {
  const code = job.exitCode === undefined ? '' : `, exit code ${job.exitCode}`;
  return `Job "${job.name}" failed without a result${code}: ${job.cause ?? 'no cause given'}. Look at its pods with "kubectl describe"`;
}

/** The temporary Secret goes. */
export function secretRemoval({ secret }: Situation): readonly Effect[] {
  return secret === undefined ? [] : [{ do: 'remove-secret', uid: secret.uid }];
}

/** Removes a Job; one that runs is waited for, since its pods could still write. */
export function removal(job: JobView): Effect {
  return { do: 'remove-job', job: job.name, uid: job.uid, waitForPods: job.phase === 'running' };
}

/** Why a Job failed. */
export interface Failure {
  readonly reason: string;
  readonly message: string;
  readonly kind: OutcomeClass;
}

/** The Job's own words if it left a result, else those of the Job controller. */
export function failureOf(job: JobView): Failure {
  const told = job.result?.status === 'failure' ? job.result : undefined;
  const reason = told?.reason ?? 'JobFailed';
  return { reason, message: told?.message ?? failureText(job), kind: outcomeClass(reason, job.exitCode) };
}

/** What is left of a pause that began when the Job ended; zero or less: over; undefined: no next attempt. */
export function pauseLeftMs(pause: number | undefined, job: JobView, now: Date): number | undefined {
  if (pause === undefined) return undefined;
  return pause - (now.getTime() - Date.parse(job.finishedAt ?? now.toISOString()));
}
