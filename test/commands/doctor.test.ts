// deadline: 600 s
/** `pullwright doctor` in a cluster: set-ups that are broken, the first broken link, and that the printed YAML mends it. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pullSecretProfileCrd } from '../../charts/pull-secret-injection/crd.ts';
import { missingControlPlane, startControlPlane } from '../control-plane/control-plane.ts';
import { installCrd } from '../control-plane/crds.ts';
import { plantedAuth } from '../support/canary.ts';
import { type ProcessResult, runProcess } from '../support/process.ts';
import { type Case, suite, table } from '../support/suite.ts';

const test = suite('pullwright doctor');
const main = new URL('../../main.ts', import.meta.url).pathname;
const missing = missingControlPlane();

type TestObject = Parameters<Awaited<ReturnType<typeof startControlPlane>>['apply']>[0];

const deployment = (spec: object): TestObject => ({
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name: 'web' },
  spec: {
    selector: { matchLabels: { app: 'web' } },
    template: {
      metadata: { labels: { app: 'web' } },
      spec: { containers: [{ name: 'a', image: 'quay.io/shop/web:1' }], ...spec },
    },
  },
});

const pod = (spec: object = {}): TestObject => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'web', labels: { app: 'web' } },
  spec: { containers: [{ name: 'a', image: 'quay.io/shop/web:1' }], ...spec },
});

const secret = (
  name: string,
  auths: Readonly<Record<string, string>>,
  type = 'kubernetes.io/dockerconfigjson',
): TestObject => ({
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: { name },
  type,
  data: {
    '.dockerconfigjson': Buffer.from(
      JSON.stringify({
        auths: Object.fromEntries(Object.entries(auths).map(([key, auth]) => [key, { auth }])),
      }),
    ).toString('base64'),
  },
});

const account = (names: readonly string[]): TestObject => ({
  apiVersion: 'v1',
  kind: 'ServiceAccount',
  metadata: { name: 'default' },
  imagePullSecrets: names.map((name) => ({ name })),
});

const event = (reason: string, message: string): TestObject => ({
  apiVersion: 'v1',
  kind: 'Event',
  metadata: { name: `web.${reason.toLowerCase()}` },
  involvedObject: { kind: 'Pod', name: 'web', namespace: 'NAMESPACE' },
  reason,
  message,
  type: 'Warning',
  lastTimestamp: '2030-01-01T00:00:00Z',
});

const AUTH = plantedAuth('doctor');
const GOOD = secret('good', { 'quay.io/shop': AUTH });
const MIRRORS: TestObject = {
  apiVersion: 'config.openshift.io/v1',
  kind: 'ImageTagMirrorSet',
  metadata: { name: 'm' },
  spec: { imageTagMirrors: [{ source: 'mirrored.io/shop', mirrors: ['m.io/shop'] }] },
};
const PROFILE: TestObject = {
  apiVersion: 'pullwright.dev/v1alpha1',
  kind: 'PullSecretProfile',
  metadata: { name: 'team' },
  spec: { namespaceSelector: { matchLabels: { profile: 'yes' } }, secrets: [{ name: 'good' }] },
};

interface Row extends Case {
  readonly objects: readonly TestObject[];
  readonly labels?: Readonly<Record<string, string>>;
  readonly what?: string;
  readonly broken: string;
  readonly says: RegExp;
  /** Whether the printed YAML alone mends it. */
  readonly mends?: true;
  readonly advice?: RegExp;
}

