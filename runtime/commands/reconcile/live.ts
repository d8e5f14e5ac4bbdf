/** `reconcile` in a cluster: elects a leader, serves probes and metrics, and runs until told to stop. */
import { randomUUID } from 'node:crypto';
import { systemClock } from '../../host/clock.ts';
import { LeaderElection } from '../../kube/lease.ts';
import { type ProbeServer, type ServeOptions, serveProbes } from '../../telemetry/probes.ts';
import type { CommandIo, ExitCode } from '../command.ts';
import { takeProxySettings } from '../proxy-settings.ts';
import { dryRunLive } from './live-dry-run.ts';
import { type LiveRun, prepareRun, runReadiness, startWatching } from './live-run.ts';
import { liveSettings } from './live-settings.ts';
import type { ReconcileFlags } from './reconcile-flags.ts';

export async function reconcileLive(flags: ReconcileFlags, io: CommandIo): Promise<ExitCode> {
  const settings = liveSettings(flags);
  const run = await prepareRun(settings, { ...io, env: takeProxySettings(io.env) });
  try {
    return settings.dryRun ? await dryRunLive(run) : await serve(run);
  } finally {
    run.main.close();
  }
}

async function serve(run: LiveRun): Promise<ExitCode> {
  const { log, io, manager, discovery } = run;
  const servers = await startProbes(run);
  log.info('started', {
    cluster: run.main.client.host,
    controllers: run.reconcilers.map(({ name }) => name),
  });
  startWatching(run);
  // A standby fills its caches too, so that it can take over at once.
  const lost = await (run.settings.leaseNamespace === undefined ? lead(run) : leadWhenElected(run));
  log.info('stopping', { reason: lost ? 'the lease was lost' : 'signal' });
  await discovery?.stop();
  await manager.stop();
  if (!lost) await release(run);
  await Promise.all(servers.map((server) => server.close()));
  log.info('stopped');
  // Whoever runs us starts us again, with nothing half done in memory.
  return lost && !io.signal.aborted ? 1 : 0;
}

/** Works until the signal. */
async function lead(run: LiveRun): Promise<boolean> {
  run.manager.work();
  if (!run.io.signal.aborted) await aborted(run.io.signal);
  return false;
}

/** Works while this process holds the Lease; true when it lost it. */
async function leadWhenElected(run: LiveRun): Promise<boolean> {
  const { settings, io, log, metrics, manager, leadership } = run;
  const { leaseName, leaseSeconds: seconds } = settings;
  const election = new LeaderElection({
    client: run.main.client,
    namespace: settings.leaseNamespace ?? '',
    name: leaseName,
    labels: labelsOf(leaseName),
    identity: `${run.instance}_${randomUUID()}`,
    clock: systemClock,
    leaseSeconds: seconds,
    // The proportions of client-go: 15, 10 and 2 seconds.
    renewSeconds: (seconds * 2) / 3,
    retrySeconds: (seconds * 2) / 15,
    onError: ({ code, message, hint }) => log.warn('lease not renewed', { code, problem: message, hint }),
  });
  leadership.election = election;
  metrics.leader(leaseName, false);
  if (!(await election.acquire(io.signal))) return false;
  log.info('this process leads');
  metrics.leader(leaseName, true);
  const kept = election.keep(io.signal);
  manager.work();
  await kept;
  metrics.leader(leaseName, false);
  return !io.signal.aborted;
}

function labelsOf(name: string): Readonly<Record<string, string>> {
  return {
    'app.kubernetes.io/managed-by': 'pullwright',
    'app.kubernetes.io/name': name,
    'app.kubernetes.io/part-of': 'pullwright',
  };
}

/** After the last write. Another one would wait for the Lease to run out otherwise. */
async function release({ leadership, log }: LiveRun): Promise<void> {
  try {
    await leadership.election?.release();
  } catch {
    log.warn('lease not released: it runs out by itself');
  }
}

async function startProbes(run: LiveRun): Promise<readonly ProbeServer[]> {
  const { healthPort, metricsPort } = run.settings;
  const beat = heartbeat(run.io.signal);
  const health: Pick<ServeOptions, 'checks'> = {
    checks: { '/healthz': beat, '/readyz': () => runReadiness(run) },
  };
  const metrics: Pick<ServeOptions, 'metrics'> = { metrics: () => run.metrics.render() };
  if (healthPort !== undefined && healthPort > 0 && healthPort === metricsPort)
    return [await listen(run, 'health and metrics', { port: healthPort, ...health, ...metrics })];
  const servers: ProbeServer[] = [];
  if (healthPort !== undefined) servers.push(await listen(run, 'health', { port: healthPort, ...health }));
  if (metricsPort !== undefined)
    servers.push(await listen(run, 'metrics', { port: metricsPort, ...metrics }));
  return servers;
}

async function listen({ log }: LiveRun, serves: string, options: ServeOptions): Promise<ProbeServer> {
  const server = await serveProbes(options);
  log.info('listening', { serves, port: server.port });
  return server;
}

/** Not alive when the event loop has been stuck: timers were late by half a minute. */
function heartbeat(signal: AbortSignal): () => string | undefined {
  let last = performance.now();
  const timer = setInterval(() => {
    last = performance.now();
  }, 1000);
  signal.addEventListener('abort', () => clearInterval(timer), { once: true });
  timer.unref();
  return () => (performance.now() - last > 30_000 ? 'the event loop was stuck' : undefined);
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    // A signal listener alone does not keep the process alive.
    const keepAlive = setInterval(() => undefined, 60_000);
    const end = (): void => {
      clearInterval(keepAlive);
      resolve();
    };
    signal.addEventListener('abort', end, { once: true });
  });
}
