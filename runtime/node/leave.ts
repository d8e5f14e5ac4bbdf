/** The way out of a node: what is under way is finished, then the state goes; the file and the unit stay as they are. */
import { describeError } from '../rules/errors.ts';
import type { NodeState } from './events.ts';
import { type LoopOptions, runLoop } from './loop.ts';

/** Between two tries while another program holds the lock, or a change cannot be finished yet. */
const RETRY_MS = 2000;

/**
 * Settles the node, removes the state folder, and then does nothing until `signal`; with `once` it ends instead. Ready means:
 * nothing of ours is left on the node but the file. The last state.
 */
export async function leaveNode(options: LoopOptions, signal: AbortSignal): Promise<NodeState> {
  const { folder, clock, publish, once } = options;
  for (;;) {
    const state = await runLoop({ ...options, once: true }, signal);
    if (signal.aborted) return state;
    const left = state.reason === 'AnotherAgent' ? state : leave(options, state);
    publish(left);
    if (once === true) return left;
    if (left.ready) break;
    await clock.sleep(RETRY_MS, signal);
  }
  while (await clock.sleep(options.pollMs, signal)) publish(gone(folder.path));
  return gone(folder.path);
}

function leave({ folder }: LoopOptions, state: NodeState): NodeState {
  try {
    // Without a source a change that is under way cannot be finished; its saved copy is still needed.
    if (folder.load().journal.change !== undefined) return { ...state, ready: false };
    folder.forget();
    return gone(folder.path);
  } catch (error) {
    return { ready: false, reason: 'NotRemoved', message: describeError(error) };
  }
}

function gone(path: string): NodeState {
  return {
    ready: true,
    reason: 'Uninstalled',
    message: `"${path}" is removed; the file stays as it is, and nothing changes it any more`,
  };
}
