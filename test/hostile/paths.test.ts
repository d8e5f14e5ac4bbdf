/** Names that come from documents become paths in one function, and none leads out of the folder that was asked for. */
import assert from 'node:assert/strict';
import { existsSync, globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathOf } from '../../charts/output.ts';
import { pathPart } from '../../runtime/rules/kubernetes/file-name.ts';
import { runProcess } from '../support/process.ts';
import { suite } from '../support/suite.ts';

const test = suite('names as paths');
const root = new URL('../..', import.meta.url).pathname;

const LEADS_ELSEWHERE = [
  '..',
  '.',
  '',
  '../x',
  'a/../../x',
  '/etc',
  'a\0b',
  'a\nb',
  '\\..\\x',
  '-rf',
  'x'.repeat(254),
  'ä',
];

for (const name of LEADS_ELSEWHERE)
  test(`pathPart() refuses ${JSON.stringify(name.slice(0, 20))}`, () => {
    assert.throws(() => pathPart('namespace', name), { code: 'UnsafeName' });
  });

test('reconcile --to with a namespace that leads elsewhere writes nothing there, with and without values', async () => {
  const work = mkdtempSync(join(tmpdir(), 'pullwright-paths-'));
  try {
    const config = Buffer.from('{"auths":{"quay.io":{"auth":"YTpi"}}}').toString('base64');
    const secret = (namespace: string, name: string) => ({
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { namespace, name },
      type: 'kubernetes.io/dockerconfigjson',
      data: { '.dockerconfigjson': config },
    });
    const items = [
      secret('openshift-config', 'pull-secret'),
      secret('kube-system', 'additional-pull-secret'),
      secret('../../../outside', '../../../../outside'),
      { apiVersion: 'v1', kind: 'Namespace', metadata: { name: '../../outside' } },
      { apiVersion: 'v1', kind: '../../Outside', metadata: { name: 'a' } },
    ];
    mkdirSync(join(work, 'in'));
    mkdirSync(join(work, 'deep/er/to'), { recursive: true });
    writeFileSync(join(work, 'in/all.json'), JSON.stringify({ apiVersion: 'v1', kind: 'List', items }));
    for (const more of [[], ['--with-secrets']]) {
      const ran = await runProcess(
        [
          process.execPath,
          join(root, 'main.ts'),
          'reconcile',
          '--from',
          join(work, 'in'),
          '--to',
          join(work, 'deep/er/to'),
          ...more,
        ],
        { cwd: work, deadlineMs: 60_000 },
      );
      assert.notEqual(ran.stdout + ran.stderr, '');
      const outside = globSync('**/*outside*', { cwd: work });
      assert.deepEqual(outside, [], ran.stderr);
      assert.ok(!existsSync(join(work, '../outside')));
    }
  } finally {
    rmSync(work, { recursive: true });
  }
});

test('synth refuses to write an object whose namespace leads elsewhere', () => {
  const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { namespace: '../../x', name: 'a' } };
  assert.throws(() => pathOf(object), { code: 'UnsafeName' });
});

test('paths are put together of names in the one function, or of names that the program itself has', () => {
  const suspicious = globSync(['runtime/**/*.ts', 'charts/**/*.ts'], { cwd: root }).filter((file) =>
    /`[^`\n]*\$\{[^}]*(?:namespace|metadata\.name)[^}]*\}[^`\n]*\.(?:json|yaml|conf)`/.test(
      readFileSync(join(root, file), 'utf8'),
    ),
  );
  // Of the three, charts/output.ts asks pathPart(); the plugin's namespace is held against the form of a DNS label when the token is
  // read; that of a SOPS file is a field of the fleet, which is.
  assert.deepEqual(suspicious.sort(), [
    'charts/output.ts',
    'charts/shared/secret-source.ts',
    'runtime/credential-provider/plugin/provide.ts',
  ]);
});

test.run();