const rows: readonly Row[] = [
  {
    name: 'an image that cannot be read',
    reason: 'nothing else matters then',
    objects: [account([]), deployment({ containers: [{ name: 'a', image: 'quay.io/Shop/web:1' }] })],
    broken: 'image',
    says: /quay\.io\/Shop\/web:1/,
    advice: /template/,
  },
  {
    name: 'no ServiceAccount',
    reason: 'no pod is made',
    objects: [deployment({ serviceAccountName: 'web' })],
    broken: 'service-account',
    says: /"[a-z0-9-]+\/web" does not exist/,
    mends: true,
  },
  {
    name: 'a Secret that is there and that nobody lists',
    reason: 'the ServiceAccount is to name it',
    objects: [account([]), GOOD, deployment({})],
    broken: 'credential',
    says: /Secret "good" of the namespace does/,
    mends: true,
  },
  {
    name: 'a Secret that is not there, beside one that would do',
    reason: 'the list is mended',
    objects: [account(['gone']), GOOD, deployment({})],
    broken: 'secrets-there',
    says: /Secret "gone", listed by ServiceAccount.*does not exist/,
    mends: true,
  },
  {
    name: "a template whose own list hides the ServiceAccount's",
    reason: 'the template is mended, for the ServiceAccount no longer counts',
    objects: [account(['good']), GOOD, deployment({ imagePullSecrets: [{ name: 'gone' }] })],
    broken: 'secrets-there',
    says: /listed by Deployment.*does not exist/,
    mends: true,
  },
  {
    name: 'a Secret of the wrong type',
    reason: 'the kubelet passes over it',
    objects: [account(['plain']), secret('plain', { 'quay.io/shop': AUTH }, 'Opaque'), GOOD, deployment({})],
    broken: 'secrets-readable',
    says: /"plain".*another type/,
    mends: true,
  },
  {
    name: 'a Secret that the kubelet cannot parse',
    reason: 'it fails every image of the pod',
    objects: [account(['broken', 'good']), secret('broken', { 'r.io': '!!' }), GOOD, deployment({})],
    broken: 'secrets-readable',
    says: /one unreadable Secret fails every image/,
    mends: true,
  },
  {
    name: 'an entry for another path of the same host',
    reason: 'it nearly matches',
    objects: [account(['near']), secret('near', { 'quay.io/other': AUTH }), deployment({})],
    broken: 'credential',
    says: /"quay\.io\/other".*does not match/,
    advice: /quay\.io\/shop/,
  },
  {
    name: 'a mirror without a credential',
    reason: 'pull secrets of pods never reach mirrors under CRI-O',
    objects: [
      account(['both']),
      secret('both', { 'mirrored.io/shop': AUTH, 'm.io': AUTH }),
      deployment({ containers: [{ name: 'a', image: 'mirrored.io/shop/web:1' }] }),
    ],
    broken: 'mirror-credential',
    says: /mirror "m\.io\/shop\/web:1" without a credential/,
    mends: true,
  },
  {
    name: 'a pod from before its ServiceAccount listed anything',
    reason: 'the list is copied once',
    objects: [pod(), account(['good']), GOOD],
    what: 'web',
    broken: 'injection',
    says: /ServiceAccount\/.*gives such pods Secret "good"/,
    advice: /Delete the pod/,
  },
  {
    name: 'a pod from before its profile',
    reason: 'a pod cannot be changed',
    objects: [account([]), pod(), GOOD],
    labels: { profile: 'yes' },
    what: 'web',
    broken: 'injection',
    says: /profile\/team gives such pods Secret "good"/,
    advice: /Delete the pod/,
  },
  ...(
    [
      ['x509: certificate signed by unknown authority', /certificate is not trusted/],
      ['dial tcp 10.0.0.1:443: i/o timeout', /could not be reached/],
      ['toomanyrequests: you have reached your pull rate limit', /asks to wait/],
      ['manifest unknown', /the image is not there/],
      ['unauthorized: access to the resource is not authorized', /refused the credential/],
    ] as const
  ).map(
    ([message, says]): Row => ({
      name: `an event: ${message}`,
      reason: 'all that is known here is right, and the registry says no',
      objects: [
        account(['good']),
        GOOD,
        pod({ imagePullSecrets: [{ name: 'good' }] }),
        event('Failed', `Failed to pull image "quay.io/shop/web:1": ${message}`),
      ],
      what: 'web',
      broken: 'registry',
      says,
      advice: /./,
    }),
  ),
];

interface Answer {
  readonly links: readonly {
    readonly link: string;
    readonly state: string;
    readonly message: string;
    readonly advice?: string;
  }[];
}

