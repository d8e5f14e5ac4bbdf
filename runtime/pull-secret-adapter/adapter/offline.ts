/** The adapter without a network: an event and saved answers of the API in, plan, resources and status report out. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseCloudEvent } from '../../brokers/cloud-event.ts';
import { errnoOf, PullwrightError } from '../../rules/errors.ts';
import type { KubeObject } from '../../rules/kubernetes/object.ts';
import { type AdapterStatus, readAdapterStatus, readCluster } from '../cluster.ts';
import { clusterHint } from '../cluster-event.ts';
import { readPlace, wantedPlaces } from '../places.ts';
import { planCluster } from '../plan.ts';
import { reconcile } from './reconcile.ts';
import { bindingObject, boundNamespaces, dataSecret, jobObject, recordObject } from './resources.ts';
import type { AdapterSettings } from './settings.ts';
import { type ClusterOutcome, contentHash, recordedPlaces } from './situation.ts';
import { type IngestAnswer, ingestStatus } from './status-ingest.ts';
import type { StatusBody } from './status-report.ts';

export interface OfflineEventResult {
  readonly cluster: string;
  readonly plan: ReturnType<typeof planCluster>;
  readonly phase: ClusterOutcome['phase'];
  readonly effects: ClusterOutcome['effects'];
  /** Values of secrets are redacted. */
  readonly resources: readonly KubeObject[];
  readonly status: StatusBody;
  /** What the API would answer to that report. */
  readonly answer: IngestAnswer;
}

/**
 * What the adapter would do about one event. The same files give the same answer: "now" is the time of the event, if it has one.
 *
 * @param eventFile a CloudEvent in structured mode
 * @param folder `<id>.json` or `cluster.json`, and, where there are any, `<id>-statuses.json` or `statuses.json`
 * @param clock the time for an event without one
 * @throws PullwrightError when a file is missing or is not what it should be
 */
export async function runOfflineEvent(
  eventFile: string,
  folder: string,
  settings: AdapterSettings,
  clock: Date,
): Promise<OfflineEventResult> {
  const { id, time } = await clusterOf(eventFile);
  const now = time ?? clock;
  const read = readCluster(await json(folder, `${id}.json`, 'cluster.json'));
  if (!read.ok) throw failure(`Cannot plan for cluster "${id}": ${read.reason}`);
  const cluster = read.value;
  const statuses = statusesOf(await json(folder, `${id}-statuses.json`, 'statuses.json', true));
  const plan = planCluster(cluster, statuses, settings.dependencies);
  const situation = { cluster, statuses, jobs: [], secret: undefined, record: undefined, settings, now };
  // Nothing is known of the cluster of the Jobs: what it would say of a namespace that is there is taken.
  const namespaces = Object.fromEntries(
    [...recordedPlaces({ ...situation, namespaces: {} }), ...wantedPlaces(cluster, settings)]
      .map(readPlace)
      .flatMap((place) => (place?.kind === 'kubernetes' ? [[place.namespace, 'active' as const]] : [])),
  );
  const outcome = reconcile({ ...situation, namespaces });
  const resources = outcome.effects.flatMap((effect) => {
    if (effect.do === 'record') return [recordObject(cluster, settings, effect.places)];
    if (effect.do !== 'start') return [];
    const bindings = boundNamespaces(cluster, settings, effect).map((namespace) =>
      bindingObject(cluster, settings, namespace),
    );
    const data =
      effect.purpose === 'store' && contentHash(cluster) !== ''
        ? [dataSecret(cluster, settings, undefined)]
        : [];
    return [...bindings, ...data, jobObject(cluster, settings, effect)];
  });
  const status = { ...outcome.report, observed_time: now.toISOString() };
  const before = statuses.find((one) => one.adapter === status.adapter);
  const stored =
    before === undefined
      ? undefined
      : { observed_generation: before.observed_generation, observed_time: before.last_report_time ?? '' };
  const answer = ingestStatus(status, cluster, stored, now);
  return { cluster: id, plan, phase: outcome.phase, effects: outcome.effects, resources, status, answer };
}

async function clusterOf(file: string): Promise<{ readonly id: string; readonly time: Date | undefined }> {
  let body: Uint8Array;
  try {
    body = await readFile(file);
  } catch (error) {
    throw failure(`Cannot read the event from "${file}": there is no such file`, error);
  }
  const read = parseCloudEvent({ body, attributes: {} });
  if (!read.ok) throw failure(`Cannot read the event from "${file}": ${read.reason}`);
  const hint = clusterHint(read.event);
  if (hint.kind !== 'cluster') throw failure(`Cannot use the event in "${file}": ${hint.reason}`);
  const time = Date.parse(read.event.time ?? '');
  return { id: hint.hint.clusterId, time: Number.isNaN(time) ? undefined : new Date(time) };
}

async function json(folder: string, first: string, second: string, optional = false): Promise<unknown> {
  for (const name of [first, second]) {
    let text: string;
    try {
      text = await readFile(join(folder, name), 'utf8');
    } catch (error) {
      const code = errnoOf(error) ?? 'unknown';
      if (code === 'ENOENT') continue;
      // What cannot be read may say more than nothing.
      throw failure(`Cannot read "${join(folder, name)}": the system answered ${code}`, error);
    }
    try {
      return JSON.parse(text);
    } catch {
      throw failure(`Cannot read "${join(folder, name)}": it is no JSON`);
    }
  }
  if (optional) return undefined;
  throw failure(`Cannot find the cluster in "${folder}": expected ${first} or ${second}`);
}

function statusesOf(document: unknown): readonly AdapterStatus[] {
  const items = Array.isArray(document)
    ? document
    : (document as { readonly items?: unknown } | undefined)?.items;
  return (Array.isArray(items) ? (items as unknown[]) : [])
    .map(readAdapterStatus)
    .filter((one) => one !== undefined);
}

function failure(message: string, cause?: unknown): PullwrightError {
  return new PullwrightError(message, { code: 'OfflineInput', disposition: 'terminal', cause });
}
