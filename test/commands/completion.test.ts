/** The completion script, asked as a shell asks it. */
import assert from 'node:assert/strict';
import { runProcess } from '../support/process.ts';
import { type Case, suite, table } from '../support/suite.ts';

const test = suite('pullwright completion');
const main = new URL('../../main.ts', import.meta.url).pathname;

const completion = (shell: string) => runProcess([process.execPath, main, 'completion', shell]);

interface Row extends Case {
  readonly words: readonly string[];
  readonly wanted: readonly string[];
}

const rows: readonly Row[] = [
  { name: 'a command', reason: 'the first word', words: ['pullwright', 'rec'], wanted: ['reconcile'] },
  {
    name: 'the plugin',
    reason: 'the same under the other name',
    words: ['kubectl-pullwright', 'stat'],
    wanted: ['status'],
  },
  {
    name: 'a flag',
    reason: 'of that command alone',
    words: ['pullwright', 'reconcile', '--hosted'],
    wanted: ['--hosted-cluster'],
  },
  {
    name: 'a flag of another command',
    reason: 'would be refused',
    words: ['pullwright', 'status', '--hosted'],
    wanted: [],
  },
];

table(test, rows, async ({ words, wanted }) => {
  const script = (await completion('bash')).stdout;
  const ask = `${script}\nCOMP_WORDS=(${words.join(' ')}); COMP_CWORD=${words.length - 1}; _pullwright; printf '%s\\n' "\${COMPREPLY[@]}"`;
  const ran = await runProcess(['bash', '-c', ask]);
  assert.deepEqual(
    ran.stdout.split('\n').filter((line) => line !== ''),
    wanted,
    ran.stderr,
  );
});

test('zsh and fish get a script of their own', async () => {
  assert.match((await completion('zsh')).stdout, /^#compdef pullwright\n/);
  assert.match(
    (await completion('fish')).stdout,
    /^complete -c pullwright -n '__fish_seen_subcommand_from reconcile' -l from$/m,
  );
});

test('kubectl asks a program of its own', async () => {
  const script = (await completion('kubectl')).stdout;
  const answer = async (...words: readonly string[]): Promise<readonly string[]> =>
    (await runProcess(['sh', '-c', script, 'kubectl_complete-pullwright', ...words])).stdout
      .trim()
      .split('\n');
  assert.ok((await answer('ex')).includes('explain'));
  assert.deepEqual((await answer('ex')).at(-1), ':4');
  const flags = await answer('status', '--f');
  assert.ok(flags.includes('--from') && !flags.includes('--hosted-cluster'), flags.join(' '));
  assert.deepEqual(await answer('validate', 'a'), [':0']);
});

test('another shell is refused by name', async () => {
  const ran = await completion('tcsh');
  assert.equal(ran.code, 2);
  assert.match(ran.stderr, /"tcsh": wanted one of bash, zsh, fish, kubectl/);
});

test.run();
