/** Runs a build tool to its end; what it printed is in the error when it fails. */
import { spawnSync } from 'node:child_process';
import { PullwrightError } from '../runtime/core/errors.ts';

/** Runs `[program, ...args]` in `cwd` and gives what it wrote to stdout. */
export function runTool([program = '', ...args]: readonly string[], cwd: string): string {
  const ran = spawnSync(program, args, { cwd, encoding: 'utf8', maxBuffer: 64 << 20 });
  if (ran.status === 0) return ran.stdout;
  const said = ran.error?.message ?? `${ran.stdout}${ran.stderr}`.trim();
  throw new PullwrightError(`Cannot run "${[program, ...args].join(' ')}": ${said}`, {
    code: 'ToolFailed',
    retryPolicy: 'terminal',
  });
}
