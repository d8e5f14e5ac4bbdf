/** The life of a node task: be the only one, look, act, wait for the next change; until told to stop. */
import type { Clock } from '../host/clock.ts';
import { describeError, PullwrightError } from '../rules/errors.ts';
import type { NodeEngine } from './engine.ts';
import type { NodeState } from './events.ts';
import { type Hold, takeSingle } from './lock.ts';
import type { Wake } from './mount-watcher.ts';
import type { StateFolder } from './state-folder.ts';

export interface LoopOptions {
  readonly folder: StateFolder;
  /** Called while the lock is held, so that the journal that it reads is nobody else's. */
  readonly engine: (publish: (state: NodeState) => void) => NodeEngine;
  readonly wake: Wake;
  readonly clock: Clock;
  /** Look at least so often. Milliseconds. */
  readonly pollMs: number;
  /** Told after every look. */
  readonly publish: (state: NodeState) => void;
  /** End when there is nothing to do now, instead of waiting for the next change. */
  readonly once?: boolean;
}

/** Between two tries to get the lock when its holder ended at once. */
const RETRY_MS = 200;
const TROUBLE_MS = 5000;

/** Runs until `signal`, or with `once` until there is nothing to do. The last state. */
export async function runLoop(options: LoopOptions, signal: AbortSignal): Promise<NodeState> {
  let state: NodeState = { ready: false, reason: 'Starting', message: 'The first look has not ended yet' };
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
      if (await work(options, hold, publish, signal)) break;
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
async function work(
  options: LoopOptions,
  hold: Hold,
  publish: (state: NodeState) => void,
  signal: AbortSignal,
): Promise<boolean> {
  const engine = options.engine(publish);
  while (!signal.aborted) {
    if (!hold.held()) return false;
    const rest = await engine.pass(signal);
    publish(rest.state);
    if (options.once === true && rest.waiting !== true) return true;
    await options.wake.wait(Math.min(options.pollMs, rest.lookInMs ?? options.pollMs), signal);
  }
  return true;
}
