/**
 * Hands entries to the journal without ever waiting for it: a journal that is away, full or stopped loses the entries, and
 * the pull goes on.
 *
 * Neither Node nor the compiled runtime has datagrams on local sockets, so that the compiled runtime asks the C library.
 *
 * Neither Node nor the compiled runtime has datagrams on local sockets, and the stream that journald offers to services carries
 * no fields and took a millisecond to open; hence the C library.
 */

import { type LogLine, type LogSubject, oneLine } from './log.ts';

interface Symbols {
  socket(domain: number, type: number, protocol: number): number;
  sendto(
    fd: number,
    bytes: number,
    length: number,
    flags: number,
    address: number,
    addressLength: number,
  ): number | bigint;
}

interface ForeignFunctions {
  dlopen(library: string, functions: object): { readonly symbols: Symbols };
  ptr(bytes: Uint8Array): number;
}

// Of Linux, on x86-64 and arm64 alike.
const AF_UNIX = 1;
const SOCK_DGRAM_NONBLOCK_CLOEXEC = 0o2004002;
const MSG_DONTWAIT_NOSIGNAL = 0x4040;
/** Of `sockaddr_un`, with the zero byte that ends it. */
const MOST_PATH_BYTES = 108;

/**
 * Sends each text as a datagram to the local socket at `path` and gives how many it took; undefined where this runtime
 * cannot do that. Stops at the first that is not taken.
 */
export function sendDatagrams(path: string, texts: readonly string[]): number | undefined {
  if (!('Bun' in globalThis) || Buffer.byteLength(path) >= MOST_PATH_BYTES) return undefined;
  try {
    const foreign = process.getBuiltinModule('bun:ffi') as unknown as ForeignFunctions;
    const { symbols } = foreign.dlopen('libc.so.6', {
      socket: { args: ['i32', 'i32', 'i32'], returns: 'i32' },
      sendto: { args: ['i32', 'ptr', 'u64', 'i32', 'ptr', 'u32'], returns: 'i64' },
    });
    const fd = symbols.socket(AF_UNIX, SOCK_DGRAM_NONBLOCK_CLOEXEC, 0);
    const address = Buffer.alloc(2 + MOST_PATH_BYTES);
    address.writeUInt16LE(AF_UNIX);
    const used = 2 + address.write(path, 2) + 1;
    const refused = texts.findIndex((text) => {
      const bytes = Buffer.from(text);
      const sent = symbols.sendto(
        fd,
        foreign.ptr(bytes),
        bytes.length,
        MSG_DONTWAIT_NOSIGNAL,
        foreign.ptr(address),
        used,
      );
      return Number(sent) !== bytes.length;
    });
    return refused === -1 ? texts.length : refused;
  } catch {
    return undefined;
  }
}

/** The name of the program in the journal: `journalctl -t crio-credential-provider`. */
export const IDENTIFIER = 'crio-credential-provider';

/**
 * The text of one entry in systemd's native protocol: one datagram an entry, `NAME=value` a line, so that fields can be asked
 * for (`journalctl NAMESPACE=team-a PRIORITY=3`). Fields without a value are left out; no value can begin a line of its own.
 *
 * @example
 * ```ts
 * import { journalEntry } from './journal.ts';
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
    ['SERVICE_ACCOUNT', subject.serviceAccount],
    ['POD', subject.pod],
    ['IMAGE', subject.image],
  ] as const;
  return fields
    .map(([name, value]) => (value === undefined || value === '' ? '' : `${name}=${oneLine(value)}\n`))
    .join('');
}
