/** The installer put together: what is wanted goes through the node engine, which restarts the kubelet. */
import { dirname } from 'node:path';
import { systemClock } from '../../host/clock.ts';
import { type ServiceSystemd, systemdOverBus } from '../../host/systemd.ts';
import { NodeEngine } from '../../node/engine.ts';
import type { NodeEvent, NodeState } from '../../node/events.ts';
import { AUTH_FILE_LIFE_MS, IN_USE_LIFE_MS, removeStaleAuthFiles } from '../../node/janitor.ts';
import { runLoop } from '../../node/loop.ts';
import { Wake } from '../../node/mount-watcher.ts';
import { serveNodeProbes } from '../../node/probes.ts';
import type { NodeReporter } from '../../node/reporter.ts';
import { StateFolder } from '../../node/state-folder.ts';
import { KUBELET_HEALTHZ, unitHealth } from '../../node/unit-health.ts';
import { describeError } from '../../rules/errors.ts';
import type { Policy } from '../../rules/rollout/rollout.ts';
import { spreadDelay } from '../../rules/rollout/spread.ts';
import { createLogger, type Logger } from '../../telemetry/logger.ts';
import type { FailureNote } from '../plugin/failure-note.ts';
import { accountOf, FailureNews, failureEvent, readFailures, withFailures } from './failures.ts';
import { read } from './host.ts';
import { logInstallerEvent } from './log.ts';
import { InstallerMetrics } from './metrics.ts';
import type { InstallPlan } from './plan.ts';
import { previewInstaller } from './preview.ts';
import { Proof } from './proof.ts';
import { renderReport } from './render.ts';
import { makeFolder, NodeSource, type SourceOptions } from './source.ts';
import { type TrialFailure, tryOut } from './trial.ts';
import { removeAll } from './uninstall.ts';
import { FreshUnits } from './units.ts';
import { dropInFile } from './wanted.ts';

/** How the installer runs. Times are milliseconds. */
export interface InstallerSettings extends SourceOptions {
  readonly authDir: string;
  readonly windowMs: number;
  /** Changes that may restart the kubelet within ten minutes; 0: no limit. */
  readonly maxRestarts: number;
  readonly settleMs: number;
  readonly healthz: string;
  readonly healthAddress: string;
  readonly healthPort: number | undefined;
  readonly pollMs: number;
  /** Whether the API server is told about the node. */
  readonly report: boolean;
  readonly once: boolean;
  readonly output: 'text' | 'json' | 'yaml';
}

export interface InstallerIo {
  readonly stdout: { write(text: string): unknown };
  readonly stderr: { write(text: string): unknown };
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly signal: AbortSignal;
}

const clock = systemClock;
const JOB_MS = 200_000;
const HEALTHY_WITHIN_MS = 60_000;
const STARTING: NodeState = { ready: false, reason: 'Starting', message: 'The first look has not ended yet' };
const UNINSTALLED: NodeState = {
  ready: true,
  reason: 'Uninstalled',
  message: 'Nothing of the installer is left',
};

/** Runs until the signal; with `once` until there is nothing to do. 0: in sync, or told to stop. */
export async function runInstaller(options: InstallerSettings, io: InstallerIo): Promise<number> {
  const log = createLogger({ write: (line) => io.stderr.write(line), format: 'json', level: () => 'info' });
  const source = new NodeSource(options, io.env, log);
  const metrics = new InstallerMetrics(options, clock.now());
  const reporter = options.report ? await openReporter(options, source, io.env, log) : undefined;
  let state = STARTING;
  const news = new FailureNews();
  const publish = (node: NodeState): void => {
    const notes = options.uninstall ? [] : failuresOn(options);
    for (const note of news.newIn(notes)) {
      log.warn('A run of the provider failed', { account: accountOf(note), detail: note.message });
      reporter?.say(failureEvent(note));
    }
    const next = withFailures(node, notes);
    if (next.reason !== state.reason || next.message !== state.message)
      log[next.ready || next.busy === true ? 'info' : 'warn']('State of the node', {
        reason: next.reason,
        detail: next.message,
      });
    state = next;
    metrics.state(next, clock.now());
    reporter?.state(next);
    if (next.ready && !options.uninstall) source.removeOld();
  };
  const proof = new Proof(() => trial(options, source, io.signal), publish);
  const look = (next: NodeState): void =>
    proof.state(next, options.uninstall ? undefined : keyOf(source.plan));
  const report = (event: NodeEvent): void => {
    metrics.event(event);
    reporter?.event(event);
    logInstallerEvent(log, event);
  };
  const page = (): string => metrics.text(source.plan, clock.now());
  const closeProbes = await probes(options, () => state, page);
  try {
    await work(options, { source, publish: look, report, log }, io.signal);
    await proof.settled();
    if (options.uninstall) await finish(options, { log, publish }, () => state, io.signal);
  } finally {
    closeProbes();
    await reporter?.close();
  }
  if (!options.once) return 0;
  const { ready, reason, message } = state;
  io.stdout.write(renderReport({ node: options.nodeName, ready, reason, message }, options.output));
  return ready ? 0 : 1;
}

function failuresOn({ root, authDir }: InstallerSettings): readonly FailureNote[] {
  return readFailures(root + authDir);
}

/** What is installed by a plan; undefined when the kubelet is pointed at nothing of ours. */
function keyOf(plan: InstallPlan | undefined): string | undefined {
  return plan?.ok === true && plan.config !== undefined ? plan.dropIn : undefined;
}

