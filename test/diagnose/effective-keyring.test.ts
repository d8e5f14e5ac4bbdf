/** Keyring of a template's pods, from a GitOps repository without a cluster: own list, ServiceAccount, profiles, copies. */
import assert from 'node:assert/strict';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { plantedAuth } from '../support/canary.ts';
import { runInProcess } from '../support/in-process.ts';
import { meta, pullSecretObject } from '../support/meta.ts';
import { test } from '../support/suite.ts';
import { tempFolder } from '../support/temp-folder.ts';

const main = new URL('../../main.ts', import.meta.url).pathname;
const folder = tempFolder();
const body = JSON.stringify({ auths: { 'quay.io': { auth: plantedAuth('keyring', 'robot') } } });
const template = {
  metadata: { labels: { app: 'web' } },
  spec: { containers: [{ name: 'c', image: 'quay.io/team/web' }] },
};
const workload = (kind: string, name: string, spec: object): object => ({
  apiVersion: kind.endsWith('Job') ? 'batch/v1' : 'apps/v1',
  kind,
  metadata: { name, namespace: 'shop' },
  spec,
});
const objects = (granted: boolean): readonly object[] => [
  { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop', labels: { team: 'a' } } },
  pullSecretObject({ name: 'quay-robot', namespace: 'platform' }, body),
  {
    ...meta('pullwright.dev/v1alpha1 PullSecretProfile', { name: 'team' }),
    spec: {
      namespaceSelector: { matchLabels: { team: 'a' } },
      selector: { matchLabels: { app: 'web' } },
      secrets: [{ name: 'reg', sources: [{ namespace: 'platform', name: 'quay-robot' }] }],
    },
  },
  ...(granted
    ? [
        {
          ...meta('pullwright.dev/v1alpha1 PullSecretGrant', { name: 'teams', namespace: 'platform' }),
          spec: { secrets: [{ name: 'quay-robot' }], profiles: [{ name: 'team' }], namespaces: ['shop'] },
        },
      ]
    : []),
  workload('Deployment', 'web', { template }),
  workload('CronJob', 'nightly', { jobTemplate: { spec: { template } } }),
  workload('StatefulSet', 'db', { template }),
  workload('Job', 'once', { template }),
  workload('StatefulSet', 'other', { template: { ...template, metadata: { labels: { app: 'other' } } } }),
  workload('Deployment', 'out', {
    template: { ...template, metadata: { labels: { app: 'web', 'pullwright.dev/inject': 'false' } } },
  }),
];
const write = (granted: boolean): void =>
  writeFileSync(
    join(folder, 'all.yaml'),
    objects(granted)
      .map((object) => JSON.stringify(object))
      .join('\n---\n'),
  );
const run = (...args: readonly string[]) => runInProcess([...args, '--from', folder]);

test('this Deployment will pull this image with that credential', async () => {
  write(true);
  const file = join(folder, '..', `${folder.split('/').at(-1)}.tests`);
  const expectations = [
    ['deploy/web', '{ secret: reg, username: robot }'],
    ['sts/db', '{ secret: reg, username: robot }'],
    ['job/once', '{ secret: reg, username: robot }'],
    ['cronjob/nightly', '{ secret: reg, username: robot }'],
    ['sts/other', 'denied'],
    ['deploy/out', 'denied'],
  ].map(
    ([pod, expect]) => `  - { pod: ${pod}, namespace: shop, image: quay.io/team/web, expect: ${expect} }\n`,
  );
  writeFileSync(file, `tests:\n${expectations.join('')}`);
  const ran = await run('test', file);
  rmSync(file);
  assert.match(ran.stdout, /6 passed, 0 failed/, ran.stdout + ran.stderr);
});

test('explain names the profile, and says what is missing without consent', async () => {
  write(true);
  for (const template of ['deploy/web', 'sts/db', 'job/once', 'cronjob/nightly']) {
    const ran = await run('explain', '--pod', template, '-n', 'shop');
    assert.equal(ran.code, 0, `${template}: ${ran.stderr}`);
    assert.match(ran.stdout, /Secret\/shop\/reg/, template);
  }
  write(false);
  const without = await run('explain', '--pod', 'deploy/web', '-n', 'shop');
  assert.match(
    without.stderr,
    /PullSecretProfile\/team: Secret "platform\/quay-robot" is not granted to namespace "shop"/,
  );
  assert.match(without.stdout, /PullSecretProfile\/team/);
});

test('explain goes by the namespaces of the fleet whose rendered reconciler is in the folder', async () => {
  write(true);
  const told = (namespaces: readonly string[]): void =>
    writeFileSync(
      join(folder, 'told.yaml'),
      JSON.stringify({
        ...meta('v1 ConfigMap', {
          name: 'pullwright-reconciler-config',
          namespace: 'pullwright-system',
          labels: { 'app.kubernetes.io/component': 'reconciler' },
        }),
        data: {
          'config.yaml': `systems:\n  pull-secret-injection:\n    namespaces: [${namespaces.join(', ')}]\n`,
        },
      }),
    );
  told(['platform', 'shop']);
  const inside = await run('explain', '--pod', 'deploy/web', '-n', 'shop');
  assert.match(inside.stdout, /Secret\/shop\/reg/);
  told(['platform']);
  const outside = await run('explain', '--pod', 'deploy/web', '-n', 'shop');
  assert.doesNotMatch(outside.stdout, /Secret\/shop\/reg|PullSecretProfile\/team/);
  told(['shop']);
  const unread = await run('explain', '--pod', 'deploy/web', '-n', 'shop');
  assert.match(unread.stderr, /PullSecretProfile\/team: Secret "platform\/quay-robot" is not read/);
  rmSync(join(folder, 'told.yaml'));
});

test('reconcile --from shows the pods of templates, which no diff shows', async () => {
  write(true);
  const ran = await run('reconcile');
  const section = /pull secrets of pod templates\n([\s\S]*?)\n\n/.exec(ran.stdout)?.[1];
  assert.deepEqual(section?.split('\n'), [
    '  Deployment/shop/web: reg (PullSecretProfile/team)',
    '  StatefulSet/shop/db: reg (PullSecretProfile/team)',
    '  Job/shop/once: reg (PullSecretProfile/team)',
    '  CronJob/shop/nightly: reg (PullSecretProfile/team)',
  ]);
  const config = join(folder, '..', `${folder.split('/').at(-1)}.config`);
  writeFileSync(config, JSON.stringify({ systems: { 'pull-secret-injection': { admission: 'none' } } }));
  const off = await run('reconcile', '--config', config, '--output', 'json');
  rmSync(config);
  const [{ templates }] = JSON.parse(off.stdout) as [{ templates: readonly object[] }];
  assert.deepEqual(templates[0], { template: 'Deployment/shop/web', secrets: [], notInjected: ['reg'] });
});

test('the example of a repository holds, and fails without the profile', async () => {
  const example = join(main, '..', 'examples', 'credential-tests');
  const file = join(example, 'shop.test.yaml');
  const pullwright = (...args: readonly string[]) => runInProcess([...args]);
  const ran = await pullwright('test', file);
  assert.match(ran.stdout, /4 passed, 0 failed/, ran.stdout + ran.stderr);
  assert.equal((await pullwright('validate', '--strict', join(example, 'manifests'))).code, 0);
  const without = await pullwright(
    'test',
    file,
    '--from',
    join(example, 'stand-ins'),
    '--from',
    join(example, 'manifests', 'shop.yaml'),
  );
  assert.match(without.stdout, /FAIL {2}web pulls with the Secret of its profile/);
  assert.equal(without.code, 1);
});

test('doctor says what was seen', async () => {
  write(true);
  for (const template of ['deploy/web', 'sts/db', 'job/once', 'cronjob/nightly']) {
    const { stdout } = await run('doctor', template, '-n', 'shop');
    assert.match(
      stdout,
      /ok +injection +a pod of this template lists 1 imagePullSecret; profiles and SidecarSets add 1 of them/,
    );
  }
  const other = await run('doctor', 'sts/other', '-n', 'shop');
  assert.match(other.stdout, /injection +a pod of this template lists no imagePullSecret, and no profile/);
});
