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
import { StateFolder } from '../../node/state-folder.ts';
import { KUBELET_HEALTHZ, unitHealth } from '../../node/unit-health.ts';
import { type Heart, watchHeart } from '../../node/watchdog.ts';
import { describeError } from '../../rules/errors.ts';
import { spreadDelay } from '../../rules/rollout/spread.ts';
import { createLogger, type LogFormat, type Logger, type LogLevel } from '../../telemetry/logger.ts';
import { openReporter, openSlots, openWatch } from './api-server.ts';
import { logEvent, logState } from './log.ts';
import { renderPreview } from './preview.ts';
import type { SecretWatch } from './secret-watch.ts';
import { type ServingOptions, serveBeside } from './serving.ts';
import { type AgentTaskOptions, agentTask } from './task.ts';

/** How the agent runs. Times are milliseconds. */
export interface AgentSettings extends Omit<AgentTaskOptions, 'monotonic' | 'watched'>, ServingOptions {
  readonly stateDir: string;
  readonly busSocket: string;
  readonly restart: 'on-change' | 'on-removal' | 'never';
  /** `auto`: the fleet books turns. */
  readonly windowMs: number | 'auto';
  readonly settleMs: number;
  readonly jobMs: number;
  readonly maxRestarts: number;
  /** `off`, `auto`, or an address that must answer. */
  readonly healthz: string;
  readonly nodeName: string;
  readonly pollMs: number;
  /** Zero: no slots. */
  readonly slots: number;
  readonly serviceAccountDir: string;
  /** Whether the secrets are watched beside their mounts. */
  readonly watch: boolean;
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
/** Beyond what a wait takes by itself. */
const SLACK_MS = 60_000;
/** How old the kubelet's copy of its file may become; compiled into it. */
const KUBELET_CACHE_MS = 300_000;
const LOOKS_PER_COLLECTION = 100;

/** Runs until the signal; with `once` until there is nothing to do. 0: in sync, or told to stop. */
export async function runAgent(options: AgentSettings, io: AgentIo): Promise<number> {
  const log = createLogger({
    write: (line) => io.stderr.write(line),
    format: options.logFormat,
    level: () => options.logLevel,
  });
  const watched: Watched = {
    metrics: new NodeMetrics(clock.now()),
    state: STARTING,
    at: clock.monotonic(),
    patienceMs: patienceOf(STARTING, options),
    looks: 1,
  };
  // A promise of a library that nobody waits for must not take the agent down in the middle of a restart.
  process.on('unhandledRejection', (error) =>
    log.error('Unexpected failure', { error: describeError(error) }),
  );
  log.info('Starting global pull secret agent', { node: options.nodeName, file: options.file });
  const over = new AbortController();
  const signal = AbortSignal.any([io.signal, over.signal]);
  if (!options.once) serveBeside(options, shownOf(options, watched), { clock, log }, signal);
  const loop = startLoop(options, { log, watched, env: io.env }, signal);
  const last = await Promise.race([loop, watchHeart(watched, clock, signal).then(() => loop)]);
  over.abort();
  if (!options.once) {
    log.info('Stopping: told to');
    return 0;
  }
  io.stdout.write(await renderPreview({ state: last }, options.output));
  return last.ready ? 0 : 1;
}

const STARTING: NodeState = { ready: false, reason: 'Starting', message: 'The first look has not ended yet' };

/** What the probes show. */
interface Watched extends Heart {
  readonly metrics: NodeMetrics;
  state: NodeState;
  looks: number;
}

function shownOf(options: AgentSettings, watched: Watched): Parameters<typeof serveBeside>[1] {
  return {
    state: () => watched.state,
    alive: () => clock.monotonic() - watched.at < watched.patienceMs,
    metrics: () => watched.metrics.text(authFileGauge(options)),
  };
}

async function startLoop(
  options: AgentSettings,
  { log, watched, env }: { readonly log: Logger; readonly watched: Watched; readonly env: AgentIo['env'] },
  signal: AbortSignal,
): Promise<NodeState> {
  const wake = new Wake([dirname(options.globalFile), dirname(options.originalFile)], clock);
  const report = (event: NodeEvent): void => {
    watched.metrics.event(event);
    watched.at = clock.monotonic();
    logEvent(log, event);
    reporter?.event(event);
  };
  const around = { env, clock, log, report, notice: () => wake.notice() };
  const reporter = options.report ? await openReporter(options, around) : undefined;
  const publish = (state: NodeState): void => {
    watched.at = clock.monotonic();
    watched.patienceMs = patienceOf(state, options);
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
  const folder = new StateFolder(options.stateDir);
  const slots = options.restart === 'never' ? undefined : await openSlots(options, around);
  const watch = options.watch && !options.uninstall ? await openWatch(options, around) : undefined;
  const engine = (tell: (state: NodeState) => void): NodeEngine =>
    new NodeEngine({
      ...engineOptions(options, folder, watch),
      ...(slots === undefined ? {} : { slots }),
      publish: tell,
      report,
    });
  try {
    return await (options.uninstall ? leaveNode : runLoop)(
      { folder, engine, wake, clock, pollMs: options.pollMs, publish, once: options.once },
      signal,
    );
  } finally {
    wake.close();
    watch?.close();
    await slots?.done();
    await reporter?.close();
  }
}

function sweepAuthFiles(options: AgentSettings, log: Logger): void {
  if (options.janitorFolder === undefined) return;
  const { janitorFolder, janitorAgeMs } = options;
  const inUse = Math.max(janitorAgeMs, IN_USE_LIFE_MS);
  const files = removeStaleAuthFiles(janitorFolder, janitorAgeMs, clock.now(), inUse);
  if (files > 0) log.info('Removed auth files that no pull used', { folder: options.janitorFolder, files });
}

/** Prints what would be done. 0: nothing. */
export async function previewAgent(options: AgentSettings, io: Pick<AgentIo, 'stdout'>): Promise<number> {
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
  const { windowMs, slots, nodeName } = options;
  const monotonic = (): number => clock.monotonic();
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
      // Slots and turns decide who goes first.
      delayMs: (source) => (slots > 0 || windowMs === 'auto' ? 0 : spreadDelay(nodeName, source, windowMs)),
      rereadMs: KUBELET_CACHE_MS,
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

function authFileGauge({ janitorFolder }: AgentSettings): readonly Gauge[] {
  return janitorFolder === undefined ? [] : [authFileAge(oldestAuthFileMs(janitorFolder, clock.now()))];
}

/** What may pass until the next sign of life: a restart and its proof take their time, everything else is quick. */
function patienceOf({ reason }: NodeState, options: AgentSettings): number {
  const restarts = reason === 'Restarting' || reason === 'Recovering';
  return options.pollMs + SLACK_MS + (restarts ? options.jobMs + options.settleMs + HEALTHY_WITHIN_MS : 0);
}
