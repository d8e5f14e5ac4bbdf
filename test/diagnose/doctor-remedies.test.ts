/** Remedies of `pullwright doctor` for a pod without its Secrets: who replaces the pod, and whether the new one would get them. */
import assert from 'node:assert/strict';
import type { KubeObject, SecretObject } from '../../runtime/core/kubernetes/object.ts';
import { redact } from '../../runtime/core/redacted.ts';
import { errorsOf, judgeImage, judgePod } from '../../runtime/diagnose/checks/chain.ts';
import { validateSecret } from '../../runtime/diagnose/checks/docker-config.ts';
import { firstBroken } from '../../runtime/diagnose/checks/findings.ts';
import { fixAccount } from '../../runtime/diagnose/checks/remedies.ts';
import { lookAt } from '../../runtime/diagnose/model/look.ts';
import type { Finding } from '../../runtime/diagnose/model/types.ts';
import { ObjectStore } from '../../runtime/engine/store.ts';
import { meta } from '../support/meta.ts';
import { type Case, table, test } from '../support/suite.ts';

interface Row extends Case {
  readonly owner?: { readonly apiVersion: string; readonly kind: string };
  readonly injecting?: { readonly status: string; readonly reason: string; readonly message: string };
  /** @default {true} */
  readonly live?: boolean;
  readonly advice: RegExp;
}

const no = (reason: string, message: string) => ({ status: 'False', reason, message });
const REPLICA_SET = { apiVersion: 'apps/v1', kind: 'ReplicaSet' };
const ANOTHER = /^Pod "web": delete it, and its ReplicaSet creates another$/;

const rows: readonly Row[] = [
  {
    name: 'no policy is served',
    reason: 'a new pod would be no better off',
    owner: REPLICA_SET,
    injecting: no('PolicyNotServed', 'The API server does not serve MutatingAdmissionPolicy'),
    advice:
      /^A new pod would lack it too: PolicyNotServed: The API server does not serve MutatingAdmissionPolicy$/,
  },
  {
    name: 'admission is off',
    reason: 'the same',
    owner: REPLICA_SET,
    injecting: no('AdmissionOff', 'Neither policy nor webhook is enabled'),
    advice: /^A new pod would lack it too: AdmissionOff: Neither/,
  },
  {
    name: 'no pod of the webhook is ready',
    reason: 'what is configured is not what works',
    owner: REPLICA_SET,
    injecting: no('WebhookDown', 'No pod of the Service is ready'),
    advice: /^A new pod would lack it too: WebhookDown: /,
  },
  {
    name: 'the policy is being made',
    reason: 'it is there in a moment',
    owner: REPLICA_SET,
    injecting: no('PolicyPending', 'The admission policy does not exist yet'),
    advice: ANOTHER,
  },
  {
    name: 'the policy is at work',
    reason: 'the pod was before it',
    owner: REPLICA_SET,
    injecting: { status: 'True', reason: 'Policy', message: 'New pods get the names' },
    advice: ANOTHER,
  },
  {
    name: 'a folder, of which nobody knows how admission is',
    reason: 'what its profile says there is how a reconciler without options would find it',
    owner: REPLICA_SET,
    injecting: no('AdmissionOff', 'Neither policy nor webhook is enabled'),
    live: false,
    advice: ANOTHER,
  },
  {
    name: 'a pod of a Job',
    reason: 'a pod that is deleted is one of its tries',
    owner: { apiVersion: 'batch/v1', kind: 'Job' },
    advice: /^Pod "web": recreate its Job: a deleted pod counts against its back-off limit$/,
  },
  {
    name: 'a step of a pipeline',
    reason: 'its controller ends with it',
    owner: { apiVersion: 'tekton.dev/v1', kind: 'TaskRun' },
    advice: /^Pod "web": recreate it$/,
  },
  { name: 'nobody makes it', reason: 'no pod follows it', advice: /^Pod "web": recreate it$/ },
];

