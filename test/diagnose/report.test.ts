/** `pullwright report`: the data, the page as text, Markdown and differences, over folders. */
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PAGE_FILE, pageSource } from '../../build/report-page.ts';
import type { Report, ReportCluster } from '../../runtime/diagnose/model/cluster.ts';
import { findPlanted } from '../support/canary.ts';
import { type InProcessRun, runInProcess } from '../support/in-process.ts';
import { runProcess } from '../support/process.ts';
import { test } from '../support/suite.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { HOSTILE, writeContainerdFolder, writeHostileFolder, writeLargeFolder } from './report-scene.ts';

const root = new URL('../..', import.meta.url).pathname;
const folder = tempFolder();
const run = (...args: readonly string[]): Promise<InProcessRun> => runInProcess(['report', ...args]);
const reportOf = async (...args: readonly string[]): Promise<Report> =>
  JSON.parse((await run(...args, '-o', 'json')).stdout) as Report;
const clusterOf = ({ clusters }: Report, name: string): ReportCluster => {
  const found = clusters.find((one) => one.name === name);
  assert.ok(found, name);
  return found;
};

test('says of every cluster what is wrong, the worst first', async () => {
  const report = await reportOf('--from', 'examples/troubled');
  assert.deepEqual(
    report.clusters.map(({ name, verdict }) => `${name} ${verdict}`),
    ['clusters/lab broken', 'clusters/shop-eu broken', 'management broken', 'clusters/shop-us attention'],
  );
  const only = await reportOf('--from', 'examples/troubled', '--cluster', 'clusters/lab');
  assert.deepEqual(only.clusters, [clusterOf(report, 'clusters/lab')]);
  assert.deepEqual(report.problems.map(({ check }) => check).toSorted(), [
    'credential',
    'credential/expired',
    'entry/doubtful',
    'entry/rejected',
    'entry/shadowed',
    'mirror-credential',
    'mirrors/MirrorInvalid',
    'node',
    'pull-sources',
    'secrets-exist',
    'secrets-exist',
  ]);
  // A verdict without a finding would say nothing.
  for (const { name, verdict } of report.clusters)
    assert.ok(verdict === 'ok' || report.problems.some(({ clusters }) => clusters.includes(name)), name);
});

test('counts nodes: eligible, in sync, out of sync, not known', async () => {
  const report = await reportOf('--from', 'examples/troubled');
  const { list: _list, ...counts } = clusterOf(report, 'clusters/shop-eu').nodes;
  assert.deepEqual(counts, { total: 8, eligible: 5, inSync: 3, outOfSync: 1, ineligible: 3, unknown: 1 });
  assert.equal(clusterOf(report, 'clusters/shop-us').nodes.inSync, 6);
});

test('tells of every registry key who wins, who loses and when it ends', async () => {
  const { keys } = clusterOf(await reportOf('--from', 'examples/troubled'), 'clusters/shop-eu');
  const rows = keys.map(({ key, state, source, winner, ends, onNodes }) =>
    [key, state, source.split('/').at(-1), winner?.key, ends, onNodes].join(' '),
  );
  assert.deepEqual(rows, [
    'broken.example.com rejected additional-pull-secret   0',
    'ecr.example.com used additional-pull-secret   3',
    'https://quay.io/ shadowed additional-pull-secret quay.io  0',
    'mirror.example.com used pull-secret   3',
    'quay.io used pull-secret   3',
    'registry.example.com used additional-pull-secret  expired 3',
    'registry.redhat.io used pull-secret   3',
  ]);
});

test('shows the way of an image: places in order, what is sent to each, who lost', async () => {
  const { pulls } = clusterOf(await reportOf('--from', 'examples/troubled'), 'clusters/shop-eu');
  const pull = pulls.find(({ object }) => object.startsWith('Pod/payments/'));
  assert.ok(pull);
  assert.deepEqual(
    pull.explanation?.places.map(
      ({ reference, kind, crio }) => `${reference.split('@')[0]} ${kind} ${crio.what}`,
    ),
    [
      'mirror.example.com/shop/payments/api mirror entry',
      'mirror-2.example.com/shop/payments/api mirror nothing',
      'registry.example.com/shop/payments/api source kubelet',
    ],
  );
  assert.deepEqual(
    pull.explanation.kubelet.unused.map(({ key }) => key),
    ['registry.example.com/payments'],
  );
});

test('says which runtimes nodes name, and what containerd sends', async () => {
  const from = join(folder, 'containerd');
  writeContainerdFolder(from);
  const [cluster] = (await reportOf('--from', from)).clusters;
  assert.deepEqual(cluster?.runtimes, ['containerd']);
  assert.deepEqual(
    cluster.pulls.map(({ object, explanation }) => `${object} ${explanation?.containerd.what}`).toSorted(),
    ['Deployment/shop/busybox nothing', 'Deployment/shop/web kubelet'],
  );
  assert.deepEqual(clusterOf(await reportOf('--from', 'examples/troubled'), 'clusters/shop-eu').runtimes, []);
});

