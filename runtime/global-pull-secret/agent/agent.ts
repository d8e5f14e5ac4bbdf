/** The node agent put together: what it does with a node, and what it shows of itself. */
import { dirname } from 'node:path';
import { systemClock } from '../../host/clock.ts';
import { systemdOverBus } from '../../host/systemd.ts';
import {
  type Daemon,
  type DaemonIo,
  type DaemonSettings,
  healthOf,
  restartLimit,
  runDaemon,
} from '../../node/daemon.ts';
import { type EngineOptions, NodeEngine } from '../../node/engine.ts';
import type { NodeState } from '../../node/events.ts';
import { leaveNode } from '../../node/leave.ts';
import { runLoop } from '../../node/loop.ts';
import type { Gauge } from '../../node/metrics.ts';
import { Wake } from '../../node/mount-watcher.ts';
import { StateFolder } from '../../node/state-folder.ts';
import { NODE_HOLDS_REMOVAL } from '../../rules/docker-config/removal-guard.ts';
import { windowOf } from '../../rules/rollout/spread.ts';
import { openReporter, openTurns, openWatch } from './api-server.ts';
import { renderPreview } from './preview.ts';
import type { SecretWatch } from './secret-watch.ts';
import { type AgentTaskOptions, agentTask } from './task.ts';

/** How the agent runs. Times are milliseconds. */
export interface AgentSettings
  extends Omit<AgentTaskOptions, 'monotonic' | 'now' | 'watched'>,
    DaemonSettings {
  readonly stateDir: string;
  readonly restart: 'on-change' | 'on-removal' | 'never';
  /** `auto`: the fleet books turns. */
  readonly windowMs: number | 'auto';
  /** Whether the secrets are watched beside their mounts. */
  readonly watch: boolean;
  /** CRI-O's auth files; undefined: nothing is removed. */
  readonly janitorFolder: string | undefined;
  readonly janitorAgeMs: number;
}

const clock = systemClock;
/** How old the kubelet's copy of its file may become; compiled into it. */
const KUBELET_CACHE_MS = 300_000;

/** Runs until the signal; with `once` until there is nothing to do. 0: in sync, or told to stop. */
export async function runAgent(options: AgentSettings, io: DaemonIo): Promise<number> {
  const { janitorFolder: folder, janitorAgeMs: ageMs } = options;
  const last = await runDaemon(
    {
      title: 'global pull secret agent',
      metrics: 'pullwright_agent',
      gauges: (state) => [heldGauge(state)],
      authFiles: folder === undefined ? undefined : { folder, ageMs },
      openReporter: (daemon) => openReporter(options, daemon),
      work: (daemon) => work(options, daemon),
    },
    options,
    io,
  );
  if (!options.once) return 0;
  io.stdout.write(await renderPreview({ state: last }, options.output));
  return last.ready ? 0 : 1;
}

async function work(options: AgentSettings, daemon: Daemon): Promise<void> {
  const wake = new Wake([dirname(options.globalFile), dirname(options.originalFile)], clock);
  const around = { ...daemon, notice: () => wake.notice() };
  const folder = new StateFolder(options.stateDir);
  const booked = options.restart !== 'never' && options.windowMs === 'auto';
  const turns = booked ? await openTurns(options, around) : undefined;
  const watch = options.watch && !options.uninstall ? await openWatch(options, around) : undefined;
  const engine = (publish: (state: NodeState) => void): NodeEngine =>
    new NodeEngine({
      ...engineOptions(options, folder, watch),
      ...(turns === undefined ? {} : { turns }),
      publish,
      report: daemon.event,
    });
  const { pollMs, once } = options;
  try {
    await (options.uninstall ? leaveNode : runLoop)(
      { folder, engine, wake, clock, pollMs, publish: daemon.publish, once },
      daemon.signal,
    );
  } finally {
    wake.close();
    watch?.close();
    await turns?.done();
  }
}

/** Prints what would be done. 0: nothing. */
export async function previewAgent(options: AgentSettings, io: Pick<DaemonIo, 'stdout'>): Promise<number> {
  const folder = new StateFolder(options.stateDir);
  const { journal, ledger } = folder.load();
  const engine = NodeEngine.preview(engineOptions(options, folder), { journal, ledger });
  io.stdout.write(await renderPreview(engine, options.output));
  return engine.state.ready ? 0 : 1;
}

function engineOptions(
  options: AgentSettings,
  folder: StateFolder,
  watch?: SecretWatch,
): Omit<EngineOptions, 'report' | 'publish'> {
  const { windowMs, nodeName } = options;
  const monotonic = (): number => clock.monotonic();
  const health = healthOf(options);
  return {
    task: agentTask({
      ...options,
      monotonic,
      ...(watch === undefined ? {} : { watched: (name) => watch.read(name) }),
    }),
    folder,
    systemd: systemdOverBus({ socket: options.busSocket, jobMs: options.jobMs }),
    policy: {
      restart: options.restart,
      // Turns decide who goes first.
      window: windowOf(nodeName, windowMs === 'auto' ? 0 : windowMs),
      rereadMs: KUBELET_CACHE_MS,
      limit: restartLimit(options),
    },
    clock,
    settleMs: options.settleMs,
    ...(health === undefined ? {} : { health }),
  };
}

function heldGauge({ reason }: NodeState): Gauge {
  const help = 'Whether a removal is held until it is confirmed';
  return { sample: 'pullwright_agent_removal_held', help, value: reason === NODE_HOLDS_REMOVAL ? 1 : 0 };
}