table(test, rows, ({ owner, injecting, live = true, advice }) => {
  const store = new ObjectStore();
  const namespace = 'shop';
  store.set({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace, labels: { team: 'a' } } });
  store.set({
    ...meta('pullwright.dev/v1alpha1 PullSecretProfile', { name: 'team' }),
    spec: { namespaceSelector: { matchLabels: { team: 'a' } }, selector: {}, secrets: [{ name: 'robot' }] },
    status: { conditions: injecting === undefined ? [] : [{ type: 'Injecting', ...injecting }] },
  });
  const ownerReferences = owner === undefined ? [] : [{ ...owner, name: 'web', uid: 'u', controller: true }];
  store.set({
    ...meta('v1 Pod', { name: 'web', namespace, ownerReferences }),
    spec: { containers: [{ name: 'a', image: 'quay.io/shop/web:1' }] },
  });
  const puller = {
    namespace,
    serviceAccount: 'default',
    pod: { apiVersion: 'v1', kind: 'Pod', name: 'web' },
  };
  const findings = judgePod(lookAt(store, puller, { unread: [], hosted: false, live }));
  assert.match(findings.find(({ check }) => check === 'injection')?.advice ?? '', advice);
});

const secret = (name: string, document: string): KubeObject => ({
  ...meta('v1 Secret', { name, namespace: 'shop' }),
  type: 'kubernetes.io/dockerconfigjson',
  data: { '.dockerconfigjson': redact(Buffer.from(document).toString('base64')) },
});

/** Finding for a pod whose provider failed, with the printed YAML. */
function providerFailed(...more: readonly KubeObject[]): Finding | undefined {
  const store = new ObjectStore();
  const metadata = { name: 'web', namespace: 'shop' };
  const regarding = { kind: 'Pod', ...metadata };
  const spec = { containers: [{ name: 'a', image: 'quay.io/shop/web:1' }] };
  for (const object of [
    { apiVersion: 'v1', kind: 'Pod', metadata, spec },
    { apiVersion: 'v1', kind: 'Event', metadata, regarding, reason: 'CredentialProviderFailed', note: 'no' },
    secret('other', JSON.stringify({ auths: { 'other.io': { auth: 'YTpi' } } })),
    secret('broken', '{'),
    ...more,
  ])
    store.set(object);
  const pod = { apiVersion: 'v1', kind: 'Pod', name: 'web' };
  const puller = { namespace: 'shop', serviceAccount: 'default', pod };
  const findings = judgePod(lookAt(store, puller, { unread: [], hosted: false }));
  return findings.find(({ check }) => check === 'mirror-credential');
}

test('a provider that failed gets rights on the readable Secrets for mirrors, which the ServiceAccount lists', () => {
  const account = meta('v1 ServiceAccount', { name: 'default', namespace: 'shop' });
  const { fix = [], advice = '' } = providerFailed(account) ?? {};
  assert.match(
    advice,
    /mirrors of the node are not known.*every pull secret of the namespace is listed \("other"\)/,
  );
  assert.deepEqual(fix.map(({ kind }) => kind).toSorted(), ['Role', 'RoleBinding', 'ServiceAccount']);
  assert.match(JSON.stringify(fix), /"resourceNames":\["other"\].*"imagePullSecrets":\[\{"name":"other"\}\]/);
  const unread = providerFailed();
  assert.deepEqual(unread?.fix?.map(({ kind }) => kind).toSorted(), ['Role', 'RoleBinding']);
  assert.match(
    unread.commands?.join() ?? '',
    /"add","path":"\/imagePullSecrets\/-","value":\{"name":"other"\}/,
  );
  const known = providerFailed({
    ...meta('config.openshift.io/v1 ImageTagMirrorSet', { name: 'm' }),
    spec: { imageTagMirrors: [{ source: 'quay.io/shop', mirrors: ['m.io/shop'] }] },
  });
  assert.deepEqual([known?.fix, known?.advice], [[], undefined]);
});

test('a bare pod with an own list is corrected in its manifest, by a list as it is written', () => {
  const { advice } = fixAccount(
    {
      namespace: 'shop',
      account: { name: 'default', object: undefined, known: true },
      images: [],
      isPod: true,
      ownList: true,
      template: { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'web', namespace: 'shop' } },
    },
    'gone',
    ['good'],
  );
  assert.equal(
    advice,
    'Write imagePullSecrets: [{"name":"good"}] into the manifest of the Pod, then recreate it',
  );
});

