/** The executable of another commit, built from a clone of this repository with that commit's own lock file. */
import { execFileSync } from 'node:child_process';
import { copyFileSync, cpSync, existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';

const root = new URL('../..', import.meta.url).pathname;

/** Full name of the commit that `ref` means now. Throws when there is none. */
export function commitOf(ref: string): string {
  return execFileSync('git', ['rev-parse', '--verify', `${ref}^{commit}`], {
    cwd: root,
    encoding: 'utf8',
  }).trim();
}

/** Builds it below `folder`, and puts it at `outfile`. */
export function buildOlder(commit: string, folder: string, outfile: string): void {
  const tree = join(folder, 'tree');
  execFileSync('git', ['clone', '--quiet', '--no-checkout', root, tree]);
  execFileSync('git', ['checkout', '--quiet', commit], { cwd: tree });
  install(tree);
  const bin = join(folder, 'bin');
  execFileSync(
    join(tree, 'node_modules/.bin/node'),
    ['build/build.ts', '--arch', process.arch, '--to', bin],
    { cwd: tree, stdio: ['ignore', 'ignore', 'inherit'] },
  );
  copyFileSync(join(bin, 'pullwright'), outfile);
  rmSync(tree, { recursive: true, force: true });
}

/** The same packages are at hand when the lock files are the same. */
function install(tree: string): void {
  const lock = (folder: string): string => readFileSync(join(folder, 'package-lock.json'), 'utf8');
  const own = join(root, 'node_modules');
  if (existsSync(own) && lock(tree) === lock(root))
    cpSync(own, join(tree, 'node_modules'), { recursive: true, verbatimSymlinks: true });
  else
    execFileSync('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund'], {
      cwd: tree,
      stdio: 'inherit',
    });
}
