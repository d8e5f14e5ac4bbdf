/**
 * Lines for a person at night: to stderr, which the kubelet keeps and shows only when a run fails, and to the journal, when
 * there is one. So they are few: at most twenty unless `verbose` asks for more. No line holds a token or a credential.
 */

export interface Log {
  info(line: string): void;
  warn(line: string): void;
  error(line: string): void;
  /** Only with `verbose`: there can be thousands. */
  detail(line: string): void;
}

export interface LogLine {
  /** Syslog priority: 3 error, 4 warning, 6 information, 7 detail. */
  readonly priority: 3 | 4 | 6 | 7;
  readonly text: string;
}

/** Control characters, as what they are not: a look-up of their Unicode class takes longer than all lines of a run. */
const CONTROL = /[^ -~\u00a0-\uffff]/g;

/** Keeps the lines and hands each to `write` as it comes. Control characters cannot start a line of their own. */
export function collectingLog(
  verbose: boolean,
  write: (line: LogLine) => void,
): Log & { readonly lines: readonly LogLine[] } {
  const lines: LogLine[] = [];
  const add = (priority: LogLine['priority'], text: string): void => {
    const line = { priority, text: text.replace(CONTROL, ' ') };
    lines.push(line);
    write(line);
  };
  return {
    lines,
    info: (text) => add(6, text),
    warn: (text) => add(4, text),
    error: (text) => add(3, text),
    detail: (text) => (verbose ? add(7, text) : undefined),
  };
}