const AUTH = { auth: Buffer.from('a:b').toString('base64') };
const refusals: readonly (Case & {
  readonly image?: string;
  readonly said: string;
  /** @default the image of the pod */
  readonly pulled?: string;
  readonly runtime?: string;
  readonly document: object | string;
  readonly advice: string;
  readonly command?: RegExp;
})[] = [
  {
    name: 'an entry that the kubelet offers now',
    reason: 'it was not there when the runtime asked without one',
    said: 'failed to resolve reference "docker.io/shop/web:1": no basic auth credentials',
    image: 'shop/web:1',
    document: { auths: { 'docker.io': AUTH } },
    advice:
      'The kubelet offers entry "docker.io" of Secret/shop/robot now: wait for its next attempt, or recreate the pod',
  },
  {
    name: 'a mirror that refuses',
    reason: 'a credential of the pod never reaches it',
    said: 'initializing source docker://quay.io/shop/web:1: reading manifest 1 in m.io/shop/web: unauthorized: no',
    document: { auths: { 'quay.io': AUTH } },
    advice:
      'Check the entry for m.io: pullwright verify with the image shows which credential is rejected, and why',
  },
  {
    name: 'containerd, at a mirror',
    reason: 'it sends the credential there too',
    said: 'failed to authorize: failed to fetch oauth token: unexpected status from GET request to https://m.io/token?ns=quay.io: 401 Unauthorized',
    document: { auths: { 'quay.io': AUTH } },
    runtime: 'containerd://2.0.0',
    advice: 'Renew entry "quay.io" of Secret/shop/robot',
  },
  {
    name: 'an image that the pod does not name',
    reason: 'the kubelet pulls that of the sandbox with a credential of its own',
    said: 'failed to authorize: failed to fetch oauth token: unexpected status from GET request to https://quay.io/token: 401 Unauthorized',
    pulled: 'quay.io/other/pause:3.9',
    document: { auths: { 'quay.io': AUTH } },
    advice: 'Renew the entry for quay.io',
  },
  {
    name: 'the only Secret of the pod, which cannot be read',
    reason: 'without it there would be no credential at all',
    said: 'unable to parse auth field',
    document: '{',
    advice: 'Recreate the Secret; this removes its entries for registries other than quay.io',
    command:
      /^kubectl create secret docker-registry robot -n shop --docker-server=quay\.io .* --dry-run=client -o yaml \| kubectl replace --force -f -$/,
  },
];

table(test, refusals, ({ image = 'quay.io/shop/web:1', pulled = image, ...row }) => {
  const { said, document, advice, command, runtime } = row;
  const store = new ObjectStore();
  const waiting = { reason: 'ErrImagePull', message: `Failed to pull image "${pulled}": ${said}` };
  if (runtime !== undefined)
    store.set({
      ...meta('v1 Node', { name: 'n' }),
      status: { nodeInfo: { containerRuntimeVersion: runtime } },
    });
  store.set({
    ...meta('v1 Pod', { name: 'web', namespace: 'shop' }),
    spec: { nodeName: 'n', containers: [{ name: 'a', image }], imagePullSecrets: [{ name: 'robot' }] },
    status: { phase: 'Pending', containerStatuses: [{ name: 'a', image, state: { waiting } }] },
  });
  store.set(secret('robot', typeof document === 'string' ? document : JSON.stringify(document)));
  const puller = { namespace: 'shop', serviceAccount: 'default', pod: { kind: 'Pod', name: 'web' } };
  const broken = firstBroken(judgePod(lookAt(store, puller, { unread: [], hosted: false })));
  assert.equal(broken?.advice, advice);
  assert.match(broken.commands?.join() ?? '', command ?? /^$/);
});

const ASKED = 'failed to authorize: failed to fetch anonymous token: unexpected status: 401 Unauthorized';
const REFUSED =
  'failed to authorize: failed to fetch oauth token: unexpected status from GET request to https://ghcr.io/token: 403 Forbidden';

test('a ServiceAccount that was deleted is created before it is patched', () => {
  const store = new ObjectStore();
  const image = 'ghcr.io/a/b:1';
  const waiting = { reason: 'ErrImagePull', message: ASKED };
  store.set({
    ...meta('v1 Pod', { name: 'web', namespace: 'shop' }),
    spec: { serviceAccountName: 'gone', containers: [{ name: 'a', image }] },
    status: { phase: 'Pending', containerStatuses: [{ name: 'a', image, state: { waiting } }] },
  });
  const puller = { namespace: 'shop', serviceAccount: 'gone', pod: { kind: 'Pod', name: 'web' } };
  const broken = firstBroken(judgePod(lookAt(store, puller, { unread: [], hosted: false, live: true })));
  const [secretMade, ...rest] = broken?.commands ?? [];
  assert.match(secretMade ?? '', /^kubectl create secret docker-registry pull-ghcr-io /);
  assert.deepEqual(rest, [
    'kubectl create serviceaccount gone -n shop',
    `kubectl patch serviceaccount gone -n shop -p '{"imagePullSecrets":[{"name":"pull-ghcr-io"}]}'`,
  ]);
});

