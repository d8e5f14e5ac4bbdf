/** The judge of bundles that OperatorHub and `operator-sdk` use, built once with Go from `go.mod`. */
import { join } from 'node:path';
import { canBuild, type GoTools, goTools, type Progress } from '../support/go-tools.ts';

const TOOLS: GoTools = {
  name: 'operator-verify',
  module: import.meta.dirname,
  env: { CGO_ENABLED: '0' },
  programs: { 'operator-verify': 'operator-verify' },
};

const toStderr: Progress = (line) => process.stderr.write(`${line}\n`);

/** Why there can be none, for `test.skip`; undefined when there can. Builds nothing. */
export function missingJudge(): string | undefined {
  return canBuild(TOOLS) ? undefined : 'no Go tool chain to build operator-verify with';
}

/** Path of the program; builds it if it is missing. */
export async function bundleJudge(progress: Progress = toStderr): Promise<string> {
  return join(await goTools(TOOLS, progress), 'operator-verify');
}
