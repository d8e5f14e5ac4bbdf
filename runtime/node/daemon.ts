/**
 * What every program on a node does besides its own work: it logs, counts, reports and answers probes, removes auth files that no
 * pull takes, exits when its loop hangs, and logs why it exited.
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
import { KUBELET_HEALTHZ, unitHealth } from './restart.ts';
import { type ServingOptions, serveBeside } from './serving.ts';
import { type Hold, type StateFolder, takeSingle } from './state.ts';
import type { NodeEvent, NodeState } from './task.ts';
import { IN_USE_LIFE_MS, oldestAuthFileMs, removeStaleAuthFiles, type Wake } from './watch.ts';

// Ends an agent whose loop hangs: what it waits for will never come. Its container is restarted, and continues
// from the journal. A probe by the kubelet would need a port, which may be in use.

/** What a sign of life is. */
export interface Heart {
  /** When it last beat, by the clock that is never set back. */
  at: number;
  /** How long it may take until the next beat. Milliseconds. */
  patienceMs: number;
}

const LOOK_MS = 5000;

/** Resolves at `signal`. @throws PullwrightError with code `Hung` when the heartbeat stops */
export async function watchHeart(heart: Heart, clock: Clock, signal: AbortSignal): Promise<void> {
  while (await clock.sleep(LOOK_MS, signal)) {
    const still = clock.monotonic() - heart.at;
    if (still > heart.patienceMs)
      throw new PullwrightError(
        `Cannot go on: the loop has stood still for ${Math.round(still / 1000)} s, expected at most ${Math.round(heart.patienceMs / 1000)} s`,
        { code: 'Hung', hint: 'The next start goes on from the journal' },
      );
  }
}

/** Options of all programs. Times are milliseconds. */
export type DaemonSettings = Readonly<ReturnType<typeof nodeSettings>> & ServingOptions;

export type DaemonIo = Pick<CommandIo, 'stdout' | 'stderr' | 'env' | 'signal' | 'exitNow'>;

/** What the work is done with. */
export interface Daemon {
  readonly env: DaemonIo['env'];
  readonly clock: Clock;
  readonly log: Logger;
  /** Ends the work. */
  readonly signal: AbortSignal;
  /** Tells of something that happened. Never fails. */
  readonly event: (event: NodeEvent) => void;
  /** Sends an Event, where the node is reported to the API server, for what is not a step of the work. Never fails. */
  readonly say: (said: Said) => void;
  /** Reports the state of the node; to be called after every check, since it is the heartbeat too. Never fails. */
  readonly publish: (state: NodeState) => void;
  /** What was published last. */
  readonly state: () => NodeState;
}

/** One program. */
export interface NodeProgram {
  /** For the log, as in `Starting global pull secret agent`. */
  readonly title: string;
  /** How names of its metrics begin. */
  readonly metrics: `pullwright_${string}`;
  /** What is counted besides. */
  gauges(state: NodeState): readonly Gauge[];
  /** CRI-O's auth files, of which those go that no pull takes; undefined: they are left alone. */
  readonly authFiles: { readonly folder: string; readonly ageMs: number } | undefined;
  /** What the API server is told of the node, where that is asked for. */
  readonly words: NodeWords;
  /** The work itself, until the signal, or until there is nothing to do. */
  work(daemon: Daemon): Promise<void>;
}

const STARTING: NodeState = { ready: false, reason: 'Starting', message: 'The first check is not done yet' };
const HEALTHY_WITHIN_MS = 60_000;
/** Beyond what a wait takes by itself. */
const SLACK_MS = 90_000;
const LOOKS_PER_COLLECTION = 100;

