/** The completion script, asked as a shell asks it. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { runInProcess } from '../support/in-process.ts';
import { runMain, runProcess } from '../support/process.ts';
import { type Case, table, test } from '../support/suite.ts';
import { tempFolder } from '../support/temp-folder.ts';

const main = new URL('../../main.ts', import.meta.url).pathname;

const completion = (shell: string) => runMain(['completion', shell]);

interface Row extends Case {
  readonly words: string;
  readonly wanted: readonly string[];
}

const rows: readonly Row[] = [
  { name: 'a command', reason: 'the first word', words: 'pullwright rec', wanted: ['reconcile'] },
  {
    name: 'the plugin',
    reason: 'the same under the other name',
    words: 'kubectl-pullwright stat',
    wanted: ['status'],
  },
  {
    name: 'a flag',
    reason: 'of that command alone',
    words: 'pullwright reconcile --hosted',
    wanted: ['--hosted-cluster'],
  },
  {
    name: 'a flag of another command',
    reason: 'would be refused',
    words: 'pullwright status --hosted',
    wanted: [],
  },
  {
    name: 'a value',
    reason: 'the choices are known',
    words: 'pullwright status --output w',
    wanted: ['wide'],
  },
  {
    name: 'a value of a letter',
    reason: '-o is --output',
    words: 'pullwright status -o j',
    wanted: ['json'],
  },
  {
    name: 'a value behind =',
    reason: 'bash cuts there',
    words: 'pullwright status --output = na',
    wanted: ['name'],
  },
  {
    name: 'a pod, with its namespace behind =',
    reason: 'the sign is no word',
    words: 'pullwright doctor --namespace = shop d',
    wanted: ['db-1'],
  },
  {
    name: 'a program by a path that is not there',
    reason: 'an alias, or a word that the shell has not expanded',
    words: '$HOME/nowhere/pullwright status -o j',
    wanted: ['json'],
  },
  {
    name: 'a context',
    reason: 'kubectl knows them',
    words: 'pullwright status --context prod-',
    wanted: ['prod-east', 'prod-west'],
  },
  {
    name: 'all contexts',
    reason: 'with what stands before a slash, and without one that the shell would run',
    words: 'pullwright status --context ',
    wanted: ['prod-east', 'prod-west', 'test', 'arn:aws:eks:eu:1:cluster/prod'],
  },
  { name: 'a namespace', reason: 'kubectl knows them', words: 'pullwright doctor -n sh', wanted: ['shop'] },
  {
    name: 'a pod',
    reason: 'of the namespace that stands on the line',
    words: 'pullwright explain -n shop --pod w',
    wanted: ['web-1'],
  },
  {
    name: 'a pod as an argument',
    reason: 'doctor takes it without a flag',
    words: 'pullwright doctor -n shop d',
    wanted: ['db-1'],
  },
  {
    name: 'a pod without a namespace',
    reason: 'that of the context',
    words: 'pullwright explain --pod ',
    wanted: ['api-1'],
  },
  { name: 'a node', reason: 'kubectl knows them', words: 'pullwright explain --node ', wanted: ['worker-a'] },
  {
    name: 'a ServiceAccount',
    reason: 'kubectl knows them',
    words: 'pullwright explain --namespace shop --service-account ',
    wanted: ['default', 'robot'],
  },
  {
    name: 'behind a switch',
    reason: 'it takes no value',
    words: 'pullwright status --watch --al',
    wanted: ['--all-namespaces', '--all'],
  },
];

const bin = tempFolder();
const program = (name: string, lines: string): void =>
  writeFileSync(join(bin, name), `#!/bin/sh\n${lines}\n`, { mode: 0o755 });
for (const name of ['pullwright', 'kubectl-pullwright'])
  program(name, `exec '${process.execPath}' '${main}' "$@"`);
program(
  'kubectl',
  `case "$1 $2 $3" in
'get pods --namespace=shop') printf 'pod/%s\\n' web-1 db-1 ;;
'get pods -o') echo pod/api-1 ;;
'get nodes -o') echo node/worker-a ;;
'get serviceaccounts --namespace=shop') printf 'serviceaccount/%s\\n' default robot ;;
'config get-contexts -o') printf '%s\\n' prod-east prod-west test arn:aws:eks:eu:1:cluster/prod '$(echo ran)' ;;
'get namespaces '*) printf 'namespace/%s\\n' default shop ;;
esac`,
);

table(test, rows, async ({ words: line, wanted }) => {
  const words = line.split(' ');
  const script = (await completion('bash')).stdout;
  const ask = `${script}\nCOMP_WORDS=(${words.map((word) => `'${word}'`).join(' ')}); COMP_CWORD=${words.length - 1}; _pullwright; printf '%s\\n' "\${COMPREPLY[@]}"`;
  const ran = await runProcess(['bash', '-c', ask], {
    env: { ...process.env, PATH: `${bin}:${process.env['PATH']}` },
  });
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
    /^complete -c pullwright -a '\(pullwright completion words -- /,
  );
});

test('fish shows what a word means, and leaves a flag with its value whole', async () => {
  const value = await runInProcess(['completion', 'words', '--', 'status', '--output=j']);
  assert.match(value.stdout, /^--output=json$/m);
  const ran = await runInProcess(['completion', 'words', '--', 'status', '--wa']);
  assert.match(ran.stdout, /^--watch\trefresh every few seconds until interrupted$/m);
});

test('words behind the shell are refused', async () => {
  const ran = await runInProcess(['completion', 'bash', '--', 'pullwright']);
  assert.equal(ran.code, 2);
  assert.match(
    ran.stderr,
    /^Cannot print a completion script for "bash pullwright": expected one of bash, zsh, fish/,
  );
});

test('another shell is refused by name', async () => {
  const ran = await completion('tcsh');
  assert.equal(ran.code, 2);
  assert.match(ran.stderr, /"tcsh": expected one of bash, zsh, fish/);
});
