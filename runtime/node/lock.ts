/**
 * At most one program at a time works on a file of a node, also when two pods share nothing but the folder.
 *
 * The lock is a listening socket in the folder: the kernel closes it with its owner, however that one dies, so a lock is
 * stale exactly when nobody answers. Process ids would mean nothing here, since every pod has its own.
 *
 * A listening socket and no file: two agents on one node share neither process ids nor a network, the runtimes have no flock,
 * and the kernel stops answering for a socket when its owner dies in whatever way.
 */
import { randomBytes } from 'node:crypto';
import { linkSync, lstatSync, readdirSync, renameSync, unlinkSync } from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';
import { basename, dirname, join } from 'node:path';
import { fileError } from '../host/file-errors.ts';
import { errnoOf } from '../rules/errors.ts';

export interface Hold {
  /** Whether the lock is still ours: somebody may have removed it. */
  held(): boolean;
  release(): void;
}

/** Takes the lock `name` in `folder`, or gives a promise of when it is worth trying again. */
export async function takeSingle(folder: string, name: string = 'lock'): Promise<Hold | Busy> {
  const path = join(folder, name);
  for (;;) {
    const taken = await tryTake(path);
    if (taken !== undefined) return taken;
    const busy = await holder(path);
    if (busy !== undefined) return busy;
  }
}

async function tryTake(path: string): Promise<Hold | undefined> {
  const own = `${path}.new-${randomBytes(6).toString('hex')}`;
  const close = await listen(own);
  try {
    linkSync(own, path);
  } catch (error) {
    close();
    unlinkQuietly(own);
    // ENOENT: the present holder swept our file away between the two calls.
    if (errnoOf(error) === 'EEXIST' || errnoOf(error) === 'ENOENT') return undefined;
    throw fileError('lock', path, error);
  }
  const { ino } = lstatSync(own);
  sweep(path);
  const held = (): boolean => inodeOf(path) === ino;
  return {
    held,
    release: () => {
      if (held()) unlinkQuietly(path);
      close();
    },
  };
}

/** Somebody else holds the lock. */
export interface Busy {
  /** Resolves when the holder is gone. */
  readonly busy: Promise<void>;
}

/** Listens on a socket at `path`, without keeping the process alive. Gives what ends it, and all who wait. */
function listen(path: string): Promise<() => void> {
  const waiting = new Set<Socket>();
  return new Promise((resolve, reject) => {
    // Who waits for the lock holds a connection, and sees it end.
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

/** Who holds the lock; undefined when nobody does, and it is worth trying again at once. */
async function holder(path: string): Promise<Busy | undefined> {
  const ino = inodeOf(path);
  if (ino === undefined) return undefined;
  const socket = connect(path);
  socket.on('error', () => undefined);
  const answered = await new Promise<boolean>((resolve) => {
    socket.once('connect', () => resolve(true));
    socket.once('error', () => resolve(false));
  });
  if (!answered) {
    moveStaleAway(path, ino);
    return undefined;
  }
  const busy = new Promise<void>((resolve) => {
    socket.once('close', () => resolve());
  });
  socket.resume();
  return { busy };
}

/** Removes the lock whose inode is `ino`. Should another one be there by now, it is put back. */
function moveStaleAway(path: string, ino: number): void {
  const moved = `${path}.stale-${randomBytes(6).toString('hex')}`;
  try {
    renameSync(path, moved);
    if (inodeOf(moved) !== ino) linkSync(moved, path);
  } catch {
    // Somebody else moved it first.
  }
  unlinkQuietly(moved);
}

/** Removes what killed runs left. */
function sweep(path: string): void {
  for (const entry of readdirSync(dirname(path)))
    if (/^\.(new|stale)-/.test(entry.slice(basename(path).length)) && entry.startsWith(basename(path)))
      unlinkQuietly(join(dirname(path), entry));
}

function inodeOf(path: string): number | undefined {
  return lstatSync(path, { throwIfNoEntry: false })?.ino;
}

function unlinkQuietly(path: string): void {
  try {
    unlinkSync(path);
  } catch {
    // It is gone.
  }
}
