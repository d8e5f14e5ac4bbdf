/** What happens on the node, as log lines. */
import type { NodeEvent } from '../../node/events.ts';
import { describeError } from '../../rules/errors.ts';
import type { Logger } from '../../telemetry/logger.ts';

const LEVELS: Readonly<Partial<Record<NodeEvent['event'], 'warn' | 'error'>>> = {
  'write-failed': 'error',
  'rolled-back': 'error',
  'recover-failed': 'error',
  'state-failed': 'error',
  'restart-failed': 'warn',
  recovered: 'warn',
  'journal-damaged': 'warn',
  'given-to-root': 'warn',
};

/** One line per event; errors by their text. */
export function logInstallerEvent(log: Logger, event: NodeEvent): void {
  const fields = Object.entries(event).map(([name, value]): [string, unknown] => [
    name,
    value instanceof Error ? describeError(value) : value,
  ]);
  log[LEVELS[event.event] ?? 'info']('Change of the kubelet', Object.fromEntries(fields));
}