/** Runs a program to its end. The last state of the node. Rejects with code `Hung` when its loop hangs. */
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
  // An unawaited promise of a library must not end the program in the middle of a restart.
  process.on('unhandledRejection', (error) =>
    log.error('Unexpected failure', { error: describeError(error) }),
  );
  log.info(`Starting ${program.title}`, { node: settings.nodeName });
  const over = new AbortController();
  const signal = AbortSignal.any([io.signal, over.signal]);
  const shown = new Shown(program, settings, log);
  if (!settings.once) serveBeside(settings, shown.pages(), { clock: systemClock, log }, signal);
  const working = work(program, settings, shown, { env: io.env, signal });
  const watching = watchHeart(shown, systemClock, signal).catch((error: unknown) => {
    // What it waits for would keep the process alive.
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

/** What is not worth a wait: a turn that can be booked again, and a report that is abandoned. */
export const QUICK = { timeoutMs: 5000, tries: 2 };

async function work(
  program: NodeProgram,
  settings: DaemonSettings,
  shown: Shown,
  { env, signal }: Pick<Daemon, 'env' | 'signal'>,
): Promise<void> {
  const daemon: Daemon = {
    env,
    clock: systemClock,
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
    state: () => shown.state,
  };
  const { words } = program;
  const reporter = settings.report
    ? new NodeReporter({
        words,
        client: () => podClient(words.manager, env, settings.serviceAccountDir, QUICK),
        nodeName: settings.nodeName,
        clock: systemClock,
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
class Shown implements Heart {
  readonly log: Logger;
  state: NodeState = STARTING;
  at: number = systemClock.monotonic();
  patienceMs: number;
  readonly #program: NodeProgram;
  readonly #settings: DaemonSettings;
  readonly #metrics: NodeMetrics;
  #looks = 1;

  constructor(program: NodeProgram, settings: DaemonSettings, log: Logger) {
    this.log = log;
    this.#program = program;
    this.#settings = settings;
    this.#metrics = new NodeMetrics(systemClock.now(), program.metrics);
    this.patienceMs = patienceOf(STARTING, settings);
  }

  event(event: NodeEvent): void {
    this.at = systemClock.monotonic();
    this.#metrics.event(event);
    logEvent(this.log, event);
  }

  publish(state: NodeState): void {
    const before = this.state;
    this.at = systemClock.monotonic();
    this.patienceMs = patienceOf(state, this.#settings);
    this.#metrics.state(state, systemClock.now());
    if (state.reason !== before.reason || state.message !== before.message) logState(this.log, state);
    // After a change, and about once an hour.
    if (this.#looks % LOOKS_PER_COLLECTION === 0 || (state.ready && !before.ready)) collectGarbage();
    this.#looks += 1;
    this.state = state;
  }

  pages(): Parameters<typeof serveBeside>[1] {
    return {
      state: () => this.state,
      metrics: () => this.#metrics.text([...this.#program.gauges(this.state), ...this.#authFiles()]),
    };
  }

  #authFiles(): readonly Gauge[] {
    const { authFiles } = this.#program;
    return authFiles === undefined
      ? []
      : [authFileAge(oldestAuthFileMs(authFiles.folder, systemClock.now()))];
  }
}

/** What may pass until the next sign of life: a restart and its proof take their time, everything else is quick. */
function patienceOf({ reason }: NodeState, { pollMs, jobMs, settleMs }: DaemonSettings): number {
  const restarts = ['Restarting', 'Recovering', 'Trying'].includes(reason);
  return pollMs + SLACK_MS + (restarts ? jobMs + settleMs + HEALTHY_WITHIN_MS : 0);
}

/** Files that no pull took, as when the image was there already. */
function sweepAuthFiles({ authFiles }: NodeProgram, log: Logger): void {
  if (authFiles === undefined) return;
  const { folder, ageMs } = authFiles;
  try {
    const inUse = Math.max(ageMs, IN_USE_LIFE_MS);
    const files = removeStaleAuthFiles(folder, ageMs, systemClock.now(), inUse);
    if (files > 0) log.info('Removed auth files that no pull took', { folder, files });
  } catch (error) {
    log.warn('Cannot remove auth files that no pull took', { error: describeError(error) });
  }
}

/** How the kubelet proves that it is healthy; undefined: it need not. */
export function healthOf({
  healthz,
}: Pick<DaemonSettings, 'healthz'>): ReturnType<typeof unitHealth> | undefined {
  if (healthz === 'off') return undefined;
  const required = healthz !== 'auto';
  const url = required ? healthz : KUBELET_HEALTHZ;
  return unitHealth({ url, required, withinMs: HEALTHY_WITHIN_MS, clock: systemClock });
}

interface Collector {
  readonly gc?: (wait: boolean) => void;
}

/**
 * Collects now, where the runtime lets a program ask for it (the compiled one does). A program that
 * allocates a little every half a minute would else be left alone for days, and grow by a megabyte in each.
 */
function collectGarbage(): void {
  const { Bun } = globalThis as { readonly Bun?: Collector };
  Bun?.gc?.(true);
}

// The life of a node task: take the lock, observe, act, wait for the next change; until stopped.

export interface LoopOptions {
  readonly folder: StateFolder;
  /** Called while the lock is held, so that no other process writes the journal. */
  readonly engine: (publish: (state: NodeState) => void) => NodeEngine;
  readonly wake: Wake;
  readonly clock: Clock;
  /** Look at least so often. Milliseconds. */
  readonly pollMs: number;
  /** Called after every check. */
  readonly publish: (state: NodeState) => void;
  /** Whether what a finished pass has left on the node works: its state, or one that says what does not. */
  readonly prove?: (state: NodeState) => Promise<NodeState>;
  /** End when there is nothing to do now, instead of waiting for the next change. */
  readonly once?: boolean;
}

/** Between two tries to get the lock when its holder exited at once. */
const RETRY_MS = 200;
const TROUBLE_MS = 5000;

/** Runs until `signal`, or with `once` until there is nothing to do. The last state. */
export async function runLoop(options: LoopOptions, signal: AbortSignal): Promise<NodeState> {
  let state = STARTING;
  const publish = (next: NodeState): void => {
    state = next;
    options.publish(next);
  };
  while (!signal.aborted) {
    const hold = await lock(options, publish, signal);
    if (hold === undefined) {
      if (options.once === true) break;
      continue;
    }
    try {
      if (await workOfLoop(options, hold, publish, signal)) break;
    } finally {
      hold.release();
    }
  }
  return state;
}

async function lock(
  options: LoopOptions,
  publish: (state: NodeState) => void,
  signal: AbortSignal,
): Promise<Hold | undefined> {
  const { folder, clock } = options;
  try {
    folder.prepare();
    const taken = await takeSingle(folder.path);
    if ('held' in taken) return taken;
    publish({
      ready: false,
      reason: 'AnotherAgent',
      message: `Another agent works on this node: it holds "${folder.path}/lock". This one waits until it ends`,
    });
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

/** True when the work is over, false when the lock was lost. */
async function workOfLoop(
  options: LoopOptions,
  hold: Hold,
  publish: (state: NodeState) => void,
  signal: AbortSignal,
): Promise<boolean> {
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

// Removal from a node: the change under way is finished, then what was put there is taken back.

/** Between two tries while another program holds the lock, a change cannot be finished yet, or something could not be removed. */
const LEAVE_RETRY_MS = 2000;

/**
 * Settles the node, takes back what the program put there, and then does nothing until `signal`: a pod that exits would be
 * restarted, and its DaemonSet would never be ready. With `once` it ends instead. The last state.
 *
 * @param leave takes it back; its state is ready when nothing is left
 */
export async function leaveNode(
  options: LoopOptions,
  leave: (state: NodeState) => NodeState | Promise<NodeState>,
  signal: AbortSignal,
): Promise<NodeState> {
  const { clock, publish, once } = options;
  for (;;) {
    // A settled node is not ready for its removal: only what stands in its way is said.
    const unsettled = (next: NodeState): void => (next.ready ? undefined : publish(next));
    const state = await runLoop({ ...options, once: true, publish: unsettled }, signal);
    if (signal.aborted) return state;
    const left = state.reason === 'AnotherAgent' ? state : await tried(leave, state);
    publish(left);
    if (once === true) return left;
    if (!left.ready) await clock.sleep(LEAVE_RETRY_MS, signal);
    else while (await clock.sleep(options.pollMs, signal)) publish(left);
    if (signal.aborted) return left;
  }
}

async function tried(leave: Parameters<typeof leaveNode>[1], state: NodeState): Promise<NodeState> {
  try {
    return await leave(state);
  } catch (error) {
    return { ready: false, reason: 'NotRemoved', message: describeError(error) };
  }
}
