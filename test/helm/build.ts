/** Helm, built once with Go from `go.mod`: the program that users run. */
import { join } from 'node:path';
import { canBuild, type GoTools, goTools, type Progress } from '../support/go-tools.ts';

const TOOLS: GoTools = {
  name: 'helm',
  module: import.meta.dirname,
  // Without a version, Helm reports v4.0, and charts with a kubeVersion or a Helm version would be checked against it.
  flags: ['-ldflags', '-X helm.sh/helm/v4/internal/version.version=v4.3.1'],
  env: { CGO_ENABLED: '0' },
  programs: { helm: 'helm' },
};

const toStderr: Progress = (line) => process.stderr.write(`${line}\n`);

/** Why there can be none, for `test.skip`; undefined when there can. Builds nothing. */
export function missingHelm(): string | undefined {
  return canBuild(TOOLS) ? undefined : 'no Go tool chain to build helm with';
}

/** Path of the program; builds it if it is missing (about two minutes on two cores). */
export async function helmProgram(progress: Progress = toStderr): Promise<string> {
  return join(await goTools(TOOLS, progress), 'helm');
}