test('a Secret that is encrypted is not called ok', async () => {
  const from = join(folder, 'encrypted');
  mkdirSync(from, { recursive: true });
  const metadata = { name: 'sealed', namespace: 'shop' };
  const data = { '.dockerconfigjson': 'ENC[AES256_GCM,data:c2VhbGVk,iv:aXY=,tag:dGFn,type:str]' };
  const secret = { apiVersion: 'v1', kind: 'Secret', metadata, type: 'kubernetes.io/dockerconfigjson', data };
  writeFileSync(join(from, 'secret.json'), JSON.stringify(secret));
  const [cluster] = (await reportOf('--from', from)).clusters;
  const [namespace] = cluster?.namespaces ?? [];
  assert.equal(namespace?.verdict, 'attention');
  assert.match(namespace.secrets[0]?.fault ?? '', /is encrypted by SOPS/);
});

test('every problem says what to do', async () => {
  const { problems } = await reportOf('--from', 'examples/troubled');
  for (const { title, cases } of problems)
    for (const { advice, fix, commands } of cases)
      assert.ok(advice !== undefined || fix !== undefined || commands !== undefined, title);
});

test('gives the command that fixes it', async () => {
  const { problems } = await reportOf('--from', 'examples/troubled');
  const missing = problems.find(({ check }) => check === 'secrets-exist');
  assert.match(
    missing?.cases[0]?.commands?.[0] ?? '',
    /^kubectl patch serviceaccount default -n ci --type=json .*"value":\{"name":"ci-robot-2026"\}/,
  );
});

test('what runs is not called broken for what the next pull would lack', async () => {
  const report = await reportOf('--from', 'examples/fleet');
  assert.ok(report.clusters.every(({ verdict }) => verdict !== 'broken'));
  assert.ok(report.problems.some(({ title }) => title.endsWith('it runs until the next pull')));
});

test('holds no value: passwords, tokens and user names have no place in it', async () => {
  const large = join(folder, 'canary');
  writeLargeFolder(large, 3, 4);
  const page = join(folder, 'canary.html');
  const ran = await run('--from', large, '--html', page, '-o', 'json');
  const markdown = await run('--from', large, '--markdown');
  for (const text of [ran.stdout, markdown.stdout, readFileSync(page, 'utf8')]) {
    assert.equal(findPlanted(text), undefined);
    assert.doesNotMatch(text, /"username"|robot:/);
  }
});

test('a folder of hostile names gives a page with one script and data that ends nowhere', async () => {
  const hostile = join(folder, 'hostile');
  writeHostileFolder(hostile);
  const page = join(folder, 'hostile.html');
  const ran = await run('--from', hostile, '--html', page);
  assert.equal(ran.code, 1, ran.stderr);
  const text = readFileSync(page, 'utf8');
  assert.equal(text.match(/<script/g)?.length, 2);
  assert.equal(text.match(/<\/script/g)?.length, 2);
  assert.doesNotMatch(text, /<img|<svg|<!--/);
  const markdown = await run('--from', hostile, '--markdown');
  const [fence = ''] = /^`{3,}/m.exec(markdown.stdout) ?? [];
  const [head = '', names = '', ...after] = markdown.stdout.split(fence);
  assert.match(head, /^## \d+ problems in 1 of 1 cluster\n\n$/);
  assert.match(names, /<img/);
  assert.deepEqual(after, ['\n'], 'nothing in a name ends the block');
  assert.ok(HOSTILE.length > 0);
});

test('says which file could not be written', async () => {
  const ran = await run('--from', 'examples/troubled', '--html', join(folder, 'none/page.html'));
  assert.equal(ran.code, 1);
  assert.match(ran.stderr, /Cannot write ".*none\/page.html": ENOENT/);
});

test('500 clusters with 10,000 nodes are a page of less than 20 MB', async () => {
  const large = join(folder, 'large');
  writeLargeFolder(large, 500, 20);
  const page = join(folder, 'large.html');
  const ran = await run('--from', large, '--html', page);
  assert.match(ran.stdout, /clusters\/c-499/);
  assert.ok(statSync(page).size < 20 * 1024 * 1024, `${statSync(page).size}`);
});

test('the script of the page is what its sources give', async () => {
  assert.equal(readFileSync(join(root, PAGE_FILE), 'utf8'), await pageSource(), 'run npm run report:page');
});

for (const part of ['build/report-page', 'test/browser'])
  test(`what runs in a browser has the right types: ${part}`, async () => {
    const tsc = join(root, 'node_modules/.bin/tsc');
    const ran = await runProcess([tsc, '-p', join(root, part)], { cwd: root });
    assert.equal(ran.code, 0, ran.stdout);
  });
