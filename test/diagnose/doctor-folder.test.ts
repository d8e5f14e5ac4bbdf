/** `pullwright doctor --from`: a folder of manifests, where not everything is that a cluster has. */
import assert from 'node:assert/strict';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { plantedAuth } from '../support/canary.ts';
import { runInProcess } from '../support/in-process.ts';
import { meta, pullSecretObject } from '../support/meta.ts';
import { test } from '../support/suite.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { deployment } from './doctor-cases.ts';

const folder = tempFolder();
const doctor = (name: string) => runInProcess(['doctor', `deploy/${name}`, '-n', 'shop', '--from', folder]);

for (const [name, spec] of [
  ['plain', {}],
  ['own', { serviceAccountName: 'own' }],
] as const) {
  const object = deployment(spec);
  const metadata = { name, namespace: 'shop' };
  writeFileSync(join(folder, `${name}.json`), JSON.stringify({ ...object, metadata }));
}

test('takes the ServiceAccount "default" for there: Kubernetes makes it', async () => {
  const ran = await doctor('plain');
  assert.equal(ran.code, 0, ran.stdout);
  assert.match(ran.stdout, /info +service-account +not checked: the ServiceAccount is not in the input/);
});

test('says what nobody has tried, and that no credential is none', async () => {
  const { stdout } = await doctor('plain');
  assert.match(
    stdout,
    /info +credential +no listed credential matches ".*": it is pulled anonymously, which works for public images only/,
  );
  assert.match(stdout, /info +registry +not checked: no pod of this template found/);
});

test('looks at the pods that a template has made, and at no others', async () => {
  const podOf = (name: string, owner: string, message: string): readonly object[] => [
    {
      ...meta('v1 Pod', {
        name,
        namespace: 'shop',
        ownerReferences: [{ apiVersion: 'apps/v1', kind: 'ReplicaSet', name: owner, controller: true }],
      }),
      spec: { containers: [{ name: 'a', image: 'quay.io/shop/web:1' }] },
    },
    {
      ...meta('v1 Event', { name, namespace: 'shop' }),
      involvedObject: { kind: 'Pod', name, namespace: 'shop' },
      reason: 'BackOff',
      message: `Failed to pull image "quay.io/shop/web:1": ${message}`,
    },
  ];
  const examine = async (...items: readonly object[]): Promise<string> => {
    writeFileSync(join(folder, 'pods.json'), JSON.stringify({ apiVersion: 'v1', kind: 'List', items }));
    const { stdout } = await doctor('plain');
    rmSync(join(folder, 'pods.json'));
    return stdout;
  };
  const own = podOf('web-1', 'plain-5b65b7db', 'unauthorized');
  const other = podOf('api-1', 'own-5b65b7db', 'unauthorized');
  assert.match(await examine(...own), /broken +credential .*and the registry requires one/);
  assert.match(await examine(...other), /info +registry +not checked/);
  const quiet = podOf('web-2', 'plain-5b65b7db', 'a word that nobody knows');
  assert.match(
    await examine(...quiet),
    /broken +registry .*the cause is unknown: "a word that nobody knows"/,
  );
});

test('calls no Secret missing in an input that has neither Secrets nor ServiceAccounts', async () => {
  const listing = {
    imagePullSecrets: [{ name: 'pull' }],
    containers: [{ name: 'a', image: 'quay.io/a/b:1' }],
  };
  const denied = {
    reason: 'ErrImagePull',
    message:
      'failed to pull "quay.io/a/b:1": unauthorized: access to the requested resource is not authorized',
  };
  const status = { containerStatuses: [{ name: 'a', state: { waiting: denied } }] };
  const pod = { ...meta('v1 Pod', { name: 'web-1', namespace: 'bare' }), spec: listing, status };
  const account = meta('v1 ServiceAccount', { name: 'default', namespace: 'bare' });
  const path = join(tempFolder(), 'pods.json');
  for (const [items, says] of [
    [[pod], /unknown +secrets-exist +Secret "pull", .* has no value in the input/],
    [[pod, account], /broken +secrets-exist +Secret "pull", .* does not exist/],
  ] as const) {
    writeFileSync(path, JSON.stringify({ apiVersion: 'v1', kind: 'List', items }));
    assert.match((await runInProcess(['doctor', 'web-1', '-n', 'bare', '--from', path])).stdout, says);
    const all = await runInProcess(['doctor', '--all', '-A', '-o', 'wide', '--from', path]);
    assert.match(
      all.stdout,
      /Secret "pull", listed by Pod\/bare\/web-1, (has no value in the input|does not exist)/,
    );
  }
});

