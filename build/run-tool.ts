/** Runs build tools. If one fails, the error contains its output. */
import { spawnSync } from 'node:child_process';
import { mkdtempDisposableSync, realpathSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describeError, PullwrightError, UsageError } from '../runtime/core/errors.ts';

/** The folder of this repository. */
export const ROOT: string = realpathSync(join(import.meta.dirname, '..'));

/** Runs a build program. An error becomes one line, and the exit code 2 for wrong usage, else `failed`. */
export async function runProgram(main: () => unknown, failed = 1): Promise<void> {
  try {
    await main();
  } catch (error) {
    process.stderr.write(`${describeError(error)}\n`);
    process.exitCode = error instanceof UsageError ? 2 : failed;
  }
}

/** Runs `[program, ...args]` in `cwd` and returns its stdout. */
export function runTool([program = '', ...args]: readonly string[], cwd: string): string {
  const ran = spawnSync(program, args, { cwd, encoding: 'utf8', maxBuffer: 64 << 20 });
  if (ran.status === 0) return ran.stdout;
  const said = ran.error?.message ?? `${ran.stdout}${ran.stderr}`.trim();
  throw new PullwrightError(`Cannot run "${[program, ...args].join(' ')}": ${said}`, {
    code: 'ToolFailed',
  });
}

/** A temporary folder, removed at the end of the scope. */
export function workFolder(name: string): ReturnType<typeof mkdtempDisposableSync> {
  return mkdtempDisposableSync(join(tmpdir(), `pullwright-${name}-`));
}

/**
 * Packs `what` of a folder, sorted and without times and owners, so that the same files give the same bytes. Compresses a file
 * with a name in `gz`.
 */
export function archive(folder: string, file: string, what = '.'): void {
  const more = file.endsWith('gz') ? ['--use-compress-program=gzip -n'] : [];
  const flags = ['--sort=name', '--format=ustar', '--mtime=@0', '--owner=0', '--group=0', '--numeric-owner'];
  runTool(['tar', ...flags, '--mode=u+rw,go-w,a+rX', ...more, '-cf', file, '-C', folder, what], folder);
}
