/**
 * Reconciles one file of a node: observes, asks runtime/node/rollout.ts for the next step, takes it, and stores the checkpoint
 * before and after it.
 */
import { describeError, PullwrightError } from '../core/errors.ts';
import { readWhole, removeFile, replaceFile, sweepLeftovers } from './atomic-file.ts';
import type { Checkpoint } from './checkpoint.ts';
import type { Clock } from './clock.ts';
import {
  asProblem,
  attemptRestart,
  type RestartEnd,
  type RestartOptions,
  recoverUnit,
  type UnitHealth,
} from './restart.ts';
import type { Turns } from './restart-leases.ts';
import { after, type Decision, decide, type Ended, type Policy, type Step } from './rollout.ts';
import { makePrivate, type StateFolder, type Stored } from './state.ts';
import type { Systemd } from './systemd.ts';
import {
  type NodeEvent,
  type NodeState,
  type NodeTask,
  type Observation,
  type OwnedEntries,
  stateOf,
} from './task.ts';

/** Dependencies and settings of the engine. */
export interface EngineOptions {
  readonly task: NodeTask;
  readonly folder: StateFolder;
  readonly systemd: Systemd;
  readonly policy: Policy;
  readonly clock: Clock;
  readonly settleMs: number;
  readonly health?: UnitHealth | undefined;
  readonly turns?: Turns | undefined;
  readonly report: (event: NodeEvent) => void;
  /** Called before each step, so that readiness never precedes it. */
  readonly publish: (state: NodeState) => void;
}

/** Result of a pass: nothing to do until a change, or until `lookInMs` has passed. */
export interface Rest {
  readonly state: NodeState;
  readonly lookInMs?: number;
  /** A change is in progress and continues without help. */
  readonly waiting?: boolean;
}

export class NodeEngine {
  readonly #options: EngineOptions;
  #stored: Stored;

  /** Reads the checkpoint, and removes temporary files of killed runs. */
  constructor(options: EngineOptions) {
    this.#options = options;
    const { damaged, ...stored } = options.folder.load();
    this.#stored = stored;
    const { change } = stored.checkpoint;
    if (damaged) options.report({ event: 'journal-damaged', path: options.folder.path });
    if (change !== undefined) options.report({ event: 'resumed', phase: change.phase });
    const swept = sweepLeftovers(options.task.file) + options.folder.sweep();
    if (swept > 0) options.report({ event: 'swept', files: swept });
  }

