/** `pullwright doctor` of a pod that a profile or SidecarSet of its namespace leaves out: it says why, and not "list it by hand" alone. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { plantedAuth } from '../support/canary.ts';
import { runInProcess } from '../support/in-process.ts';
import { meta, pullSecretObject } from '../support/meta.ts';
import { type Case, table, test } from '../support/suite.ts';
import { tempFolder } from '../support/temp-folder.ts';

interface Row extends Case {
  readonly giver?: object;
  readonly labels?: Readonly<Record<string, string>>;
  readonly says: RegExp;
}

const set = (spec: object): object => ({
  ...meta('apps.kruise.io/v1beta1 SidecarSet', { name: 'side' }),
  spec: {
    selector: { matchLabels: { app: 'web' } },
    namespace: 'shop',
    imagePullSecrets: [{ name: 'quay' }],
    containers: [{ name: 'side', image: 'quay.io/side:1' }],
    ...spec,
  },
});
const profile = (spec: object): object => ({
  ...meta('pullwright.dev/v1alpha1 PullSecretProfile', { name: 'team' }),
  spec: { namespaceSelector: {}, selector: {}, secrets: [{ name: 'quay' }], ...spec },
});

const rows: readonly Row[] = [
  {
    name: 'a set that is absent',
    reason: 'nothing is known of whoever gave it',
    says: /; Secret "quay" of the namespace does\n/,
  },
  {
    name: 'a set that is paused',
    reason: 'the set is there, and gives nothing',
    giver: set({ injectionStrategy: { paused: true } }),
    says: /Secret "quay" of the namespace does, and SidecarSet\/side, which adds it to pods, skips this one: its injectionStrategy\.paused is set/,
  },
  {
    name: 'a set whose selector misses the pod',
    reason: 'a slip in a label',
    giver: set({ selector: { matchLabels: { app: 'wbe' } } }),
    says: /SidecarSet\/side.*its selector does not match the labels of the pod/,
  },
  {
    name: 'a set without a selector',
    reason: 'Kruise selects no pod by it',
    giver: set({ selector: {} }),
    says: /SidecarSet\/side.*is empty and selects no pod/,
  },
  {
    name: 'a set of another namespace is not spoken of',
    reason: 'it was never meant for this pod',
    giver: set({ namespace: 'elsewhere', injectionStrategy: { paused: true } }),
    says: /; Secret "quay" of the namespace does\n/,
  },
  {
    name: 'a profile that is suspended',
    reason: 'what it gave is there, and nothing new',
    giver: profile({ suspend: true }),
    says: /PullSecretProfile\/team.*spec\.suspend is set/,
  },
  {
    name: 'a profile that only distributes: its Secrets are listed by hand',
    reason: 'it withholds nothing',
    giver: profile({
      mode: 'Distribute',
      suspend: true,
      secrets: [{ name: 'quay', sources: [{ namespace: 'platform', name: 'quay' }] }],
    }),
    says: /; Secret "quay" of the namespace does\n/,
  },
  {
    name: 'a profile whose selector misses the pod',
    reason: 'a slip in a label',
    giver: profile({ selector: { matchLabels: { app: 'wbe' } } }),
    says: /PullSecretProfile\/team.*does not match the labels/,
  },
  {
    name: 'a pod that opted out',
    reason: 'its owner asked for that',
    giver: profile({}),
    labels: { 'pullwright.dev/inject': 'false' },
    says: /PullSecretProfile\/team.*the pod has the label pullwright\.dev\/inject: "false"/,
  },
];

table(test, rows, async ({ giver, labels = {}, says }) => {
  const auths = JSON.stringify({ auths: { 'quay.io': { auth: plantedAuth('quay.io') } } });
  const items = [
    { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop' } },
    { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'default', namespace: 'shop' } },
    pullSecretObject({ name: 'quay', namespace: 'shop' }, auths),
    {
      ...meta('v1 Pod', { name: 'web', namespace: 'shop', labels: { app: 'web', ...labels } }),
      spec: { containers: [{ name: 'a', image: 'quay.io/shop/web:1' }] },
    },
    ...(giver === undefined ? [] : [giver]),
  ];
  const folder = tempFolder();
  writeFileSync(join(folder, 'all.json'), JSON.stringify({ apiVersion: 'v1', kind: 'List', items }));
  const ran = await runInProcess(['doctor', 'pod/web', '-n', 'shop', '--from', folder]);
  assert.equal(ran.code, 1, ran.stderr);
  assert.match(ran.stdout, says);
});
