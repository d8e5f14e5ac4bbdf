/** The installer: applies the plan through the node engine, which restarts the kubelet. */
import { existsSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';
import { describeError } from '../../core/errors.ts';
import type { Logger } from '../../core/logger.ts';
import type { InformerState } from '../../kube/informer.ts';
import { removeFile } from '../../node/atomic-file.ts';
import { windowOf } from '../../node/checkpoint.ts';
import { systemClock as clock } from '../../node/clock.ts';
import {
  type Daemon,
  type DaemonIo,
  healthOf,
  type LoopOptions,
  leaveNode,
  runDaemon,
  runLoop,
} from '../../node/daemon.ts';
import { NodeEngine } from '../../node/engine.ts';
import { type Gauge, gauge, podClient, watchNamed } from '../../node/report.ts';
import type { Policy } from '../../node/rollout.ts';
import { StateFolder } from '../../node/state.ts';
import { SystemdOverBus } from '../../node/systemd.ts';
import type { NodeState } from '../../node/task.ts';
import { AUTH_FILE_LIFE_MS, NOTES, removeStaleAuthFiles, Wake } from '../../node/watch.ts';
import { CONFIGS } from '../platform.ts';
import type { InstallerSettings } from './command.ts';
import { executablePath, type InstallPlan, NEUTRAL, OWN_FILE, OWN_LEFTOVER } from './plan.ts';
import {
  accountOf,
  failureEvent,
  failureNews,
  installerWords,
  previewInstaller,
  readFailures,
  renderReport,
  withFailures,
} from './report.ts';
import {
  digestOf,
  dropInFile,
  type InstalledExecutable,
  makeFolder,
  NodeSource,
  PROGRAM,
  read,
  readRecord,
  recordFile,
  removeConfigs,
  tryOut,
} from './source.ts';

// Metrics of the installer.

/** Gauges besides those of every node program. `reason`: of the node's state. */
export function installerGauges(
  places: Pick<InstallerSettings, 'root' | 'stateDir' | 'authDir'>,
  plan: InstallPlan | undefined,
  reason: string,
): readonly Gauge[] {
  const record = readRecord(recordFile(places));
  const verdicts = plan?.ok === true ? plan.verdicts : [];
  const rendered = verdicts.filter(({ verdict }) => verdict === 'Rendered').length;
  const entries = 'Entries of CRIOCredentialProviderConfig/cluster, by verdict';
  return [
    gauge(`pullwright_installer_state_info{reason="${reason}"}`, 'Last result, as in /readyz', 1),
    gauge('pullwright_installer_entries{verdict="rendered"}', entries, rendered),
    gauge('pullwright_installer_entries{verdict="left_out"}', entries, verdicts.length - rendered),
    gauge(
      'pullwright_installer_failing_accounts',
      'ServiceAccounts for whose pods the last run of the provider failed; the node itself counts as one',
      readFailures(places.root + places.authDir).length,
    ),
    ...(record === undefined
      ? []
      : [
          gauge(
            `pullwright_installer_executable_info{version="${record.version}",sha256="${record.sha256}"}`,
            'The executable that was copied to the node',
            1,
          ),
        ]),
  ];
}

// Removes everything from a node once the kubelet runs without it.

/**
 * Removes drop-in, files, executable, journal and unused auth files, as far as they exist. Called when the drop-in has no effect,
 * so the kubelet needs no restart. Keeps an executable that another program has replaced. Returns the remaining folders, by their
 * paths on the host.
 */
function removeAll(places: InstallerSettings, record: InstalledExecutable | undefined, log: Logger) {
  const { root, configDir, stateDir, authDir } = places;
  const file = dropInFile(places);
  if (read('', file)?.text === NEUTRAL) removeFile(file);
  removeConfigs(root + configDir, (name) => OWN_FILE.test(name) || OWN_LEFTOVER.test(name));
  if (record !== undefined) removeExecutable(root + record.path, record.sha256, log);
  // The kubelet no longer calls the provider, so no pull uses these files.
  removeStaleAuthFiles(root + authDir, Number.NEGATIVE_INFINITY, Date.now());
  for (const folder of [stateDir, `${authDir}/${NOTES}`])
    rmSync(root + folder, { recursive: true, force: true });
  // Without a record nothing is installed, and the folder of plugins exists for the pod's mount only.
  const { madeFolder, path } = record ?? { madeFolder: true, path: executablePath(places.binDir) };
  return [places.dropInDir, configDir, ...(madeFolder ? [dirname(path)] : [])];
}

function removeExecutable(path: string, sha256: string, log: Logger): void {
  if (!existsSync(path)) return;
  if (digestOf(path) === sha256) removeFile(path);
  else log.warn('Executable not removed: another program replaced it', { file: path });
}

const UNINSTALLED: NodeState = {
  ready: true,
  reason: 'Uninstalled',
  message: 'The installer is removed',
};

/** Runs until the signal; with `once` until there is nothing to do. Returns 0 when in sync or stopped by the signal. */
export async function runInstaller(options: InstallerSettings, io: DaemonIo): Promise<number> {
  let source: NodeSource | undefined;
  const last = await runDaemon(
    {
      title: 'installer of the credential provider',
      metrics: 'pullwright_installer',
      gauges: ({ reason }) => installerGauges(options, source?.plan, reason),
      authFiles: { folder: options.root + options.authDir, ageMs: AUTH_FILE_LIFE_MS },
      words: installerWords(
        () => source?.plan,
        () => readFailures(options.root + options.authDir),
      ),
      work: (daemon) => {
        source = new NodeSource(options, daemon.env, daemon.log);
        return workAndReport(options, source, daemon);
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

async function workAndReport(options: InstallerSettings, source: NodeSource, daemon: Daemon): Promise<void> {
  const news = failureNews();
  const publish = (node: NodeState): void => {
    const notes = options.uninstall ? [] : readFailures(options.root + options.authDir);
    for (const note of news(notes)) {
      daemon.log.warn('A run of the provider failed', { account: accountOf(note), detail: note.message });
      daemon.say(failureEvent(note));
    }
    const state = withFailures(node, notes);
    daemon.publish(state);
    if (state.ready && !options.uninstall) source.removeOld();
  };
  await work(options, source, { ...daemon, publish });
}

const TRYING: NodeState = {
  ready: false,
  busy: true,
  reason: 'Trying',
  message: 'The kubelet uses the file; testing the executable on the node',
};

/** Verifies at each pass that the installed provider works; only then is the node in sync. */
export function prover(
  options: InstallerSettings,
  source: Pick<NodeSource, 'plan'>,
  { publish, signal }: Pick<Daemon, 'publish' | 'signal'>,
): Prove {
  let tried = '';
  return async (state) => {
    const { plan } = source;
    // Without a file the kubelet does not use our provider.
    if (!state.ready || options.uninstall || plan?.ok !== true || plan.config === undefined) return state;
    if (tried !== plan.dropIn) publish(TRYING);
    tried = plan.dropIn;
    const failure = await tryOut(systemd(options), options, plan, signal);
    if (failure === undefined) return state;
    // An aborted trial proves nothing.
    return signal.aborted ? TRYING : { ready: false, ...failure };
  };
}

type Prove = NonNullable<LoopOptions['prove']>;

/** Prints what would be done. Returns 0 for nothing. */
export async function dryRunInstaller(options: InstallerSettings, io: DaemonIo): Promise<number> {
  const report = await previewInstaller(options, policyOf(options), io.env);
  io.stdout.write(renderReport(report, options.output));
  return report.ready ? 0 : 1;
}

/** Runs until the signal; with `once`, until there is nothing to do. */
async function work(options: InstallerSettings, source: NodeSource, daemon: Daemon): Promise<void> {
  await source.refresh();
  const over = new AbortController();
  const signal = AbortSignal.any([daemon.signal, over.signal]);
  const wake = new Wake([], clock);
  const refreshing = keepFresh(source, options, { ...daemon, signal }, wake);
  try {
    const folder = new StateFolder(options.root + options.stateDir);
    const engine = (publish: (state: NodeState) => void): NodeEngine =>
      newEngine(options, folder, source, { ...daemon, publish });
    const { pollMs, once } = options;
    const { publish, log } = daemon;
    const prove = prover(options, source, { ...daemon, signal });
    const loop = { folder, engine, wake, clock, pollMs, publish, prove, once };
    // Read once: the first attempt deletes it, and may fail after that.
    const record = readRecord(recordFile(options));
    if (options.uninstall)
      await leaveNode(loop, (state) => leave(options, { log, signal }, record, state), signal);
    else await runLoop(loop, signal);
  } finally {
    over.abort();
    wake.close();
    await refreshing;
  }
}

/** Removes the files, now that the kubelet runs without the drop-in. */
async function leave(
  options: InstallerSettings,
  { log, signal }: Pick<Daemon, 'log' | 'signal'>,
  record: InstalledExecutable | undefined,
  state: NodeState,
): Promise<NodeState> {
  if (!state.ready) return state;
  const bus = systemd(options);
  const { commandLine = '' } = (await bus.service(options.unit)) ?? {};
  // A kubelet does not start when a folder in its flags is missing.
  const folders = removeAll(options, record, log).filter(
    (folder) => existsSync(options.root + folder) && !commandLine.includes(folder),
  );
  await bus.reload();
  // On the host, because a pod cannot remove its mounts. Folders with files of others stay.
  const command = ['/usr/bin/rmdir', ['rmdir', '--ignore-fail-on-non-empty', '--', ...folders], false];
  const result = await bus.run('pullwright-uninstall.service', [['ExecStart', 'a(sasb)', [command]]], signal);
  if (result !== 'done') log.warn('Empty folders may be left', { folders, result });
  return UNINSTALLED;
}

function systemd({ busSocket, jobMs }: InstallerSettings): SystemdOverBus {
  return new SystemdOverBus({ socket: busSocket, jobMs });
}

function policyOf(options: InstallerSettings): Policy {
  return {
    restart: 'on-change',
    window: windowOf(options.nodeName, options.windowMs),
    maxRestarts: options.maxRestarts,
  };
}

function newEngine(options: InstallerSettings, folder: StateFolder, source: NodeSource, daemon: Daemon) {
  const file = dropInFile(options);
  makeFolder(dirname(file), 0o755);
  source.sweep();
  return new NodeEngine({
    task: {
      file,
      unit: options.unit,
      // The drop-in is the whole state: the kubelet's file has its digest in its name and never changes, and is not used before
      // the drop-in names it. So restoring the drop-in restores everything.
      isPartOfUnit: true,
      look: (present) => source.look(present === undefined ? undefined : read('', file)?.text),
    },
    folder,
    systemd: systemd(options),
    policy: policyOf(options),
    clock,
    settleMs: options.settleMs,
    health: healthOf(options),
    publish: daemon.publish,
    report: daemon.event,
  });
}

/** Refreshes the plan with the watch, and with the poll: for changes of the host, and while the watch fails. */
async function keepFresh(source: NodeSource, options: InstallerSettings, daemon: Daemon, wake: Wake) {
  const { env, log, signal } = daemon;
  const changes = new Wake([], clock);
  const failed = (error: unknown): void =>
    log.warn('Cannot watch CRIOCredentialProviderConfig: falling back to polling', {
      error: describeError(error),
    });
  const changed = (): void => changes.notice();
  const state = (now: InformerState): void => (now.is === 'failing' ? failed(now.error) : undefined);
  const sink = { replace: changed, set: changed, delete: changed, state };
  if (!options.once && !options.uninstall)
    void watchNamed(
      CONFIGS.map((object) => ({ object, sink })),
      () => podClient(PROGRAM, env, options.serviceAccountDir),
      failed,
      signal,
      clock,
    );
  while (!signal.aborted) {
    await changes.wait(options.pollMs, signal);
    if (signal.aborted) break;
    await source.refresh();
    wake.notice();
  }
}
