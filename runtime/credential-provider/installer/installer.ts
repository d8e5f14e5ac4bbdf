/** The installer put together: what is wanted goes through the node engine, which restarts the kubelet. */
import { dirname } from 'node:path';
import { systemClock } from '../../host/clock.ts';
import { type ServiceSystemd, systemdOverBus } from '../../host/systemd.ts';
import {
  type Daemon,
  type DaemonIo,
  type DaemonSettings,
  healthOf,
  restartLimit,
  runDaemon,
} from '../../node/daemon.ts';
import { NodeEngine } from '../../node/engine.ts';
import type { NodeState } from '../../node/events.ts';
import { AUTH_FILE_LIFE_MS } from '../../node/janitor.ts';
import { runLoop } from '../../node/loop.ts';
import { Wake } from '../../node/mount-watcher.ts';
import type { NodeReporter } from '../../node/reporter.ts';
import { StateFolder } from '../../node/state-folder.ts';
import { describeError } from '../../rules/errors.ts';
import type { Policy } from '../../rules/rollout/rollout.ts';
import { windowOf } from '../../rules/rollout/spread.ts';
import type { FailureNote } from '../plugin/failure-note.ts';
import { accountOf, FailureNews, failureEvent, readFailures, withFailures } from './failures.ts';
import { read } from './host.ts';
import { installerGauges } from './metrics.ts';
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
export interface InstallerSettings extends SourceOptions, DaemonSettings {
  readonly authDir: string;
  readonly windowMs: number;
}

const clock = systemClock;
const UNINSTALLED: NodeState = {
  ready: true,
  reason: 'Uninstalled',
  message: 'Nothing of the installer is left',
};

/** Runs until the signal; with `once` until there is nothing to do. 0: in sync, or told to stop. */
export async function runInstaller(options: InstallerSettings, io: DaemonIo): Promise<number> {
  let source: NodeSource | undefined;
  const last = await runDaemon(
    {
      title: 'installer of the credential provider',
      metrics: 'pullwright_installer',
      gauges: ({ reason }) => installerGauges(options, source?.plan, reason),
      authFiles: { folder: options.root + options.authDir, ageMs: AUTH_FILE_LIFE_MS },
      openReporter: (daemon) => openReporter(options, () => source?.plan, daemon),
      work: (daemon) => {
        source = new NodeSource(options, daemon.env, daemon.log);
        return workAndProve(options, source, daemon);
      },
    },
    options,
    io,
  );
  if (!options.once) return 0;
  const { ready, reason, message } = last;
  io.stdout.write(renderReport({ node: options.nodeName, ready, reason, message }, options.output));
  return ready ? 0 : 1;
}

function failuresOn({ root, authDir }: InstallerSettings): readonly FailureNote[] {
  return readFailures(root + authDir);
}

async function workAndProve(options: InstallerSettings, source: NodeSource, daemon: Daemon): Promise<void> {
  const news = new FailureNews();
  const publish = (node: NodeState): void => {
    const notes = options.uninstall ? [] : failuresOn(options);
    for (const note of news.newIn(notes)) {
      daemon.log.warn('A run of the provider failed', { account: accountOf(note), detail: note.message });
      daemon.say(failureEvent(note));
    }
    const state = withFailures(node, notes);
    daemon.publish(state);
    if (state.ready && !options.uninstall) source.removeOld();
  };
  const proof = new Proof(() => trial(options, source, daemon.signal), publish);
  const look = (state: NodeState): void =>
    proof.state(state, options.uninstall ? undefined : keyOf(source.plan));
  await work(options, source, { ...daemon, publish: look });
  await proof.settled();
  if (options.uninstall) await finish(options, daemon);
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
  io: Pick<DaemonIo, 'stdout' | 'env'>,
): Promise<number> {
  const report = await previewInstaller(options, policyOf(options), io.env);
  io.stdout.write(renderReport(report, options.output));
  return report.ready ? 0 : 1;
}

/** Until the signal; to take things back, and with `once`, until there is nothing to do. */
async function work(options: InstallerSettings, source: NodeSource, daemon: Daemon): Promise<void> {
  await source.refresh();
  const over = new AbortController();
  const signal = AbortSignal.any([daemon.signal, over.signal]);
  const refreshing = keepFresh(source, options, signal);
  const wake = new Wake([], clock);
  try {
    const folder = new StateFolder(options.root + options.stateDir);
    const engine = (publish: (state: NodeState) => void): NodeEngine =>
      newEngine(options, folder, source, { ...daemon, publish });
    const once = options.once || options.uninstall;
    await runLoop(
      { folder, engine, wake, clock, pollMs: options.pollMs, publish: daemon.publish, once },
      signal,
    );
  } finally {
    over.abort();
    wake.close();
    await refreshing;
  }
}

/** The kubelet runs without the drop-in, so the files can go; then there is nothing left to do but to say so. */
async function finish(options: InstallerSettings, daemon: Daemon): Promise<void> {
  const { ready } = daemon.state();
  if (ready) {
    removeAll(options, daemon.log);
    await systemd(options).reload();
    daemon.publish(UNINSTALLED);
  }
  // A pod that ended would be started again, and a DaemonSet would never be ready.
  if (!options.once) while (await clock.sleep(options.pollMs, daemon.signal)) daemon.publish(daemon.state());
}

function systemd({ busSocket, jobMs }: InstallerSettings): ServiceSystemd {
  return systemdOverBus({ socket: busSocket, jobMs });
}

function policyOf(options: InstallerSettings): Policy {
  return {
    restart: 'on-change',
    window: windowOf(options.nodeName, options.windowMs),
    limit: restartLimit(options),
  };
}

function newEngine(
  options: InstallerSettings,
  folder: StateFolder,
  source: NodeSource,
  { publish, event: report }: Daemon,
): NodeEngine {
  const units = new FreshUnits(systemd(options));
  const file = dropInFile(options);
  const health = healthOf(options);
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
    ...(health === undefined ? {} : { health }),
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
  plan: () => InstallPlan | undefined,
  { env, log }: Daemon,
): Promise<NodeReporter> {
  const [{ NodeReporter }, { installerWords }, { connect }] = await Promise.all([
    import('../../node/reporter.ts'),
    import('./report.ts'),
    import('./wanted.ts'),
  ]);
  return new NodeReporter({
    words: installerWords(plan, () => failuresOn(options)),
    client: () => connect(env, options.serviceAccountDir),
    nodeName: options.nodeName,
    clock,
    onError: (error) => log.warn('Cannot report to the API server', { error: describeError(error) }),
  });
}

async function keepFresh(source: NodeSource, options: InstallerSettings, signal: AbortSignal): Promise<void> {
  while (await clock.sleep(options.pollMs, signal)) await source.refresh();
}
