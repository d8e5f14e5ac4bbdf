/**
 * `npm run upgrade:check -- --from GIT_REF`: the executables of GIT_REF and of this tree beside and after each other, on a real control
 * plane, a real systemd and a real kubelet request. Prints a table; exit code 1 when a row does not hold.
 *
 * `--older FILE` takes an executable that is at hand, such as one of a release; `--only TEXT` the checks whose name has it.
 *
 * Needs git, root for the private systemd, and, where GIT_REF has another lock file, what `npm ci` needs.
 *
 * Frozen files show that this program reads what an older one wrote, and not what two programs do to each other; that takes an
 * older executable, minutes, and another build, so it is run before a release.
 */
import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { parseArgs } from 'node:util';
import { textTable } from '../../runtime/cli/terminal.ts';
import { describeError } from '../../runtime/core/errors.ts';
import { findPlanted } from '../support/canary.ts';
import { executable } from '../support/executable.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { clusterChecks } from './check-cluster.ts';
import { nodeChecks } from './check-node.ts';
import { providerChecks } from './check-provider.ts';
import { buildOlder, commitOf } from './older-executable.ts';
import type { Check, Pair } from './pair.ts';

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

const folder = tempFolder();
try {
  await checkIn(folder);
} finally {
}
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
  for (const group of [nodeChecks, providerChecks, clusterChecks]) await group(pair, judge);
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