const failures: readonly (Case & {
  readonly said: string;
  readonly hosts: readonly string[];
  readonly check: string;
  readonly message: RegExp;
  readonly kind?: 'ephemeral';
  readonly runs?: string;
})[] = [
  {
    name: 'a pull without a credential, beside an image that runs without one',
    reason: 'the image that runs needs none',
    said: ASKED,
    hosts: [],
    check: 'credential',
    message: /"ghcr\.io\/x\/b:1", and the registry requires one$/,
  },
  {
    name: 'the same, with a Secret for the image that runs',
    reason: 'it would not help',
    said: ASKED,
    hosts: ['quay.io'],
    check: 'credential',
    message: /"ghcr\.io\/x\/b:1", and the registry requires one$/,
  },
  {
    name: 'an ephemeral container',
    reason: 'the pod itself runs',
    said: ASKED,
    hosts: [],
    kind: 'ephemeral',
    check: 'credential',
    message: /"ghcr\.io\/x\/b:1", and the registry requires one$/,
  },
  {
    name: 'a credential that is refused, beside an image that runs without one',
    reason: 'the image that runs needs none',
    said: REFUSED,
    hosts: ['ghcr.io'],
    check: 'registry',
    message: /"ghcr\.io\/x\/b:1" .*rejected the credential$/,
  },
  {
    name: 'another tag of a repository whose image runs',
    reason: 'the image that runs is another',
    said: 'reading manifest 1 in ghcr.io/x/b: manifest unknown',
    hosts: ['ghcr.io'],
    runs: 'ghcr.io/x/b:2',
    check: 'registry',
    message: /ghcr\.io does not have the image$/,
  },
  {
    name: 'a certificate, beside an image that runs from a mirror without a credential',
    reason: 'that is for its next pull',
    said: 'Get "https://ghcr.io/v2/": x509: certificate signed by unknown authority',
    hosts: ['ghcr.io', 'm.io'],
    check: 'registry',
    message: /does not trust the certificate of ghcr\.io$/,
  },
];

table(test, failures, ({ said, hosts, check, message, kind, runs = 'quay.io/pub/a:1' }) => {
  const store = new ObjectStore();
  const fails = 'ghcr.io/x/b:1';
  const waiting = {
    reason: 'ErrImagePull',
    message: `Back-off pulling image "${fails}": ErrImagePull: ${said}`,
  };
  const one = { name: 'a', image: runs };
  const other = { name: 'b', image: fails };
  const states = [
    { ...one, state: { running: {} } },
    { ...other, state: { waiting } },
  ];
  const listed = hosts.length === 0 || hosts[0] === 'quay.io' ? [] : [{ name: 'robot' }];
  store.set({
    ...meta('v1 Pod', { name: 'web', namespace: 'shop' }),
    spec: {
      containers: kind === undefined ? [one, other] : [one],
      ephemeralContainers: kind === undefined ? [] : [other],
      imagePullSecrets: listed,
    },
    status:
      kind === undefined
        ? { phase: 'Pending', containerStatuses: states }
        : {
            phase: 'Running',
            containerStatuses: states.slice(0, 1),
            ephemeralContainerStatuses: states.slice(1),
          },
  });
  store.set({
    ...meta('config.openshift.io/v1 ImageTagMirrorSet', { name: 'm' }),
    spec: { imageTagMirrors: [{ source: 'quay.io/pub', mirrors: ['m.io/pub'] }] },
  });
  const auths = Object.fromEntries(hosts.map((host) => [host, AUTH]));
  store.set(secret('robot', JSON.stringify({ auths })));
  const puller = { namespace: 'shop', serviceAccount: 'default', pod: { kind: 'Pod', name: 'web' } };
  const input = lookAt(store, puller, { unread: [], hosted: false });
  const broken = firstBroken(judgePod(input));
  assert.equal(broken?.check, check);
  assert.match(broken.message, message);
  const brokenFor = (image: string) => firstBroken(judgeImage(input, image));
  assert.deepEqual(brokenFor(fails), broken);
  assert.doesNotMatch(brokenFor(runs)?.message ?? '', /ghcr\.io\/x\/b:1/, 'it is not of the image that runs');
});

