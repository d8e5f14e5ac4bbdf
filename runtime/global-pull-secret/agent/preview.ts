/** What `agent --once` prints: the state, and with `--dry-run` what would be done. */

import type { NodeState } from '../../node/events.ts';
import type { Look } from '../../node/task.ts';
import type { Decision } from '../../rules/rollout/rollout.ts';
import { jsonText } from '../../rules/text/json-text.ts';
import { onOneLine } from '../../rules/text/printable.ts';

export interface Preview {
  readonly state: NodeState;
  readonly look?: Look;
  readonly decision?: Decision;
}

/** What is printed. */
export interface PreviewFacts {
  /** With `--dry-run`: what would be done next. */
  readonly would?: string;
  /** Of a change under way: whether the unit is restarted for it. */
  readonly restart?: boolean;
  /** Where the pull secret was read. */
  readonly source?: string;
  /** Entries of the pull secret. */
  readonly entries?: number;
  /** Those of them that belong to others. */
  readonly foreign?: number;
  readonly ready: boolean;
  readonly reason: string;
  readonly message: string;
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
  if (output === 'json') return jsonText<PreviewFacts>(facts);
  if (output === 'yaml') return (await import('yaml')).stringify(facts);
  return `${Object.entries(facts)
    .map(([name, value]) => `${`${name}:`.padEnd(10)} ${onOneLine(String(value))}`)
    .join('\n')}\n`;
}

function factsOf({ state, look, decision }: Preview): PreviewFacts {
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
