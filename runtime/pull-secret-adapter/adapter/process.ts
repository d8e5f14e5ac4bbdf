/**
 * The adapter as a process: every replica consumes events; the leader alone watches Jobs and, slowly, goes over the list of clusters
 * for what no event has brought.
 */
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Consumer, Handler } from '../../brokers/broker.ts';
import { systemClock } from '../../host/clock.ts';
import type { KubeClient } from '../../kube/client.ts';
import { Informer, type InformerSink } from '../../kube/informer.ts';
import { LeaderElection } from '../../kube/lease.ts';
import { describeError } from '../../rules/errors.ts';
import type { KubeObject } from '../../rules/kubernetes/object.ts';
import type { Logger } from '../../telemetry/logger.ts';
import type { Metrics } from '../../telemetry/metrics.ts';
import { serveProbes } from '../../telemetry/probes.ts';
import type { Cluster } from '../cluster.ts';
import type { HyperfleetApi } from '../hyperfleet-api.ts';
import { ADAPTER, ADAPTER_LABEL } from '../names.ts';
import { mirroredType } from '../plan.ts';
import { eventHandler } from './handle-event.ts';
import { labelReporter } from './label-report.ts';
import { type LookContext, look } from './look.ts';
import { Looks } from './looks.ts';
import { jobIdentity } from './observe.ts';
import { SecretMetrics } from './secret-metrics.ts';
import type { AdapterSettings } from './settings.ts';

export interface AdapterProcess {
  readonly api: HyperfleetApi;
  readonly kube: KubeClient;
  readonly settings: AdapterSettings;
  readonly consume: (handler: Handler) => Promise<Consumer>;
  readonly logger: Logger;
  readonly metrics: Metrics;
  readonly signal: AbortSignal;
  /** Pause between two goes over the list of clusters, in seconds. Never below a minute by default: see `docs`. */
  readonly sweepSeconds: number;
  readonly leaseSeconds: number;
  readonly instance: string;
  readonly concurrency: number;
  readonly ports: { readonly health: number | undefined; readonly metrics: number | undefined };
}

const NAME = 'pull-secret-adapter';

/** Runs until the signal. @returns the exit code */
export async function runAdapter(process: AdapterProcess): Promise<number> {
  const { logger, signal, metrics } = process;
  const secrets = new SecretMetrics();
  const onRepair = labelReporter(process);
  const looks = new Looks({
    look: (id, always) => measured(process, { secrets, onRepair }, id, always),
    concurrency: process.concurrency,
    onError: (id, error, pauseMs) =>
      logger.warn('A cluster could not be looked at', {
        cluster: id,
        error: describeError(error),
        retryAfterMs: pauseMs,
      }),
  });
  const consumer = await process.consume(
    eventHandler({
      ask: (id) => looks.ask(id, true),
      logger,
      count: eventCounter(metrics),
      pause: (ms) => sleep(ms, undefined, { signal }),
    }),
  );
  const servers = await startServers(process, consumer, secrets);
  logger.info('started', { adapter: process.settings.adapterName });
  const lost = await leadWhenElected(process, looks);
  logger.info('stopping', { reason: lost ? 'the lease was lost' : 'signal' });
  await consumer.close();
  await looks.close();
  await Promise.all(servers.map((server) => server.close()));
  return lost && !signal.aborted ? 1 : 0;
}

interface Reports {
  readonly secrets: SecretMetrics;
  readonly onRepair: NonNullable<LookContext['onRepair']>;
}

async function measured(
  process: AdapterProcess,
  { secrets, onRepair }: Reports,
  id: string,
  always: boolean,
): Promise<{ requeueAfterMs?: number }> {
  const { logger, metrics } = process;
  const began = performance.now();
  try {
    const result = await look(id, { ...process, now: () => new Date(), onRepair }, always);
    secrets.looked(id, result);
    metrics.reconciled(
      NAME,
      result.requeueAfterMs === undefined ? 'success' : 'requeue_after',
      (performance.now() - began) / 1000,
    );
    logger[result.reported ? 'info' : 'debug']('looked', {
      cluster: id,
      phase: result.phase,
      reason: result.reason,
    });
    return result.requeueAfterMs === undefined ? {} : { requeueAfterMs: result.requeueAfterMs };
  } catch (error) {
    metrics.reconciled(NAME, 'error', (performance.now() - began) / 1000);
    throw error;
  }
}

