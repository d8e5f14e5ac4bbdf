/** krew and the program that judges manifests for its index, built once with Go from `go.mod`. */
import { join } from 'node:path';
import { canBuild, type GoTools, goTools, type Progress } from '../support/go-tools.ts';

const TOOLS: GoTools = {
  name: 'krew',
  module: import.meta.dirname,
  env: { CGO_ENABLED: '0' },
  programs: { krew: 'krew', 'validate-krew-manifest': 'validate-krew-manifest' },
};

const toStderr: Progress = (line) => process.stderr.write(`${line}\n`);

/** Why there can be none, for `test.skip`; undefined when there can. Builds nothing. */
export function missingKrew(): string | undefined {
  return canBuild(TOOLS) ? undefined : 'no Go tool chain to build krew with';
}

/** Paths of both programs; builds them when nobody has yet. */
export async function krewPrograms(
  progress: Progress = toStderr,
): Promise<{ readonly krew: string; readonly judge: string }> {
  const folder = await goTools(TOOLS, progress);
  return { krew: join(folder, 'krew'), judge: join(folder, 'validate-krew-manifest') };
}
