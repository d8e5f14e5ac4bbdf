/** The program before a command runs: help, version, and words that were mistyped. */
import assert from 'node:assert/strict';
import { runProcess } from '../support/process.ts';
import { type Case, table, test } from '../support/suite.ts';

const main = new URL('../../main.ts', import.meta.url).pathname;
const run = (...args: readonly string[]) =>
  runProcess([process.execPath, main, ...args], {
    env: { PATH: process.env['PATH'] ?? '', HOME: '/nonexistent' },
  });

interface Row extends Case {
  readonly args: readonly string[];
  readonly code: number;
  readonly stdout?: RegExp;
  readonly stderr?: RegExp;
}

const rows: readonly Row[] = [
  {
    name: '--help lists the commands by who calls them',
    reason: 'whoever asks wants other commands than whoever deploys',
    args: ['--help'],
    code: 0,
    stdout:
      /Inspect \(read-only\):\n {2}check [\s\S]* doctor [\s\S]* verify [\s\S]*clean up:\n {2}completion [\s\S]*nodes:\n {2}adapter /,
  },
  {
    name: 'no command prints the same as an error',
    reason: 'a pipe must not take the list for a result',
    args: [],
    code: 2,
    stderr: /^Pull credentials as code[\s\S]*Inspect \(read-only\):/,
  },
  {
    name: 'help COMMAND is COMMAND --help',
    reason: 'git, go and kubectl have taught it',
    args: ['help', 'explain'],
    code: 0,
    stdout: /Usage: pullwright explain /,
  },
  { name: 'version', reason: 'so has kubectl', args: ['version'], code: 0, stdout: /^pullwright \d/ },
  {
    name: 'a mistyped command',
    reason: 'one suggestion is read, a list of twenty is not',
    args: ['explian'],
    code: 2,
    stderr: /^Unknown command "explian": did you mean "explain"\?\n$/,
  },
  {
    name: 'a mistyped flag',
    reason: 'likewise',
    args: ['status', '--outptu', 'json'],
    code: 2,
    stderr:
      /^Unknown option "--outptu": did you mean "--output"\?\nRun "pullwright status --help" for usage\n$/,
  },
  {
    name: '--help behind -- is an argument',
    reason: 'what stands there is no flag',
    args: ['explain', '--', '--help'],
    code: 2,
    stderr: /^(Cannot read image "--help"|Cannot find a cluster)/,
  },
];

table(test, rows, async ({ args, code, stdout = /^$/, stderr = /^$/ }) => {
  const ran = await run(...args);
  assert.equal(ran.code, code, ran.stderr);
  assert.match(ran.stdout, stdout);
  assert.match(ran.stderr, stderr);
});
