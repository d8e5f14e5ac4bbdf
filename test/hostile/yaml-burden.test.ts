/**
 * A megabyte of YAML, which is what a Secret can hold, cost up to a gigabyte and ten seconds of the process that serves all hosted
 * clusters. Whoever reads YAML of others there reads so much of it as a file of settings has.
 */
import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { connectionFromSecret } from '../../runtime/kube/kubeconfig-from-secret.ts';
import { parseShortYaml, parseYaml } from '../../runtime/kube/yaml.ts';
import { redact } from '../../runtime/rules/redacted.ts';
import { runProcess } from '../support/process.ts';
import { suite, table } from '../support/suite.ts';

const test = suite('YAML that weighs more than it says');
const root = join(import.meta.dirname, '../..');
const MEGABYTE = 1_000_000;

/** Each is repeated until there is a megabyte of it. */
const SHAPES: readonly (readonly [piece: string, before?: string])[] = [
  ['['],
  ['{a: '],
  ['- '],
  ['? '],
  [': '],
  ['- a\n'],
  ['a,', '['],
  ['[],', '['],
  ['{},', '['],
  ['a: ,', '['],
  ['---\n'],
  ['a\n---\n'],
  ['- &a b\n'],
  ['#\n'],
  ['- ]\n'],
  ['%\n'],
  ['\t\n'],
  ['!a '],
];

test('none of a megabyte needs more than a few', async () => {
  // Where the heap ends, the process ends: 64 MiB are its half for one of them, were they read.
  const program = `
    const { parseShortYaml } = await import(${JSON.stringify(join(root, 'runtime/kube/yaml.ts'))});
    for (const [piece, before = ''] of ${JSON.stringify(SHAPES)}) {
      const text = before + piece.repeat(${MEGABYTE} / piece.length);
      try { parseShortYaml(text); console.log('read', piece); }
      catch (error) { console.log(error.code, error.message); }
    }`;
  const { code, stdout, stderr } = await runProcess([
    process.execPath,
    '--max-old-space-size=64',
    '--input-type=module',
    '--eval',
    program,
  ]);
  assert.equal(code, 0, stderr.slice(0, 500));
  const said = stdout.trimEnd().split('\n');
  assert.equal(said.length, SHAPES.length, stdout);
  for (const line of said)
    assert.match(
      line,
      /^RESOURCE_EXHAUSTION (?:It has more than 20000 words and signs|Lists and maps stand)/,
    );
});

test('levels that nobody can read are said to be too many, before a tree is made of them', () => {
  for (const text of ['['.repeat(MEGABYTE), '- '.repeat(MEGABYTE / 2), '? '.repeat(MEGABYTE / 2)])
    assert.throws(() => parseYaml(text), { code: 'RESOURCE_EXHAUSTION', message: /too deeply/ });
});

table(
  test,
  [
    {
      name: 'brackets in texts',
      reason: 'they open nothing',
      text: `a: "${'['.repeat(2000)}"\nb: |\n  ${'{'.repeat(2000)}\nc: x${'['.repeat(2000)}\n`,
    },
    { name: 'short lists, one after the other', reason: 'none is in another', text: '- []\n'.repeat(3000) },
    { name: 'many lines of items', reason: 'a level ends with its line', text: '- - a\n'.repeat(3000) },
    {
      name: 'many pairs on one line',
      reason: 'a sign within brackets begins no level',
      text: `{${Array.from({ length: 3000 }, (_, at) => `k${at}: 1`).join(', ')}}`,
    },
  ],
  ({ text }) => {
    assert.notEqual(parseYaml(text), null);
  },
);

test('a text in quotes without end is refused by its length', () => {
  assert.throws(
    () => parseYaml(`a: "${'x'.repeat(9 * 2 ** 20)}"`),
    /in quotes has more than 8388608 letters/,
  );
});

test('the kubeconfig of a hosted cluster is told its bound, and a long one is read', () => {
  const open = (text: string): unknown =>
    connectionFromSecret({ subject: 'Secret/ns/a', text: redact(text), parse: parseShortYaml });
  assert.throws(() => open('- a\n'.repeat(MEGABYTE / 4)), {
    code: 'KubeconfigRefused',
    message: /"Secret\/ns\/a": it is too much to read: It has more than 20000 words and signs$/,
  });
  const cluster = (at: number): string =>
    `- name: c${at}\n  cluster: {server: "https://api${at}.example.com"}\n`;
  const many = Array.from({ length: 500 }, (_, at) => cluster(at)).join('');
  const rest =
    'contexts:\n- name: x\n  context: {cluster: c499, user: u}\nusers:\n- name: u\n  user: {token: t}\n';
  assert.match(JSON.stringify(open(`clusters:\n${many}${rest}current-context: x\n`)), /api499/);
});

/** Who reads YAML without a bound: what a person gives to a command, and files of root on a node. */
const UNBOUNDED: readonly string[] = [
  'runtime/commands/adapter-flags.ts',
  'runtime/commands/explain/injected.ts',
  'runtime/commands/reconcile/config.ts',
  'runtime/commands/reconcile/offline-facts.ts',
  'runtime/commands/sentinel.ts',
  'runtime/commands/test.ts',
  'runtime/commands/validate/validate.ts',
  'runtime/credential-provider/installer/preview.ts',
  'runtime/credential-provider/installer/trial.ts',
  'runtime/credential-provider/installer/wanted.ts',
  'runtime/credential-provider/plugin/api-server.ts',
  'runtime/kube/kubeconfig.ts',
];

test('nobody else reads YAML without a bound', () => {
  const found = globSync('runtime/**/*.ts', { cwd: root }).filter((file) => {
    const text = readFileSync(join(root, file), 'utf8');
    return /['/]yaml\.ts'/.test(text) && /\bparseYaml\b/.test(text);
  });
  assert.deepEqual(found.filter((file) => file !== 'runtime/kube/yaml.ts').sort(), UNBOUNDED);
});

test.run();
