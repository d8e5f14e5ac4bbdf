/** The node agent put together: sources, file, systemd, probes, log. */
import { dirname } from 'node:path';
import { systemClock } from '../host/clock.ts';
import { systemdOverBus } from '../host/systemd.ts';
import { type EngineOptions, NodeEngine } from '../node/engine.ts';
import type { NodeState } from '../node/events.ts';
import { runLoop } from '../node/loop.ts';
import { NodeMetrics } from '../node/metrics.ts';
import { StateFolder } from '../node/state-folder.ts';
import { KUBELET_HEALTHZ, unitHealth } from '../node/unit-health.ts';
import { Wake } from '../node/wake.ts';
import { describeError } from '../rules/errors.ts';
import { spreadDelay } from '../rules/spread.ts';
import { eventLine, type Level, lineWriter, stateLine } from './agent-log.ts';
import { renderPreview } from './agent-preview.ts';
import { type AgentTaskOptions, agentTask } from './agent-task.ts';

/** How the agent runs. Times are milliseconds. */
export interface AgentOptions extends AgentTaskOptions {
  readonly stateDir: string;
  readonly busSocket: string;
  readonly restart: 'on-change' | 'on-removal' | 'never';
  readonly windowMs: number;
  readonly settleMs: number;
  readonly jobMs: number;
  readonly maxRestarts: number;
  /** `off`, `auto`, or an address that must answer. */
  readonly healthz: string;
  readonly nodeName: string;
  readonly healthAddress: string;
  readonly healthPort: number | undefined;
  readonly pollMs: number;
  readonly logLevel: Level;
  readonly logFormat: 'json' | 'logfmt';
  readonly once: boolean;
  readonly output: 'text' | 'json' | 'yaml';
}

export interface AgentIo {
  readonly stdout: { write(text: string): unknown };
  readonly stderr: { write(text: string): unknown };
  readonly signal: AbortSignal;
}

const clock = systemClock;
const HEALTHY_WITHIN_MS = 60_000;
const RESTART_LIMIT_MS = 600_000;

/** Runs until the signal; with `once` until there is nothing to do. 0: in sync, or told to stop. */
export async function runAgent(options: AgentOptions, io: AgentIo): Promise<number> {
  const log = lineWriter(io.stderr, {
    least: options.logLevel,
    format: options.logFormat,
    now: () => clock.now(),
  });
  const metrics = new NodeMetrics(clock.now());
  const beat = {
    state: { ready: false, reason: 'Starting', message: '' } as NodeState,
    at: clock.monotonic(),
  };
  const publish = (state: NodeState): void => {
    beat.at = clock.monotonic();
    metrics.state(state, clock.now());
    if (state.reason !== beat.state.reason || state.message !== beat.state.message) log(stateLine(state));
    beat.state = state;
  };
  // A promise of a library that nobody waits for must not take the agent down in the middle of a restart.
  process.on('unhandledRejection', (error) =>
    log({ level: 'error', message: 'Unexpected failure', fields: { error: describeError(error) } }),
  );
  log({
    level: 'info',
    message: 'Starting global pull secret agent',
    fields: { node: options.nodeName, file: options.file },
  });
  const folder = new StateFolder(options.stateDir);
  const engine = (tell: (state: NodeState) => void): NodeEngine =>
    new NodeEngine({
      ...engineOptions(options, folder),
      publish: tell,
      report: (event) => {
        metrics.event(event);
        beat.at = clock.monotonic();
        log(eventLine(event));
      },
    });
  const wake = new Wake([dirname(options.globalFile), dirname(options.originalFile)], clock);
  const failed = new AbortController();
  const signal = AbortSignal.any([io.signal, failed.signal]);
  const loop = runLoop(
    { folder, engine, wake, clock, pollMs: options.pollMs, publish, once: options.once },
    signal,
  );
  const closing = await probes(options, { beat, metrics }).catch((error: unknown) => {
    failed.abort(error);
    return undefined;
  });
  const last = await loop;
  wake.close();
  closing?.();
  if (failed.signal.aborted) throw failed.signal.reason;
  if (!options.once) {
    log({ level: 'info', message: 'Stopping: told to', fields: {} });
    return 0;
  }
  io.stdout.write(await renderPreview({ state: last }, options.output));
  return last.ready ? 0 : 1;
}

/** Prints what would be done. 0: nothing. */
export async function previewAgent(options: AgentOptions, io: Pick<AgentIo, 'stdout'>): Promise<number> {
  const folder = new StateFolder(options.stateDir);
  const { journal, ledger } = folder.load();
  const engine = NodeEngine.preview(engineOptions(options, folder), { journal, ledger });
  io.stdout.write(await renderPreview(engine, options.output));
  return engine.state.ready ? 0 : 1;
}

function engineOptions(
  options: AgentOptions,
  folder: StateFolder,
): Omit<EngineOptions, 'report' | 'publish'> {
  return {
    task: agentTask(options),
    folder,
    systemd: systemdOverBus({ socket: options.busSocket, jobMs: options.jobMs }),
    policy: {
      restart: options.restart,
      delayMs: (source) => spreadDelay(options.nodeName, source, options.windowMs),
      limit: { count: options.maxRestarts, perMs: RESTART_LIMIT_MS },
    },
    clock,
    settleMs: options.settleMs,
    ...(options.healthz === 'off' ? {} : { health: health(options.healthz) }),
  };
}

function health(text: string): ReturnType<typeof unitHealth> {
  const required = text !== 'auto';
  return unitHealth({ url: required ? text : KUBELET_HEALTHZ, required, withinMs: HEALTHY_WITHIN_MS, clock });
}

interface Watched {
  readonly beat: { readonly state: NodeState; readonly at: number };
  readonly metrics: NodeMetrics;
}

/** Serves the probes, once the first look is under way. Gives what stops it. */
async function probes(options: AgentOptions, { beat, metrics }: Watched): Promise<(() => void) | undefined> {
  if (options.healthPort === undefined || options.once) return undefined;
  const { serveProbes } = await import('../node/probes.ts');
  // Every wait has an end; the longest is a restart that is overdue, three times, with its health.
  const patienceMs =
    options.pollMs + 4 * (options.jobMs + options.settleMs + HEALTHY_WITHIN_MS) + options.windowMs;
  const server = await serveProbes({
    host: options.healthAddress,
    port: options.healthPort,
    state: () => beat.state,
    alive: () => clock.monotonic() - beat.at < patienceMs,
    metrics: () => metrics.text(),
  });
  return () => {
    server.close();
    server.closeAllConnections();
  };
}
