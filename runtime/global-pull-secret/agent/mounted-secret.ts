/** The mounted files of the two pull secrets, read whole. */
import { createHash } from 'node:crypto';
import { closeSync, fstatSync, openSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileError } from '../../host/file-errors.ts';
import { errnoOf, PullwrightError } from '../../rules/errors.ts';
import { GLOBAL_PULL_SECRET as NAMES } from '../../rules/kubernetes/global-pull-secret.ts';
import { type Redacted, redact, reveal } from '../../rules/redacted.ts';
import type { MountedFile } from '../reconciler/source.ts';

/** Larger than any Secret can be. */
const MAX_BYTES = 4 << 20;

/** Tells two states of a mount apart. */
export function sha256Of({ file, bytes }: MountedSecret): string {
  return `${file.state} ${createHash('sha256').update(reveal(bytes)).digest('hex')}`;
}

/** A pull secret as its mount, or the watch, has it. */
export interface MountedSecret {
  readonly path: string;
  readonly file: MountedFile;
  readonly bytes: Redacted<Uint8Array>;
  /** The mark beside it. */
  readonly judged?: string | undefined;
  /** Removals that its Secret confirms; a mount does not bring annotations. */
  readonly confirmed?: readonly string[] | undefined;
  /** Of its Secret, where the watch brought it. */
  readonly resourceVersion?: string | undefined;
  readonly error?: PullwrightError;
}

/** Follows links, because the kubelet's mounts are made of them. */
export function readSource(path: string): MountedSecret {
  const none = { path, bytes: redact(new Uint8Array()) };
  let fd: number | undefined;
  try {
    fd = openSync(path, 'r');
    const { size } = fstatSync(fd);
    if (size > MAX_BYTES) throw tooLarge(path, size);
    const bytes = readFileSync(fd);
    const content = redact(bytes.toString('utf8'));
    return {
      path,
      file: { state: 'present', content },
      bytes: redact(new Uint8Array(bytes)),
      judged: fileBeside(path, NAMES.judgedKey),
    };
  } catch (error) {
    if (errnoOf(error) === 'ENOENT' || errnoOf(error) === 'ENOTDIR')
      return { ...none, file: { state: 'absent' } };
    const failure = fileError('read', path, error);
    return { ...none, file: { state: 'unreadable', reason: failure.code }, error: failure };
  } finally {
    if (fd !== undefined) closeSync(fd);
  }
}

/** What cannot be read is not there. */
function fileBeside(path: string, name: string): string | undefined {
  try {
    return readFileSync(join(dirname(path), name), 'utf8').trim();
  } catch {
    return undefined;
  }
}

function tooLarge(path: string, size: number): PullwrightError {
  return new PullwrightError(`Cannot read "${path}": it has ${size} bytes, expected at most ${MAX_BYTES}`, {
    code: 'SourceInvalid',
  });
}