test('calls a pod that runs "attention", as the report does', async () => {
  const pod = {
    ...meta('v1 Pod', { name: 'web-1', namespace: 'runs' }),
    spec: { imagePullSecrets: [{ name: 'pull' }], containers: [{ name: 'a', image: 'quay.io/a/b:1' }] },
    status: { phase: 'Running', containerStatuses: [{ name: 'a', state: { running: {} } }] },
  };
  const path = join(tempFolder(), 'pods.json');
  const items = [pod, meta('v1 ServiceAccount', { name: 'default', namespace: 'runs' })];
  writeFileSync(path, JSON.stringify({ apiVersion: 'v1', kind: 'List', items }));
  const says = /attention:? +A pull secret that pods list does not exist; it runs until the next pull: pull/;
  assert.match((await runInProcess(['doctor', 'web-1', '-n', 'runs', '--from', path])).stdout, says);
  assert.match((await runInProcess(['report', '--from', path])).stdout, says);
});

test('misses one that somebody has to make', async () => {
  const ran = await doctor('own');
  assert.equal(ran.code, 1);
  assert.match(ran.stdout, /broken +service-account +ServiceAccount "shop\/own" does not exist/);
});

test('never says that all is there when a Secret is missing which another one stands in for', async () => {
  const items = [
    { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop', labels: { team: 'a' } } },
    {
      ...meta('pullwright.dev/v1alpha1 PullSecretProfile', { name: 'team' }),
      spec: {
        namespaceSelector: { matchLabels: { team: 'a' } },
        selector: {},
        secrets: [{ name: 'robot', sources: [{ namespace: 'platform', name: 'robot' }] }],
      },
    },
    pullSecretObject(
      { name: 'own', namespace: 'shop' },
      { auths: { 'quay.io': { auth: plantedAuth('own') } } },
    ),
    {
      ...meta('v1 Pod', { name: 'two', namespace: 'shop' }),
      spec: {
        imagePullSecrets: [{ name: 'robot' }, { name: 'own' }],
        containers: [{ name: 'a', image: 'quay.io/shop/web:1' }],
      },
    },
  ];
  const file = join(folder, 'two.json');
  writeFileSync(file, JSON.stringify({ apiVersion: 'v1', kind: 'List', items }));
  const ran = await runInProcess(['doctor', 'two', '-n', 'shop', '--from', folder]);
  rmSync(file);
  assert.equal(ran.code, 0, ran.stdout);
  assert.match(ran.stdout, /info +secrets-exist +Secret "robot", listed by Pod\/shop\/two, does not exist/);
  assert.match(ran.stdout, /info +distribution +PullSecretProfile\/team has not synced Secret "robot"/);
});

test('does not call a credential good or missing if its Secret is encrypted or created by another tool', async () => {
  const pod = {
    ...meta('v1 Pod', { name: 'hidden', namespace: 'shop' }),
    spec: { imagePullSecrets: [{ name: 'robot' }], containers: [{ name: 'a', image: 'quay.io/shop/web:1' }] },
  };
  const secret = {
    ...meta('v1 Secret', { name: 'robot', namespace: 'shop' }),
    type: 'kubernetes.io/dockerconfigjson',
    data: { '.dockerconfigjson': 'ENC[AES256_GCM,data:YQ==,iv:YQ==,tag:YQ==,type:str]' },
    sops: {},
  };
  const maker = (kind: string, name: string, rest: object): object => ({
    ...meta(kind, { name, namespace: 'shop' }),
    ...rest,
  });
  const external = 'external-secrets.io/v1 ExternalSecret';
  const failed = { type: 'Ready', status: 'False', reason: 'SecretSyncedError', message: 'no such key' };
  for (const [object, check, message] of [
    [secret, 'secrets-readable', 'is encrypted with SOPS'],
    [maker(external, 'robot', {}), 'secrets-exist', 'ExternalSecret/shop/robot creates it'],
    [
      maker(external, 'x', { spec: { target: { name: 'robot' } } }),
      'secrets-exist',
      'ExternalSecret/shop/x creates',
    ],
    [
      maker('bitnami.com/v1alpha1 SealedSecret', 'robot', {}),
      'secrets-exist',
      'SealedSecret/shop/robot creates',
    ],
    [
      maker(external, 'robot', { status: { conditions: [failed] } }),
      'secrets-exist',
      'SecretSyncedError: no such key',
    ],
    [maker(external, 'other', {}), 'secrets-exist', 'does not exist$'],
  ] as const) {
    writeFileSync(
      join(folder, 'hidden.json'),
      JSON.stringify({ apiVersion: 'v1', kind: 'List', items: [pod, object] }),
    );
    const { code, stdout } = await runInProcess(['doctor', 'hidden', '-n', 'shop', '--from', folder]);
    rmSync(join(folder, 'hidden.json'));
    const isKnown = /Error|exist/.test(message);
    assert.equal(code, 1);
    assert.match(stdout, new RegExp(`${isKnown ? 'broken' : 'unknown'} +${check} .*${message}`, 'm'));
    if (!isKnown) assert.match(stdout, /unknown +credential .*the content of Secret "robot" is unknown/);
  }
});

test('names the node that the pull secret of the cluster is not brought to', async () => {
  const auths = (host: string): string =>
    Buffer.from(JSON.stringify({ auths: { [host]: { auth: plantedAuth('node') } } })).toString('base64');
  const secret = (name: string, host: string): object => ({
    ...meta('v1 Secret', { name, namespace: 'kube-system' }),
    type: 'kubernetes.io/dockerconfigjson',
    data: { '.dockerconfigjson': auths(host) },
  });
  const node = (labels: object): object => meta('v1 Node', { name: 'n', labels });
  const pod = {
    ...meta('v1 Pod', { name: 'there', namespace: 'shop' }),
    spec: { nodeName: 'n', containers: [{ name: 'a', image: 'quay.io/shop/web:1' }] },
  };
  const items = [secret('original-pull-secret', 'r.io'), secret('global-pull-secret', 'quay.io/shop'), pod];
  const examine = async (labels: object) => {
    writeFileSync(
      join(folder, 'dump.json'),
      JSON.stringify({ apiVersion: 'v1', kind: 'List', items: [...items, node(labels)] }),
    );
    return runInProcess(['doctor', 'there', '-n', 'shop', '--from', folder]);
  };
  const without = await examine({});
  assert.equal(without.code, 1, without.stdout);
  assert.match(without.stdout, /broken +credential .*node "n" does not get it: it lacks the label/);
  assert.match(without.stdout, /"nodes" of global-pull-secret in the fleet/);
  const labelled = await examine({ 'hypershift.openshift.io/nodepool-globalps-enabled': 'true' });
  assert.equal(labelled.code, 0, labelled.stdout);
});

test('says why a node lacks what the pull secret of the cluster says by now', async () => {
  const report = (verdicts: readonly object[]): object => ({
    ...meta('pullwright.dev/v1alpha1 PullStatus', {
      name: 'secret-original-pull-secret',
      namespace: 'kube-system',
    }),
    status: { verdicts },
  });
  const pod = {
    ...meta('v1 Pod', { name: 'late', namespace: 'shop' }),
    spec: { nodeName: 'n', containers: [{ name: 'a', image: 'quay.io/shop/web:1' }] },
  };
  const examine = async (subject: string) => {
    const verdict = { subject, verdict: 'Pending', reason: 'NotReported', message: 'no agent has reported' };
    writeFileSync(
      join(folder, 'dump.json'),
      JSON.stringify({ apiVersion: 'v1', kind: 'List', items: [pod, report([verdict])] }),
    );
    return runInProcess(['doctor', 'late', '-n', 'shop', '--from', folder]);
  };
  const behind = await examine('node n');
  assert.equal(behind.code, 1, behind.stdout);
  assert.match(
    behind.stdout,
    /broken +node +Node\/n: lacks the cluster's pull secret as it is now \(NotReported\): no agent has reported/,
  );
  const other = await examine('node m');
  assert.equal(other.code, 0, other.stdout);
});

test('-c examines one container, as explain does, and names those of the pod', async () => {
  const containers = [
    { name: 'bad', image: 'quay.io/shop/bad:1' },
    { name: 'good', image: 'quay.io/shop/good:1' },
    { name: 'invalid', image: 'quay.io/UPPER:1' },
  ];
  const waiting = { reason: 'ErrImagePull', message: 'manifest unknown' };
  const containerStatuses = containers.map((one) => ({ ...one, state: { waiting } })).slice(0, 1);
  const pod = { ...meta('v1 Pod', { name: 'two', namespace: 'c' }), spec: { containers }, status: {} };
  const file = join(folder, 'two.json');
  writeFileSync(file, JSON.stringify({ ...pod, status: { phase: 'Pending', containerStatuses } }));
  for (const command of ['doctor', 'explain']) {
    const ask = (name: string) =>
      runInProcess([command, 'pods/two', '-c', name, '-n', 'c', '-f', file, '-o', 'json']);
    const bad = await ask('bad');
    assert.equal(bad.code, 1);
    assert.match(bad.stdout, /"cause": "not-found"/);
    assert.doesNotMatch(bad.stdout, /shop\/good/);
    const good = await ask('good');
    assert.equal(good.code, 0, good.stdout);
    assert.doesNotMatch(good.stdout, /shop\/bad/);
    const none = await ask('nil');
    assert.equal(none.code, 2);
    assert.match(none.stderr, /Cannot find container "nil": must be one of bad, good, invalid/);
  }
  const all = await runInProcess(['doctor', '--all', '-c', 'bad', '-f', file]);
  assert.match(all.stderr, /Cannot examine "bad": --all examines every pod, and accepts no name/);
  rmSync(file);
});

test('a list that names no Secret is a warning, in doctor and report alike', async () => {
  const object = deployment({ imagePullSecrets: [{ name: '' }] });
  const file = join(folder, 'unnamed.json');
  writeFileSync(file, JSON.stringify({ ...object, metadata: { name: 'unnamed', namespace: 'shop' } }));
  const said = /imagePullSecrets of Deployment\/shop\/unnamed names no Secret: the kubelet skips/;
  const ran = await doctor('unnamed');
  assert.match(ran.stdout, new RegExp(`warning +secrets-named +${said.source}`));
  assert.equal(ran.code, 1);
  const report = await runInProcess(['report', '--from', file]);
  assert.match(report.stdout, said);
  rmSync(file);
});

test('mirrors does not invent search registries for nodes that are not of OpenShift', async () => {
  const { code, stdout } = await runInProcess(['mirrors', 'nginx', '--from', join(folder, 'plain.json')]);
  assert.equal(code, 1);
  assert.match(stdout, /no object of the input tells which registries the nodes search\nfix +Write its reg/);
  assert.doesNotMatch(stdout, /redhat|docker\.io/);
});

/** `doctor` of a pod that lists the Secret `pull`, with an error of its pull. */
async function doctorOf(message: string, ...secrets: readonly object[]) {
  const waiting = { reason: 'ErrImagePull', message };
  const containers = [{ name: 'a', image: 'quay.io/a/b:1' }];
  const containerStatuses = containers.map((one) => ({ ...one, state: { waiting } }));
  const pod = {
    ...meta('v1 Pod', { name: 'one', namespace: 'shop' }),
    spec: { imagePullSecrets: [{ name: 'pull' }], containers },
    status: { phase: 'Pending', containerStatuses },
  };
  const file = join(folder, 'one.json');
  writeFileSync(file, JSON.stringify({ apiVersion: 'v1', kind: 'List', items: [pod, ...secrets] }));
  const { stdout } = await runInProcess(['doctor', 'one', '-n', 'shop', '-f', file]);
  rmSync(file);
  return stdout;
}

const opaque = (config: object) => ({
  ...pullSecretObject({ name: 'pull', namespace: 'shop' }, config),
  type: 'Opaque',
});

const AUTHS = { 'quay.io': { auth: plantedAuth('own') } };

test('no listed Secret is called good for a pull that fails for another reason', async () => {
  const message = 'dial tcp: lookup quay.io: no such host';
  const pending = await doctorOf(message);
  assert.match(pending, /broken: .* cannot resolve the name quay\.io\n/);
  assert.match(pending, /unknown +secrets-exist +Secret "pull", listed by .* its content is unknown\n/);
  assert.match(pending, /unknown +credential +no listed credential that can be read matches/);
  const skipped = await doctorOf(message, opaque({ auths: AUTHS }));
  assert.match(skipped, /info +secrets-readable +Secret "pull", listed by .*, is skipped: type is "Opaque"/);
});

test('another type is advised only for a Secret that the kubelet would then read', async () => {
  const retyped = /\| sed 's#\^type: .*#type: kubernetes\.io\/dockerconfigjson#' \| kubectl replace --force/;
  assert.match(await doctorOf('unauthorized', opaque({ auths: AUTHS })), retyped);
  const unread = opaque({ auths: AUTHS, HttpHeaders: { 'X-Team': 1 } });
  assert.doesNotMatch(await doctorOf('unauthorized', unread), /sed/);
});
