/**
 * What every program on a node does besides its own work: it logs, counts, reports and answers probes, removes auth files that no
 * pull takes, ends itself when its loop stands still, and says how it ended.
 */
import type { Clock } from '../host/clock.ts';
import { systemClock } from '../host/clock.ts';
import { describeError } from '../rules/errors.ts';
import { createLogger, type LogFormat, type Logger, type LogLevel } from '../telemetry/logger.ts';
import type { NodeEvent, NodeState } from './events.ts';
import { IN_USE_LIFE_MS, oldestAuthFileMs, removeStaleAuthFiles } from './janitor.ts';
import { logEvent, logState } from './log.ts';
import { authFileAge, type Gauge, NodeMetrics } from './metrics.ts';
import type { NodeReporter, Said } from './reporter.ts';
import { type ServingOptions, serveBeside } from './serving.ts';
import { KUBELET_HEALTHZ, unitHealth } from './unit-health.ts';
import { type Heart, watchHeart } from './watchdog.ts';

/** What all programs can be told. Times are milliseconds. */
export interface DaemonSettings extends ServingOptions {
  readonly nodeName: string;
  /** The node is looked at at least so often. */
  readonly pollMs: number;
  /** How long a restart may take. */
  readonly jobMs: number;
  /** How long the unit must stay up. */
  readonly settleMs: number;
  /** `off`, `auto`, or an address that must answer. */
  readonly healthz: string;
  /** Changes that may restart the unit within ten minutes; 0: no limit. */
  readonly maxRestarts: number;
  readonly busSocket: string;
  readonly serviceAccountDir: string;
  /** Whether the API server is told about the node. */
  readonly report: boolean;
  readonly logLevel: LogLevel;
  readonly logFormat: LogFormat;
  /** Take back what was done to the node, instead. */
  readonly uninstall: boolean;
  /** End when there is nothing to do. */
  readonly once: boolean;
  readonly output: 'text' | 'json' | 'yaml';
}

export interface DaemonIo {
  readonly stdout: { write(text: string): unknown };
  readonly stderr: { write(text: string): unknown };
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly signal: AbortSignal;
}

/** What the work is done with. */
export interface Daemon {
  readonly env: DaemonIo['env'];
  readonly clock: Clock;
  readonly log: Logger;
  /** Ends the work. */
  readonly signal: AbortSignal;
  /** Tells of something that happened. Never fails. */
  readonly event: (event: NodeEvent) => void;
  /** Tells by an Event, where the API server is told about the node, of what is no step of the work. Never fails. */
  readonly say: (said: Said) => void;
  /** Tells how the node is; to be called after every look, since it is the sign of life too. Never fails. */
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
  openReporter(daemon: Daemon): Promise<NodeReporter>;
  /** The work itself, until the signal, or until there is nothing to do. */
  work(daemon: Daemon): Promise<void>;
}

const STARTING: NodeState = { ready: false, reason: 'Starting', message: 'The first look has not ended yet' };
const HEALTHY_WITHIN_MS = 60_000;
/** Beyond what a wait takes by itself. */
const SLACK_MS = 60_000;
const LOOKS_PER_COLLECTION = 100;
const RESTARTS_COUNT_FOR_MS = 600_000;

/** Runs a program to its end. The last state of the node. Rejects with code `Hung` when its loop stands still. */
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
  // A promise of a library that nobody waits for must not take the program down in the middle of a restart.
  process.on('unhandledRejection', (error) =>
    log.error('Unexpected failure', { error: describeError(error) }),
  );
  log.info(`Starting ${program.title}`, { node: settings.nodeName });
  const over = new AbortController();
  const signal = AbortSignal.any([io.signal, over.signal]);
  const shown = new Shown(program, settings, log);
  if (!settings.once) serveBeside(settings, shown.pages(), { clock: systemClock, log }, signal);
  const working = work(program, settings, shown, { env: io.env, signal });
  await Promise.race([working, watchHeart(shown, systemClock, signal).then(() => working)]);
  over.abort();
  if (!settings.once) log.info('Stopping: told to');
  return shown.state;
}

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
  const reporter = settings.report ? await program.openReporter(daemon) : undefined;
  try {
    await program.work(daemon);
  } finally {
    await reporter?.close();
  }
}

/** What is known of the node, for those who look: the log, the probes, the metrics, and the watchdog. */
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
      alive: () => systemClock.monotonic() - this.at < this.patienceMs,
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
  const restarts = reason === 'Restarting' || reason === 'Recovering';
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

/** How often the unit may be restarted. */
export function restartLimit({ maxRestarts }: Pick<DaemonSettings, 'maxRestarts'>): {
  readonly count: number;
  readonly perMs: number;
} {
  return { count: maxRestarts, perMs: RESTARTS_COUNT_FOR_MS };
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
