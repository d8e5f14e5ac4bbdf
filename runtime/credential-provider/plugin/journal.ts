/**
 * Sends entries to the journal without waiting: when the journal is missing, full or stopped, entries are dropped and the pull
 * continues.
 *
 * Neither Node nor Bun supports datagrams on local sockets, and journald's stream socket supports no fields and takes a
 * millisecond to open; hence Bun calls glibc. Under Node, and on hosts without glibc, nothing is sent to the journal.
 */
import { mkdirSync, readdirSync, rmSync } from 'node:fs';
import { replaceFile } from '../../node/atomic-file.ts';
import { NOTES } from '../../node/watch.ts';
import { sha256Hex } from './conf-files.ts';
import type { Puller } from './secrets.ts';

// Log lines to stderr, which the kubelet shows only when a run fails, and to the journal. At most twenty unless `verbose` is set.
// No line holds a token or a credential.

export type Log = Readonly<ReturnType<typeof collectingLog>>;

export interface LogLine {
  /** Syslog priority: 3 error, 4 warning, 6 information, 7 detail. */
  readonly priority: 3 | 4 | 6 | 7;
  readonly text: string;
}

/** Control characters, by negation: matching a Unicode class takes longer than all lines of a run. */
const CONTROL = /[^ -~\u00a0-\uffff]/g;

/** Subject of the lines of a run. */
export interface LogSubject extends Partial<Puller> {
  readonly image?: string;
}

/** `text` without control characters, which could begin another line. */
export function oneLine(text: string): string {
  return text.replace(CONTROL, ' ');
}

/** Keeps the lines and passes each to `write`, without control characters. */
export function collectingLog(verbose: boolean, write: (line: LogLine) => void) {
  const lines: LogLine[] = [];
  let subject: LogSubject = {};
  const add = (priority: LogLine['priority'], text: string): void => {
    const line = { priority, text: oneLine(text) };
    lines.push(line);
    write(line);
  };
  return {
    lines,
    /** The subject so far. */
    get subject() {
      return subject;
    },
    /** Sets the subject of all lines of the run, earlier ones included. */
    about: (learnt: LogSubject): void => {
      subject = { ...subject, ...learnt };
    },
    info: (text: string) => add(6, text),
    warn: (text: string) => add(4, text),
    error: (text: string) => add(3, text),
    /** Logged only with `verbose`: there can be thousands. */
    detail: (text: string) => (verbose ? add(7, text) : undefined),
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

// Constants of Linux on x86-64 and arm64.
const AF_UNIX = 1;
const SOCK_DGRAM_NONBLOCK_CLOEXEC = 0o2004002;
const MSG_DONTWAIT_NOSIGNAL = 0x4040;
/** Size of the path in `sockaddr_un`, with the final zero byte. */
const MOST_PATH_BYTES = 108;

/** Sends each text as a datagram to the local socket at `path`, until one is not accepted. */
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
    // The lines are on stderr too.
  }
}

/** The name of the program in the journal: `journalctl -t crio-credential-provider`. */
export const IDENTIFIER = 'crio-credential-provider';

/**
 * The text of one entry in systemd's native protocol: one datagram an entry, `NAME=value` a line, so that fields can be
 * queried (`journalctl NAMESPACE=team-a PRIORITY=3`). Fields without a value are omitted.
 */
export function journalEntry({ priority, text }: LogLine, subject: LogSubject, pid: number): string {
  const fields = [
    ['MESSAGE', text],
    ['PRIORITY', String(priority)],
    ['SYSLOG_IDENTIFIER', IDENTIFIER],
    // The journal reads the sender's process from /proc, where it is missing after the exit.
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

// Notes: the error of the last run for a ServiceAccount, in a file that only root can read, because the kubelet shows a user only
// that the registry requires a password. The installer of the node reports the notes to the API server. One file per account of a
// namespace, beside CRI-O's auth files, and one for the node; the next successful run removes it. Like log lines, notes hold no
// token and no credential.

/** A failed run and its subject; without a namespace when the pod is unknown. */
export interface FailureNote extends LogSubject {
  /** What failed, and what to do. */
  readonly message: string;
}

/** Maximum number of notes on a node: tenants may create any number of accounts. */
export const MOST_NOTES = 100;
/** Maximum characters of a note's message; the longest contain a Role to apply. */
const MOST_TEXT = 2000;

/**
 * Writes the note of a run's account, or after a successful run removes it and the node's. Ignores errors, which must not fail a
 * pull.
 *
 * @param failure the last error line of a failed run
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

/** File name of an account's note; of the node's note when the pod is unknown. */
function noteName({ namespace, serviceAccount = '' }: LogSubject): string {
  const account = namespace === undefined ? '' : `${namespace}/${serviceAccount}`;
  // A hash, so that no external name becomes part of a path.
  return `${sha256Hex(account)}.json`;
}

function write(folder: string, name: string, note: FailureNote): void {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const names = readdirSync(folder);
  if (names.length >= MOST_NOTES && !names.includes(name)) return;
  const bytes = new TextEncoder().encode(JSON.stringify(note));
  replaceFile(`${folder}/${name}`, bytes, { mode: 0o600, durable: false, verify: false });
}
