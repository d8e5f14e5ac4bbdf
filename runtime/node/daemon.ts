/**
 * What every program on a node does besides its own work: log, metrics, reports, probes, removal of stale auth files, and an exit
 * when its loop hangs.
 */

import type { CommandIo } from '../cli/command.ts';
import type { nodeSettings } from '../cli/flags.ts';
import { describeError, PullwrightError } from '../core/errors.ts';
import { createLogger, type Logger } from '../core/logger.ts';
import { type Clock, systemClock } from './clock.ts';
import type { NodeEngine } from './engine.ts';
import {
  authFileAge,
  type Gauge,
  logEvent,
  logState,
  NodeMetrics,
  NodeReporter,
  type NodeWords,
  podClient,
  type Said,
} from './report.ts';
import { KUBELET_HEALTHZ, type UnitHealth, unitHealth } from './restart.ts';
import { type Served, type ServingOptions, serveBeside } from './serving.ts';
import { type Hold, type StateFolder, takeSingle } from './state.ts';
import type { NodeEvent, NodeState } from './task.ts';
import { oldestAuthFileMs, removeStaleAuthFiles, type Wake } from './watch.ts';

// Exits when the loop of an agent hangs. The container is restarted and resumes from the checkpoint. A liveness probe would need a
// port, which may be in use.

/** Heartbeat of the loop. */
export interface Heart {
  /** Time of the last beat, by the monotonic clock. */
  at: number;
  /** Deadline of the next beat after the last. Milliseconds. */
  timeoutMs: number;
}

const LOOK_MS = 5000;

/** Resolves at `signal`. @throws PullwrightError with code `Hung` when the heartbeat stops */
export async function watchHeart(heart: Heart, clock: Clock, signal: AbortSignal): Promise<void> {
  while (await clock.sleep(LOOK_MS, signal)) {
    const still = clock.monotonic() - heart.at;
    if (still > heart.timeoutMs)
      throw new PullwrightError(
        `Cannot go on: the loop hung for ${Math.round(still / 1000)} s, expected at most ${Math.round(heart.timeoutMs / 1000)} s`,
        { code: 'Hung', hint: 'The next start resumes from the checkpoint' },
      );
  }
}

/** Options of all programs. Times are milliseconds. */
export type DaemonSettings = Readonly<ReturnType<typeof nodeSettings>> & ServingOptions;

export type DaemonIo = Pick<CommandIo, 'stdout' | 'stderr' | 'env' | 'signal' | 'exitNow'>;

/** Services for a program on a node. */
export interface Daemon {
  readonly env: DaemonIo['env'];
  readonly log: Logger;
  /** Stops the work. */
  readonly signal: AbortSignal;
  /** Records a {@link NodeEvent}. Never fails. */
  readonly event: (event: NodeEvent) => void;
  /** Sends a Kubernetes Event that no {@link NodeEvent} covers, with --report only. Never fails. */
  readonly say: (said: Said) => void;
  /** Publishes the state of the node; called after every check, as the heartbeat. Never fails. */
  readonly publish: (state: NodeState) => void;
}

/** A program that runs on nodes. */
export interface NodeProgram {
  /** For the log, as in `Starting global pull secret agent`. */
  readonly title: string;
  /** Prefix of its metrics. */
  readonly metrics: `pullwright_${string}`;
  /** Further gauges. */
  gauges(state: NodeState): readonly Gauge[];
  /** CRI-O's auth files, whose stale ones are removed; undefined: none are. */
  readonly authFiles: { readonly folder: string; readonly ageMs: number } | undefined;
  /** Texts of the PullStatus and Events, with --report. */
  readonly words: NodeWords;
  /** Runs until the signal, or until there is nothing to do. */
  work(daemon: Daemon): Promise<void>;
}

const STARTING: NodeState = { ready: false, reason: 'Starting', message: 'The first check is pending' };
const HEALTHY_WITHIN_MS = 60_000;
/** Added to the length of a wait. */
const SLACK_MS = 90_000;
const LOOKS_PER_COLLECTION = 100;

/** Runs a program to its end. Returns the last state of the node. Rejects with code `Hung` when its loop hangs. */
export async function runDaemon(
  program: NodeProgram,
  settings: DaemonSettings,
  io: DaemonIo,
): Promise<NodeState> {
  const log = createLogger({
    write: (line) => io.stderr.write(line),
    format: settings.logFormat,
    level: () => settings.logLevel,
  });
  // An unawaited promise of a library must not crash the program in the middle of a restart.
  process.on('unhandledRejection', (error) =>
    log.error('Unexpected failure', { error: describeError(error) }),
  );
  log.info(`Starting ${program.title}`, { node: settings.nodeName });
  const over = new AbortController();
  const signal = AbortSignal.any([io.signal, over.signal]);
  const shown = new Shown(program, settings, log);
  if (!settings.once) serveBeside(settings, shown, log, signal);
  const working = work(program, settings, shown, { env: io.env, signal });
  const watching = watchHeart(shown, systemClock, signal).catch((error: unknown) => {
    // The pending operation would keep the process alive.
    log.error('The loop hangs', { error: describeError(error) });
    over.abort();
    io.exitNow?.(1);
    throw error;
  });
  await Promise.race([working, watching.then(() => working)]);
  over.abort();
  if (!settings.once) log.info('Stopping on signal');
  return shown.state;
}

