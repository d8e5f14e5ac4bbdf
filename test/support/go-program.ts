/** Programs of one Go file that run Kubernetes' own code, built against the modules of the test control plane. */
import { spawnSync } from 'node:child_process';

/** Why none can be built here, or undefined. */
export function missingGo(): string | undefined {
  return spawnSync('go', ['version']).status === 0 ? undefined : 'no Go tool chain';
}
