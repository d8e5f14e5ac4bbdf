/**
 * Run by Bun: `bun journal-double-process.ts SOCKET reads|stands`. Binds a datagram socket, as journald does, and prints each
 * datagram as a line of JSON; with `stands` it never reads.
 */
import { writeSync } from 'node:fs';

interface ForeignFunctions {
  dlopen(
    library: string,
    functions: object,
  ): { readonly symbols: Readonly<Record<string, (...values: readonly number[]) => number | bigint>> };
  ptr(bytes: Uint8Array): number;
}

const foreign = process.getBuiltinModule('bun:ffi') as unknown as ForeignFunctions;
const { symbols } = foreign.dlopen('libc.so.6', {
  socket: { args: ['i32', 'i32', 'i32'], returns: 'i32' },
  bind: { args: ['i32', 'ptr', 'u32'], returns: 'i32' },
  recv: { args: ['i32', 'ptr', 'u64', 'i32'], returns: 'i64' },
});
const [path = '', mode] = process.argv.slice(2);
const address = Buffer.alloc(110);
address.writeUInt16LE(1);
const length = 2 + address.write(path, 2) + 1;
const fd = Number(symbols['socket']?.(1, 2, 0));
if (symbols['bind']?.(fd, foreign.ptr(address), length) !== 0) throw new Error(`cannot bind ${path}`);
writeSync(1, 'ready\n');
if (mode === 'stands') setInterval(() => undefined, 60_000);
else {
  const bytes = Buffer.alloc(65_536);
  for (;;) {
    const got = Number(symbols['recv']?.(fd, foreign.ptr(bytes), bytes.length, 0));
    if (got < 0) throw new Error('cannot receive');
    writeSync(1, `${JSON.stringify(bytes.toString('utf8', 0, got))}\n`);
  }
}
