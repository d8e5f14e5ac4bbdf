/** Inputs of the rollout machine in tests, and a model of a node whose agent may be killed at any time. */
import { type Checkpoint, EMPTY_CHECKPOINT } from '../../runtime/node/checkpoint.ts';
import { after, decide, type Ended, type Policy, type Seen, type Step } from '../../runtime/node/rollout.ts';

export const NOW: number = 1_700_000_000_000;
/** Restarts on every change, at once. */
export const policy: Policy = {
  restart: 'on-change',
  window: { windowMs: 0, delayMs: () => 0 },
  maxRestarts: 6,
};

/** Observation: current and desired content of the file. */
export function seen(wanted: string | undefined, present: string, now: number = NOW): Seen {
  return {
    now,
    present,
    wanted: wanted === undefined ? undefined : { digest: wanted, source: wanted, removes: true },
  };
}

/** A node with a kubelet that starts with good content only, and an agent that may be killed at any time. */
export interface Node {
  file: string;
  saved: string | undefined;
  stored: Checkpoint;
  /** Content that the running kubelet has read; undefined while it is down. */
  runsWith: string | undefined;
  invocation: number;
  restarts: number;
  now: number;
}

/** Stores the checkpoint and takes one step. `dies`: killed 0 before the checkpoint, 1 after it, 2 before the result is stored. */
export function agentStep(node: Node, wanted: string | undefined, dies: number): 'rest' | 'on' {
  const decision = decide(node.stored, seen(wanted, node.file, node.now), policy);
  const { step } = decision;
  if (step.do === 'write' && step.save) node.saved = node.file;
  if (dies === 0) return 'on';
  node.stored = JSON.parse(JSON.stringify(decision.checkpoint)) as Checkpoint;
  if (step.do === 'rest') return 'rest';
  if (step.do === 'wait') {
    node.now += step.ms;
    return 'on';
  }
  if (dies === 1) return 'on';
  const ended = perform(node, step, wanted);
  if (dies === 2) return 'on';
  node.stored = JSON.parse(JSON.stringify(after(node.stored, ended, node.now, policy))) as Checkpoint;
  return 'on';
}

function perform(node: Node, step: Step, wanted: string | undefined): Ended {
  switch (step.do) {
    case 'write':
      node.file = wanted ?? node.file;
      return {
        step: 'write',
        ok: true,
        invocation: node.runsWith === undefined ? '' : String(node.invocation),
      };
    case 'roll-back':
      node.file = node.saved ?? node.file;
      return { step: 'roll-back', ok: true };
    case 'restart':
      return startedSince(node, step.invocation) || restart(node)
        ? { step: 'restart', ok: true }
        : { step: 'restart', ok: false, kind: 'unit' };
    case 'recover':
      return untouched(node, step) || restart(node)
        ? { step: 'recover', ok: true }
        : { step: 'recover', ok: false, kind: 'unit' };
    default:
      throw new Error(step.do);
  }
}

function startedSince(node: Node, before: string): boolean {
  return before !== '' && before !== String(node.invocation) && node.runsWith !== undefined;
}

function untouched(node: Node, step: Step & { do: 'recover' }): boolean {
  const asBefore = step.invocation === '' ? !step.touched : step.invocation === String(node.invocation);
  return node.runsWith !== undefined && asBefore;
}

function restart(node: Node): boolean {
  node.restarts += 1;
  node.invocation += 1;
  node.runsWith = node.file.startsWith('bad') ? undefined : node.file;
  return node.runsWith !== undefined;
}

/** A node at rest with this content in the file. */
export function restingNode(file: string): Node {
  return {
    file,
    saved: undefined,
    stored: EMPTY_CHECKPOINT,
    runsWith: file,
    invocation: 1,
    restarts: 0,
    now: NOW,
  };
}
