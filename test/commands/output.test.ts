/** Every form of what commands print as JSON, by real runs; what is printed where a run fails; and that a wrong schema is noticed. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { Readable } from 'node:stream';
import { z } from 'zod';
import { outputSchemaFiles } from '../../build/reference/output.ts';
import { form, type OutputForm } from '../../build/reference/outputs/form.ts';
import { OUTPUTS } from '../../build/reference/outputs/outputs.ts';
import { COMMANDS } from '../../runtime/commands/table.ts';
import { redact } from '../../runtime/core/redacted.ts';
import { runInProcess } from '../support/in-process.ts';
import { assertPrinted, formOf, jsonRunOf } from '../support/output-schema.ts';
import { type Case, suite, table } from '../support/suite.ts';
import { CHANGE, CLUSTER, EMPTY, emptyCluster, nodeFiles, nowhere, tidy } from './output-scene.ts';

const test = suite('JSON output');
const root = new URL('../..', import.meta.url).pathname;
const kubeconfig = await emptyCluster();

interface Run extends Case {
  readonly args: readonly string[];
  /** Of the command's forms. @default {0} */
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

const seen = new Map<string, unknown>();

table(test, RUNS, async ({ args, form: wanted = 0, code, stdin }) => {
  const given = stdin === undefined ? {} : { stdin: Readable.from([stdin]) };
  const asked = [...args, '--output', 'json'];
  const ran = await runInProcess(asked, { cwd: root, ...given });
  assert.equal(ran.code, code, ran.stdout + ran.stderr);
  const { command } = jsonRunOf(asked) ?? assert.fail('no JSON was asked for');
  const value: unknown = JSON.parse(ran.stdout);
  assert.equal((await formOf(command, value)).index, wanted, ran.stdout);
  if (!seen.has(`${command} ${wanted}`)) seen.set(`${command} ${wanted}`, value);
});

test('every form of every command was printed', () => {
  const all = Object.entries(OUTPUTS).flatMap(([command, forms]) => forms.map((_, at) => `${command} ${at}`));
  assert.deepEqual([...seen.keys()].sort(), all.sort());
});

test('every command that can print JSON has a schema, and no other', async () => {
  const names: string[] = [];
  for (const [name, entry] of Object.entries(COMMANDS)) {
    const { flags } = await (await entry.load()).spec();
    if (flags['output']?.choices?.includes('json') === true) names.push(name);
  }
  assert.deepEqual(names.sort(), Object.keys(OUTPUTS).sort());
});

test('a field that no schema has is refused, and so is one that is not there', async () => {
  for (const [name, value] of seen) {
    const [command = ''] = name.split(' ');
    const refuses = async (changed: object): Promise<void> => {
      const document = Array.isArray(value) ? [changed] : changed;
      assert.equal((await formOf(command, document)).index, undefined, `${name}: ${JSON.stringify(changed)}`);
      await assert.rejects(
        assertPrinted([command, '-o', 'json'], { code: 1, stdout: `${JSON.stringify(document)}\n` }),
        /prints what its schema in runtime\/commands\/output does not say/,
      );
    };
    const [one = value] = Array.isArray(value) ? (value as readonly unknown[]) : [];
    assert.ok(typeof one === 'object' && one !== null, name);
    await refuses({ ...one, surprise: 1 });
    await refuses({});
  }
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
  async ({ code, stdout, says }) =>
    assert.rejects(assertPrinted(['status', '--output=json'], { code, stdout }), says),
);

test('whoever watches gets one document after the other', async () => {
  const row = { system: 'a', object: 'b', state: 'Ready', reason: 'c', message: 'd' };
  const stdout = `${JSON.stringify([row], null, 2)}\n[]\n${JSON.stringify([row], null, 2)}\n`;
  await assertPrinted(['status', '--watch', '-o=json'], { code: 0, stdout });
  await assert.rejects(
    assertPrinted(['status', '-w', '-ojson'], { code: 0, stdout: stdout.replace('"b"', '1') }),
    /expected string/,
  );
});

table(
  test,
  Object.keys(OUTPUTS).map((command) => ({ name: command, reason: 'programs read stdout, people stderr' })),
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

test('a schema that says more, less or something else than is printed does not compile', () => {
  interface Printed {
    readonly name: string;
    readonly state: 'a' | 'b';
    readonly fix?: string;
    readonly value: ReturnType<typeof redact<number>>;
    readonly gone: string | undefined;
  }
  const right = {
    name: z.string(),
    state: z.enum(['a', 'b']),
    fix: z.string().exactOptional(),
    value: z.string(),
    gone: z.string().exactOptional(),
  };
  const { fix: _fix, ...less } = right;
  const forms: readonly OutputForm[] = [
    form<Printed>('as it is')(z.strictObject(right)),
    // @ts-expect-error: an optional field is left out
    form<Printed>('less')(z.strictObject(less)),
    // @ts-expect-error: nothing prints it
    form<Printed>('more')(z.strictObject({ ...right, more: z.string().exactOptional() })),
    // @ts-expect-error: it is not always there
    form<Printed>('required')(z.strictObject({ ...right, fix: z.string() })),
    // @ts-expect-error: one of the values is missing
    form<Printed>('narrow')(z.strictObject({ ...right, state: z.enum(['a']) })),
    // @ts-expect-error: one of the values is never printed
    form<Printed>('wide')(z.strictObject({ ...right, state: z.enum(['a', 'b', 'c']) })),
    // @ts-expect-error: what is redacted is a text
    form<Printed>('revealed')(z.strictObject({ ...right, value: z.number() })),
  ];
  const printed: unknown = JSON.parse(
    JSON.stringify({ name: 'n', state: 'a', value: redact(1), gone: undefined } satisfies Printed),
  );
  assert.deepEqual(
    forms.filter(({ schema }) => schema.safeParse(printed).success).map(({ when }) => when),
    ['as it is', 'less', 'more', 'narrow', 'wide'],
  );
});

test('each file of a schema names itself and closes its objects', () => {
  const files = outputSchemaFiles();
  assert.equal(files.length, Object.keys(OUTPUTS).length);
  for (const [name, text] of files) {
    const { $schema, $id } = JSON.parse(text) as { readonly $schema: string; readonly $id: string };
    assert.equal($schema, 'https://json-schema.org/draft/2020-12/schema');
    assert.equal($id, `https://pullwright.dev/schema/${name}`);
    assert.match(text, /"additionalProperties": false/);
  }
});

test('each file of a schema, read again, takes what its command printed, and not one field more', () => {
  const files = new Map(outputSchemaFiles());
  for (const [name, value] of seen) {
    const [command = ''] = name.split(' ');
    const schema = z.fromJSONSchema(JSON.parse(files.get(`output/${command}.schema.json`) ?? ''));
    assert.deepEqual(schema.safeParse(value).error?.issues ?? [], [], name);
    const [one = value] = Array.isArray(value) ? (value as readonly unknown[]) : [];
    const more = { ...(one as object), surprise: 1 };
    assert.ok(!schema.safeParse(Array.isArray(value) ? [more] : more).success, name);
  }
});

test.lastly('servers and folders are gone', tidy);
test.run();
