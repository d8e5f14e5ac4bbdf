/** The adapter inside this process as `runAdapter` runs it, without a broker: the double of the API and a cluster whose Jobs end by themselves. */
import assert from 'node:assert/strict';
import { createLogger } from '../../runtime/core/logger.ts';
import { createMetrics, type Metrics } from '../../runtime/engine/metrics.ts';
import { openHttpClient } from '../../runtime/http/open.ts';
import { HttpKubeClient } from '../../runtime/kube/http-client.ts';
import { loadConnection } from '../../runtime/kube/kubeconfig.ts';
import { runAdapter } from '../../runtime/pull-secret-adapter/adapter/process.ts';
import type { Handler } from '../../runtime/pull-secret-adapter/broker/broker.ts';
import { HyperfleetApi } from '../../runtime/pull-secret-adapter/hyperfleet-api.ts';
import { type AdapterSettings, DEFAULT_SETTINGS } from '../../runtime/pull-secret-adapter/options.ts';
import { eventually } from '../control-plane/eventually.ts';
import { findPlanted } from '../support/canary.ts';
import { HyperfleetDouble } from './doubles/hyperfleet-api.ts';
import { JobCluster } from './doubles/job-cluster.ts';

export const NEVER = 1_000_000;
export const within = { withinMs: 90_000 };

export interface Running {
  readonly api: HyperfleetDouble;
  readonly cluster: JobCluster;
  readonly handle: Handler;
  readonly log: readonly string[];
  readonly metrics: Metrics;
  /** Gives the exit code. */
  readonly stop: () => Promise<number>;
}

/** Starts it; its first go over the clusters is over. */
export async function startAdapter(
  settings: Partial<AdapterSettings> = {},
  prepare: (api: HyperfleetDouble, cluster: JobCluster) => void = () => undefined,
): Promise<Running> {
  const [api, cluster] = [await HyperfleetDouble.start(), await JobCluster.start()];
  prepare(api, cluster);
  const connection = await loadConnection(cluster.kubeconfig, {});
  const kube = new HttpKubeClient({
    connection,
    userAgent: 'test',
  });
  const stop = new AbortController();
  const log: string[] = [];
  const metrics = createMetrics();
  const given = Promise.withResolvers<Handler>();
  const ended = runAdapter({
    api: new HyperfleetApi({
      baseUrl: api.url,
      http: openHttpClient({}, [api.url]),
      userAgent: 'test',
      tries: 1,
      pause: () => Promise.resolve(),
    }),
    kube,
    settings: {
      ...DEFAULT_SETTINGS,
      repeatSeconds: NEVER,
      sweepSeconds: NEVER,
      leaseSeconds: 60,
      ...settings,
    },
    consume: (handler) => {
      given.resolve(handler);
      return Promise.resolve({ connected: () => true, close: () => Promise.resolve() });
    },
    logger: createLogger({ write: (line) => log.push(line), level: () => 'info' }),
    metrics,
    signal: stop.signal,
    instance: 'test',
    ports: { health: undefined, metrics: undefined },
  });
  const handle = await given.promise;
  // The leader has gone over the clusters once: from here on it knows only what it is told.
  await eventually(() => assert.ok(api.requests.some((one) => one.endsWith('/clusters'))), within);
  const end = async (): Promise<number> => {
    stop.abort();
    const code = await ended;
    kube.close();
    await api.close();
    await cluster.close();
    assert.deepEqual([api.violations, api.refused], [[], []]);
    assert.equal(findPlanted(log.join('') + JSON.stringify(api.reported)), undefined);
    return code;
  };
  return { api, cluster, handle, log, metrics, stop: end };
}

/** Status and reason of the last report. */
export function available(api: HyperfleetDouble, id: string): string {
  const found = api.last(id)?.conditions.find((one) => one.type === 'Available');
  return `${found?.status} ${found?.reason}`;
}

export function ids(count: number): readonly string[] {
  return Array.from({ length: count }, (_, index) => `cls-${index}`);
}