/** A pod of `images` that fail to pull, each with what the kubelet says. */
function failingPod(
  images: Readonly<Record<string, string>>,
  more: object = {},
  spec: object = {},
): ObjectStore {
  const store = new ObjectStore();
  const containers = Object.keys(images).map((image, at) => ({ name: `c${at}`, image }));
  const states = containers.map((one) => {
    const waiting = { reason: 'ErrImagePull', message: images[one.image] };
    return { ...one, state: { waiting } };
  });
  store.set({
    ...meta('v1 Pod', { name: 'web', namespace: 'shop', ...more }),
    spec: { containers, imagePullSecrets: [{ name: 'robot' }], ...spec },
    status: { phase: 'Pending', containerStatuses: states },
  });
  store.set(secret('robot', JSON.stringify({ auths: { 'quay.io': AUTH } })));
  return store;
}

const lookAtWeb = (store: ObjectStore) => {
  const pod = { kind: 'Pod', name: 'web' };
  return lookAt(store, { namespace: 'shop', serviceAccount: 'default', pod }, { unread: [], hosted: false });
};

const errorsIn = (store: ObjectStore): readonly Finding[] => {
  const input = lookAtWeb(store);
  return errorsOf(input, judgePod(input));
};

test('each image that fails to pull has an error of its own', () => {
  const store = failingPod({
    'quay.io/a/b:1': 'manifest unknown',
    'ghcr.io/x/b:1': 'dial tcp: lookup ghcr.io: no such host',
    'quay.io/a/c:1': 'manifest unknown',
  });
  assert.deepEqual(
    errorsIn(store).map(({ cause, message }) => [cause, /pull of "([^"]+)"/.exec(message)?.[1]]),
    [
      ['not-found', 'quay.io/a/b:1'],
      ['dns', 'ghcr.io/x/b:1'],
      ['not-found', 'quay.io/a/c:1'],
    ],
  );
});

const event = (message: string, involved: object): KubeObject => ({
  ...meta('v1 Event', { name: 'web.1', namespace: 'shop' }),
  involvedObject: { kind: 'Pod', name: 'web', namespace: 'shop', ...involved },
  reason: 'Failed',
  message,
});

test('events of an earlier pod of the same name are not those of the pod', () => {
  const annotations = { 'kubernetes.io/config.mirror': 'of-file' };
  const store = failingPod({ 'quay.io/a/b:1': '' }, { uid: 'new', annotations });
  const causes = { old: 'unknown', new: 'not-found', 'of-file': 'not-found' };
  for (const [uid, cause] of Object.entries(causes)) {
    store.set(event('Failed to pull image "quay.io/a/b:1": manifest unknown', { uid }));
    assert.equal(lookAtWeb(store).failures[0]?.cause, cause);
  }
});

test('the image of a volume is named beside that of a container', () => {
  const images = {
    'ghcr.io/x/b:1': 'dial tcp: lookup ghcr.io: no such host',
    'quay.io/a/web:1': 'Back-off pulling image "quay.io/a/model:7"',
  };
  const volumes = [{ name: 'model', image: { reference: 'quay.io/a/model:7' } }];
  const store = failingPod(images, {}, { volumes });
  const said = 'Failed to pull image "quay.io/a/model:7": manifest unknown';
  store.set(event(said, { fieldPath: 'spec.volumes{model}' }));
  const found = errorsIn(store).map(({ cause, host }) => `${cause} ${host}`);
  assert.deepEqual(found, ['dns ghcr.io', 'not-found quay.io']);
});

test('a mirror that refuses, for which no credential is known, is not a rejected credential', () => {
  const store = failingPod({ 'quay.io/a/b:1': 'reading manifest 1 in m.io/a/b: unauthorized: no' });
  store.set({
    ...meta('config.openshift.io/v1 ImageTagMirrorSet', { name: 'm' }),
    spec: { imageTagMirrors: [{ source: 'quay.io/a', mirrors: ['m.io/a'] }] },
  });
  const [broken] = errorsIn(store);
  assert.equal(broken?.check, 'mirror-credential');
  assert.match(broken.message, /contacts mirror m\.io\/a\/b:1 without a credential/);
  assert.match(broken.advice ?? '', /^Put an entry for m\.io into the pull secret of the cluster/);
});

test('a template that lists Secrets itself is corrected, not the ServiceAccount with the same list', () => {
  const controller = { apiVersion: 'apps/v1', kind: 'StatefulSet', name: 'web', controller: true };
  const store = failingPod({ 'quay.io/a/b:1': 'unauthorized' }, { ownerReferences: [controller] });
  store.set({
    ...meta('v1 ServiceAccount', { name: 'default', namespace: 'shop' }),
    imagePullSecrets: [{ name: 'robot' }],
  });
  const template = { spec: { imagePullSecrets: [{ name: 'robot' }], containers: [] } };
  assert.equal(lookAtWeb(store).ownList, false);
  store.set({ ...meta('apps/v1 StatefulSet', { name: 'web', namespace: 'shop' }), spec: { template } });
  assert.equal(lookAtWeb(store).ownList, true);
});

