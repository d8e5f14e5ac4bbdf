/**
 * `npm run upgrade:check -- --from GIT_REF`: the executables of GIT_REF and of this tree beside and after each other, on a real control
 * plane and a real systemd. Prints a table; exit code 1 when a row does not hold.
 *
 * `--older FILE` takes an executable that is at hand, such as one of a release; `--only TEXT` the checks whose name has it.
 *
 * Needs git, root for the private systemd, and, where GIT_REF has another lock file, what `npm ci` needs.
 *
 * Frozen files show that this program reads what an older one wrote, and not what two programs do to each other; that takes an
 * older executable, minutes, and another build, so it is run before a release.
 */
import { execFileSync } from 'node:child_process';
import { copyFileSync, cpSync, existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { parseArgs } from 'node:util';
import { textTable } from '../../runtime/cli/terminal.ts';
import { describeError } from '../../runtime/core/errors.ts';
import { findPlanted } from '../support/canary.ts';
import { executable } from '../support/executable.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { clusterChecks } from './check-cluster.ts';
import { nodeChecks } from './check-node.ts';
import type { Check, Pair } from './pair.ts';

const root = new URL('../..', import.meta.url).pathname;
const { values } = parseArgs({
  options: { from: { type: 'string' }, older: { type: 'string' }, only: { type: 'string' } },
});
if ((values.from === undefined) === (values.older === undefined)) {
  process.stderr.write(
    'Cannot check: expected --from GIT_REF, or --older FILE, the release before this one\n',
  );
  process.exit(2);
}

const rows: string[][] = [];
let failed = 0;

await checkIn(tempFolder());
process.stdout.write(textTable([['RESULT', 'CHECK', 'SEEN'], ...rows], undefined));
process.stdout.write(`${rows.length - failed} hold, ${failed} do not\n`);
process.exitCode = failed === 0 && rows.length > 0 ? 0 : 1;

/** Both executables are in the folder: those that tests share go when the sources change. */
async function checkIn(place: string): Promise<void> {
  const pair: Pair = { older: join(place, 'older/pullwright'), newer: join(place, 'newer/pullwright') };
  for (const program of Object.values(pair)) mkdirSync(dirname(program));
  copyFileSync(await executable(), pair.newer);
  if (values.older !== undefined) copyFileSync(values.older, pair.older);
  else buildOlder(commitOf(values.from ?? ''), place, pair.older);
  process.env['PULLWRIGHT_EXECUTABLE'] = pair.newer;
  const older = values.older ?? nameOf(commitOf(values.from ?? ''));
  process.stdout.write(`older: ${older}; newer: this tree, on ${nameOf('HEAD')}\n`);
  for (const group of [nodeChecks, clusterChecks]) await group(pair, judge);
}

function nameOf(ref: string): string {
  return execFileSync('git', ['describe', '--always', '--tags', ref], { encoding: 'utf8' }).trim();
}

async function judge({ what, look }: Check): Promise<void> {
  if (values.only !== undefined && !what.includes(values.only)) return;
  try {
    rows.push(['ok', what, await look()]);
  } catch (error) {
    failed += 1;
    const text = describeError(error);
    process.stderr.write(`${what}: ${findPlanted(text) === undefined ? text : '(withheld)'}\n`);
    rows.push(['FAIL', what, (text.split('\n')[0] ?? '').slice(0, 120)]);
  }
}

// The executable of another commit, built from a clone of this repository with that commit's own lock file.

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
