/** Broken set-ups for the tests of `pullwright doctor`. */
import type { TestObject } from '../control-plane/resource-path.ts';
import { plantedAuth } from '../support/canary.ts';
import { meta, pullSecretObject } from '../support/meta.ts';
import type { Case } from '../support/suite.ts';

export const deployment = (spec: object): TestObject => ({
  ...meta('apps/v1 Deployment', { name: 'web' }),
  spec: {
    selector: { matchLabels: { app: 'web' } },
    template: {
      metadata: { labels: { app: 'web' } },
      spec: { containers: [{ name: 'a', image: 'quay.io/shop/web:1' }], ...spec },
    },
  },
});

const pod = (spec: object = {}): TestObject => ({
  ...meta('v1 Pod', { name: 'web', labels: { app: 'web' } }),
  spec: { containers: [{ name: 'a', image: 'quay.io/shop/web:1' }], ...spec },
});

/** Pod as a Deployment creates it. */
const podOfWeb = (spec: object = {}): TestObject => {
  const owner = {
    apiVersion: 'apps/v1',
    kind: 'ReplicaSet',
    name: 'web-5b65b7db',
    uid: 'u',
    controller: true,
  };
  const bare = pod(spec);
  return { ...bare, metadata: { ...bare.metadata, ownerReferences: [owner] } };
};

const secret = (
  name: string,
  auths: Readonly<Record<string, string>>,
  type = 'kubernetes.io/dockerconfigjson',
): TestObject => ({
  ...pullSecretObject(
    { name },
    { auths: Object.fromEntries(Object.entries(auths).map(([key, auth]) => [key, { auth }])) },
  ),
  type,
});

const opaque = (key: string, config: object): TestObject => ({
  ...meta('v1 Secret', { name: 'plain' }),
  type: 'Opaque',
  data: { [key]: Buffer.from(JSON.stringify(config)).toString('base64') },
});

export const account = (names: readonly string[]): TestObject => ({
  ...meta('v1 ServiceAccount', { name: 'default' }),
  imagePullSecrets: names.map((name) => ({ name })),
});

const event = (reason: string, message: string): TestObject => ({
  ...meta('v1 Event', { name: `web.${reason.toLowerCase()}` }),
  involvedObject: { kind: 'Pod', name: 'web', namespace: 'NAMESPACE' },
  reason,
  message,
  type: 'Warning',
  lastTimestamp: '2030-01-01T00:00:00Z',
});

const UNAUTHORIZED = event('Failed', 'Failed to pull image "quay.io/shop/web:1": unauthorized');
const AUTH = plantedAuth('doctor');
export const GOOD: TestObject = secret('good', { 'quay.io/shop': AUTH });
export const MIRRORS: TestObject = {
  ...meta('config.openshift.io/v1 ImageTagMirrorSet', { name: 'm' }),
  spec: { imageTagMirrors: [{ source: 'mirrored.io/shop', mirrors: ['m.io/shop'] }] },
};
export const PROFILE: TestObject = {
  ...meta('pullwright.dev/v1alpha1 PullSecretProfile', { name: 'team' }),
  spec: { namespaceSelector: { matchLabels: { profile: 'yes' } }, selector: {}, secrets: [{ name: 'good' }] },
};

/** Profile that distributes its Secret, without any grant. */
export const BRINGING: TestObject = {
  ...PROFILE,
  metadata: { name: 'bringing' },
  spec: {
    namespaceSelector: { matchLabels: { profile: 'brings' } },
    selector: {},
    secrets: [{ name: 'copied', sources: [{ namespace: 'platform', name: 'robot' }] }],
  },
};

export interface Row extends Case {
  readonly objects: readonly TestObject[];
  readonly labels?: Readonly<Record<string, string>>;
  readonly what?: string;
  readonly broken: string;
  readonly says: RegExp;
  /** Finding that remains after the printed YAML and commands; true: none. */
  readonly fixes?: true | string;
  readonly advice?: RegExp;
}

