/**
 * Lines for a person at night: to stderr, which the kubelet keeps and shows only when a run fails, and to the journal, when
 * there is one. So they are few: at most twenty unless `verbose` asks for more. No line holds a token or a credential.
 */

export interface Log {
  /** What all lines of the run are about, earlier ones included. */
  about(subject: LogSubject): void;
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

/** What the lines of a run are about. */
export interface LogSubject {
  readonly namespace?: string;
  readonly serviceAccount?: string;
  readonly pod?: string;
  readonly podUid?: string;
  readonly image?: string;
}

/** `text` without what could begin a line of its own. */
export function oneLine(text: string): string {
  // Nearly all text is plain, and a pattern takes longer to make than plain text to look through.
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code < 0x20 || code > 0x7e) return text.replace(CONTROL, ' ');
  }
  return text;
}

/** A log that keeps its lines. */
export interface CollectedLog extends Log {
  readonly lines: readonly LogLine[];
  /** What was learnt so far. */
  readonly subject: LogSubject;
}

/** Keeps the lines and hands each to `write` as it comes. Control characters cannot start a line of their own. */
export function collectingLog(verbose: boolean, write: (line: LogLine) => void): CollectedLog {
  const lines: LogLine[] = [];
  let subject: LogSubject = {};
  const add = (priority: LogLine['priority'], text: string): void => {
    const line = { priority, text: oneLine(text) };
    lines.push(line);
    write(line);
  };
  return {
    lines,
    get subject() {
      return subject;
    },
    about: (learnt) => {
      subject = { ...subject, ...learnt };
    },
    info: (text) => add(6, text),
    warn: (text) => add(4, text),
    error: (text) => add(3, text),
    detail: (text) => (verbose ? add(7, text) : undefined),
  };
}
