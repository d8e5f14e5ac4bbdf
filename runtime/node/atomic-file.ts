/**
 * Files that are always whole: a power cut at any instant leaves the old content or the new one.
 *
 * A write creates a file with a random name in the same folder (so that it gets the folder's SELinux type, and the rename
 * does not cross file systems), syncs it, renames it over the old name, syncs the folder, and reads the result back.
 */
import {
  closeSync,
  constants,
  fchmodSync,
  fchownSync,
  fstatSync,
  fsyncSync,
  lstatSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  type Stats,
  unlinkSync,
  writeSync,
} from 'node:fs';
import { type ErrorOptions, errnoOf, PullwrightError } from '../core/errors.ts';
import { type Redacted, redact, reveal } from '../core/redacted.ts';

// Turns errors of the operating system into errors that name the file and what to do.

interface Known extends Pick<ErrorOptions, 'code' | 'hint' | 'retryPolicy'> {
  readonly state: string;
}

const KNOWN: Readonly<Record<string, Known>> = {
  ENOSPC: {
    code: 'DiskFull',
    state: 'the file system is out of space or inodes',
    hint: 'Free space on the file system; the old content is kept until then',
  },
  EFBIG: {
    code: 'FileTooLarge',
    state: 'the file would be larger than this process may write',
    hint: 'Raise the limit of the service (LimitFSIZE)',
  },
  EDQUOT: { code: 'DiskFull', state: 'the quota is used up', hint: 'Raise the quota of the owner' },
  EROFS: {
    code: 'ReadOnlyFilesystem',
    state: 'the file system is read-only',
    hint: 'Mount the folder writable, and check the kernel log for disk errors',
  },
  EACCES: { code: 'NoPermission', state: 'permission denied', hint: 'Run as the owner of the folder' },
  EPERM: {
    code: 'NoPermission',
    state: 'operation not permitted',
    hint: 'Check for an immutable flag (lsattr) or a missing capability',
  },
  EIO: { code: 'DiskError', state: 'input/output error', hint: 'Check the kernel log for disk errors' },
  ELOOP: {
    code: 'IsSymlink',
    state: 'it is a symbolic link, expected a regular file',
    hint: 'Remove the link: its owner could redirect root to another file',
    retryPolicy: 'terminal',
  },
  EISDIR: { code: 'NotAFile', state: 'it is a folder, expected a regular file', retryPolicy: 'terminal' },
  ENOTDIR: { code: 'NoFolder', state: 'its folder is not a folder', retryPolicy: 'terminal' },
  ENOENT: { code: 'NoFolder', state: 'it does not exist', hint: 'Create the folder, or mount it' },
};

/** An error of the form `Cannot <action> "<path>": <state>`. A PullwrightError is returned unchanged. */
export function fileError(action: string, path: string, error: unknown): PullwrightError {
  if (error instanceof PullwrightError) return error;
  const errno = errnoOf(error) ?? 'unknown error';
  const known = Object.hasOwn(KNOWN, errno) ? KNOWN[errno] : undefined;
  if (known === undefined)
    return new PullwrightError(`Cannot ${action} "${path}": ${errno}`, { code: 'FileError', cause: error });
  const { state, ...options } = known;
  return new PullwrightError(`Cannot ${action} "${path}": ${state} (${errno})`, { ...options, cause: error });
}

/** Content, mode and owner of a file. */
export interface FileContent extends Access {
  readonly bytes: Redacted<Uint8Array>;
}

type Access = Readonly<ReturnType<typeof accessOf>>;

/** Options of {@link replaceFile}. */
export interface ReplaceOptions {
  /** Permission bits of a new file; an existing one keeps its own. @default {0o600} */
  readonly mode?: number;
  /**
   * Whether mode and owner of an existing file are replaced as well, for files that only this process may own.
   * @default {false}
   */
  readonly fresh?: boolean;
  /** Owner of a new file; an existing one keeps its own. Default: the process's. */
  readonly owner?: Omit<Access, 'mode'>;
  /**
   * `false` skips the syncs, for files that need not survive a power cut. `content` skips the sync of the folder: after a power
   * cut the old file or the new one exists, never a part of it. @default {true}
   */
  readonly durable?: boolean | 'content';
  /** Whether to read the file back; false for files that another program removes at once. @default {true} */
  readonly verify?: boolean;
}

/**
 * Reads a regular file; undefined when it is missing. Rejects a symbolic link, a folder or a device.
 */
export function readWhole(path: string): FileContent | undefined {
  let fd: number;
  try {
    // Without O_NONBLOCK, opening a pipe would block for ever.
    fd = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return undefined;
    throw fileError('read', path, error);
  }
  try {
    const stat = fstatSync(fd);
    if (!stat.isFile()) throw notAFile('read', path);
    return { bytes: redact(new Uint8Array(readFileSync(fd))), ...accessOf(stat) };
  } catch (error) {
    throw fileError('read', path, error);
  } finally {
    closeSync(fd);
  }
}