test('the full name of a short name has "library" only where it has one part', () => {
  for (const [image, full] of [
    ['web:1', 'docker.io/library/web:1'],
    ['acme/web:1', 'docker.io/acme/web:1'],
  ] as const) {
    for (const said of [
      `short-name "${image}" did not resolve to an alias and no unqualified-search registries are defined`,
      `Failed to pull image "${image}": initializing source docker://registry.example.com/web:1: reading manifest 1 in registry.example.com/web: manifest unknown`,
    ])
      assert.equal(
        errorsIn(failingPod({ [image]: said }))[0]?.advice,
        `Write the full name, such as ${full}`,
      );
  }
});

for (const [name, document, says] of [
  ['the entries of a .dockercfg', { 'quay.io': AUTH }, /has entries without "auths" around them/],
  [
    'a credential helper alone',
    { credHelpers: { 'quay.io': 'ecr-login' } },
    /a credential helper keeps the passwords/,
  ],
  [
    'a helper beside no entry',
    { auths: {}, credsStore: 'desktop' },
    /a credential helper keeps the passwords/,
  ],
  ['no "auths"', { auths: null }, /has no "auths" object$/],
  [
    'an empty password',
    { auths: { 'quay.io': { auth: btoa('robot:') } } },
    /has a user name without a password/,
  ],
  ['an identity token', { auths: { 'quay.io': { identitytoken: 'x' } } }, /has only an "identitytoken"/],
] as const)
  test(`doctor, explain and validate say the same of a Secret with ${name}`, () => {
    const store = failingPod({ 'quay.io/a/b:1': 'unauthorized' });
    const own = secret('robot', JSON.stringify(document));
    store.set(own);
    const input = lookAtWeb(store);
    assert.match(firstBroken(judgePod(input))?.message ?? '', says);
    const told = input.images[0]?.explanation?.findings.map(({ message }) => message) ?? [];
    assert.ok(
      told.some((message) => says.test(message)),
      told.join(),
    );
    const problems = validateSecret(own as SecretObject).map(({ message }) =>
      message.replace(/: it is not used$/, ''),
    );
    assert.ok(
      problems.some((message) => says.test(message)),
      problems.join(),
    );
  });

test('a config.json in a .dockercfg is named, with the type and key that are right for it', () => {
  const store = failingPod({ 'quay.io/a/b:1': 'unauthorized' });
  const { data } = secret('robot', JSON.stringify({ auths: { 'quay.io': AUTH } })) as SecretObject;
  const value = data?.['.dockerconfigjson'];
  store.set({
    ...secret('robot', ''),
    type: 'kubernetes.io/dockercfg',
    data: { '.dockercfg': value },
  });
  const [broken] = errorsIn(store);
  assert.match(broken?.message ?? '', /data\["\.dockercfg"\] has "auths" around its entries/);
  assert.match(broken?.commands?.join() ?? '', /kubernetes\.io\/dockerconfigjson#;s#\^ {2}\.dockercfg:#/);
});

test('a Secret that another object writes is corrected there', () => {
  const store = failingPod({ 'quay.io/a/b:1': 'unauthorized' });
  const { metadata, ...own } = secret('robot', JSON.stringify({ auths: { 'quay.io': AUTH } }));
  const maker = {
    apiVersion: 'external-secrets.io/v1',
    kind: 'ExternalSecret',
    name: 'a',
    uid: 'a',
    controller: true,
  };
  store.set({ ...own, type: 'Opaque', metadata: { ...metadata, ownerReferences: [maker] } });
  const [broken] = errorsIn(store);
  assert.match(broken?.advice ?? '', /^Correct ExternalSecret\/a, which writes it, to type kubernetes\.io/);
  assert.equal(broken?.commands, undefined);
});

test('a value that the dump leaves out is unknown, not broken', () => {
  const store = failingPod({ 'quay.io/a/b:1': 'unauthorized' });
  store.set(secret('robot', ''));
  const found = judgePod(lookAtWeb(store)).find(({ check }) => check === 'secrets-exist');
  assert.equal(found?.severity, 'unknown');
});
