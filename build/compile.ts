/** Compiles `runtime/commands/executable.ts` with its imports into one executable. */
import { chmodSync, mkdirSync, mkdtempDisposableSync, readFileSync, renameSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { SHORT_LIVED_JIT_POLICY } from '../runtime/commands/command-line.ts';
import { type Arch, baseRuntime } from './base.ts';
import { ROOT, runTool, workFolder } from './run-tool.ts';

/**
 * Reasons for the flags:
 * - `--bytecode --format=esm --splitting`: each command is a chunk that is loaded on demand;
 * - `--compile-jit-policy`: see `SHORT_LIVED_JIT_POLICY`;
 * - `--no-compile-autoload-*`: a `.env`, `bunfig.toml`, `tsconfig.json` or `package.json` in the working folder must not
 *   change what a root process does;
 * - `--external`: optional parts of dbus-next that a `unix:` address does not need.
 */
const FLAGS: readonly string[] = [
  '--compile',
  '--minify',
  '--bytecode',
  '--format=esm',
  '--splitting',
  `--compile-jit-policy=${SHORT_LIVED_JIT_POLICY}`,
  '--no-compile-autoload-dotenv',
  '--no-compile-autoload-bunfig',
  '--no-compile-autoload-tsconfig',
  '--no-compile-autoload-package-json',
];
const EXTERNAL: readonly string[] = ['--external=x11', '--external=usocket'];
const ENTRY = 'runtime/commands/executable.ts';

/**
 * Builds one executable. Needs the network only for another architecture's runtime, once.
 *
 * @param outfile path of the executable; replaced by a rename, so that a running copy is not disturbed
 */
export function compile(arch: Arch, outfile: string, entry: string = join(ROOT, ENTRY)): void {
  mkdirSync(dirname(outfile), { recursive: true });
  using work = mkdtempDisposableSync(join(dirname(outfile), '.build-'));
  // The executable contains the file name it was built with, so all builds use the same name.
  const built = join(work.path, 'pullwright');
  runTool(
    [
      baseRuntime(),
      'build',
      ...FLAGS,
      ...EXTERNAL,
      `--target=bun-linux-${arch}`,
      `--compile-executable-path=${baseRuntime(arch)}`,
      `--outfile=${built}`,
      entry,
    ],
    ROOT,
  );
  chmodSync(built, 0o755);
  renameSync(built, outfile);
}

/** Paths of all modules that are in every executable, relative to the repository. */
export function bundledModules(): readonly string[] {
  using work = workFolder('modules');
  const says = join(work.path, 'modules.json');
  const flags = ['--target=bun', '--format=esm', '--splitting', ...EXTERNAL, `--metafile=${says}`];
  runTool([baseRuntime(), 'build', ...flags, `--outdir=${join(work.path, 'out')}`, ENTRY], ROOT);
  const { inputs } = JSON.parse(readFileSync(says, 'utf8')) as {
    inputs: Readonly<Record<string, unknown>>;
  };
  return Object.keys(inputs).sort();
}
