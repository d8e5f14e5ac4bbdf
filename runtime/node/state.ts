/**
 * State of a node task on the node: a folder with mode 0700 beside the managed file. Its files are replaced atomically.
 */
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { chmodSync, linkSync, lstatSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';
import { dirname, join } from 'node:path';
import { errnoOf, PullwrightError } from '../core/errors.ts';
import { isRecord, jsonOf, recordOf } from '../core/record.ts';
import { redact, reveal } from '../core/redacted.ts';
import {
  type FileContent,
  fileError,
  namesIn,
  readWhole,
  removeFile,
  removeQuietly,
  replaceFile,
  sweepLeftovers,
} from './atomic-file.ts';
import { type Checkpoint, EMPTY_CHECKPOINT, parseCheckpoint } from './checkpoint.ts';
import type { OwnedEntries } from './task.ts';

/** Restricts a file with credentials to its owner. Returns whether the mode changed. Ignores symbolic links. */
export function makePrivate(path: string): boolean {
  const stat = lstatSync(path, { throwIfNoEntry: false });
  if (stat?.isFile() !== true || (stat.mode & 0o077) === 0) return false;
  try {
    chmodSync(path, 0o600);
    return true;
  } catch (error) {
    throw fileError('change the mode of', path, error);
  }
}

/**
 * Raised when journal.json or saved.json change in a way that an older program would misread. Default of a file without it: 1.
 */
export const STATE_VERSION = 1;

/** Stored in one file, so that checkpoint and owned entries are consistent. */
export interface Stored {
  readonly checkpoint: Checkpoint;
  readonly owned: OwnedEntries;
}

/** The state folder of a task. Writes nothing before the first change. */
export class StateFolder {
  readonly path: string;
  readonly #file: string;
  readonly #copy: string;

  constructor(path: string) {
    this.path = path;
    this.#file = join(path, 'journal.json');
    this.#copy = join(path, 'saved.json');
  }

  /** Creates the folder for its owner alone: its content determines what root writes elsewhere. */
  prepare(): void {
    try {
      mkdirSync(this.path, { recursive: true, mode: 0o700 });
      const stat = lstatSync(this.path);
      if (!stat.isDirectory())
        throw new PullwrightError(`Cannot use "${this.path}": it is not a folder`, { code: 'NotAFolder' });
      if ((stat.mode & 0o077) !== 0) chmodSync(this.path, 0o700);
    } catch (error) {
      throw fileError('prepare', this.path, error);
    }
  }

  /** The stored state; empty and `damaged` where it cannot be parsed, for example because a later version wrote it. */
  load(): Stored & { readonly damaged: boolean } {
    const content = readWhole(this.#file);
    if (content === undefined) return { checkpoint: EMPTY_CHECKPOINT, owned: {}, damaged: false };
    const record = recordOf(parseJson(content));
    const checkpoint = isNewer(record) ? undefined : parseCheckpoint(record['journal']);
    const owned = parseOwned(record['ledger']);
    const damaged = checkpoint === undefined || owned === undefined;
    return { checkpoint: checkpoint ?? EMPTY_CHECKPOINT, owned: owned ?? {}, damaged };
  }

  store({ checkpoint, owned }: Stored): void {
    this.prepare();
    const stored = { version: STATE_VERSION, journal: checkpoint, ledger: owned };
    replaceFile(this.#file, Buffer.from(JSON.stringify(stored)));
  }

  /** Backs up `content` for a rollback; undefined: the file did not exist. */
  saveCopy(content: FileContent | undefined): void {
    this.prepare();
    const copy =
      content === undefined
        ? { absent: true }
        : { ...content, bytes: Buffer.from(reveal(content.bytes)).toString('base64') };
    replaceFile(this.#copy, Buffer.from(JSON.stringify({ version: STATE_VERSION, ...copy })));
  }

  /** The backup of {@link saveCopy}; `none` when it is missing or unreadable. */
  loadCopy(): FileContent | 'absent' | 'none' {
    const document = parseJson(readWhole(this.#copy));
    if (!isCopy(document)) return 'none';
    if (document.absent === true) return 'absent';
    const { mode, uid, gid } = document;
    return { mode, uid, gid, bytes: redact(new Uint8Array(Buffer.from(document.bytes, 'base64'))) };
  }

  /** Deletes the backup, which holds credentials. */
  dropCopy(): void {
    removeFile(this.#copy);
  }

  /** Deletes the folder. */
  forget(): void {
    try {
      rmSync(this.path, { recursive: true, force: true });
    } catch (error) {
      throw fileError('remove', this.path, error);
    }
  }

  sweep(): number {
    return sweepLeftovers(this.#file) + sweepLeftovers(this.#copy);
  }
}

interface Copy extends Omit<FileContent, 'bytes'> {
  readonly absent?: boolean;
  readonly bytes: string;
}

function isCopy(value: unknown): value is Copy {
  if (!isRecord(value) || isNewer(value)) return false;
  if (value['absent'] === true) return true;
  const { bytes, mode, uid, gid } = value;
  return typeof bytes === 'string' && [mode, uid, gid].every(Number.isInteger);
}

/** Whether a later version wrote it; a version that is not a number is damage. */
function isNewer(value: Readonly<Record<string, unknown>>): boolean {
  const { version } = value;
  return typeof version === 'number' && version > STATE_VERSION;
}

function parseOwned(value: unknown): OwnedEntries | undefined {
  if (!isRecord(value)) return undefined;
  const whole = Object.values(value).every(
    (digests) => Array.isArray(digests) && digests.every((digest) => typeof digest === 'string'),
  );
  return whole ? (value as OwnedEntries) : undefined;
}

/** The parsed file; undefined when it is missing or not JSON. */
function parseJson(content: FileContent | undefined): unknown {
  return content === undefined ? undefined : jsonOf(Buffer.from(reveal(content.bytes)).toString('utf8'));
}

// At most one program at a time works on a file of a node, also when two pods share nothing but the folder.
// The lock is a listening socket in the folder: the kernel closes it when its owner dies, so a lock is stale exactly when no
// process accepts a connection. Pods share no process ids, and the runtimes have no flock.

export type Hold = NonNullable<Awaited<ReturnType<typeof tryTake>>>;

/** Takes the lock of `folder`, or returns a promise that resolves when to try again. */
export async function takeSingle(folder: string) {
  const path = join(folder, 'lock');
  for (;;) {
    const taken = await tryTake(path);
    if (taken !== undefined) return taken;
    const busy = await holder(path);
    if (busy !== undefined) return busy;
  }
}

async function tryTake(path: string) {
  const own = `${path}.new-${randomBytes(6).toString('hex')}`;
  const close = await listen(own);
  try {
    linkSync(own, path);
  } catch (error) {
    close();
    removeQuietly(own);
    // ENOENT: the current holder removed our file between the two calls.
    if (errnoOf(error) === 'EEXIST' || errnoOf(error) === 'ENOENT') return undefined;
    throw fileError('lock', path, error);
  }
  const { ino } = lstatSync(own);
  sweep(path);
  /** Whether the lock still exists and is ours. */
  const held = (): boolean => inodeOf(path) === ino;
  return {
    held,
    release: () => {
      if (held()) removeQuietly(path);
      close();
    },
  };
}

/** Listens on a socket at `path`, without keeping the process alive. Returns a function that closes it and its connections. */
function listen(path: string): Promise<() => void> {
  const waiting = new Set<Socket>();
  return new Promise((resolve, reject) => {
    // A process that waits for the lock keeps a connection open until it closes.
    const server = createServer((socket) => {
      waiting.add(socket);
      socket.on('error', () => undefined);
      socket.on('close', () => waiting.delete(socket));
      socket.unref();
    });
    server.unref();
    server.once('error', (error) => reject(fileError('lock', path, error)));
    server.listen(path, () =>
      resolve(() => {
        server.close();
        for (const socket of waiting) socket.destroy();
      }),
    );
  });
}

/** The holder of the lock; undefined when the lock is free. */
async function holder(path: string) {
  const ino = inodeOf(path);
  if (ino === undefined) return undefined;
  const socket = connect(path);
  socket.on('error', () => undefined);
  try {
    await once(socket, 'connect');
  } catch {
    moveStaleAway(path, ino);
    return undefined;
  }
  /** Resolves when the holder exits or releases the lock. */
  const busy = new Promise<void>((resolve) => {
    socket.once('close', () => resolve());
  });
  socket.resume();
  return { busy };
}

/** Removes the lock whose inode is `ino`; restores a newer one. */
function moveStaleAway(path: string, ino: number): void {
  const moved = `${path}.stale-${randomBytes(6).toString('hex')}`;
  try {
    renameSync(path, moved);
    if (inodeOf(moved) !== ino) linkSync(moved, path);
  } catch {
    // Another process moved it first.
  }
  removeQuietly(moved);
}

/** Removes sockets that killed runs left. */
function sweep(path: string): void {
  for (const entry of namesIn(dirname(path)))
    if (/^lock\.(new|stale)-/.test(entry)) removeQuietly(join(dirname(path), entry));
}

function inodeOf(path: string): number | undefined {
  return lstatSync(path, { throwIfNoEntry: false })?.ino;
}
