/** Wires up the node agent: its watches, restart turns, engine and reports. */
import { dirname } from 'node:path';
import {
  GLOBAL_PULL_SECRET as NAMES,
  NODE_REPORT,
  NODE_REPORT_LABEL,
} from '../../core/kubernetes/hypershift.ts';
import { counted, jsonText, onOneLine } from '../../core/text.ts';
import { windowOf } from '../../node/checkpoint.ts';
import { systemClock } from '../../node/clock.ts';
import {
  type Daemon,
  type DaemonIo,
  type DaemonSettings,
  healthOf,
  leaveNode,
  QUICK,
  runDaemon,
  runLoop,
} from '../../node/daemon.ts';
import { NodeEngine } from '../../node/engine.ts';
import { type Gauge, gauge, type NodeWords, podClient } from '../../node/report.ts';
import { BookedTurns, type Turns } from '../../node/restart-leases.ts';
import type { Step } from '../../node/rollout.ts';
import { StateFolder } from '../../node/state.ts';
import { SystemdOverBus } from '../../node/systemd.ts';
import { NODE_HOLDS_REMOVAL, type NodeState, stateConditions } from '../../node/task.ts';
import { Wake } from '../../node/watch.ts';
import { SecretWatch } from './sources.ts';
import { type AgentTaskOptions, agentTask } from './task.ts';

/** Restart window when no turn can be booked (API server unreachable): the kubelet's cache lifetime. */
const FALLBACK_WINDOW_MS = 300_000;
/** How long the first pass waits for the secrets. */
const FIRST_SIGHT_MS = 3000;