/** For requests that are not worth a wait: slots can be booked again, and reports are dropped. */
export const QUICK = { timeoutMs: 5000, tries: 2 };

async function work(
  program: NodeProgram,
  settings: DaemonSettings,
  shown: Shown,
  { env, signal }: Pick<Daemon, 'env' | 'signal'>,
): Promise<void> {
  const daemon: Daemon = {
    env,
    log: shown.log,
    signal,
    event: (event) => {
      shown.event(event);
      reporter?.event(event);
    },
    say: (said) => reporter?.say(said),
    publish: (state) => {
      shown.publish(state);
      reporter?.state(state);
      if (!settings.uninstall) sweepAuthFiles(program, shown.log);
    },
  };
  const { words } = program;
  const reporter = settings.report
    ? new NodeReporter({
        words,
        client: () => podClient(words.manager, env, settings.serviceAccountDir, QUICK),
        nodeName: settings.nodeName,
        onError: (error) =>
          shown.log.warn('Cannot report to the API server', { error: describeError(error) }),
      })
    : undefined;
  try {
    await program.work(daemon);
  } finally {
    await reporter?.close();
  }
}

/** Publishes the state of the node: log, probes, metrics, and watchdog. */
class Shown implements Heart, Served {
  readonly log: Logger;
  state: NodeState = STARTING;
  at: number = systemClock.monotonic();
  timeoutMs: number;
  readonly #program: NodeProgram;
  readonly #settings: DaemonSettings;
  readonly #metrics: NodeMetrics;
  #looks = 1;

  constructor(program: NodeProgram, settings: DaemonSettings, log: Logger) {
    this.log = log;
    this.#program = program;
    this.#settings = settings;
    this.#metrics = new NodeMetrics(systemClock.now(), program.metrics);
    this.timeoutMs = timeoutOf(STARTING, settings);
  }

  event(event: NodeEvent): void {
    this.at = systemClock.monotonic();
    this.#metrics.event(event);
    logEvent(this.log, event);
  }

