/** The adapter inside this process: events in, the double of the API and a cluster whose Jobs end by themselves on the other side. */

import { describeError } from '../../runtime/core/errors.ts';
import { createLogger } from '../../runtime/core/logger.ts';
import { createMetrics } from '../../runtime/engine/metrics.ts';
import { openHttpClient } from '../../runtime/http/open.ts';
import { HttpKubeClient } from '../../runtime/kube/http-client.ts';
import { loadConnection } from '../../runtime/kube/kubeconfig.ts';
import { eventHandler } from '../../runtime/pull-secret-adapter/adapter/handle-event.ts';
import { ClusterQueue, runAdapter } from '../../runtime/pull-secret-adapter/adapter/process.ts';
import { reconcileCluster } from '../../runtime/pull-secret-adapter/adapter/reconcile-cluster.ts';
import { codeOf, type Handled, type Handler } from '../../runtime/pull-secret-adapter/broker/broker.ts';
import { encodeCloudEvent } from '../../runtime/pull-secret-adapter/cloud-event.ts';
import { HyperfleetApi, type HyperfleetOptions } from '../../runtime/pull-secret-adapter/hyperfleet-api.ts';
import { type AdapterSettings, DEFAULT_SETTINGS } from '../../runtime/pull-secret-adapter/options.ts';
import { HyperfleetDouble } from './doubles/hyperfleet-api.ts';
import { JobCluster } from './doubles/job-cluster.ts';
import { pullSecret } from './run-job.ts';

/** The `spec` of a cluster that can work. */
export function goodSpec(label: string): Record<string, unknown> {
  return { provider: 'gcp', gcp: { projectId: 'cust-proj' }, pullSecret: { data: pullSecret(label) } };
}

/** A message as Sentinel sends it. */
export function eventFor(clusterId: string, eventId: string, generation = 1): Parameters<Handler>[0] {
  const body = encodeCloudEvent({
    specversion: '1.0',
    id: eventId,
    source: 'test',
    type: 'com.redhat.hyperfleet.cluster.reconcile',
    data: { id: clusterId, generation },
    extensions: {},
  });
  return { body: new TextEncoder().encode(body), attributes: {} };
}

/** A client of the API that makes no pauses. */
export function clientOf(baseUrl: string, more: Partial<HyperfleetOptions> = {}): HyperfleetApi {
  const http = openHttpClient({}, [more.baseUrl ?? baseUrl]);
  return new HyperfleetApi({ baseUrl, http, userAgent: 'test', pause: () => Promise.resolve(), ...more });
}

/** A client of a cluster. */
export async function kubeOf(kubeconfig: string): Promise<HttpKubeClient> {
  return new HttpKubeClient({ connection: await loadConnection(kubeconfig, {}), userAgent: 'test' });
}

/** `runAdapter` in this process, without a broker: `handle` takes the messages. */
export function runHere(
  api: HyperfleetDouble,
  kube: HttpKubeClient,
  settings: Partial<AdapterSettings>,
  log: string[],
) {
  const stop = new AbortController();
  const metrics = createMetrics();
  const given = Promise.withResolvers<Handler>();
  const ended = runAdapter({
    api: clientOf(api.url, { tries: 1 }),
    kube,
    // The process releases the Lease when it stops, so a long duration delays no test on a busy machine.
    settings: { ...DEFAULT_SETTINGS, leaseSeconds: 60, ...settings },
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
  return {
    metrics,
    handle: given.promise,
    /** Gives the exit code. */
    stop: (): Promise<number> => {
      stop.abort();
      return ended;
    },
  };
}

export class Scene {
  readonly api: HyperfleetDouble;
  readonly cluster: JobCluster;
  readonly settings: AdapterSettings;
  /** Log lines of level warn and above. */
  readonly log: string[] = [];
  readonly counts: Record<string, number> = {};
  /** Requested pauses in ms; the scene does not wait. */
  readonly pauses: number[] = [];
  readonly queue: ClusterQueue;
  readonly #kube: HttpKubeClient;
  readonly #handler: Handler;

  private constructor(
    parts: { readonly api: HyperfleetDouble; readonly cluster: JobCluster; readonly kube: HttpKubeClient },
    options: Partial<HyperfleetOptions>,
    settings: Partial<AdapterSettings>,
  ) {
    this.api = parts.api;
    this.cluster = parts.cluster;
    this.#kube = parts.kube;
    this.settings = { ...DEFAULT_SETTINGS, ...settings };
    const pause = async (ms: number): Promise<void> => {
      this.pauses.push(ms);
    };
    const client = clientOf(this.api.url, { timeoutMs: 30_000, pause, random: () => 0, ...options });
    const context = { api: client, kube: parts.kube, settings: this.settings, now: () => new Date() };
    const logger = createLogger({ write: (line) => this.log.push(line), level: () => 'warn' });
    this.queue = new ClusterQueue({
      reconcile: (id, { by }) => reconcileCluster(id, context, by === 'event'),
      onError: (cluster, error) =>
        logger.warn('tried again', { cluster, code: codeOf(error), error: describeError(error) }),
      tries: 2,
      pauseMs: () => 0,
    });
    this.#handler = eventHandler(
      (id) => this.queue.ask(id),
      (result) => {
        this.counts[result] = (this.counts[result] ?? 0) + 1;
      },
    );
  }

  static async start(
    options: Partial<HyperfleetOptions> | ((api: HyperfleetDouble) => Partial<HyperfleetOptions>) = {},
    settings: Partial<AdapterSettings> = {},
  ): Promise<Scene> {
    const [api, cluster] = [await HyperfleetDouble.start(), await JobCluster.start()];
    const kube = await kubeOf(cluster.kubeconfig);
    const given = typeof options === 'function' ? options(api) : options;
    return new Scene({ api, cluster, kube }, given, settings);
  }

  handle(message: Parameters<Handler>[0]): Promise<Handled> {
    return this.#handler(message);
  }

  /** Status and reason of a condition of the last report; `nothing` when there is none. */
  reported(id: string, type: 'Available' | 'Health' | 'Finalized'): string {
    const found = this.api.last(id)?.conditions.find((one) => one.type === type);
    return found === undefined ? 'nothing' : `${found.status} ${found.reason}`;
  }

  async close(): Promise<void> {
    await this.queue.close();
    this.#kube.close();
    await this.api.close();
    await this.cluster.close();
  }
}
