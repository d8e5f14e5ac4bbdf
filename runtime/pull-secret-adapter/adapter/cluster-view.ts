/**
 * Everything that is known of one cluster's pull secret, in one view: what was reported, the Job, the versions, the Secret of HyperShift,
 * the places, and what the API server noted. No value of a secret goes through here.
 */

import type { KubeObject } from '../../rules/kubernetes/object.ts';
import { isRecord } from '../../rules/record.ts';
import type { AdapterStatus } from '../cluster.ts';
import { CLUSTER_LABEL } from '../names.ts';
import { type KubernetesPlace, readPlace } from '../places.ts';
import type { JobView, NamespaceState, RecordView } from './observe.ts';

/** What was read. */
export interface ClusterSight {
  readonly cluster: string;
  /** Undefined: the API was not asked, or knows no report. */
  readonly status: AdapterStatus | undefined;
  readonly jobs: readonly JobView[];
  readonly record: RecordView | undefined;
  /** Of each namespace that a place names. */
  readonly namespaces: Readonly<Record<string, NamespaceState>>;
  /** HyperShift's Secrets that are there, by place. */
  readonly secrets: Readonly<Record<string, KubeObject>>;
  readonly events: readonly KubeObject[];
}

export interface ManagementState {
  readonly place: string;
  readonly state: 'written' | 'not there' | 'not ours' | 'namespace gone' | 'namespace terminating';
}

export interface EventLine {
  readonly time: string;
  readonly type: string;
  readonly object: string;
  readonly reason: string;
  readonly message: string;
}

/** What is shown; as JSON it is the same. */
export interface ClusterView {
  readonly cluster: string;
  readonly report?: {
    readonly generation: number;
    readonly time?: string;
    readonly conditions: readonly {
      readonly type: string;
      readonly status: string;
      readonly reason: string;
      readonly message: string;
    }[];
  };
  readonly jobs: readonly {
    readonly name: string;
    readonly purpose: string;
    readonly attempt: number;
    readonly phase: string;
    readonly started?: string;
    readonly finished?: string;
    readonly reason?: string;
    readonly message?: string;
  }[];
  readonly versions: {
    readonly secret?: string;
    readonly current?: string;
    readonly created?: string;
    readonly enabled?: number;
    /** When it was last proved to be stored. */
    readonly proved?: string;
  };
  readonly management: readonly ManagementState[];
  readonly places: readonly string[];
  readonly receipt?: Readonly<Record<string, unknown>>;
  readonly events: readonly EventLine[];
  /** Whether nothing is wrong with it. */
  readonly inOrder: boolean;
}

/** Events that are shown, the newest ones. */
const MOST_EVENTS = 20;

/** Pure. */
export function clusterView(sight: ClusterSight): ClusterView {
  const { status, record } = sight;
  const places = record?.places ?? [];
  const management = places.flatMap((text) => {
    const place = readPlace(text);
    return place?.kind === 'kubernetes' ? [managementState(text, place, sight)] : [];
  });
  const receipt = status?.data?.['receipt'];
  return {
    cluster: sight.cluster,
    ...(status === undefined ? {} : { report: reportOf(status) }),
    jobs: sight.jobs.map(jobLine),
    versions: versionsOf(sight),
    management,
    places,
    ...(isRecord(receipt) ? { receipt } : {}),
    events: eventLines(sight.events),
    inOrder: isInOrder(sight, management),
  };
}

function reportOf(status: AdapterStatus): NonNullable<ClusterView['report']> {
  const { observed_generation: generation, last_report_time: time } = status;
  return {
    generation,
    ...(time === undefined ? {} : { time }),
    conditions: status.conditions.map(({ type, status: holds, reason = '', message = '' }) => ({
      type,
      status: holds,
      reason,
      message,
    })),
  };
}

function jobLine(job: JobView): ClusterView['jobs'][number] {
  const { name, purpose, attempt, startedAt, finishedAt, result, cause } = job;
  const message = result?.message ?? cause;
  return {
    name,
    purpose,
    attempt,
    phase: job.removing ? 'removing' : job.phase,
    ...(startedAt === undefined ? {} : { started: startedAt }),
    ...(finishedAt === undefined ? {} : { finished: finishedAt }),
    ...(result === undefined ? {} : { reason: result.reason }),
    ...(message === undefined ? {} : { message }),
  };
}

/** The Job's own words while it is there, else what the report remembers. */
function versionsOf({ jobs, status }: ClusterSight): ClusterView['versions'] {
  const stored = status?.data?.['stored'];
  const remembered = isRecord(stored) ? stored : {};
  const { details, verifiedTime } = remembered;
  const told = jobs.find((job) => job.result?.details['secretVersion'] !== undefined);
  const said: Readonly<Record<string, unknown>> = told?.result?.details ?? (isRecord(details) ? details : {});
  const proved = told?.finishedAt ?? verifiedTime;
  const texts = {
    secret: said['secretPath'],
    current: said['secretVersion'],
    created: said['versionCreatedTime'],
    proved,
  };
  const known = Object.entries(texts).filter((one): one is [string, string] => typeof one[1] === 'string');
  const enabled = said['enabledVersions'];
  return { ...Object.fromEntries(known), ...(typeof enabled === 'number' ? { enabled } : {}) };
}

function managementState(text: string, place: KubernetesPlace, sight: ClusterSight): ManagementState {
  const namespace = sight.namespaces[place.namespace];
  if (namespace === 'gone' || namespace === 'terminating')
    return { place: text, state: `namespace ${namespace}` };
  const secret = sight.secrets[text];
  if (secret === undefined) return { place: text, state: 'not there' };
  const isOurs = secret.metadata.labels?.[CLUSTER_LABEL] === sight.cluster;
  return { place: text, state: isOurs ? 'written' : 'not ours' };
}

function eventLines(events: readonly KubeObject[]): readonly EventLine[] {
  const text = (value: unknown): string => (typeof value === 'string' ? value : '');
  const lines = events.map((event): EventLine => {
    const { regarding, reason, note, type, eventTime, deprecatedLastTimestamp } = event as Readonly<
      Record<string, unknown>
    >;
    const of = isRecord(regarding) ? regarding : {};
    return {
      time: text(deprecatedLastTimestamp) || text(eventTime) || text(event.metadata['creationTimestamp']),
      type: text(type),
      object: `${text(of['kind'])}/${text(of['name'])}`,
      reason: text(reason),
      message: text(note),
    };
  });
  return lines.sort((a, b) => (a.time < b.time ? -1 : 1)).slice(-MOST_EVENTS);
}

/** By the report if there is one; a cluster that has ended well needs no Secret. */
function isInOrder({ status, jobs }: ClusterSight, management: readonly ManagementState[]): boolean {
  const holds = (type: string): string | undefined =>
    status?.conditions.find((condition) => condition.type === type)?.status;
  if (holds('Finalized') === 'True') return true;
  const written = management.length > 0 && management.every(({ state }) => state === 'written');
  const failed = jobs.some((job) => job.phase === 'failed');
  return status === undefined
    ? written && !failed
    : holds('Available') === 'True' && holds('Health') === 'True' && !failed;
}
