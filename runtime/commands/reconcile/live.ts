/** `reconcile` in a cluster: elects a leader, serves probes and metrics, and runs until stopped. */

import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import type { CommandIo, ExitCode } from '../../cli/command.ts';
import { DAY_MS } from '../../cli/flags.ts';
import { PullwrightError } from '../../core/errors.ts';
import { HOSTED_CLUSTER } from '../../core/kubernetes/hypershift.ts';
import type { SecretObject } from '../../core/kubernetes/object.ts';
import { createLogger, type Logger, lineBuffer, problemFields } from '../../core/logger.ts';
import { redact } from '../../core/redacted.ts';
import { VERSION } from '../../core/version.ts';
import { ClusterCache } from '../../engine/cache.ts';
import { Cluster, notLeader } from '../../engine/cluster.ts';
import type { ClusterPair } from '../../engine/contract.ts';
import { Discovery, type HostedClusters, readHostedKubeconfig } from '../../engine/hosted-clusters.ts';
import { SHARD_LABEL } from '../../engine/hosted-status.ts';
import { FactCache, type LookUp, noLookUp } from '../../engine/lookups.ts';
import { Manager } from '../../engine/manager.ts';
import { createMetrics, type Metrics, servePorts } from '../../engine/metrics.ts';
import { readText } from '../../engine/offline/manifests.ts';
import { runOffline } from '../../engine/offline/offline.ts';
import { systemQueueClock } from '../../engine/queue.ts';
import type { ObjectStore } from '../../engine/store.ts';
import { networksOf } from '../../http/addresses.ts';
import { proxyFor } from '../../http/proxy.ts';
import type { Connection } from '../../kube/client.ts';
import { EventRecorder } from '../../kube/events.ts';
import { HttpKubeClient } from '../../kube/http-client.ts';
import { loadConnection } from '../../kube/kubeconfig.ts';
import { connectionFromSecret } from '../../kube/kubeconfig-from-secret.ts';
import { LeaderElection } from '../../kube/lease.ts';
import { dataText } from '../../kube/yaml.ts';
import { systemClock } from '../../node/clock.ts';
import { loadReconcilers, parseReconcileConfig } from './reconcilers.ts';
import { renderRunReport, reportOf } from './report.ts';
import { allScopes, LOCAL_SCOPE } from './scopes.ts';
import { type LiveSettings, liveSettings, type ReconcileFlags } from './settings.ts';

// Opens the clusters that the flags of `reconcile` name.

export interface ClusterOpener {
  readonly io: CommandIo;
  readonly metrics: Metrics;
  /** Pod name, for events. */
  readonly instance: string;
  readonly mayWrite: () => boolean;
}

/** Replicas that do not lead write Leases too, to become leader. */
const LEASES = '/apis/coordination.k8s.io/';

/** Opens the cluster of a kubeconfig; without a file, the default of kubectl or of the pod. */
export async function openKubeconfig(file: string | undefined, opener: ClusterOpener): Promise<Cluster> {
  return openCluster(await loadConnection(file, opener.io.env), opener);
}

/** Opens the cluster of `connection`. */
export async function openCluster(connection: Connection, opener: ClusterOpener): Promise<Cluster> {
  const { metrics, io } = opener;
  const proxy = connection.proxy ?? proxyFor(connection.server, io.env);
  const { host } = new URL(connection.server);
  const client = new HttpKubeClient({
    connection: { ...connection, proxy },
    // The API server's audit log shows which replica sent the request.
    userAgent: `pullwright/${VERSION} (${opener.instance.replaceAll(/[^\w.-]/g, '')})`,
    onRequest: (seen) => metrics.request({ ...seen, host }),
    // The pass checked leadership at its start. The request may have waited since, for its turn, a token or a retry.
    fence: ({ path }) => {
      if (!opener.mayWrite() && !path.startsWith(LEASES)) throw notLeader();
    },
  });
  return new Cluster({
    server: connection.server,
    client,
    cache: new ClusterCache(client),
    events: new EventRecorder({
      client,
      controller: 'pullwright.dev/reconciler',
      instance: opener.instance,
      now: () => Date.now(),
    }),
    mayWrite: opener.mayWrite,
  });
}

// Everything that one run of `reconcile` in a cluster needs.

export type LiveRun = Awaited<ReturnType<typeof prepareRun>>;

