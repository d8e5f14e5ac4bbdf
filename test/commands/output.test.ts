/** Every form of what commands print as JSON, by real runs, and what is printed where a run fails. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { Readable } from 'node:stream';
import { COMMANDS } from '../../runtime/commands/table.ts';
import { golden } from '../support/golden.ts';
import { runInProcess } from '../support/in-process.ts';
import { assertPrinted } from '../support/json-output.ts';
import { type Case, table, test } from '../support/suite.ts';
import { CHANGE, CLUSTER, EMPTY, emptyCluster, nodeFiles, nowhere, tidy } from './output-scene.ts';

const root = new URL('../..', import.meta.url).pathname;
const kubeconfig = await emptyCluster();

interface Run extends Case {
  readonly args: readonly string[];
  /** Index of the command's form. @default {0} */
  readonly form?: number;
  readonly code: number;
  readonly stdin?: string;
}

const whole = 'a form that is printed has a schema that says all of it';
const nothing = 'what has nothing to say has the same form';
const run = (name: string, args: readonly string[], code: number, more: Partial<Run> = {}): Run => ({
  name,
  reason: whole,
  args,
  code,
  ...more,
});

const FLEET = ['--fleet', 'examples/fleet/fleet.yaml'];
const EXPECTATIONS = 'examples/credential-tests/shop.test.yaml';
const REQUEST = readFileSync(`${root}examples/request.json`, 'utf8');

const RUNS: readonly Run[] = [
  run('agent', ['agent', '--once', '--dry-run', ...nodeFiles(), '--kubelet-healthz=off'], 1),
  run('check', ['check', '--pre', ...FLEET, '--cluster', 'management', '--from', CLUSTER], 0),
  run('doctor', ['doctor', 'web-1', '-n', 'shop', '--from', CLUSTER], 1),
  run('doctor of all', ['doctor', '--all', '-A', '--from', CLUSTER], 1, { form: 1 }),
  run('doctor of nothing', ['doctor', '--all', '-A', '--from', EMPTY], 0, { form: 1, reason: nothing }),
  run('explain', ['explain', '--pod', 'deploy/web', '-n', 'shop', '--from', CLUSTER], 0),
  run('explain of several', ['explain', 'quay.io/shop/a', 'b', '--from', CLUSTER], 0, { form: 1 }),
  run('explain of nothing', ['explain', 'a', '--from', EMPTY], 0, { reason: nothing }),
  run('install-provider', ['install-provider', '--once', '--dry-run', '--uninstall', '--root', EMPTY], 0),
  run('mirrors', ['mirrors', 'quay.io/shop/web:1', '--from', CLUSTER, '--what-if', CHANGE], 0),
  run('mirrors of nothing', ['mirrors', 'quay.io/a:1', '--from', EMPTY], 0, { reason: nothing }),
  run('mirrors in use', ['mirrors', '--in-use', '--from', CLUSTER, '--what-if', CHANGE], 1, { form: 1 }),
  run('provider --dry-run', ['provider', '--dry-run'], 0, { stdin: REQUEST }),
  run('provider --check', ['provider', '--check'], 1, { form: 1, stdin: '{}' }),
  run('reconcile', ['reconcile', '--from', 'examples/credential-provider', '--dry-run'], 0),
  run('reconcile of nothing', ['reconcile', '--from', EMPTY, '--dry-run'], 0, { reason: nothing }),
  run(
    'reconcile of several',
    [
      'reconcile',
      '--from',
      'examples/fleet/hosted',
      '--management',
      'examples/fleet/management',
      '--dry-run',
    ],
    0,
    { form: 1 },
  ),
  run('report', ['report', '--from', CLUSTER], 1),
  run('report of a fleet', ['report', '--from', 'examples/troubled'], 1),
  run('report of nothing', ['report', '--from', EMPTY], 0, { reason: nothing }),
  run('status', ['status', '--from', CLUSTER], 1),
  run('status of nothing', ['status', '--from', EMPTY], 0, { reason: nothing }),
  run('synth', ['synth', ...FLEET, '--to', nowhere('rendered')], 0),
  run('synth --check', ['synth', ...FLEET, '--to', nowhere('gone'), '--check'], 1),
  run('test', ['test', EXPECTATIONS], 0),
  run('test that does not hold', ['test', EXPECTATIONS, '--from', EMPTY], 1),
  run('uninstall --dry-run', ['uninstall', '--dry-run', '--kubeconfig', kubeconfig], 0, { reason: nothing }),
  run('uninstall', ['uninstall', '--yes', '--kubeconfig', kubeconfig], 0, { form: 1, reason: nothing }),
  run('validate', ['validate', CLUSTER], 0),
  run('validate what is none', ['validate', '-'], 1, {
    stdin: 'kind: Secret\nmetadata: {name: a}\ntype: x: y\n',
  }),
  run('verify', ['verify', '--all-in-use', '-A', '--from', CLUSTER, '--timeout', '1'], 1),
];

