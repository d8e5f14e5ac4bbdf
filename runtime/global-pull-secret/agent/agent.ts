/** The node agent put together: sources, file, systemd, probes, log. */
import { dirname } from 'node:path';
import { systemClock } from '../../host/clock.ts';
import { collectGarbage } from '../../host/memory.ts';
import { systemdOverBus } from '../../host/systemd.ts';
import { type EngineOptions, NodeEngine } from '../../node/engine.ts';
import type { NodeEvent, NodeState } from '../../node/events.ts';
import { IN_USE_LIFE_MS, oldestAuthFileMs, removeStaleAuthFiles } from '../../node/janitor.ts';
import { leaveNode } from '../../node/leave.ts';
import { runLoop } from '../../node/loop.ts';
import { authFileAge, type Gauge, NodeMetrics } from '../../node/metrics.ts';
import { Wake } from '../../node/mount-watcher.ts';
import type { NodeReporter } from '../../node/reporter.ts';
import type { Slots } from '../../node/restart-semaphore.ts';
import { StateFolder } from '../../node/state-folder.ts';
import { KUBELET_HEALTHZ, unitHealth } from '../../node/unit-health.ts';
import { describeError } from '../../rules/errors.ts';
import { GLOBAL_PULL_SECRET } from '../../rules/kubernetes/global-pull-secret.ts';
import { spreadDelay } from '../../rules/rollout/spread.ts';
import { createLogger, type LogFormat, type Logger, type LogLevel } from '../../telemetry/logger.ts';
import { logEvent, logState } from './log.ts';
import { renderPreview } from './preview.ts';
import { type AgentTaskOptions, agentTask } from './task.ts';

/** How the agent runs. Times are milliseconds. */
export interface AgentOptions extends Omit<AgentTaskOptions, 'monotonic'> {
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
  /** Zero: no slots. */
  readonly slots: number;
  readonly serviceAccountDir: string;
  /** Whether the API server is told about the node. */
  readonly report: boolean;
  /** Undefined: nothing is removed. */
  readonly janitorFolder: string | undefined;
  readonly janitorAgeMs: number;
  readonly logLevel: LogLevel;
  readonly logFormat: LogFormat;
  /** Settle what is under way, remove the state, and do nothing more. */
  readonly uninstall: boolean;
  readonly once: boolean;
  readonly output: 'text' | 'json' | 'yaml';
}

export interface AgentIo {
  readonly stdout: { write(text: string): unknown };
  readonly stderr: { write(text: string): unknown };
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly signal: AbortSignal;
}

const clock = systemClock;
const HEALTHY_WITHIN_MS = 60_000;
const RESTART_LIMIT_MS = 600_000;
const LOOKS_PER_COLLECTION = 100;

/** Runs until the signal; with `once` until there is nothing to do. 0: in sync, or told to stop. */
export async function runAgent(options: AgentOptions, io: AgentIo): Promise<number> {
  const log = createLogger({
    write: (line) => io.stderr.write(line),
    format: options.logFormat,
    level: () => options.logLevel,
  });
  const watched: Watched = {
    metrics: new NodeMetrics(clock.now()),
    state: STARTING,
    at: clock.monotonic(),
    looks: 1,
  };
  // A promise of a library that nobody waits for must not take the agent down in the middle of a restart.
  process.on('unhandledRejection', (error) =>
    log.error('Unexpected failure', { error: describeError(error) }),
  );
  log.info('Starting global pull secret agent', { node: options.nodeName, file: options.file });
  const failed = new AbortController();
  const signal = AbortSignal.any([io.signal, failed.signal]);
  const loop = startLoop(options, { log, watched, env: io.env }, signal);
  const closing = await probes(options, watched).catch((error: unknown) => {
    failed.abort(error);
    return undefined;
  });
  const last = await loop;
  closing?.();
  if (failed.signal.aborted) throw failed.signal.reason;
  if (!options.once) {
    log.info('Stopping: told to');
    return 0;
  }
  io.stdout.write(await renderPreview({ state: last }, options.output));
  return last.ready ? 0 : 1;
}

const STARTING: NodeState = { ready: false, reason: 'Starting', message: 'The first look has not ended yet' };

/** What the probes show. */
interface Watched {
  readonly metrics: NodeMetrics;
  state: NodeState;
  /** When the loop last gave a sign of life. */
  at: number;
  looks: number;
}

interface Surroundings {
  readonly log: Logger;
  readonly watched: Watched;
  readonly env: AgentIo['env'];
}