/** Opens the clusters of the settings. Does not start watches. */
export async function prepareRun(settings: LiveSettings, io: CommandIo) {
  const log = liveLogger(settings, io);
  const metrics = createMetrics();
  const config = settings.config === undefined ? '' : await readText(settings.config, 'configuration ');
  const reconcilers = await loadReconcilers(parseReconcileConfig(config));
  // Set when the election starts. Without leadership nothing is written.
  const leadership: { election?: LeaderElection } = {};
  const { 'lease-namespace': namespace, leaseName: name } = settings;
  const isHeld = (): boolean => leadership.election?.isLeader() === true;
  const mayWrite = (): boolean => !settings['dry-run'] && (namespace === undefined || isHeld());
  const instance = io.env['HOSTNAME'] ?? hostname();
  const opener: ClusterOpener = { io, metrics, instance, mayWrite };
  // The management cluster, or the only cluster.
  const main = await openKubeconfig(settings.mainKubeconfig, opener);
  const manager = new Manager({
    reconcilers,
    facts: new FactCache(await lookUpOf(settings, io.env, main)),
    log,
    metrics,
    clock: systemQueueClock,
  });
  const discovery = settings.discover
    ? new Discovery({
        management: main,
        manager,
        scopesOf: (store) => wantedScopes(store, settings, log),
        hosted: hostedClusters(settings, main, opener),
        log,
        metrics,
        refreshMs: settings.refresh,
        ...(namespace === undefined ? {} : { lease: { namespace, name, isHeld } }),
      })
    : undefined;
  return { settings, io, log, metrics, reconcilers, manager, main, discovery, leadership, instance };
}

/** Registries are contacted only where configured: by a file with credentials, or in the options of a cluster. */
async function lookUpOf(
  { 'registry-authfile': authfile, 'allow-address': allow = [] }: LiveSettings,
  env: CommandIo['env'],
  { client }: Cluster,
): Promise<LookUp> {
  const readSecret = async (ref: { readonly namespace: string; readonly name: string }) =>
    (await client.get({ apiVersion: 'v1', kind: 'Secret', ...ref })) as SecretObject | undefined;
  const load = async (): Promise<LookUp> =>
    (await import('../../diagnose/model/registries.ts')).registryLookUp({
      authfile,
      readSecret,
      env,
      access: { 'allow-address': allow },
    });
  if (authfile !== undefined) return load();
  // Loaded on first use.
  let loaded: Promise<LookUp> | undefined;
  return async (need) => {
    if (need.asked !== true) return noLookUp(need);
    loaded ??= load();
    return (await loaded)(need);
  };
}

/** Starts the watches. */
export function startWatching(run: LiveRun): void {
  if (run.discovery === undefined) run.manager.add(LOCAL_SCOPE, { hosted: run.main, management: run.main });
  else run.discovery.start();
}

/** Why the caches are not filled; undefined when they are. A hosted cluster that is down is ignored. */
export function runReadiness(run: LiveRun): string | undefined {
  return run.discovery === undefined ? run.manager.waitingFor(LOCAL_SCOPE.name) : run.discovery.waitingFor;
}

function hostedClusters(settings: LiveSettings, main: Cluster, opener: ClusterOpener): HostedClusters {
  const { hostedKubeconfig, 'kubeconfig-secret': kubeconfigSecret } = settings;
  const allow = networksOf(settings['allow-address'] ?? []);
  if (hostedKubeconfig !== undefined)
    return {
      read: () => Promise.resolve(redact(hostedKubeconfig)),
      open: () => openKubeconfig(hostedKubeconfig, opener),
      subject: () => hostedKubeconfig,
    };
  const subject = (scope: ClusterPair): string => `Secret/${scope.controlPlaneNamespace}/${kubeconfigSecret}`;
  return {
    read: (scope) => readHostedKubeconfig(main, scope, kubeconfigSecret),
    open: (text, scope) =>
      openCluster(connectionFromSecret({ subject: subject(scope), text, allow }), opener),
    subject,
  };
}

/** The hosted clusters of this shard. A hosted kubeconfig must match exactly one hosted cluster. */
function wantedScopes(store: ObjectStore, settings: LiveSettings, log: Logger): readonly ClusterPair[] {
  const all = allScopes(store);
  const wanted = all.filter(
    ({ name }) => settings['hosted-cluster'] === undefined || name === settings['hosted-cluster'],
  );
  if (settings.hostedKubeconfig === undefined)
    return wanted.filter((scope) => isOfShard(store, scope, settings));
  if (wanted.length === 1) return wanted;
  const found = all.map(({ name }) => name);
  log.error('cannot tell the hosted cluster of --kubeconfig: set --hosted-cluster', { found });
  return [];
}

function isOfShard(store: ObjectStore, { hostedCluster }: ClusterPair, { shard }: LiveSettings): boolean {
  const found = hostedCluster && store.get({ ...HOSTED_CLUSTER, ...hostedCluster });
  return (found?.metadata.labels?.[SHARD_LABEL] ?? '') === (shard ?? '');
}

function liveLogger(settings: LiveSettings, io: CommandIo): Logger {
  let level = settings['log-level'];
  // SIGUSR1 is reserved for Node's debugger.
  const toggle = (): void => {
    level = level === 'debug' ? settings['log-level'] : 'debug';
  };
  if (!settings['dry-run']) process.on('SIGUSR2', toggle);
  const out = settings['dry-run'] ? io.stderr : io.stdout;
  const write = lineBuffer((text) => out.write(text));
  return createLogger({ write, format: settings['log-format'], level: () => level });
}

