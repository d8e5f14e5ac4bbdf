/** `pullwright doctor --all --from`: pods with the same cause share one entry; and the findings of their nodes. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pullSecretOf, readersDigest, toBase64 } from '../../runtime/core/docker-config/pull-secret.ts';
import type { SecretObject } from '../../runtime/core/kubernetes/object.ts';
import { redact } from '../../runtime/core/redacted.ts';
import { causeText } from '../../runtime/diagnose/model/types.ts';
import { plantedAuth } from '../support/canary.ts';
import { runInProcess } from '../support/in-process.ts';
import { meta, pullSecretObject } from '../support/meta.ts';
import { type Case, table, test } from '../support/suite.ts';
import { tempFolder } from '../support/temp-folder.ts';

const folder = tempFolder();
const doctor = (...args: readonly string[]) => runInProcess(['doctor', ...args]);
const LABEL = 'hypershift.openshift.io/nodepool-globalps-enabled';

const put = (name: string, items: readonly object[]): string => {
  const file = join(folder, `${name}.json`);
  writeFileSync(file, JSON.stringify({ apiVersion: 'v1', kind: 'List', items }));
  return file;
};
const config = (hosts: readonly string[]): string =>
  JSON.stringify({ auths: Object.fromEntries(hosts.map((host) => [host, { auth: plantedAuth('all') }])) });
const secret = (namespace: string, name: string, text: string): object =>
  pullSecretObject({ name, namespace }, text);
const pod = (
  namespace: string,
  name: string,
  { image = 'quay.io/shop/web:1', said = 'unauthorized', node = 'n', owner = '' } = {},
): object => ({
  ...meta('v1 Pod', {
    name,
    namespace,
    ...(owner === ''
      ? {}
      : {
          ownerReferences: [
            { apiVersion: 'apps/v1', kind: 'StatefulSet', name: owner, uid: owner, controller: true },
          ],
        }),
  }),
  spec: { nodeName: node, containers: [{ name: 'a', image }] },
  status: {
    phase: said === '' ? 'Running' : 'Pending',
    containerStatuses: [
      said === ''
        ? { name: 'a', state: { running: {} } }
        : {
            name: 'a',
            state: { waiting: { reason: 'ErrImagePull', message: `image "${image}": ${said}` } },
          },
    ],
  },
});

interface Answer {
  readonly causes: readonly {
    readonly check: string;
    readonly title: string;
    readonly about?: string;
    readonly pods: number;
    readonly cases: readonly { readonly subject: string; readonly message: string; readonly fix?: object }[];
  }[];
}
const causesOf = async (...args: readonly string[]): Promise<Answer['causes']> => {
  const ran = await doctor('--all', '-o', 'json', ...args);
  assert.equal(ran.stderr, '');
  return (JSON.parse(ran.stdout) as Answer).causes;
};

const scene = put('scene', [
  ...['billing', 'shop'].map((namespace) => meta('v1 ServiceAccount', { name: 'default', namespace })),
  pod('shop', 'web-0', { owner: 'web' }),
  pod('shop', 'web-1', { owner: 'web' }),
  pod('billing', 'api'),
  pod('billing', 'runs', { said: '' }),
  pod('shop', 'typo', { said: 'manifest unknown', image: 'r.io/typo:1' }),
  secret('shop', 'robot', config(['quay.io/shop'])),
]);

test('pods of several namespaces that fail alike are one cause; one that runs is none', async () => {
  const causes = await causesOf('-A', '--from', scene);
  assert.deepEqual(
    causes.map(({ check, pods, cases, ...cause }) => [
      check,
      causeText(cause),
      pods,
      cases.map(({ subject }) => subject),
    ]),
    [
      [
        'credential',
        'No usable credential for an image: images of quay.io',
        3,
        ['Pod/billing/api', 'Pod/shop/web-0'],
      ],
      ['registry', 'The last pull of an image failed: r.io does not have the image', 1, ['Pod/shop/typo']],
    ],
  );
});

test('one line says how many and why, and what fixes it stands below the cases once', async () => {
  const ran = await doctor('--all', '-A', '--from', scene);
  assert.equal(ran.code, 1);
  assert.match(
    ran.stdout,
    /^4 pods fail to pull, for 2 causes\n\n✕ broken {4}No usable credential for an image: images of quay\.io \(2 in local, 3 pods\)\n {2}local {2}Pod\/billing\/api\n/,
  );
  assert.equal(ran.stdout.match(/^ {4}kind: ServiceAccount$/gm)?.length, 1, ran.stdout);
  const yaml = await doctor('--all', '-A', '-o', 'yaml', '--from', scene);
  assert.match(yaml.stdout, /^apiVersion: v1\nkind: ServiceAccount\n[\s\S]*- name: robot\n$/);
});

test('what is cluster-wide is never in one YAML with objects of a namespace', async () => {
  const at = { name: 'reads', namespace: 'billing' };
  const rbac = { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: at.name };
  const said = { said: 'manifest unknown' };
  const items = [
    ...['billing', 'shop'].flatMap((name) => [
      pod(name, 'web', said),
      secret(name, 'pull', config(['m.io'])),
    ]),
    {
      ...meta('config.openshift.io/v1 ImageTagMirrorSet', { name: 'm' }),
      spec: { imageTagMirrors: [{ source: 'quay.io/shop', mirrors: ['m.io/shop'] }] },
    },
    {
      ...meta('config.openshift.io/v1alpha1 CRIOCredentialProviderConfig', { name: 'cluster' }),
      spec: { matchImages: ['x.io'] },
    },
    {
      ...meta('rbac.authorization.k8s.io/v1 Role', at),
      rules: [{ apiGroups: [''], resources: ['secrets', 'serviceaccounts'], verbs: ['get'] }],
    },
    {
      ...meta('rbac.authorization.k8s.io/v1 RoleBinding', at),
      roleRef: rbac,
      subjects: [{ kind: 'ServiceAccount', name: 'default', namespace: 'billing' }],
    },
  ];
  const all = put('reach', items);
  const both = await doctor('--all', '-A', '-o', 'yaml', '--from', all);
  assert.match(both.stdout, /^kind: RoleBinding$/m);
  assert.doesNotMatch(both.stdout, /CRIOCredentialProviderConfig/);
  assert.match(both.stderr, /^Not in this YAML: CRIOCredentialProviderConfig\/cluster is cluster-scoped/m);
  const one = await doctor('--all', '-n', 'billing', '-o', 'yaml', '--from', all);
  assert.match(one.stdout, /^kind: CRIOCredentialProviderConfig$/m);
  assert.doesNotMatch(one.stdout, /namespace:/);
});

test('without -A it is one namespace', async () => {
  assert.deepEqual(
    (await causesOf('-n', 'billing', '--from', scene)).map(({ pods }) => pods),
    [1],
  );
  const ran = await doctor('--all', '-n', 'nowhere', '--from', scene);
  assert.equal(ran.stdout, 'No pods found in namespace "nowhere"; -A examines every namespace\n');
  assert.equal(ran.code, 0);
});

test('a template that makes no pod for want of its ServiceAccount is a cause without pods', async () => {
  const template = { spec: { serviceAccountName: 'gone', containers: [{ name: 'a', image: 'r.io/a:1' }] } };
  const web = (name: string, replicas: number): object => ({
    ...meta('apps/v1 Deployment', { name, namespace: 'shop' }),
    spec: { replicas, selector: {}, template },
  });
  const causes = await causesOf('-A', '--from', put('none', [web('a', 1), web('off', 0)]));
  assert.deepEqual(
    causes.map(({ pods, ...cause }) => [causeText(cause), pods]),
    [['The ServiceAccount of a workload does not exist: gone', 0]],
  );
});

interface NodeCase extends Case {
  readonly labels?: Readonly<Record<string, string>>;
  readonly objects: readonly object[];
  readonly cause: RegExp;
  readonly says?: RegExp;
}

const GLOBAL = config(['quay.io/shop']);
const agent = (ready: boolean): object => ({
  ...meta('v1 Pod', {
    name: 'syncer-x',
    namespace: 'kube-system',
    labels: { name: 'global-pull-secret-syncer' },
  }),
  spec: { nodeName: 'n', containers: [{ name: 'agent', image: 'r.io/pullwright:1' }] },
  status: {
    phase: 'Running',
    conditions: [{ type: 'Ready', status: ready ? 'True' : 'False' }],
    containerStatuses: [
      { name: 'agent', state: ready ? { running: {} } : { waiting: { reason: 'CrashLoopBackOff' } } },
    ],
  },
});
const daemonSet = (...flags: readonly string[]): object => ({
  ...meta('apps/v1 DaemonSet', { name: 'global-pull-secret-syncer', namespace: 'kube-system' }),
  spec: {
    template: { spec: { containers: [{ name: 'agent', command: ['pullwright', 'agent', ...flags] }] } },
  },
  status: { desiredNumberScheduled: 1, numberReady: 1 },
});
const report = (sourceDigest: string): object => ({
  ...meta('pullwright.dev/v1alpha1 PullStatus', {
    name: 'node-n',
    namespace: 'kube-system',
    labels: { 'pullwright.dev/reports': 'node' },
  }),
  status: {
    reporter: 'global-pull-secret-agent',
    conditions: [{ type: 'Ready', status: 'True', reason: 'InSync', message: 'in sync' }],
    summary: { sourceDigest, resourceVersion: '7' },
  },
});
const SECRET: SecretObject = {
  ...meta('v1 Secret', { name: 's' }),
  data: { '.dockerconfigjson': toBase64(redact(GLOBAL)) },
};
const DIGEST = readersDigest(pullSecretOf(SECRET)) ?? '';
const REFUSED = /^The last pull of an image failed: quay\.io requires a credential and accepted none$/;

table(
  test,
  [
    {
      name: 'a node without the label',
      reason: 'the credential of the cluster is not brought to it',
      labels: {},
      objects: [agent(true), daemonSet()],
      cause: new RegExp(`^No usable credential for an image: nodes without the label ${LABEL}=true$`),
    },
    {
      name: 'a node without an agent',
      reason: 'the DaemonSet counts pods, and none is here',
      objects: [daemonSet()],
      cause: /^A node lacks its pull secret: n$/,
      says: /has no pod on node "n"/,
    },
    {
      name: 'an agent that does not start',
      reason: 'its reason is named',
      objects: [daemonSet(), agent(false)],
      cause: /^A node lacks/,
      says: /agent of node "n" is not ready: syncer-x waits: CrashLoopBackOff/,
    },
    {
      name: 'an agent that reports other content',
      reason: 'its digest is not that of the Secret',
      objects: [daemonSet('--report'), agent(true), report(createHash('sha256').update('old').digest('hex'))],
      cause: /^A node lacks/,
      says: /does not have the current pull secret \(OlderContent\): .*resourceVersion 7/,
    },
    {
      name: 'an agent that has not reported',
      reason: 'nothing is concluded from the absence of a report',
      objects: [daemonSet('--report'), agent(true)],
      cause: /^A node lacks/,
      says: /\(NotReported\)/,
    },
    {
      name: 'an agent that reports the same content',
      reason: 'the registry it is, then',
      objects: [daemonSet('--report'), agent(true), report(DIGEST)],
      cause: REFUSED,
    },
    {
      name: 'an agent that is ready and does not report',
      reason: 'nothing more can be known',
      objects: [daemonSet(), agent(true)],
      cause: REFUSED,
    },
    {
      name: 'a folder that tells nothing of agents',
      reason: 'manifests have no pods',
      objects: [],
      cause: REFUSED,
    },
  ] satisfies readonly NodeCase[] as readonly NodeCase[],
  async ({ name, labels = { [LABEL]: 'true' }, objects, cause, says = /./ }) => {
    const file = put(name.replaceAll(' ', '-'), [
      { apiVersion: 'v1', kind: 'Node', metadata: { name: 'n', labels } },
      secret('kube-system', 'global-pull-secret', GLOBAL),
      secret('kube-system', 'original-pull-secret', config(['r.io'])),
      pod('shop', 'web'),
      ...objects,
    ]);
    const [first] = await causesOf('-n', 'shop', '--from', file);
    assert.match(causeText(first ?? { title: '' }), cause);
    assert.match(first?.cases[0]?.message ?? '', says);
  },
);

table(
  test,
  [
    { name: 'a pod too', reason: 'which is meant', args: ['web', '--all'], says: /--all examines every pod/ },
    { name: '-A alone', reason: 'one pod has one', args: ['-A'], says: /--all-namespaces requires --all/ },
    { name: '-A and -n', reason: 'not both', args: ['--all', '-A', '-n', 'x'], says: /mutually exclusive/ },
    {
      name: 'a kind',
      reason: 'of no pods',
      args: ['svc/web'],
      says: /Cannot examine "svc\/web": expected one pod, or a workload/,
    },
    { name: 'neither', reason: 'nothing is named', args: [], says: /expected one pod, .*or --all/ },
  ] satisfies readonly (Case & { args: readonly string[]; says: RegExp })[],
  async ({ args, says }) => {
    const ran = await doctor(...args, '--from', scene);
    assert.equal(ran.code, 2);
    assert.match(ran.stderr, says);
  },
);