/** Opens the booking of restart turns for this node. */
function openTurns(options: AgentSettings, { env, event }: Daemon, wake: Wake): Turns {
  const { namespace } = NAMES;
  return new BookedTurns({
    client: () => podClient(AGENT_WORDS.manager, env, options.serviceAccountDir, QUICK),
    lease: { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', namespace, name: NAMES.turns },
    daemonSet: { apiVersion: 'apps/v1', kind: 'DaemonSet', namespace, name: NAMES.syncer },
    nodeName: options.nodeName,
    fallbackMs: FALLBACK_WINDOW_MS,
    clock,
    granted: () => wake.notice(),
    onError: (error) => event({ event: 'turn-failed', error }),
  });
}

// Output of `agent --once`: the state, and with `--dry-run` the next step.

type Preview = Partial<ReturnType<typeof NodeEngine.preview>> & { readonly state: NodeState };

const WOULD: Readonly<Record<Step['do'], string>> = {
  write: 'write the file',
  restart: 'restart the unit',
  'roll-back': 'restore the saved file',
  recover: 'start the unit',
  wait: 'wait',
  rest: 'do nothing',
};

/** Renders the text for stdout, ending with a newline. */
async function renderPreview(preview: Preview, output: 'text' | 'json' | 'yaml'): Promise<string> {
  const facts = factsOf(preview);
  if (output === 'json') return jsonText(facts);
  if (output === 'yaml') return (await import('yaml')).stringify(facts);
  return `${Object.entries(facts)
    .map(([name, value]) => `${`${name}:`.padEnd(10)} ${onOneLine(String(value))}`)
    .join('\n')}\n`;
}

/** Printed fields. */
function factsOf({ state, look, decision }: Preview) {
  const change = decision?.checkpoint.change;
  return {
    /** The next step, with `--dry-run`. */
    ...(decision === undefined ? {} : { would: WOULD[decision.step.do] }),
    /** Whether the change in progress restarts the unit. */
    ...(change === undefined ? {} : { restart: change.restart }),
    /** The pull secret in use. */
    ...(look?.from === undefined ? {} : { source: look.from }),
    /** Number of registries in the desired file, and of entries in the file that other writers own. */
    ...(look?.entries === undefined ? {} : { entries: look.entries, foreign: look.foreign ?? 0 }),
    ready: state.ready,
    reason: state.reason,
    message: state.message,
  };
}

/** Settings of the agent. Times are milliseconds. */
export interface AgentSettings
  extends Omit<AgentTaskOptions, 'monotonic' | 'now' | 'watched'>,
    DaemonSettings {
  readonly stateDir: string;
  readonly restart: 'on-change' | 'on-removal' | 'never';
  /** `auto`: nodes book restart turns in a Lease. */
  readonly windowMs: number | 'auto';
  /** Whether to watch the secrets in addition to the mounts. */
  readonly watch: boolean;
  /** Folder of CRI-O's auth files; undefined: the janitor is off. */
  readonly janitorFolder: string | undefined;
  readonly janitorAgeMs: number;
}

const clock = systemClock;
/** Lifetime of the kubelet's cached copy of its file; compiled into the kubelet. */
const KUBELET_CACHE_MS = 300_000;

/** Runs until the signal, or with `once` until the node is idle. Exit code 0: in sync, or stopped by the signal. */
export async function runAgent(options: AgentSettings, io: DaemonIo): Promise<number> {
  const { janitorFolder: folder, janitorAgeMs: ageMs } = options;
  const last = await runDaemon(
    {
      title: 'global pull secret agent',
      metrics: 'pullwright_agent',
      gauges: (state) => [heldGauge(state)],
      authFiles: folder === undefined ? undefined : { folder, ageMs },
      words: AGENT_WORDS,
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
  const folder = new StateFolder(options.stateDir);
  const booked = options.restart !== 'never' && options.windowMs === 'auto';
  const turns = booked ? openTurns(options, daemon, wake) : undefined;
  const { env, log } = daemon;
  const client = () => podClient(AGENT_WORDS.manager, env, options.serviceAccountDir);
  const isWatching = options.watch && !options.uninstall;
  const watch = isWatching
    ? new SecretWatch({ client, clock, log, changed: () => wake.notice() })
    : undefined;
  await watch?.open(FIRST_SIGHT_MS);
  const engine = (publish: (state: NodeState) => void): NodeEngine =>
    new NodeEngine({
      ...engineOptions(options, folder, watch),
      turns,
      publish,
      report: daemon.event,
    });
  const { pollMs, once } = options;
  try {
    const loop = { folder, engine, wake, clock, pollMs, publish: daemon.publish, once };
    if (options.uninstall) await leaveNode(loop, async (state) => leave(folder, state), daemon.signal);
    else await runLoop(loop, daemon.signal);
  } finally {
    wake.close();
    watch?.close();
    await turns?.done();
  }
}

/** Deletes the agent's state folder; the file and the unit stay unchanged. */
function leave(folder: StateFolder, state: NodeState): NodeState {
  // A change in progress cannot be finished without a source; its saved copy is still needed.
  if (folder.load().checkpoint.change !== undefined) return { ...state, ready: false };
  folder.forget();
  return {
    ready: true,
    reason: 'Uninstalled',
    message: `"${folder.path}" is removed; the file stays unchanged and is no longer managed`,
  };
}

/** Prints the next step. Exit code 0: in sync. */
export async function previewAgent(options: AgentSettings, io: Pick<DaemonIo, 'stdout'>): Promise<number> {
  const folder = new StateFolder(options.stateDir);
  const engine = NodeEngine.preview(engineOptions(options, folder), folder.load());
  io.stdout.write(await renderPreview(engine, options.output));
  return engine.state.ready ? 0 : 1;
}

function engineOptions(options: AgentSettings, folder: StateFolder, watch?: SecretWatch) {
  const { windowMs, nodeName } = options;
  return {
    task: agentTask({
      ...options,
      monotonic: () => clock.monotonic(),
      ...(watch === undefined ? {} : { watched: (name) => watch.read(name) }),
    }),
    folder,
    systemd: new SystemdOverBus({ socket: options.busSocket, jobMs: options.jobMs }),
    policy: {
      restart: options.restart,
      // Booked turns already order the restarts.
      window: windowOf(nodeName, windowMs === 'auto' ? 0 : windowMs),
      rereadMs: KUBELET_CACHE_MS,
      maxRestarts: options.maxRestarts,
    },
    clock,
    settleMs: options.settleMs,
    health: healthOf(options),
  };
}

function heldGauge({ reason }: NodeState): Gauge {
  const help = 'Whether a removal is held until it is confirmed';
  return gauge('pullwright_agent_removal_held', help, reason === NODE_HOLDS_REMOVAL ? 1 : 0);
}

// Reports about a node to the API server: a PullStatus, and Events on the Node. Pure.

const ROLLED_BACK = {
  saved: 'the old file was restored',
  absent: 'the file was removed, because none existed before',
  none: 'no copy of the old file found, nothing was restored',
} as const;

export const AGENT_WORDS: NodeWords = {
  manager: 'pullwright-agent',
  reporter: 'global-pull-secret-agent',
  metadata: () => ({ labels: { [NODE_REPORT_LABEL]: NODE_REPORT } }),
  report: (state) => ({
    conditions: [
      ...stateConditions(state),
      // A node that holds a removal does not block the rollout; an administrator must confirm the removal.
      ...(state.reason === NODE_HOLDS_REMOVAL
        ? [
            {
              type: NODE_HOLDS_REMOVAL,
              status: 'True',
              reason: 'NotConfirmed',
              message: state.message,
            } as const,
          ]
        : []),
    ],
    verdicts: [],
    ...(state.facts === undefined ? {} : { summary: state.facts }),
  }),
  written: ({ file, from, entries }) => {
    const note = `Wrote ${file} from ${from}: ${counted(entries, 'registry', 'registries')}`;
    return { type: 'Normal', reason: 'PullSecretWritten', action: 'Write', note };
  },
  restarted: ({ unit, byUs, attempt }) => {
    const note = byUs
      ? `Restarted ${unit} (attempt ${attempt})`
      : `${unit} runs with the new pull secret, restarted by another process`;
    return { type: 'Normal', reason: 'KubeletRestarted', action: 'Restart', note };
  },
  rolledBack: ({ file, to }) => {
    const note = `The unit failed to start with the new pull secret: ${ROLLED_BACK[to]} (${file})`;
    return { type: 'Warning', reason: 'PullSecretRolledBack', action: 'RollBack', note };
  },
  eventOfState: ({ reason, message }) => {
    if (reason === NODE_HOLDS_REMOVAL)
      return { type: 'Warning', reason: NODE_HOLDS_REMOVAL, action: 'Write', note: message };
    if (reason !== 'BreakerOpen') return undefined;
    return { type: 'Warning', reason: 'BreakerOpen', action: 'Restart', note: message };
  },
};
