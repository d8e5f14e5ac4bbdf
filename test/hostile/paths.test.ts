/** One function makes paths of names from documents, and no name leads out of the requested folder. */
import assert from 'node:assert/strict';
import { existsSync, globSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathOf } from '../../charts/output.ts';
import { pathPart } from '../../runtime/core/kubernetes/object.ts';
import { clusterHint } from '../../runtime/pull-secret-adapter/cloud-event.ts';
import {
  clusterSelector,
  dataSecretName,
  jobName,
  recordName,
} from '../../runtime/pull-secret-adapter/names.ts';
import { pullSecretObject } from '../support/meta.ts';
import { runMain } from '../support/process.ts';
import { test } from '../support/suite.ts';
import { tempFolder } from '../support/temp-folder.ts';

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
    const ran = await runMain(
      ['reconcile', '--from', join(work, 'in'), '--to', join(work, 'deep/er/to'), ...more],
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
  test(`a cluster that calls itself ${JSON.stringify(id.slice(0, 20))} reaches no selector and no name`, () => {
    const event = {
      specversion: '1.0',
      id: '1',
      source: 's',
      type: 'cluster.create',
      data: { id },
      extensions: {},
    };
    assert.equal(clusterHint(event).kind, 'invalid');
  });

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