// `reconcile --dry-run` in a cluster: fills the caches, runs the offline engine over them, and prints what would change.

/** The dry run fails if a cluster's caches are not filled within this time. */
const SYNC_TIMEOUT_MS = 30_000;

export async function dryRunLive(run: LiveRun): Promise<ExitCode> {
  startWatching(run);
  const waiting = await filled(run);
  const { scopes } = run.manager;
  const readable = scopes.filter(({ name }) => run.manager.waitingFor(name) === undefined);
  const { reconcilers, settings, io } = run;
  const reports = readable.map((scope) => {
    const { hosted, management } = run.manager.clustersOf(scope.name);
    const stores = { hosted: hosted.cache.store, management: management.cache.store };
    return reportOf(scope.name, runOffline({ reconcilers, scope, stores, now: new Date() }));
  });
  const { output, verbose } = settings;
  if (output !== 'text') io.stdout.write(dataText(output, reports));
  else for (const report of reports) io.stdout.write(renderRunReport(report, { verbose, dryRun: true }));
  await run.discovery?.stop();
  await run.manager.stop();
  if (waiting !== undefined)
    throw new PullwrightError(`Cannot sync caches within ${SYNC_TIMEOUT_MS / 1000} s: ${waiting}`, {
      code: 'CachesNotFilled',
    });
  return reports.some(({ problems }) => problems.length > 0) ? 1 : 0;
}

/** Waits until the caches of every cluster are filled; returns what is missing at the deadline. */
async function filled(run: LiveRun): Promise<string | undefined> {
  const deadline = performance.now() + SYNC_TIMEOUT_MS;
  for (;;) {
    const waiting =
      runReadiness(run) ??
      run.discovery?.unopened ??
      run.manager.scopes.map(({ name }) => run.manager.waitingFor(name)).find((text) => text !== undefined);
    if (waiting === undefined || performance.now() > deadline || run.io.signal.aborted) return waiting;
    await sleep(50);
  }
}

export async function reconcileLive(flags: ReconcileFlags, io: CommandIo): Promise<ExitCode> {
  const settings = liveSettings(flags);
  const run = await prepareRun(settings, io);
  try {
    return settings['dry-run'] ? await dryRunLive(run) : await serve(run);
  } finally {
    run.main.close();
  }
}

async function serve(run: LiveRun): Promise<ExitCode> {
  const { log, io, manager, discovery, leadership, settings } = run;
  const closeServers = await servePorts(
    { health: settings['health-port'], metrics: settings['metrics-port'] },
    { ready: () => runReadiness(run), metrics: () => run.metrics.render(), log },
  );
  log.info('started', {
    cluster: run.main.client.host,
    controllers: run.reconcilers.map(({ name }) => name),
  });
  startWatching(run);
  // A standby fills its caches too, so that it can take over at once.
  const lost = await (settings['lease-namespace'] === undefined ? lead(run) : leadWhenElected(run));
  log.info('stopping', { reason: lost ? 'leader election lost' : 'signal' });
  await discovery?.stop();
  await manager.stop();
  // After the last write, so that the next leader does not wait for the Lease to expire.
  if (!lost)
    await leadership.election
      ?.release()
      .catch(() => log.warn('lease not released: it expires automatically'));
  await closeServers();
  log.info('stopped');
  // The kubelet restarts the container, which discards all state in memory.
  return lost && !io.signal.aborted ? 1 : 0;
}

/** Reconciles until the signal. */
async function lead(run: LiveRun): Promise<boolean> {
  const { signal } = run.io;
  run.manager.work();
  // A signal listener alone does not keep the process alive.
  while (!signal.aborted) await sleep(DAY_MS, undefined, { signal }).catch(() => undefined);
  return false;
}

/** Reconciles while this process holds the Lease; true if the Lease was lost. */
async function leadWhenElected(run: LiveRun): Promise<boolean> {
  const { settings, io, log, metrics, manager, leadership } = run;
  const { leaseName, 'lease-duration': seconds } = settings;
  const election = new LeaderElection({
    client: run.main.client,
    namespace: settings['lease-namespace'] ?? '',
    name: leaseName,
    labels: {
      'app.kubernetes.io/managed-by': 'pullwright',
      'app.kubernetes.io/name': leaseName,
      'app.kubernetes.io/part-of': 'pullwright',
    },
    identity: `${run.instance}_${randomUUID()}`,
    clock: systemClock,
    leaseSeconds: seconds,
    onError: (error) => log.warn('lease not renewed', problemFields(error)),
  });
  leadership.election = election;
  metrics.leader(leaseName, false);
  if (!(await election.acquire(io.signal))) return false;
  log.info('became leader');
  metrics.leader(leaseName, true);
  const kept = election.keep(io.signal);
  manager.work();
  await kept;
  metrics.leader(leaseName, false);
  return !io.signal.aborted;
}
