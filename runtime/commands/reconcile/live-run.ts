/** Everything that one run of `reconcile` in a cluster holds on to. */

import { readFileSync } from 'node:fs';
import { hostname } from 'node:os';
import type { Cluster } from '../../controller/cluster.ts';
import type { Reconciler, Scope } from '../../controller/contract.ts';
import { Discovery } from '../../controller/discovery.ts';
import type { HostedClusters } from '../../controller/discovery-options.ts';
import { readHostedKubeconfig } from '../../controller/hosted-kubeconfig.ts';
import { FactCache, type LookUp, noLookUp } from '../../controller/lookups.ts';
import { Manager } from '../../controller/manager.ts';
import { systemQueueClock } from '../../controller/queue.ts';
import type { ObjectStore } from '../../controller/store.ts';
import { networksOf } from '../../http/addresses.ts';
import { connectionFromSecret } from '../../kube/kubeconfig-from-secret.ts';
import type { LeaderElection } from '../../kube/lease.ts';
import { parseShortYaml as parse } from '../../kube/yaml.ts';
import { UsageError } from '../../rules/errors.ts';
import { SHARD_LABEL } from '../../rules/kubernetes/hosted-clusters.ts';
import type { SecretObject } from '../../rules/kubernetes/object.ts';
import { redact } from '../../rules/redacted.ts';
import { createLogger, type Logger, lineBuffer } from '../../telemetry/logger.ts';
import { createMetrics, type Metrics } from '../../telemetry/metrics.ts';
import type { CommandIo } from '../command.ts';
import { loadReconcilers, parseReconcileConfig } from './config.ts';
import { type ClusterOpener, openCluster, openKubeconfig } from './live-clusters.ts';
import type { LiveSettings } from './live-settings.ts';
import { allScopes, LOCAL_SCOPE } from './offline-scope.ts';

export interface LiveRun {
  readonly settings: LiveSettings;
  readonly io: CommandIo;
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly reconcilers: readonly Reconciler[];
  readonly manager: Manager;
  /** The management cluster, or the one there is. */
  readonly main: Cluster;
  readonly discovery: Discovery | undefined;
  /** Set once the election has begun. Without a leader nothing is written. */
  readonly leadership: { election: LeaderElection | undefined };
  readonly instance: string;
}

/** Opens what the settings name. Nothing is watched yet. */
export async function prepareRun(settings: LiveSettings, io: CommandIo): Promise<LiveRun> {
  const log = liveLogger(settings, io);
  const metrics = createMetrics();
  const reconcilers = await loadReconcilers(parseReconcileConfig(configText(settings.config)));
  const leadership: LiveRun['leadership'] = { election: undefined };
  const instance = io.env['HOSTNAME'] ?? hostname();
  const opener: ClusterOpener = { io, metrics, instance, mayWrite: () => mayWrite(settings, leadership) };
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
        refreshMs: settings.refreshMs,
        ...(settings.leaseNamespace === undefined
          ? {}
          : {
              lease: {
                namespace: settings.leaseNamespace,
                name: settings.leaseName,
                isHeld: () => leadership.election?.isLeader() === true,
              },
            }),
      })
    : undefined;
  return { settings, io, log, metrics, reconcilers, manager, main, discovery, leadership, instance };
}

/** Registries are asked only where somebody said so: by a file with credentials, or in the options of a cluster. */
async function lookUpOf(
  { registryAuthfile: authfile, allowAddresses }: LiveSettings,
  env: CommandIo['env'],
  { client }: Cluster,
): Promise<LookUp> {
  const readSecret = async (ref: { readonly namespace: string; readonly name: string }) =>
    (await client.get({ apiVersion: 'v1', kind: 'Secret', ...ref })) as SecretObject | undefined;
  const load = async (): Promise<LookUp> =>
    (await import('../registry-facts.ts')).registryLookUp({
      authfile,
      readSecret,
      env,
      access: { 'allow-address': allowAddresses },
    });
  if (authfile !== undefined) return load();
  // Not loaded before it is needed.
  let loaded: Promise<LookUp> | undefined;
  return async (need) => {
    if (need.asked !== true) return noLookUp(need);
    loaded ??= load();
    return (await loaded)(need);
  };
}

/** Starts to watch. */
export function startWatching(run: LiveRun): void {
  if (run.discovery === undefined) run.manager.add(LOCAL_SCOPE, { hosted: run.main, management: run.main });
  else run.discovery.start();
}

/** Why the caches are not filled; undefined when they are. A hosted cluster that is down does not count. */
export function runReadiness(run: LiveRun): string | undefined {
  return run.discovery === undefined ? run.manager.waitingFor(LOCAL_SCOPE.name) : run.discovery.waitingFor;
}

function mayWrite(settings: LiveSettings, { election }: LiveRun['leadership']): boolean {
  if (settings.dryRun) return false;
  return settings.leaseNamespace === undefined || election?.isLeader() === true;
}

function hostedClusters(settings: LiveSettings, main: Cluster, opener: ClusterOpener): HostedClusters {
  const { hostedKubeconfig, kubeconfigSecret } = settings;
  const allow = networksOf(settings.allowAddresses);
  if (hostedKubeconfig !== undefined)
    return {
      read: () => Promise.resolve(redact(hostedKubeconfig)),
      open: () => openKubeconfig(hostedKubeconfig, opener),
      subject: () => hostedKubeconfig,
    };
  const subject = (scope: Scope): string => `Secret/${scope.controlPlaneNamespace}/${kubeconfigSecret}`;
  return {
    read: (scope) => readHostedKubeconfig(main, scope, kubeconfigSecret),
    open: (text, scope) =>
      openCluster(connectionFromSecret({ subject: subject(scope), text, parse, allow }), opener),
    subject,
  };
}

/** Those of this shard. One kubeconfig is one cluster: which one, must be clear. */
function wantedScopes(store: ObjectStore, settings: LiveSettings, log: Logger): readonly Scope[] {
  const all = allScopes(store);
  const wanted = all.filter(
    ({ name }) => settings.hostedCluster === undefined || name === settings.hostedCluster,
  );
  if (settings.hostedKubeconfig === undefined)
    return wanted.filter((scope) => isOfShard(store, scope, settings));
  if (wanted.length === 1) return wanted;
  const found = all.map(({ name }) => name);
  log.error('cannot tell which hosted cluster --kubeconfig is: name it with --hosted-cluster', { found });
  return [];
}

function isOfShard(store: ObjectStore, { hostedCluster }: Scope, { shard }: LiveSettings): boolean {
  const ref = { apiVersion: 'hypershift.openshift.io/v1beta1', kind: 'HostedCluster' };
  const found = hostedCluster === undefined ? undefined : store.get({ ...ref, ...hostedCluster });
  return (found?.metadata.labels?.[SHARD_LABEL] ?? '') === (shard ?? '');
}

function liveLogger(settings: LiveSettings, io: CommandIo): Logger {
  let level = settings.logLevel;
  // SIGUSR1 belongs to Node's debugger.
  const toggle = (): void => {
    level = level === 'debug' ? settings.logLevel : 'debug';
  };
  if (!settings.dryRun) process.on('SIGUSR2', toggle);
  const out = settings.dryRun ? io.stderr : io.stdout;
  const write = lineBuffer((text) => out.write(text));
  return createLogger({ write, format: settings.logFormat, level: () => level });
}

function configText(path: string | undefined): string {
  if (path === undefined) return '';
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    const code = (error as { code?: string }).code ?? 'unknown failure';
    throw new UsageError(`Cannot read configuration "${path}": ${code}`);
  }
}
