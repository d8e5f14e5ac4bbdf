/**
 * Who owns what is written on a node. The kubelet runs as root what it finds, and reads its credentials as root, so that
 * nobody else may own these files; an earlier version, or a container started with another user, may have left them so.
 */
import { closeSync, constants, fchownSync, fstatSync, openSync } from 'node:fs';
import { errnoOf } from '../rules/errors.ts';
import { fileError } from './file-errors.ts';

const ROOT = 0;

/**
 * Gives the file or folder at `path` to root, unless it belongs to root already. Does nothing where this process is not root,
 * where nothing is there, and where a link is: what it leads to is not ours.
 *
 * @returns whether the owner was another one
 * @throws PullwrightError when root may not change the owner: a read-only file system, or a missing capability
 * @example
 * ```ts
 * import { giveToRoot } from './ownership.ts';
 * import assert from 'node:assert/strict';
 *
 * assert.equal(giveToRoot('/there/is/no/such/file'), false);
 * ```
 */
export function giveToRoot(path: string): boolean {
  if (process.geteuid?.() !== ROOT) return false;
  let fd: number;
  try {
    // A descriptor, so that what was judged is what is changed. A pipe that somebody put there is not waited for.
    fd = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (error) {
    if (['ENOENT', 'ENOTDIR', 'ELOOP', 'ENXIO'].includes(errnoOf(error) ?? '')) return false;
    throw fileError('open', path, error);
  }
  try {
    const { uid, gid } = fstatSync(fd);
    if (uid === ROOT && gid === ROOT) return false;
    fchownSync(fd, ROOT, ROOT);
    return true;
  } catch (error) {
    throw fileError('change the owner of', path, error);
  } finally {
    closeSync(fd);
  }
}
