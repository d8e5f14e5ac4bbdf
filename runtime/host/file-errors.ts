/** Turns what the operating system answers into an error that names the file and says what to do. */
import { type ErrorOptions, errnoOf, PullwrightError } from '../rules/errors.ts';

interface Known extends Pick<ErrorOptions, 'code' | 'hint' | 'disposition'> {
  readonly state: string;
}

const KNOWN: Readonly<Record<string, Known>> = {
  ENOSPC: {
    code: 'DiskFull',
    state: 'the file system has no space or no inode left',
    hint: 'Free space on the file system; the old content stays until then',
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
    hint: 'Mount the folder writable, and look into the kernel log for disk errors',
  },
  EACCES: { code: 'NoPermission', state: 'permission denied', hint: 'Run as the owner of the folder' },
  EPERM: {
    code: 'NoPermission',
    state: 'operation not permitted',
    hint: 'Look for an immutable flag (lsattr) or a missing capability',
  },
  EIO: { code: 'DiskError', state: 'input/output error', hint: 'Look into the kernel log for disk errors' },
  ELOOP: {
    code: 'IsSymlink',
    state: 'it is a symbolic link, expected a regular file',
    hint: 'Remove the link: a link here would let its owner choose the file that root reads or writes',
    disposition: 'terminal',
  },
  EISDIR: { code: 'NotAFile', state: 'it is a folder, expected a regular file', disposition: 'terminal' },
  ENOTDIR: { code: 'NoFolder', state: 'its folder is not a folder', disposition: 'terminal' },
  ENOENT: { code: 'NoFolder', state: 'it does not exist', hint: 'Create the folder, or mount it' },
};

/** An error of the form `Cannot <action> "<path>": <state>`. Errors that are ours already pass unchanged. */
export function fileError(action: string, path: string, error: unknown): PullwrightError {
  if (error instanceof PullwrightError) return error;
  const errno = errnoOf(error) ?? 'unknown error';
  const known = Object.hasOwn(KNOWN, errno) ? KNOWN[errno] : undefined;
  if (known === undefined)
    return new PullwrightError(`Cannot ${action} "${path}": ${errno}`, { code: 'FileError', cause: error });
  const { state, ...options } = known;
  return new PullwrightError(`Cannot ${action} "${path}": ${state} (${errno})`, { ...options, cause: error });
}
