/** Names that come from documents become paths in one function, and none leads out of the folder that was asked for. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { existsSync, globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { pathOf } from '../../charts/output.ts';
import { pathPart } from '../../runtime/core/kubernetes/object.ts';
import { openHttpClient } from '../../runtime/http/open.ts';
import { clusterHint } from '../../runtime/pull-secret-adapter/cloud-event.ts';
import { HyperfleetApi } from '../../runtime/pull-secret-adapter/hyperfleet-api.ts';
import {
  clusterSelector,
  dataSecretName,
  jobName,
  recordName,
} from '../../runtime/pull-secret-adapter/names.ts';
import { pullSecretObject } from '../support/meta.ts';
import { runProcess } from '../support/process.ts';
import { test } from '../support/suite.ts';
import { tempFolder } from '../support/temp-folder.ts';

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
  const work = tempFolder();
  const secret = (namespace: string, name: string) =>
    pullSecretObject({ namespace, name }, '{"auths":{"quay.io":{"auth":"YTpi"}}}');
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
});

/** Cluster identifiers that would be another selector, path, or name. */
const NO_IDENTIFIERS: readonly string[] = [
  'a,b',
  'a=b',
  'a/b',
  '../a',
  'a b',
  'A',
  'a.b',
  'a%2fb',
  '-a',
  '',
  'a'.repeat(39),
];

for (const id of NO_IDENTIFIERS)
  test(`a cluster that calls itself ${JSON.stringify(id.slice(0, 20))} reaches no selector and no name`, async () => {
    const event = {
      specversion: '1.0',
      id: '1',
      source: 's',
      type: 'cluster.create',
      data: { id },
      extensions: {},
    };
    assert.equal(clusterHint(event).kind, 'invalid');
    assert.deepEqual(await idsOf([id, 'cls-1']), ['cls-1']);
  });

/** The clusters that an API with these identifiers is found to have. */
async function idsOf(ids: readonly string[]): Promise<readonly string[]> {
  const items = ids.map((id) => ({ id, kind: 'Cluster', name: 'x', generation: 1, spec: {} }));
  const server = createServer((_request, response) => {
    response.setHeader('content-type', 'application/json');
    response.end(
      JSON.stringify({ kind: 'ClusterList', page: 1, size: items.length, total: items.length, items }),
    );
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const pause = (): Promise<void> => Promise.resolve();
  const api = new HyperfleetApi({ baseUrl, http: openHttpClient({}, [baseUrl]), userAgent: 'test', pause });
  try {
    return (await Array.fromAsync(api.clusters(''))).flat().map(({ id }) => id);
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

test('names and selectors of the longest identifier are what Kubernetes takes', () => {
  const id = 'a'.repeat(38);
  // Pods of a Job carry its name as a label.
  assert.match(jobName(id, 1_000_000_000), /^[a-z0-9-]{1,63}$/);
  for (const name of [dataSecretName(id), recordName(id)]) assert.match(name, /^[a-z0-9-]{1,253}$/);
  assert.match(clusterSelector(id), /^[\w./-]+=a{38},[\w./-]+=[a-z]+$/);
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
  // Of the four, those of rendered objects ask pathPart(); the plugin's namespace is held against the form of a DNS label when the token is
  // read; that of a SOPS file is a field of the fleet, which is.
  assert.deepEqual(suspicious.sort(), [
    'charts/olm/bundle.ts',
    'charts/output.ts',
    'runtime/credential-provider/plugin/run.ts',
    'runtime/global-pull-secret/secret-source.ts',
  ]);
});