/** Replaces the file at `path` atomically. Keeps mode and owner of an existing file, unless `fresh`. */
export function replaceFile(
  path: string,
  bytes: Uint8Array | Redacted<Uint8Array>,
  options: ReplaceOptions = {},
): void {
  const plain = bytes instanceof Uint8Array ? bytes : reveal(bytes);
  const temporary = `${folderOf(path)}/${temporaryPrefix(path)}${crypto.randomUUID()}`;
  try {
    const old = existing(path);
    writeNew(temporary, plain, { ...options, ...options.owner, ...(options.fresh === true ? {} : old) });
    renameSync(temporary, path);
    if (options.durable === undefined || options.durable === true) syncFolder(folderOf(path));
  } catch (error) {
    removeQuietly(temporary);
    throw fileError('write', path, error);
  }
  if (options.verify !== false) readBack(path, plain);
}

/** Names of the entries of a folder; empty when the folder is missing. */
export function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch (error) {
    if (errnoOf(error) === 'ENOENT' || errnoOf(error) === 'ENOTDIR') return [];
    throw fileError('list', folder, error);
  }
}

/** Removes the file and syncs the folder. A missing file is not an error. */
export function removeFile(path: string): void {
  try {
    unlinkSync(path);
    syncFolder(folderOf(path));
  } catch (error) {
    if (errnoOf(error) !== 'ENOENT') throw fileError('remove', path, error);
  }
}

/** Removes temporary files that killed runs left beside `path`. Returns their number. */
export function sweepLeftovers(path: string): number {
  const folder = folderOf(path);
  const left = namesIn(folder)
    .filter((name) => name.startsWith(temporaryPrefix(path)))
    .map((name) => `${folder}/${name}`)
    .filter((file) => lstatSync(file, { throwIfNoEntry: false })?.isDirectory() === false);
  for (const file of left) removeQuietly(file);
  return left.length;
}

// Not node:path or node:crypto: loading them is a noticeable part of a credential provider's 10 ms.

function folderOf(path: string): string {
  const slash = path.lastIndexOf('/');
  return slash === -1 ? '.' : path.slice(0, slash) || '/';
}

function temporaryPrefix(path: string): string {
  return `.${path.slice(path.lastIndexOf('/') + 1)}.tmp-`;
}

function accessOf({ mode, uid, gid }: Stats) {
  // Permission bits, such as 0o600.
  return { mode: mode & 0o7777, uid, gid };
}

function existing(path: string): Access | undefined {
  const stat = lstatSync(path, { throwIfNoEntry: false });
  if (stat === undefined) return undefined;
  if (stat.isSymbolicLink())
    throw fileError('write', path, Object.assign(new Error('symlink'), { code: 'ELOOP' }));
  if (!stat.isFile()) throw notAFile('write', path);
  return accessOf(stat);
}

function writeNew(path: string, bytes: Uint8Array, options: ReplaceOptions & Partial<Access>): void {
  const { O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW } = constants;
  const { uid, gid, mode = 0o600 } = options;
  const fd = openSync(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode & 0o777);
  try {
    for (let at = 0; at < bytes.length; ) at += writeSync(fd, bytes, at);
    const own = fstatSync(fd);
    if (uid !== undefined && gid !== undefined && (own.uid !== uid || own.gid !== gid))
      fchownSync(fd, uid, gid);
    // After chown, which clears mode bits; fchmod ignores the umask. Node's permission model rejects fchmod, so call it only when
    // needed.
    if ((fstatSync(fd).mode & 0o7777) !== mode) fchmodSync(fd, mode);
    if (options.durable !== false) fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}

function syncFolder(folder: string): void {
  const fd = openSync(folder, constants.O_RDONLY | constants.O_DIRECTORY);
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}

function readBack(path: string, wanted: Uint8Array): void {
  const found = readWhole(path);
  if (found !== undefined && Buffer.compare(reveal(found.bytes), wanted) === 0) return;
  throw new PullwrightError(`Cannot write "${path}": its content changed right after the write`, {
    code: 'WriteNotSeen',
    hint: 'Stop the other program that writes this file',
  });
}

function notAFile(action: string, path: string): PullwrightError {
  return new PullwrightError(`Cannot ${action} "${path}": it is not a regular file`, {
    code: 'NotAFile',
    retryPolicy: 'terminal',
    hint: 'Remove the existing one',
  });
}

/** Removes the file if possible. */
export function removeQuietly(path: string): void {
  try {
    unlinkSync(path);
  } catch {
    // The file was renamed or never created; the next sweep checks again.
  }
}