  publish(state: NodeState): void {
    const before = this.state;
    this.at = systemClock.monotonic();
    this.timeoutMs = timeoutOf(state, this.#settings);
    this.#metrics.state(state, systemClock.now());
    if (state.reason !== before.reason || state.message !== before.message) logState(this.log, state);
    // After a change, and about once an hour.
    if (this.#looks % LOOKS_PER_COLLECTION === 0 || (state.ready && !before.ready)) collectGarbage();
    this.#looks += 1;
    this.state = state;
  }

  metrics(): string {
    const { authFiles } = this.#program;
    const gauges = [...this.#program.gauges(this.state)];
    if (authFiles !== undefined)
      gauges.push(authFileAge(oldestAuthFileMs(authFiles.folder, systemClock.now())));
    return this.#metrics.text(gauges);
  }
}

/** Time until the next heartbeat is due: a restart and its verification are slow, everything else is quick. */
function timeoutOf({ reason }: NodeState, { pollMs, jobMs, settleMs }: DaemonSettings): number {
  const restarts = ['Restarting', 'Recovering', 'Trying'].includes(reason);
  return pollMs + SLACK_MS + (restarts ? jobMs + settleMs + HEALTHY_WITHIN_MS : 0);
}

/** Removes auth files that no pull used, for example because the image was present. */
function sweepAuthFiles({ authFiles }: NodeProgram, log: Logger): void {
  if (authFiles === undefined) return;
  const { folder, ageMs } = authFiles;
  try {
    const files = removeStaleAuthFiles(folder, ageMs, systemClock.now());
    if (files > 0) log.info('Removed unused auth files', { folder, files });
  } catch (error) {
    log.warn('Cannot remove unused auth files', { error: describeError(error) });
  }
}

/** Health check of the kubelet; undefined: none. */
export function healthOf({ healthz }: DaemonSettings): UnitHealth | undefined {
  if (healthz === 'off') return undefined;
  const required = healthz !== 'auto';
  const url = required ? healthz : KUBELET_HEALTHZ;
  return unitHealth({ url, required, withinMs: HEALTHY_WITHIN_MS, clock: systemClock });
}

/**
 * Collects garbage now, where the runtime has a call for it (Bun has). A program that allocates a little every half minute is not
 * collected for days otherwise, and grows by a megabyte a day.
 */
function collectGarbage(): void {
  const { Bun } = globalThis as { readonly Bun?: { gc?(wait: boolean): void } };
  Bun?.gc?.(true);
}

// The loop of a node task: take the lock, observe, act, wait for the next change.

export interface LoopOptions {
  readonly folder: StateFolder;
  /** Called while the lock is held, so that no other process writes the checkpoint. */
  readonly engine: (publish: (state: NodeState) => void) => NodeEngine;
  readonly wake: Wake;
  readonly clock: Clock;
  /** Longest time between two checks. Milliseconds. */
  readonly pollMs: number;
  /** Called after every check. */
  readonly publish: (state: NodeState) => void;
  /** Verifies the node after a pass: returns the state, or one that names the failure. */
  readonly prove?: (state: NodeState) => Promise<NodeState>;
  /** Return when there is nothing to do now, instead of waiting for the next change. */
  readonly once?: boolean;
}

/** Wait between two attempts to take the lock after its holder exited. */
const RETRY_MS = 200;
const TROUBLE_MS = 5000;

/** Runs until `signal`, or with `once` until there is nothing to do. Returns the last state. */
export async function runLoop(options: LoopOptions, signal: AbortSignal): Promise<NodeState> {
  let state = STARTING;
  const publish = (next: NodeState): void => {
    state = next;
    options.publish(next);
  };
  const recorded = { ...options, publish };
  while (!signal.aborted) {
    const hold = await lock(recorded, signal);
    if (hold === undefined) {
      if (options.once === true) break;
      continue;
    }
    try {
      if (await workOfLoop(recorded, hold, signal)) break;
    } finally {
      hold.release();
    }
  }
  return state;
}

async function lock(options: LoopOptions, signal: AbortSignal): Promise<Hold | undefined> {
  const { folder, clock, publish } = options;
  try {
    folder.prepare();
    const taken = await takeSingle(folder.path);
    if ('held' in taken) return taken;
    const message = `Another agent runs on this node and locks "${folder.path}/lock". This agent waits until it stops`;
    publish({ ready: false, reason: 'AnotherAgent', message });
    if (options.once === true) return undefined;
    const over = new AbortController();
    await Promise.race([taken.busy, clock.sleep(options.pollMs, AbortSignal.any([signal, over.signal]))]);
    over.abort();
    await clock.sleep(RETRY_MS, signal);
  } catch (error) {
    const code = error instanceof PullwrightError ? error.code : 'Unknown';
    publish({ ready: false, reason: code, message: describeError(error) });
    if (options.once !== true) await clock.sleep(TROUBLE_MS, signal);
  }
  return undefined;
}

/** Returns true when the work is done, false when the lock was removed. */
async function workOfLoop(options: LoopOptions, hold: Hold, signal: AbortSignal): Promise<boolean> {
  const { publish } = options;
  const engine = options.engine(publish);
  while (!signal.aborted) {
    if (!hold.held()) return false;
    const rest = await engine.pass(signal);
    publish((await options.prove?.(rest.state)) ?? rest.state);
    if (options.once === true && rest.waiting !== true) return true;
    await options.wake.wait(Math.min(options.pollMs, rest.lookInMs ?? options.pollMs), signal);
  }
  return true;
}

// Removal from a node: finishes the change in progress, then removes what the program put there.

/** Wait before the next attempt: another program holds the lock, a change is in progress, or a removal failed. */
const LEAVE_RETRY_MS = 2000;

/**
 * Finishes the change in progress, removes what the program put on the node, and then idles until `signal`: a pod that exits
 * would be restarted, and its DaemonSet would never be ready. With `once` it returns instead. Returns the last state.
 *
 * @param leave removes everything; its state is ready when nothing remains
 */
export async function leaveNode(
  options: LoopOptions,
  leave: (state: NodeState) => Promise<NodeState>,
  signal: AbortSignal,
): Promise<NodeState> {
  const { clock, publish, once } = options;
  for (;;) {
    // In sync does not mean removed: publish only what prevents the removal.
    const unsettled = (next: NodeState): void => (next.ready ? undefined : publish(next));
    const state = await runLoop({ ...options, once: true, publish: unsettled }, signal);
    if (signal.aborted) return state;
    const left = state.reason === 'AnotherAgent' ? state : await leave(state).catch(notRemoved);
    publish(left);
    if (once === true) return left;
    if (!left.ready) await clock.sleep(LEAVE_RETRY_MS, signal);
    else while (await clock.sleep(options.pollMs, signal)) publish(left);
    if (signal.aborted) return left;
  }
}

function notRemoved(error: unknown): NodeState {
  return { ready: false, reason: 'NotRemoved', message: describeError(error) };
}
