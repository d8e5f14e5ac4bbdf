/** What `agent --once` prints: the state, and with `--dry-run` what would be done. */
import type { NodeState } from '../../node/events.ts';
import type { Look } from '../../node/task.ts';
import type { Decision } from '../../rules/rollout/rollout.ts';

export interface Preview {
  readonly state: NodeState;
  readonly look?: Look;
  readonly decision?: Decision;
}

const WOULD: Readonly<Record<string, string>> = {
  write: 'write the file',
  restart: 'restart the unit',
  'roll-back': 'put the saved file back',
  recover: 'bring the unit up',
  wait: 'wait',
  rest: 'do nothing',
};

/** The text for stdout, ending with a line end. */
export async function renderPreview(preview: Preview, output: 'text' | 'json' | 'yaml'): Promise<string> {
  const facts = factsOf(preview);
  if (output === 'json') return `${JSON.stringify(facts, undefined, 2)}\n`;
  if (output === 'yaml') return (await import('yaml')).stringify(facts);
  return `${Object.entries(facts)
    .map(([name, value]) => `${`${name}:`.padEnd(10)} ${String(value)}`)
    .join('\n')}\n`;
}

function factsOf({ state, look, decision }: Preview): Record<string, string | number | boolean> {
  const change = decision?.journal.change;
  return {
    ...(decision === undefined ? {} : { would: WOULD[decision.step.do] ?? decision.step.do }),
    ...(change === undefined ? {} : { restart: change.restart }),
    ...(look?.from === undefined ? {} : { source: look.from }),
    ...(look?.entries === undefined ? {} : { entries: look.entries, foreign: look.foreign ?? 0 }),
    ready: state.ready,
    reason: state.reason,
    message: state.message,
  };
}
