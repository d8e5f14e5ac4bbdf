/** What happens on a node, as log lines: one constant message per event, with fields. */
import { NODE_HOLDS_REMOVAL } from '../rules/docker-config/removal-guard.ts';
import { describeError } from '../rules/errors.ts';
import type { Fields, Logger, LogLevel } from '../telemetry/logger.ts';
import type { NodeEvent, NodeState } from './events.ts';

const MESSAGES: Readonly<Record<NodeEvent['event'], readonly [LogLevel, string]>> = {
  written: ['info', 'File written'],
  'write-failed': ['error', 'Cannot write the file'],
  restarting: ['info', 'Restarting the unit'],
  restarted: ['info', 'Unit restarted'],
  recovered: ['warn', 'Unit is up with the old file'],
  'restart-failed': ['warn', 'Restart of the unit failed'],
  'recover-failed': ['error', 'Unit does not come up with the old file'],
  'rolled-back': ['error', 'Unit does not come up with the new file: the old one is back'],
  'turn-failed': ['warn', 'Cannot book a turn for the restart'],
  'state-failed': ['error', 'Cannot store the journal'],
  'journal-damaged': ['warn', 'The journal cannot be read and is started again'],
  resumed: ['info', 'A change was interrupted: going on with it'],
  'given-to-root': ['warn', 'Corrected an owner that was not root'],
  swept: ['info', 'Removed what a killed run left behind'],
};

/** Logs an event. */
export function logEvent(log: Logger, event: NodeEvent): void {
  const [level, message] = MESSAGES[event.event];
  const fields = Object.entries(event).map(([name, value]): [string, unknown] => [
    name,
    value instanceof Error ? describeError(value) : value,
  ]);
  log[level](message, Object.fromEntries(fields));
}

/** Logs a new state. */
export function logState(log: Logger, state: NodeState): void {
  const fields: Fields = { reason: state.reason, detail: state.message };
  if (state.reason === NODE_HOLDS_REMOVAL) log.warn('A removal is held', fields);
  else if (state.ready) log.info('Node is in sync', fields);
  else if (state.busy === true) log.info('Node is being brought in sync', fields);
  else log.warn('Node is not in sync', fields);
}
