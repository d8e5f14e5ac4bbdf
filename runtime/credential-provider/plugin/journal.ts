/**
 * Hands entries to the journal without ever waiting for it: a journal that is away, full or stopped loses the entries, and
 * the pull goes on.
 *
 * Neither Node nor the compiled runtime has datagrams on local sockets, and the stream that journald offers to services carries
 * no fields and took a millisecond to open; hence the compiled runtime calls glibc. Under Node, and on hosts without glibc, nothing goes to the journal.
 */
import { mkdirSync, readdirSync, rmSync } from 'node:fs';
import { replaceFile } from '../../node/atomic-file.ts';
import { NOTES } from '../../node/watch.ts';
import { sha256Hex } from './conf-files.ts';

// Lines for a person at night: to stderr, which the kubelet keeps and shows only when a run fails, and to the journal, when
// there is one. So they are few: at most twenty unless `verbose` is set. No line holds a token or a credential.

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

/** Control characters, by negation: a look-up of their Unicode class takes longer than all lines of a run. */
const CONTROL = /[^ -~\u00a0-\uffff]/g;

/** What the lines of a run are about. */
export interface LogSubject {
  readonly namespace?: string;
  readonly serviceAccount?: string | undefined;
  readonly pod?: string | undefined;
  readonly podUid?: string | undefined;
  readonly image?: string;
}

/** `text` without what could begin a line of its own. */
export function oneLine(text: string): string {
  return text.replace(CONTROL, ' ');
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

interface ForeignFunctions {
  dlopen(
    library: string,
    functions: object,
  ): {
    readonly symbols: Readonly<
      Record<'socket' | 'sendto', (...values: readonly number[]) => number | bigint>
    >;
  };
  ptr(bytes: Uint8Array): number;
}

// Of Linux, on x86-64 and arm64 alike.
const AF_UNIX = 1;
const SOCK_DGRAM_NONBLOCK_CLOEXEC = 0o2004002;
const MSG_DONTWAIT_NOSIGNAL = 0x4040;
/** Of `sockaddr_un`, with the zero byte that ends it. */
const MOST_PATH_BYTES = 108;

/** Sends each text as a datagram to the local socket at `path`, up to the first that it does not take. */
export function sendDatagrams(path: string, texts: readonly string[]): void {
  if (!('Bun' in globalThis) || Buffer.byteLength(path) >= MOST_PATH_BYTES) return;
  try {
    const foreign = process.getBuiltinModule('bun:ffi') as unknown as ForeignFunctions;
    const { symbols } = foreign.dlopen('libc.so.6', {
      socket: { args: ['i32', 'i32', 'i32'], returns: 'i32' },
      sendto: { args: ['i32', 'ptr', 'u64', 'i32', 'ptr', 'u32'], returns: 'i64' },
    });
    const fd = Number(symbols.socket(AF_UNIX, SOCK_DGRAM_NONBLOCK_CLOEXEC, 0));
    const address = Buffer.alloc(2 + MOST_PATH_BYTES);
    address.writeUInt16LE(AF_UNIX);
    const used = 2 + address.write(path, 2) + 1;
    for (const text of texts) {
      const bytes = Buffer.from(text);
      const [from, to] = [foreign.ptr(bytes), foreign.ptr(address)];
      const sent = symbols.sendto(fd, from, bytes.length, MSG_DONTWAIT_NOSIGNAL, to, used);
      if (Number(sent) !== bytes.length) return;
    }
  } catch {
    // Its lines are on stderr too.
  }
}

/** The name of the program in the journal: `journalctl -t crio-credential-provider`. */
export const IDENTIFIER = 'crio-credential-provider';

/**
 * The text of one entry in systemd's native protocol: one datagram an entry, `NAME=value` a line, so that fields can be
 * queried (`journalctl NAMESPACE=team-a PRIORITY=3`). Fields without a value are omitted; no value can begin a line of its own.
 */
export function journalEntry({ priority, text }: LogLine, subject: LogSubject, pid: number): string {
  const fields = [
    ['MESSAGE', text],
    ['PRIORITY', String(priority)],
    ['SYSLOG_IDENTIFIER', IDENTIFIER],
    // The journal reads the process of a sender from /proc, where one that has exited is gone.
    ['SYSLOG_PID', String(pid)],
    ['NAMESPACE', subject.namespace],
    ['SERVICE_ACCOUNT', subject.serviceAccount],
    ['POD', subject.pod],
    ['IMAGE', subject.image],
  ] as const;
  return fields
    .map(([name, value]) => (value === undefined || value === '' ? '' : `${name}=${oneLine(value)}\n`))
    .join('');
}

// What the last run for a ServiceAccount failed with, in a file that root alone reads: the kubelet shows a user only that the
// registry wants a password. The installer of the node reads the notes and tells the API server.
// One file for each account of a namespace, beside CRI-O's auth files, and one for what concerns the node; the next run that
// does well removes it. No line of a run holds a token or a credential, and so does no note.

/** A run that failed, and about whom; without a namespace where the run did not come to know the pod. */
export interface FailureNote extends LogSubject {
  /** What failed, and what to do. */
  readonly message: string;
}

/** Notes on a node at most: a tenant makes namespaces and accounts as it likes. */
export const MOST_NOTES = 100;
/** Characters of a note's text; a Role to apply is in the longest. */
const MOST_TEXT = 2000;

/**
 * Keeps the note of a run's account, or takes it back, and with it that of the node, where the run did well. Gives up quietly:
 * it must not fail a pull.
 *
 * @param failure the last line of a run that failed
 */
export function noteOutcome(authDir: string, subject: LogSubject, failure: string | undefined): void {
  const folder = `${authDir}/${NOTES}`;
  try {
    if (failure === undefined)
      for (const about of [subject, {}]) rmSync(`${folder}/${noteName(about)}`, { force: true });
    else write(folder, noteName(subject), { ...subject, message: failure.slice(0, MOST_TEXT) });
  } catch {
    // The journal has it.
  }
}

/** The file of an account's note; of the node's, where the run did not come to know the pod. */
function noteName({ namespace, serviceAccount = '' }: LogSubject): string {
  const account = namespace === undefined ? '' : `${namespace}/${serviceAccount}`;
  // By hash alone: no name from outside becomes a part of a path.
  return `${sha256Hex(account)}.json`;
}

function write(folder: string, name: string, note: FailureNote): void {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const names = readdirSync(folder);
  if (names.length >= MOST_NOTES && !names.includes(name)) return;
  const bytes = new TextEncoder().encode(JSON.stringify(note));
  replaceFile(`${folder}/${name}`, bytes, { mode: 0o600, durable: false, verify: false });
}
