/**
 * `node build/build.ts [--arch x64|arm64|all] [--to FOLDER]`
 *
 * Builds `pullwright-linux-<arch>` into the folder (default `dist/bin`, both architectures), links the executable for this
 * machine as `pullwright` and `crio-credential-provider`, and writes `SHA256SUMS`.
 */
import { hash } from 'node:crypto';
import { existsSync, linkSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { UsageError } from '../runtime/core/errors.ts';
import { ARCHS, type Arch } from './base.ts';
import { compile } from './compile.ts';
import { ROOT, runProgram } from './run-tool.ts';

function main(): void {
  const { values } = parseArgs({
    options: {
      arch: { type: 'string', default: 'all' },
      to: { type: 'string', default: join(ROOT, 'dist/bin') },
    },
  });
  for (const arch of wantedArchs(values.arch)) {
    const outfile = join(values.to, `pullwright-linux-${arch}`);
    compile(arch, outfile);
    process.stderr.write(`built ${outfile}\n`);
  }
  linkOwn(values.to);
  const lines = readdirSync(values.to)
    .filter((name) => name.startsWith('pullwright-linux-'))
    .sort()
    .map((name) => `${hash('sha256', readFileSync(join(values.to, name)))}  ${name}\n`);
  writeFileSync(join(values.to, 'SHA256SUMS'), lines.join(''));
}

function wantedArchs(text: string): readonly Arch[] {
  const found = ARCHS.filter((arch) => text === 'all' || text === arch);
  if (found.length > 0) return found;
  throw new UsageError(`Unknown architecture "${text}": expected x64, arm64 or all`);
}

/** Names by which users and kubelets call the executable. */
const NAMES = ['pullwright', 'crio-credential-provider'];

/** Hard links: the same file under each name. */
function linkOwn(folder: string): void {
  const own = join(folder, `pullwright-linux-${process.arch}`);
  if (!existsSync(own)) return;
  for (const name of NAMES) {
    const fresh = join(folder, `.${name}`);
    rmSync(fresh, { force: true });
    linkSync(own, fresh);
    renameSync(fresh, join(folder, name));
    // Renaming one link of a file onto another link of it does nothing and leaves both names.
    rmSync(fresh, { force: true });
  }
}

await runProgram(main);