  /** Takes steps until there is nothing to do now, or until `signal`. Never throws for failures of the node. */
  async pass(signal: AbortSignal): Promise<Rest> {
    const { task, report, turns } = this.#options;
    try {
      if (task.secret === true && makePrivate(task.file)) report({ event: 'made-private', file: task.file });
    } catch (error) {
      return this.#troubled(error);
    }
    for (;;) {
      const { look, decision } = lookAndDecide(this.#options, this.#stored);
      const { step } = decision;
      if (step.do === 'rest' || step.do === 'wait') return this.#rest(step, decision, look);
      if (signal.aborted) return { state: stateOf(step, look) };
      if (step.do === 'restart' && turns?.granted(signal) === false)
        return this.#rest({ do: 'wait', ms: NOT_YET_MS, reason: 'Spread' }, decision, look);
      const failure = await this.#take(step, decision, look, signal);
      if (failure !== undefined) return failure;
    }
  }

  /** The first step of a pass. Writes nothing. */
  static preview(options: Parameters<typeof lookAndDecide>[0], stored: Stored) {
    const { look, decision } = lookAndDecide(options, stored);
    return { look, decision, state: stateOf(decision.step, look) };
  }

  #rest(step: Step & { do: 'rest' | 'wait' }, decision: Decision, look: Observation): Rest {
    const state = stateOf(step, look);
    // A unit that failed to start keeps its slot until it is up again, with whatever content.
    if (step.do === 'rest' || step.reason === 'RateLimit') void this.#options.turns?.done();
    try {
      this.#store(
        decision.checkpoint,
        step.do === 'rest' && step.ready ? look.wanted?.ownedAfter : undefined,
      );
      if (decision.checkpoint.change === undefined) this.#options.folder.dropCopy();
    } catch (error) {
      return this.#troubled(error);
    }
    if (step.do === 'wait') return { state, lookInMs: step.ms, waiting: true };
    return step.wakeInMs === undefined ? { state } : { state, lookInMs: step.wakeInMs };
  }

  /** Takes one step. Returns a rest when the checkpoint could not be stored, or the step was aborted. */
  async #take(step: Acting, decision: Decision, look: Observation, signal: AbortSignal) {
    const { clock, policy, turns } = this.#options;
    const state = stateOf(step, look);
    try {
      this.#begin(step, decision, look);
    } catch (error) {
      return this.#troubled(error);
    }
    this.#options.publish(state);
    // Requested during the write, so that the restart follows at once when no other node waits.
    if (step.do === 'write' && this.#restarts()) turns?.granted(signal);
    // Another program replaced the file in the meantime: observe again rather than overwrite it.
    if (step.do === 'write' && lookAndDecide(this.#options, this.#stored).look.present !== look.present)
      return undefined;
    const ended = await this.#perform(step, look, signal);
    if (ended === 'stopped') return { state };
    if (step.do === 'write' && !ended.ok) await turns?.done();
    const checkpoint = after(this.#stored.checkpoint, ended, clock.now(), policy);
    try {
      this.#store(checkpoint);
      return undefined;
    } catch (error) {
      // The step was taken; the stored checkpoint is behind, which only repeats the step after a kill.
      this.#stored = { ...this.#stored, checkpoint };
      return this.#troubled(error);
    }
  }

  /** Stores the checkpoint; before it the backup copy, to which the checkpoint refers. */
  #begin(step: Acting, decision: Decision, look: Observation): void {
    const { folder, task } = this.#options;
    if (step.do !== 'write') return this.#store(decision.checkpoint);
    if (step.save) folder.saveCopy(readWhole(task.file));
    // Until the change is settled, we own the entries of the old and of the new content.
    this.#store(decision.checkpoint, look.wanted?.ownedDuring);
  }

  /** Whether the change in progress restarts the unit. */
  #restarts(): boolean {
    return this.#stored.checkpoint.change?.restart === true;
  }

  async #perform(step: Acting, look: Observation, signal: AbortSignal): Promise<Ended | 'stopped'> {
    switch (step.do) {
      case 'write':
        return this.#write(look);
      case 'roll-back':
        return this.#rollBack();
      case 'restart':
        return this.#restart(step, signal);
      default:
        return this.#recover(step, signal);
    }
  }

  async #write(look: Observation): Promise<Ended> {
    const { task, systemd, report } = this.#options;
    try {
      if (look.wanted === undefined)
        throw new PullwrightError('Cannot write: no desired content', { code: 'NoSource' });
      replaceFile(task.file, look.wanted.bytes, { fresh: task.secret === true });
    } catch (error) {
      report({ event: 'write-failed', file: task.file, error: asProblem(error) });
      return { step: 'write', ok: false, kind: 'bus' };
    }
    report({
      event: 'written',
      file: task.file,
      from: look.from ?? '',
      entries: look.entries ?? 0,
      foreign: look.foreign ?? 0,
    });
    if (!this.#restarts()) return { step: 'write', ok: true, invocation: '' };
    try {
      if (task.isPartOfUnit === true) await systemd.reload();
      const { active, invocation } = await systemd.state(task.unit);
      return { step: 'write', ok: true, invocation: active === 'active' ? invocation : '' };
    } catch {
      return { step: 'write', ok: true, invocation: '' };
    }
  }

  #rollBack(): Ended {
    const { task, folder, report } = this.#options;
    try {
      const copy = folder.loadCopy();
      if (copy === 'absent') removeFile(task.file);
      else if (copy !== 'none') replaceFile(task.file, copy.bytes, { mode: copy.mode, owner: copy });
      const to = copy === 'absent' || copy === 'none' ? copy : 'saved';
      report({ event: 'rolled-back', file: task.file, to });
      return { step: 'roll-back', ok: true };
    } catch (error) {
      report({ event: 'write-failed', file: task.file, error: asProblem(error) });
      return { step: 'roll-back', ok: false, kind: 'bus' };
    }
  }

  async #restart(step: Step & { do: 'restart' }, signal: AbortSignal): Promise<Ended | 'stopped'> {
    const { task, systemd, report, turns, clock } = this.#options;
    const started = clock.monotonic();
    report({ event: 'restarting', unit: task.unit, attempt: step.attempt });
    const end = await attemptRestart(systemd, { ...this.#restartOptions(), before: step.invocation }, signal);
    if (end.ok) await turns?.done();
    const ms = Math.round(clock.monotonic() - started);
    return this.#judged('restart', end, { attempt: step.attempt, ms });
  }

  async #recover(step: Step & { do: 'recover' }, signal: AbortSignal): Promise<Ended | 'stopped'> {
    const { invocation: before, touched } = step;
    const options = { ...this.#restartOptions(), before, touched };
    const end = await recoverUnit(this.#options.systemd, options, signal);
    return this.#judged('recover', end, {
      attempt: (this.#stored.checkpoint.change?.failures ?? 0) + 1,
      ms: 0,
    });
  }

  #judged(
    step: 'restart' | 'recover',
    end: RestartEnd,
    numbers: { attempt: number; ms: number },
  ): Ended | 'stopped' {
    const { task, report } = this.#options;
    if (end.ok) {
      const event = step === 'recover' ? 'recovered' : 'restarted';
      report({ event, unit: task.unit, ...numbers, byUs: end.restarted });
      return { step, ok: true };
    }
    if (end.kind === 'stopped') return 'stopped';
    const event = step === 'recover' ? 'recover-failed' : 'restart-failed';
    report({ event, unit: task.unit, ...numbers, error: end.error });
    return { step, ok: false, kind: end.kind };
  }

  #restartOptions(): RestartOptions {
    const { task, settleMs, health, clock } = this.#options;
    const { unit, isPartOfUnit: reload } = task;
    return { unit, reload, settleMs, clock, health };
  }

  #troubled(error: unknown): Rest {
    const problem = asProblem(error);
    this.#options.report({ event: 'state-failed', error: problem });
    const state = { ready: false, reason: problem.code, message: describeError(problem) };
    return { state, lookInMs: 5000 };
  }

  #store(checkpoint: Checkpoint, owned: OwnedEntries = this.#stored.owned): void {
    const stored = { checkpoint, owned };
    if (JSON.stringify(stored) === JSON.stringify(this.#stored)) return;
    this.#options.folder.store(stored);
    this.#stored = stored;
  }
}

function lookAndDecide(
  { task, clock, policy }: Pick<EngineOptions, 'task' | 'clock' | 'policy'>,
  { checkpoint, owned }: Stored,
): { look: Observation; decision: Decision } {
  let look: Observation;
  try {
    look = task.look(readWhole(task.file), owned);
  } catch (error) {
    // An unreadable file cannot be compared: nothing is desired until it can be read.
    look = { present: 'unreadable', wanted: undefined, problem: asProblem(error) };
  }
  const seen = { now: clock.now(), wanted: look.wanted, present: look.present };
  return { look, decision: decide(checkpoint, seen, policy) };
}

/** Wait while other nodes are first; checked again, because newer content is written meanwhile. */
const NOT_YET_MS = 1000;

type Acting = Exclude<Step, { do: 'rest' } | { do: 'wait' }>;
