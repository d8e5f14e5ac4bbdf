/** Programs of one Go file that run Kubernetes' own code, built against the modules of the test control plane. */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';

const MODULE = join(import.meta.dirname, '../control-plane');

/** Why none can be built here, or undefined. */
export function missingGo(): string | undefined {
  return spawnSync('go', ['version']).status === 0 ? undefined : 'no Go tool chain';
}

/** Builds `source` to `binary`; what the control plane is built from is not compiled twice. */
export function buildGoProgram(source: string, binary: string): void {
  const { status, stderr } = spawnSync('go', ['build', '-C', MODULE, '-o', binary, source], {
    encoding: 'utf8',
  });
  if (status !== 0) throw new Error(`Cannot build ${source}:\n${stderr}`);
}