async function trial(
  options: InstallerSettings,
  { plan }: NodeSource,
  signal: AbortSignal,
): Promise<TrialFailure | undefined> {
  if (plan?.ok !== true) return undefined;
  return tryOut({ systemd: systemd(options), places: options, plan, signal });
}

/** Prints what would be done. 0: nothing. */
export async function dryRunInstaller(
  options: InstallerSettings,
  io: Pick<InstallerIo, 'stdout' | 'env'>,
): Promise<number> {
  const report = await previewInstaller(options, policyOf(options), io.env);
  io.stdout.write(renderReport(report, options.output));
  return report.ready ? 0 : 1;
}

interface Parts {
  readonly source: NodeSource;
  readonly publish: (state: NodeState) => void;
  readonly report: (event: NodeEvent) => void;
  readonly log: Logger;
}

/** Until the signal; to take things back, and with `once`, until there is nothing to do. */
async function work(options: InstallerSettings, parts: Parts, outer: AbortSignal): Promise<void> {
  const { source, publish, log } = parts;
  await source.refresh();
  const over = new AbortController();
  const signal = AbortSignal.any([outer, over.signal]);
  const refreshing = keepFresh(source, options, log, signal);
  const wake = new Wake([], clock);
  try {
    const folder = new StateFolder(options.root + options.stateDir);
    const engine = (): NodeEngine => newEngine(options, folder, parts);
    const once = options.once || options.uninstall;
    await runLoop({ folder, engine, wake, clock, pollMs: options.pollMs, publish, once }, signal);
  } finally {
    over.abort();
    wake.close();
    await refreshing;
  }
}

/** The kubelet runs without the drop-in, so the files can go; then there is nothing left to do but to say so. */
async function finish(
  options: InstallerSettings,
  { log, publish }: { readonly log: Logger; readonly publish: Parts['publish'] },
  state: () => NodeState,
  signal: AbortSignal,
): Promise<void> {
  if (state().ready) {
    removeAll(options, log);
    await systemd(options).reload();
    publish(UNINSTALLED);
  }
  // A pod that ended would be started again, and a DaemonSet would never be ready.
  if (!options.once) while (await clock.sleep(options.pollMs, signal));
}

function systemd({ busSocket }: InstallerSettings): ServiceSystemd {
  return systemdOverBus({ socket: busSocket, jobMs: JOB_MS });
}

function policyOf({ nodeName, windowMs, maxRestarts }: InstallerSettings): Policy {
  return {
    restart: 'on-change',
    delayMs: (digest) => spreadDelay(nodeName, digest, windowMs),
    limit: { count: maxRestarts, perMs: 600_000 },
  };
}

function newEngine(
  options: InstallerSettings,
  folder: StateFolder,
  { source, publish, report }: Parts,
): NodeEngine {
  const units = new FreshUnits(systemd(options));
  const required = options.healthz !== 'auto';
  const url = required ? options.healthz : KUBELET_HEALTHZ;
  const file = dropInFile(options);
  makeFolder(dirname(file), 0o755);
  source.sweep();
  return new NodeEngine({
    task: {
      name: 'credential-provider',
      file,
      unit: options.unit,
      look: (present) => source.look(present === undefined ? undefined : read('', file)?.text),
    },
    folder,
    systemd: units,
    policy: policyOf(options),
    clock,
    settleMs: options.settleMs,
    ...(options.healthz === 'off'
      ? {}
      : { health: unitHealth({ url, required, withinMs: HEALTHY_WITHIN_MS, clock }) }),
    publish,
    report: (event) => {
      if (event.event === 'written' || event.event === 'rolled-back') units.changed();
      report(event);
    },
  });
}

/** Imported only here: most installers tell nobody. */
async function openReporter(
  options: InstallerSettings,
  source: NodeSource,
  env: InstallerIo['env'],
  log: Logger,
): Promise<NodeReporter> {
  const [{ NodeReporter }, { installerWords }, { connect }] = await Promise.all([
    import('../../node/reporter.ts'),
    import('./report.ts'),
    import('./wanted.ts'),
  ]);
  return new NodeReporter({
    words: installerWords(
      () => source.plan,
      () => failuresOn(options),
    ),
    client: () => connect(env, options.serviceAccountDir),
    nodeName: options.nodeName,
    clock,
    onError: (error) => log.warn('Cannot report to the API server', { error: describeError(error) }),
  });
}

async function keepFresh(
  source: NodeSource,
  options: InstallerSettings,
  log: Logger,
  signal: AbortSignal,
): Promise<void> {
  sweepAuthFiles(options, log);
  while (await clock.sleep(options.pollMs, signal)) {
    sweepAuthFiles(options, log);
    await source.refresh();
  }
}

/** Files that no pull took, as when the image was there already. */
function sweepAuthFiles({ root, authDir, uninstall }: InstallerSettings, log: Logger): void {
  if (uninstall) return;
  try {
    const files = removeStaleAuthFiles(root + authDir, AUTH_FILE_LIFE_MS, clock.now(), IN_USE_LIFE_MS);
    if (files > 0) log.info('Removed auth files that no pull took', { folder: authDir, files });
  } catch (error) {
    log.warn('Cannot remove auth files that no pull took', { error: describeError(error) });
  }
}

async function probes(
  options: InstallerSettings,
  state: () => NodeState,
  metrics: () => string,
): Promise<() => void> {
  if (options.healthPort === undefined || options.once) return () => undefined;
  const { healthAddress: host, healthPort: port } = options;
  const server = await serveNodeProbes({ host, port, state, alive: () => true, metrics });
  return () => server.close();
}