export const rows: readonly Row[] = [
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
    fixes: true,
  },
  {
    name: 'a Secret that is there and that nobody lists',
    reason: 'the ServiceAccount is to name it',
    objects: [account([]), GOOD, deployment({})],
    broken: 'credential',
    says: /Secret "good" of the namespace does/,
    fixes: true,
  },
  {
    name: 'a Secret that is not there, beside one that would do',
    reason: 'the list is fixed',
    objects: [account(['gone']), GOOD, deployment({})],
    broken: 'secrets-exist',
    says: /Secret "gone", listed by ServiceAccount.*does not exist/,
    fixes: true,
  },
  {
    name: 'a ServiceAccount that lists a Secret twice',
    reason: 'both go',
    objects: [account(['gone', 'other', 'gone']), GOOD, deployment({})],
    broken: 'secrets-exist',
    says: /"gone", listed by ServiceAccount.*does not exist/,
    fixes: true,
  },
  {
    name: "a template whose own list hides the ServiceAccount's",
    reason: 'the template is fixed, for the ServiceAccount no longer counts',
    objects: [account(['good']), GOOD, deployment({ imagePullSecrets: [{ name: 'gone' }] })],
    broken: 'secrets-exist',
    says: /listed by Deployment.*does not exist/,
    fixes: true,
  },
  {
    name: 'a Secret of the wrong type',
    reason: 'the kubelet passes over it',
    objects: [account(['plain']), secret('plain', { 'quay.io/shop': AUTH }, 'Opaque'), GOOD, deployment({})],
    broken: 'secrets-readable',
    says: /"plain".*is skipped: type is "Opaque"/,
    fixes: true,
  },
  {
    name: 'a Secret of the wrong type, under the key of the old form',
    reason: 'it needs the type of that key',
    objects: [account(['plain']), opaque('.dockercfg', { 'quay.io/shop': { auth: AUTH } }), deployment({})],
    broken: 'secrets-readable',
    says: /"plain".*is skipped: type is "Opaque", expected "kubernetes.io\/dockercfg"/,
    advice: /as kubernetes.io\/dockercfg, with the key .dockercfg/,
    fixes: true,
  },
  {
    name: 'a Secret made of the file of docker login',
    reason: 'its key is the name of the file',
    objects: [
      account(['plain']),
      opaque('config.json', { auths: { 'quay.io/shop': { auth: AUTH } } }),
      deployment({}),
    ],
    broken: 'secrets-readable',
    says: /"plain".*is skipped/,
    fixes: true,
  },
  {
    name: "a Secret in a template's own list that the kubelet cannot parse",
    reason: 'the name is to go, although another field manager wrote it',
    objects: [
      account([]),
      secret('broken', { 'r.io': '!!' }),
      GOOD,
      deployment({ imagePullSecrets: [{ name: 'broken' }, { name: 'good' }] }),
    ],
    broken: 'secrets-readable',
    says: /cannot pull any image/,
    fixes: true,
  },
  {
    name: 'a Secret that the kubelet cannot parse',
    reason: 'it fails every image of the pod',
    objects: [account(['broken', 'good']), secret('broken', { 'r.io': '!!' }), GOOD, deployment({})],
    broken: 'secrets-readable',
    says: /cannot pull any image/,
    fixes: true,
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
    fixes: true,
  },
  {
    name: 'a node whose provider failed for the pod',
    reason: 'what the registry says is only what follows',
    objects: [
      account([]),
      pod(),
      event('Failed', 'Failed to pull image "quay.io/shop/web:1": authentication required'),
      event('CredentialProviderFailed', 'Failed to run credential provider: the CA of this node is another'),
    ],
    what: 'web',
    broken: 'mirror-credential',
    says: /provider of the node failed for this pod: .*the CA of this node is another/,
  },
  {
    name: 'a pod from before its ServiceAccount listed anything',
    reason: 'the list is copied once',
    objects: [pod(), account(['good']), GOOD],
    what: 'web',
    broken: 'injection',
    says: /ServiceAccount\/.*adds Secret "good" to such pods/,
    advice: /^Pod "web": recreate it$/,
  },
  {
    name: 'a copy that its profile does not bring',
    reason: 'the tenant learns which profile, and what holds it back',
    objects: [account([]), pod({ imagePullSecrets: [{ name: 'copied' }] }), UNAUTHORIZED],
    labels: { profile: 'brings' },
    what: 'web',
    broken: 'secrets-exist',
    says: /"copied", .*does not exist; PullSecretProfile\/bringing should create it: NotGranted: nobody says yes/,
    advice: /kubectl describe pullsecretprofile\/bringing/,
  },
  {
    name: 'a pod from before its profile',
    reason: 'a pod cannot be changed',
    objects: [account([]), pod(), GOOD],
    labels: { profile: 'yes' },
    what: 'web',
    broken: 'injection',
    says: /profile\/team adds Secret "good" to such pods/,
    advice: /^Pod "web": recreate it$/,
  },
  {
    name: 'a Deployment whose pod was refused, and which lists nothing',
    reason: 'a template has no event of its own: its pods have',
    objects: [account([]), deployment({}), podOfWeb(), UNAUTHORIZED],
    broken: 'credential',
    says: /no listed credential matches "quay.io\/shop\/web:1", and the registry requires one/,
  },
  {
    name: 'the same, fixed as printed',
    reason: 'the Secret is there then, and the pod is from before it',
    objects: [account([]), deployment({}), podOfWeb(), UNAUTHORIZED],
    broken: 'credential',
    says: /no listed credential matches "quay.io\/shop\/web:1", and the registry requires one/,
    fixes: 'injection',
  },
  {
    name: 'a Deployment whose pod is from before its ServiceAccount listed anything',
    reason: 'the next pod will have it, and this one never',
    objects: [podOfWeb(), account(['good']), GOOD, deployment({}), UNAUTHORIZED],
    broken: 'injection',
    says: /^ServiceAccount\/.* adds Secret "good" to such pods, but pod "web" does not list it/,
    advice: /^Pod "web": delete it, and its ReplicaSet creates another$/,
  },
  {
    name: 'a Deployment whose pod has an image that is not there',
    reason: 'the same, with a credential',
    objects: [
      account(['good']),
      GOOD,
      deployment({}),
      podOfWeb({ imagePullSecrets: [{ name: 'good' }] }),
      event('Failed', 'Failed to pull image "quay.io/shop/web:1": manifest unknown'),
    ],
    broken: 'registry',
    says: /the last pull of "quay.io\/shop\/web:1" for container "a" failed: quay\.io does not have the image/,
  },
  ...(
    [
      ['x509: certificate signed by unknown authority', /does not trust the certificate of quay\.io/],
      ['dial tcp 10.0.0.1:443: i/o timeout', /quay\.io did not respond in time/],
      [
        'toomanyrequests: you have reached your pull rate limit',
        /limits the rate of pulls/,
        /^Use an account with a higher/,
      ],
      ['manifest unknown', /quay\.io does not have the image/],
      [
        'unauthorized: access to the resource is not authorized',
        /quay\.io denied access, or the image does not exist/,
      ],
    ] as readonly (readonly [message: string, says: RegExp, advice?: RegExp])[]
  ).map(
    ([message, says, advice = /./]): Row => ({
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
      advice,
    }),
  ),
];
