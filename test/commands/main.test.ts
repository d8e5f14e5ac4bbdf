/** The program before a command runs: help, version, and words that were mistyped. */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { runProcess } from '../support/process.ts';
import { type Cases, cases, test } from '../support/suite.ts';

const main = new URL('../../main.ts', import.meta.url).pathname;
const run = (args: readonly string[]) =>
  runProcess([process.execPath, ...args], {
    env: { PATH: process.env['PATH'] ?? '', HOME: '/nonexistent' },
  });

type Row = [args: string, code: number, stdout: RegExp, stderr?: RegExp];
const LIST =
  /^Pull credentials as code[\s\S]*Inspect \(read-only\):\n {2}check [\s\S]* doctor [\s\S]* verify [\s\S]*clean up:\n {2}completion [\s\S]*nodes:\n {2}adapter /;
const rows: Cases<Row> = [
  ['the commands by who calls them', 'who asks wants others than who deploys', '--help', 0, LIST],
  ['no command', 'a pipe must not take the list for a result', '', 2, /^$/, LIST],
  ['help COMMAND', 'git, go and kubectl have taught it', 'help explain', 0, /Usage: pullwright explain /],
  ['version', 'so has kubectl', 'version', 0, /^pullwright \d/],
  [
    'a mistyped command',
    'one suggestion is read, a list of twenty is not',
    'explian',
    2,
    /^$/,
    /^Unknown command "explian": did you mean "explain"\?\n$/,
  ],
  [
    'a mistyped flag',
    'likewise',
    'status --outptu json',
    2,
    /^$/,
    /^Unknown option "--outptu": did you mean "--output"\?\nRun "pullwright status --help" for usage\n$/,
  ],
  [
    '--help behind -- is an argument',
    'what stands there is no flag',
    'explain -- --help',
    2,
    /^$/,
    /^(Cannot read image "--help"|Cannot find a cluster)/,
  ],
];

cases<Row>(test, rows, async (args, code, stdout, stderr = /^$/) => {
  const ran = await run([main, ...args.split(' ').filter((word) => word !== '')]);
  assert.equal(ran.code, code, ran.stderr);
  assert.match(ran.stdout, stdout);
  assert.match(ran.stderr, stderr);
});

test('modules are compiled once for a checkout', async () => {
  const say = `process.on('exit', () => console.log(process.getBuiltinModule('module').getCompileCacheDir()))`;
  const ran = await run(['--import', `data:text/javascript,${say}`, main, 'version']);
  assert.ok(ran.stdout.includes(`\n${join(dirname(main), 'node_modules/.cache/pullwright')}/`), ran.stdout);
});

if (!existsSync('/dev/full')) test.skip('output that cannot be written is a failure', 'needs /dev/full');
else
  test('output that cannot be written is a failure', async () => {
    const line = '"$0" "$1" version > /dev/full';
    const ran = await runProcess(['/bin/sh', '-c', line, process.execPath, main], { env: {} });
    assert.equal(ran.code, 1);
    assert.equal(ran.stderr, 'Cannot write to standard output: ENOSPC\n');
  });
