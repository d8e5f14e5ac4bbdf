/**
 * A line of the log as an entry of the journal, with fields that can be asked for: `journalctl NAMESPACE=team-a PRIORITY=3`.
 *
 * Source of the rule: systemd's native journal protocol: one datagram an entry, `NAME=value` a line.
 */
import { type LogLine, type LogSubject, oneLine } from './log.ts';

/** The name of the program in the journal: `journalctl -t crio-credential-provider`. */
export const IDENTIFIER = 'crio-credential-provider';

/**
 * The text of one entry. Fields without a value are left out; no value can begin a line of its own.
 *
 * @example
 * ```ts
 * import { journalEntry } from './journal-entry.ts';
 * import assert from 'node:assert/strict';
 *
 * const entry = journalEntry({ priority: 6, text: 'Got 2 secret(s)' }, { namespace: 'team-a' }, 7);
 * assert.equal(entry, 'MESSAGE=Got 2 secret(s)\nPRIORITY=6\nSYSLOG_IDENTIFIER=crio-credential-provider\nSYSLOG_PID=7\nNAMESPACE=team-a\n');
 * ```
 */
export function journalEntry({ priority, text }: LogLine, subject: LogSubject, pid: number): string {
  const fields = [
    ['MESSAGE', text],
    ['PRIORITY', String(priority)],
    ['SYSLOG_IDENTIFIER', IDENTIFIER],
    // The journal reads the process of a sender from /proc, where one that has ended is no more.
    ['SYSLOG_PID', String(pid)],
    ['NAMESPACE', subject.namespace],
    ['IMAGE', subject.image],
  ] as const;
  return fields
    .map(([name, value]) => (value === undefined || value === '' ? '' : `${name}=${oneLine(value)}\n`))
    .join('');
}