async function startLoop(
  options: AgentOptions,
  { log, watched, env }: Surroundings,
  signal: AbortSignal,
): Promise<NodeState> {
  const reporter = options.report ? await openReporter(options, env, log) : undefined;
  const publish = (state: NodeState): void => {
    watched.at = clock.monotonic();
    watched.metrics.state(state, clock.now());
    if (state.reason !== watched.state.reason || state.message !== watched.state.message)
      logState(log, state);
    // After a change, and about once an hour.
    if (watched.looks % LOOKS_PER_COLLECTION === 0 || (state.ready && !watched.state.ready)) collectGarbage();
    watched.looks += 1;
    watched.state = state;
    reporter?.state(state);
    sweepAuthFiles(options, log);
  };
  const report = (event: NodeEvent): void => {
    watched.metrics.event(event);
    watched.at = clock.monotonic();
    logEvent(log, event);
    reporter?.event(event);
  };
  const folder = new StateFolder(options.stateDir);
  const slots = options.slots === 0 ? undefined : await openSlots(options, env, report);
  const engine = (tell: (state: NodeState) => void): NodeEngine =>
    new NodeEngine({
      ...engineOptions(options, folder),
      ...(slots === undefined ? {} : { slots }),
      publish: tell,
      report,
    });
  const wake = new Wake([dirname(options.globalFile), dirname(options.originalFile)], clock);
  try {
    return await (options.uninstall ? leaveNode : runLoop)(
      { folder, engine, wake, clock, pollMs: options.pollMs, publish, once: options.once },
      signal,
    );
  } finally {
    wake.close();
    await slots?.done();
    await reporter?.close();
  }
}

function sweepAuthFiles(options: AgentOptions, log: Logger): void {
  if (options.janitorFolder === undefined) return;
  const { janitorFolder, janitorAgeMs } = options;
  const inUse = Math.max(janitorAgeMs, IN_USE_LIFE_MS);
  const files = removeStaleAuthFiles(janitorFolder, janitorAgeMs, clock.now(), inUse);
  if (files > 0) log.info('Removed auth files that no pull used', { folder: options.janitorFolder, files });
}

/** Imported only here: most nodes ask nobody. */
async function openSlots(
  options: AgentOptions,
  env: AgentIo['env'],
  report: (event: NodeEvent) => void,
): Promise<Slots> {
  const [{ LeaseSlots }, { podClient }] = await Promise.all([
    import('../../node/restart-semaphore.ts'),
    import('./client.ts'),
  ]);
  return new LeaseSlots({
    client: () => podClient(env, options.serviceAccountDir),
    namespace: GLOBAL_PULL_SECRET.namespace,
    leases: Array.from({ length: options.slots }, (_, index) => `${GLOBAL_PULL_SECRET.syncer}-slot-${index}`),
    nodeName: options.nodeName,
    windowMs: options.windowMs,
    clock,
    onError: (error) => report({ event: 'slot-failed', error }),
  });
}

/** Imported only here, as the slots are. A report that takes long is no longer worth it. */
async function openReporter(options: AgentOptions, env: AgentIo['env'], log: Logger): Promise<NodeReporter> {
  const [{ NodeReporter }, { AGENT_WORDS }, { podClient }] = await Promise.all([
    import('../../node/reporter.ts'),
    import('./report.ts'),
    import('./client.ts'),
  ]);
  return new NodeReporter({
    words: AGENT_WORDS,
    client: () => podClient(env, options.serviceAccountDir, { timeoutMs: 5000, tries: 2 }),
    nodeName: options.nodeName,
    clock,
    onError: (error) => log.warn('Cannot report to the API server', { error: describeError(error) }),
  });
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
    task: agentTask({ ...options, monotonic: () => clock.monotonic() }),
    folder,
    systemd: systemdOverBus({ socket: options.busSocket, jobMs: options.jobMs }),
    policy: {
      restart: options.restart,
      // With slots, the slots decide who goes first.
      delayMs: (source) => (options.slots > 0 ? 0 : spreadDelay(options.nodeName, source, options.windowMs)),
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

function authFileGauge({ janitorFolder }: AgentOptions): readonly Gauge[] {
  return janitorFolder === undefined ? [] : [authFileAge(oldestAuthFileMs(janitorFolder, clock.now()))];
}

/** Serves the probes, once the first look is under way. Gives what stops it. */
async function probes(options: AgentOptions, watched: Watched): Promise<(() => void) | undefined> {
  if (options.healthPort === undefined || options.once) return undefined;
  const { serveProbes } = await import('../../node/probes.ts');
  // Every wait has an end; the longest is a restart that is overdue, three times, with its health.
  const patienceMs =
    options.pollMs + 4 * (options.jobMs + options.settleMs + HEALTHY_WITHIN_MS) + options.windowMs;
  const server = await serveProbes({
    host: options.healthAddress,
    port: options.healthPort,
    state: () => watched.state,
    alive: () => clock.monotonic() - watched.at < patienceMs,
    metrics: () => watched.metrics.text(authFileGauge(options)),
  });
  return () => {
    server.close();
    server.closeAllConnections();
  };
}
