/** What happens on a node, as log lines: one constant message per event, with fields. */
import type { NodeEvent, NodeState } from '../node/events.ts';
import { describeError } from '../rules/errors.ts';

export type Level = 'debug' | 'info' | 'warn' | 'error';

/** A line before it is written: fields in the order in which they are shown. */
export interface Line {
  readonly level: Level;
  readonly message: string;
  readonly fields: Readonly<Record<string, string | number | boolean>>;
}

const LEVELS: readonly Level[] = ['debug', 'info', 'warn', 'error'];

const MESSAGES: Readonly<Record<NodeEvent['event'], readonly [Level, string]>> = {
  written: ['info', 'Pull secret updated'],
  'write-failed': ['error', 'Cannot write the pull secret'],
  restarting: ['info', 'Restarting the unit'],
  restarted: ['info', 'Unit restarted'],
  recovered: ['warn', 'Unit is up with the old pull secret'],
  'restart-failed': ['warn', 'Restart of the unit failed'],
  'recover-failed': ['error', 'Unit does not come up with the old pull secret'],
  'rolled-back': ['error', 'Unit does not come up with the new pull secret: the old one is back'],
  'state-failed': ['error', 'Cannot store the journal'],
  'journal-damaged': ['warn', 'The journal cannot be read and is started anew'],
  resumed: ['info', 'A change was interrupted: going on with it'],
  swept: ['info', 'Removed what a killed run left behind'],
};

/** The line for an event. */
export function eventLine(event: NodeEvent): Line {
  const [level, message] = MESSAGES[event.event];
  const fields: Record<string, string | number | boolean> = { event: event.event };
  for (const [name, value] of Object.entries(event)) {
    if (value instanceof Error) fields['error'] = describeError(value);
    else if (name !== 'event') fields[name] = value;
  }
  return { level, message, fields };
}

/** The line for a new state. */
export function stateLine(state: NodeState): Line {
  const level = state.ready ? 'info' : 'warn';
  return {
    level,
    message: state.ready ? 'Node is in sync' : 'Node is not in sync',
    fields: { reason: state.reason, detail: state.message },
  };
}

/** Writes lines of at least `least`, as JSON or logfmt. */
export function lineWriter(
  out: { write(text: string): unknown },
  options: { readonly least: Level; readonly format: 'json' | 'logfmt'; readonly now: () => number },
): (line: Line) => void {
  return ({ level, message, fields }) => {
    if (LEVELS.indexOf(level) < LEVELS.indexOf(options.least)) return;
    const record = { timestamp: new Date(options.now()).toISOString(), level, msg: message, ...fields };
    out.write(`${options.format === 'json' ? JSON.stringify(record) : logfmt(record)}\n`);
  };
}

function logfmt(record: Readonly<Record<string, string | number | boolean>>): string {
  return Object.entries(record)
    .map(
      ([name, value]) =>
        `${name}=${/^[\w./:+-]+$/.test(String(value)) ? String(value) : JSON.stringify(value)}`,
    )
    .join(' ');
}