/** Every field that was printed, with its types, by command and form. */
const seen = new Map<string, Map<string, Set<string>>>();

function noteFields(value: unknown, path: string, fields: Map<string, Set<string>>): void {
  const type = Array.isArray(value) ? 'list' : value === null ? 'null' : typeof value;
  fields.set(path, (fields.get(path) ?? new Set()).add(type));
  if (typeof value !== 'object' || value === null) return;
  // Fields of a Kubernetes object belong to its kind.
  if ('apiVersion' in value && 'kind' in value && 'metadata' in value) return;
  for (const [name, inner] of Object.entries(value))
    noteFields(inner, Array.isArray(value) ? `${path}[]` : `${path}.${name}`, fields);
}

table(test, RUNS, async ({ args, form = 0, code, stdin }) => {
  const given = stdin === undefined ? {} : { stdin: Readable.from([stdin]) };
  const ran = await runInProcess([...args, '--output', 'json'], { cwd: root, ...given });
  assert.equal(ran.code, code, ran.stdout + ran.stderr);
  const name = `${args[0]} ${form}`;
  const fields = seen.get(name) ?? new Map<string, Set<string>>();
  noteFields(JSON.parse(ran.stdout), '', fields);
  seen.set(name, fields);
});

test('no field is lost or changes its type', () => {
  const lines = [...seen].flatMap(([name, fields]) =>
    [...fields].map(([path, types]) => `${name} ${path}: ${[...types].sort().join(', ')}`),
  );
  golden('json-output.txt', `${lines.sort().join('\n')}\n`);
});

const printing: string[] = [];
for (const [name, entry] of Object.entries(COMMANDS)) {
  const { flags } = await (await entry.load()).spec();
  if (flags['output']?.choices?.includes('json') === true) printing.push(name);
}

test('every command that can print JSON was run', () => {
  const ran = new Set(RUNS.map(({ args }) => args[0] ?? ''));
  assert.deepEqual([...ran].sort(), printing.sort());
});

table(
  test,
  [
    { name: 'usage', reason: 'an error is no result', code: 2, stdout: '{}\n', says: /prints to stdout/ },
    { name: 'nothing at all', reason: 'done, and nothing printed', code: 0, stdout: '', says: /line end/ },
    { name: 'half a line', reason: 'programs read lines', code: 1, stdout: '[]', says: /line end/ },
    {
      name: 'two documents',
      reason: 'only --watch prints several',
      code: 0,
      stdout: '[]\n[]\n',
      says: /JSON/,
    },
  ],
  ({ code, stdout, says }) =>
    assert.throws(() => assertPrinted(['status', '--output=json'], { code, stdout }), says),
);

test('with --watch one document follows the other', () => {
  assertPrinted(['status', '--watch', '-o=json'], { code: 0, stdout: '[\n  1\n]\n[]\n[\n  2\n]\n' });
});

table(
  test,
  printing.map((command) => ({ name: command, reason: 'programs read stdout, people stderr' })),
  async ({ name }) => {
    const usage = await runInProcess([name, '--output', 'json', '--no-such-flag']);
    assert.deepEqual([usage.code, usage.stdout], [2, '']);
    assert.match(usage.stderr, /--no-such-flag/);
  },
);

table(
  test,
  ['doctor web', 'explain a', 'import', 'mirrors a', 'reconcile --dry-run', 'report', 'status'].map(
    (name) => ({
      name: `${name} of a folder that is not there`,
      reason: 'nothing is known',
      args: name.split(' '),
    }),
  ),
  async ({ args }) => {
    const ran = await runInProcess([...args, '--output', 'json', '--from', nowhere('gone')]);
    assert.notEqual(ran.code, 0);
    assert.equal(ran.stdout, '');
    assert.notEqual(ran.stderr, '');
  },
);

test.lastly('servers and folders are gone', tidy);