if (missing !== undefined) test.skip('all of it', missing);
else {
  const plane = await startControlPlane({ crds: 'all' });
  await installCrd(plane.client, pullSecretProfileCrd());
  await plane.apply(MIRRORS);
  await plane.apply(PROFILE);
  const doctor = (what: string, namespace: string, ...more: readonly string[]): Promise<ProcessResult> =>
    runProcess([
      process.execPath,
      main,
      'doctor',
      what,
      '-n',
      namespace,
      '--kubeconfig',
      plane.kubeconfig,
      ...more,
    ]);
  const examined = async (what: string, namespace: string): Promise<Answer> => {
    const ran = await doctor(what, namespace, '--output', 'json');
    assert.ok(ran.stdout !== '', ran.stderr);
    return JSON.parse(ran.stdout) as Answer;
  };
  const firstBroken = ({ links }: Answer) => links.find(({ state }) => state !== 'ok');
  let count = 0;

  table(test, rows, async ({ objects, labels, what = 'deploy/web', broken, says, mends, advice }) => {
    count += 1;
    const namespace = `case-${count}`;
    await plane.apply({
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: { name: namespace, labels: labels ?? {} },
    });
    for (const object of objects) {
      const placed = JSON.parse(JSON.stringify(object).replaceAll('NAMESPACE', namespace)) as TestObject;
      await plane.apply({ ...placed, metadata: { ...placed.metadata, namespace } });
    }
    const found = firstBroken(await examined(what, namespace));
    assert.equal(found?.link, broken, JSON.stringify(found));
    assert.equal(found.state, 'broken');
    assert.match(found.message, says);
    if (advice !== undefined) assert.match(found.advice ?? '', advice);
    if (mends !== true) return;
    const { stdout: yaml, code } = await doctor(what, namespace, '--output', 'yaml');
    assert.equal(code, 1);
    const file = join(plane.folder, `${namespace}.yaml`);
    writeFileSync(file, yaml);
    const applied = await plane.kubectl('apply', '--server-side', '--force-conflicts', '-f', file);
    assert.equal(applied.code, 0, `${yaml}\n${applied.stderr}`);
    const after = firstBroken(await examined(what, namespace));
    assert.notEqual(after?.link, broken, `${yaml}\n${JSON.stringify(after)}`);
    assert.equal(after, undefined, JSON.stringify(after));
  });

  test('rights that are missing are named, and can be granted as printed', async () => {
    const namespace = 'case-2';
    const some = [{ apiGroups: ['apps'], resources: ['deployments'], verbs: ['get'] }];
    const user = await plane.user({ name: 'nobody', by: 'token', namespaces: { [namespace]: some } });
    const ask = (where: string, ...more: readonly string[]) =>
      runProcess([
        process.execPath,
        main,
        'doctor',
        'deploy/web',
        '-n',
        where,
        '--kubeconfig',
        user.kubeconfig,
        ...more,
      ]);
    const blind = await ask('case-3');
    assert.equal(blind.code, 1);
    assert.match(blind.stderr, /Cannot get "Deployment\/case-3\/web".*403 Forbidden.*Grant the verb "get"/);
    assert.match(blind.stderr, /Cannot examine Deployment "case-3\/web": it could not be read/);
    const halfBlind = await ask(namespace);
    assert.match(halfBlind.stderr, /Cannot list "Secret in case-2".*Grant the verb "list"/);
    const roles = (await ask(namespace, '--output', 'yaml')).stdout;
    assert.match(roles, /kind: Role\n[\s\S]*kind: ClusterRole\n/);
  });

  test('a healthy pod has no broken link, and the text says so', async () => {
    await plane.apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'fine' } });
    for (const object of [account(['good']), GOOD, deployment({})])
      await plane.apply({ ...object, metadata: { ...object.metadata, namespace: 'fine' } });
    const ran = await doctor('deploy/web', 'fine');
    assert.equal(ran.code, 0, ran.stdout);
    assert.match(ran.stdout, /^Deployment\/fine\/web\n {2}ok +image /);
  });

  test('a pod that is not there, and a cluster that does not answer', async () => {
    assert.match((await doctor('web', 'fine')).stderr, /Cannot find Pod "fine\/web"/);
    assert.equal((await doctor('web/x/y', 'fine')).code, 2);
  });

  test.lastly('the control plane stops', () => plane.stop());
}

test.run();