function eventCounter(metrics: Metrics): (outcome: string) => void {
  return (outcome) =>
    metrics.count({
      name: 'pullwright_adapter_events_total',
      help: 'Events by what became of them',
      labels: { outcome },
    });
}

async function startServers(
  process: AdapterProcess,
  consumer: Consumer,
  secrets: SecretMetrics,
): Promise<{ close(): Promise<void> }[]> {
  const { health, metrics } = process.ports;
  const checks = {
    '/healthz': () => undefined,
    '/readyz': () => (consumer.connected() ? undefined : 'the broker is not connected'),
  };
  const servers = [];
  if (health !== undefined) servers.push(await serveProbes({ port: health, checks }));
  if (metrics !== undefined)
    servers.push(
      await serveProbes({
        port: metrics,
        metrics: () => {
          process.metrics.samples(`${NAME}-secrets`, secrets.samples());
          return process.metrics.render();
        },
      }),
    );
  return servers;
}

/** True when the lease was lost. */
async function leadWhenElected(process: AdapterProcess, looks: Looks): Promise<boolean> {
  const { signal, leaseSeconds: seconds, logger } = process;
  const election = new LeaderElection({
    client: process.kube,
    namespace: process.settings.namespace,
    name: 'pullwright-pull-secret-adapter',
    identity: `${process.instance}_${randomUUID()}`,
    clock: systemClock,
    leaseSeconds: seconds,
    renewSeconds: (seconds * 2) / 3,
    retrySeconds: (seconds * 2) / 15,
    onError: ({ code, message }) => logger.warn('lease not renewed', { code, problem: message }),
  });
  if (!(await election.acquire(signal))) return false;
  logger.info('this process leads');
  const stop = new AbortController();
  const informer = watchJobs(process, looks);
  const sweeping = sweep(process, looks, AbortSignal.any([signal, stop.signal]));
  await election.keep(signal);
  stop.abort();
  informer.stop();
  await sweeping;
  if (signal.aborted) await election.release().catch(() => undefined);
  return !signal.aborted;
}

/** A Job that changes is looked at at once; all of them after every list, so that nothing that happened in between is missed. */
function watchJobs({ kube, settings, logger }: AdapterProcess, looks: Looks): Informer {
  const hint = (job: KubeObject): void => {
    const { clusterId } = jobIdentity(job);
    if (clusterId !== '') looks.hint(clusterId);
  };
  const sink: InformerSink = {
    replace: (jobs) => jobs.forEach(hint),
    set: hint,
    delete: hint,
    state: (state) => {
      if (state.is === 'failing')
        logger.warn('Jobs cannot be watched', { error: describeError(state.error) });
    },
  };
  const informer = new Informer({
    client: kube,
    collection: { apiVersion: 'batch/v1', kind: 'Job', namespace: settings.namespace },
    selector: { labelSelector: `${ADAPTER_LABEL}=${ADAPTER}` },
    sink,
  });
  informer
    .run()
    .catch((error: unknown) => logger.error('Jobs are no longer watched', { error: describeError(error) }));
  return informer;
}

/** Whatever is not known to be in order: a look that finds nothing new reports nothing. */
async function sweep(
  { api, settings, logger, sweepSeconds }: AdapterProcess,
  looks: Looks,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    try {
      await goOver({ api, settings }, looks);
    } catch (error) {
      logger.warn('The clusters could not be listed', { error: describeError(error) });
    }
    await sleep(sweepSeconds * 1000, undefined, { signal }).catch(() => undefined);
  }
}

async function goOver(
  { api, settings }: Pick<AdapterProcess, 'api' | 'settings'>,
  looks: Looks,
): Promise<void> {
  for await (const cluster of api.clusters('')) if (wantsLook(cluster, settings)) looks.hint(cluster.id);
}

/** @param cluster an item of the list */
export function wantsLook(cluster: Cluster, settings: Pick<AdapterSettings, 'adapterName'>): boolean {
  if (cluster.deleting) return true;
  const type = mirroredType(settings.adapterName);
  const own = cluster.conditions.find((condition) => condition.type === type);
  return own?.status !== 'True' || own.observed_generation !== cluster.generation;
}
