/** Texts that the fuzzer found, made small, with what is answered since. */
import assert from 'node:assert/strict';
import { inspect } from 'node:util';
import { describeError } from '../../runtime/core/errors.ts';
import { plantedPassword } from '../support/canary.ts';
import { meta } from '../support/meta.ts';
import { type Case, table, test } from '../support/suite.ts';
import { IMAGE, POD } from './corpus-cluster.ts';
import { wrongWith } from './fuzz.ts';
import { PARSERS } from './parsers.ts';

interface Row extends Case {
  readonly parser: string;
  readonly text: string;
  /** Pattern of the answer or the error. */
  readonly says: RegExp;
}

const object = (kind: string, body: object): string => {
  const [apiVersion = '', short = ''] = kind.split(' ');
  return JSON.stringify({ apiVersion, kind: short, metadata: { name: 'a', namespace: 'web' }, ...body });
};

/** The agents' DaemonSet, with a node that they run on. A folder holds what an API server would have refused. */
const agents = (containers: unknown, rest: object = {}): string =>
  JSON.stringify({
    apiVersion: 'v1',
    kind: 'List',
    items: [
      meta('v1 Node', { name: 'n', labels: { 'kubernetes.io/os': 'linux' } }),
      meta('v1 Secret', { name: 'global-pull-secret', namespace: 'kube-system' }),
      {
        ...meta('apps/v1 DaemonSet', { name: 'global-pull-secret-syncer', namespace: 'kube-system' }),
        spec: { template: { spec: { containers } } },
        ...rest,
      },
    ],
  });

const rows: readonly Row[] = [
  {
    name: 'a DaemonSet whose command is a number',
    reason: 'the flag was looked for in it',
    parser: 'status',
    text: agents([{ command: 7 }]),
    says: /global-pull-secret-syncer  NotReported/,
  },
  {
    name: 'a DaemonSet whose containers are a map',
    reason: 'the same',
    parser: 'status',
    text: agents({}),
    says: /global-pull-secret-syncer  NotReported/,
  },
  {
    name: 'a DaemonSet whose status is null',
    reason: '`status:` alone in a file is null: status ended on an unexpected error',
    parser: 'status',
    text: agents([{ args: ['agent'] }], { status: null }),
    says: /global-pull-secret-syncer  NotReported/,
  },
  {
    name: 'a setting that is a map',
    reason: 'it was made a text, which a map with a member "toString" is not',
    parser: 'configuration of the provider',
    text: '{"auth-dir":{"toString":1}}',
    says: /"auth-dir" must be a string, a number or a list of these/,
  },
  {
    name: 'no properties of a unit',
    reason: 'an answer without a body is none',
    parser: 'answer of the system bus',
    text: '[]',
    says: /systemd returned no properties/,
  },
  {
    name: 'a wait of 400 digits',
    reason: 'it was endless',
    parser: 'challenge, redirect and refusal of a registry',
    text: '9'.repeat(400),
    says: /limits the request rate, retry after 1000000000 s: 429/,
  },
  {
    name: 'an invocation that is no bytes',
    reason: 'there is none then',
    parser: 'answer of the system bus',
    text: '[{"ActiveState":{"value":"active"},"InvocationID":{"value":[{"toString":1}]}}]',
    says: /invocation: ''/,
  },
  {
    name: 'a status that is no code',
    reason: 'it is shown, and anything may stand there',
    parser: "answer of Google's APIs",
    text: JSON.stringify({ error: { status: plantedPassword('status') } }),
    says: /Cannot AddSecretVersion: UNAVAILABLE/,
  },
  {
    name: 'a delay of 400 digits',
    reason: 'it was endless',
    parser: "answer of Google's APIs",
    text: JSON.stringify({
      error: { status: 'UNAVAILABLE', details: [{ retryDelay: `${'9'.repeat(400)}s` }] },
    }),
    says: /UNAVAILABLE/,
  },
  {
    name: 'a review whose namespace is a map',
    reason: 'the webhook answers 400 instead of failing within',
    parser: 'admission review',
    text: JSON.stringify({
      apiVersion: 'admission.k8s.io/v1',
      request: { uid: 'u', operation: 'CREATE', resource: {}, object: {}, namespace: {} },
    }),
    says: /^undefined$/,
  },
  {
    name: 'a review whose operation is missing',
    reason: 'nobody can say what is asked',
    parser: 'admission review',
    text: JSON.stringify({
      apiVersion: 'admission.k8s.io/v1',
      request: { uid: 'u', resource: {}, object: {} },
    }),
    says: /^undefined$/,
  },
  {
    name: 'a version that is a map',
    reason: 'it was made a text for the message',
    parser: 'credential provider configuration',
    text: '{"apiVersion":{"toString":1},"kind":"CredentialProviderConfig","providers":[]}',
    says: /is registered for version/,
  },
  {
    name: 'an operator that is a map',
    parser: 'objects to validate',
    text: object('pullwright.dev/v1alpha1 PullSecretProfile', {
      spec: {
        namespaceSelector: { matchExpressions: [{ key: 'a', operator: { toString: 1 } }] },
        selector: {},
        secrets: [{ name: 's' }],
      },
    }),
    says: /is none of In, NotIn, Exists, DoesNotExist/,
  },
  {
    name: 'details that are null',
    reason: 'a proxy may answer anything',
    parser: "answer of Google's APIs",
    text: '{"error":{"status":"UNAVAILABLE","details":[null,{"retryDelay":"1s"}]}}',
    says: /Cannot AddSecretVersion: UNAVAILABLE/,
  },
  {
    name: 'a field of managed fields that is a text',
    reason: 'it stands for a whole field',
    parser: 'fields of managers',
    text: JSON.stringify({
      metadata: { managedFields: [{ manager: 'm', operation: 'Apply', fieldsV1: { 'f:a': 'x' } }] },
    }),
    says: /'f:a'/,
  },
  {
    name: 'a line of a watch that is no JSON',
    reason: "the parser's words quote the text, which may be of a Secret",
    parser: 'lines of a watch',
    text: `{"object":${plantedPassword('watch')}}\n`,
    says: /^Cannot read the watch: a line is not JSON$/,
  },
  {
    name: 'a profile without spec',
    reason: 'the first of its name had nothing to be compared with',
    parser: 'objects of a stand-alone cluster',
    text: object('pullwright.dev/v1alpha1 PullSecretProfile', {}),
    says: /spec/,
  },
  {
    name: 'pull secrets of a pod that are a number',
    reason: 'the audit of pods walked through them',
    parser: 'objects of a stand-alone cluster',
    text: object('v1 Pod', { spec: { imagePullSecrets: 7, containers: { image: 'a' } } }),
    says: /reconciler/,
  },
  {
    name: 'states of containers that are a map',
    reason: 'doctor reads the complaints of the kubelet from them',
    parser: 'manifests',
    text: object('v1 Pod', { status: { containerStatuses: {} } }),
    says: /Pod "a": status\.containerStatuses must be an array/,
  },
  {
    name: 'a rendered configuration whose name is a map',
    reason: 'the object of that name was looked up',
    parser: 'manifests',
    text: object('machineconfiguration.openshift.io/v1 MachineConfigPool', {
      spec: { configuration: { name: { toString: 1 } } },
    }),
    says: /MachineConfigPool "a": spec\.configuration\.name must be a string: quote it/,
  },
  {
    name: 'files of a MachineConfig that are a map',
    reason: 'rules walk through the list; the object is named instead',
    parser: 'manifests',
    text: object('machineconfiguration.openshift.io/v1 MachineConfig', {
      spec: { config: { storage: { files: {} } } },
    }),
    says: /MachineConfig "a": spec\.config\.storage\.files must be an array/,
  },
  {
    name: 'conditions that are a text',
    parser: 'status',
    text: object('pullwright.dev/v1alpha1 PullStatus', { status: { conditions: 'Ready' } }),
    says: /PullStatus "a": status\.conditions must be an array/,
  },
  {
    name: 'a config of a NodePool that is a number',
    parser: 'mirrors',
    text: object('hypershift.openshift.io/v1beta1 HostedCluster', {
      spec: { imageContentSources: [{ source: 'quay.io', mirrors: [7] }] },
    }),
    says: /HostedCluster "a": spec\.imageContentSources\[0\]\.mirrors\[0\] must be a string: quote it/,
  },
  {
    name: 'a Secret of a version that there is not',
    reason: 'its values were not wrapped',
    parser: 'objects to validate',
    text: object('v2 Secret', { data: { '.dockerconfigjson': plantedPassword('version') } }),
    says: /is not a version of Secret, expected "v1"/,
  },
  {
    name: 'two pull secrets of a group of their own',
    reason: 'only those of the core group are unwrapped and merged',
    parser: 'objects to validate',
    text: JSON.stringify({
      apiVersion: 'v1',
      kind: 'List',
      items: [
        ['openshift-config', 'pull-secret'],
        ['kube-system', 'additional-pull-secret'],
      ].map(([namespace, name]) => ({
        ...meta('example.com/v1 Secret', { namespace, name }),
        data: { '.dockerconfigjson': Buffer.from('{"auths":{}}').toString('base64') },
      })),
    }),
    says: /^\[\]$/,
  },
  {
    name: 'statuses of containers that are null',
    reason: 'a dump may hold null for an empty list',
    parser: 'doctor',
    text: JSON.stringify({
      ...meta('v1 Pod', POD),
      spec: { containers: [{ name: 'a', image: IMAGE }] },
      status: { phase: 'Pending', containerStatuses: null },
    }),
    says: new RegExp(POD.name),
  },
  {
    name: 'a folder within thousands',
    reason: 'each folder around it was written out',
    parser: 'fleet file',
    text: JSON.stringify({
      image: 'registry.example.com/pullwright:1',
      clusters: [{ name: 'a', path: 'a/'.repeat(1000) + 'a' }],
    }),
    says: /path: expected at most 1000 characters, got a string of 2001 characters/,
  },
];

table(test, rows, async ({ parser: name, text, says }) => {
  const parser = PARSERS.find((one) => one.name === name);
  assert.ok(parser !== undefined, name);
  assert.equal(await wrongWith(parser, text), undefined);
  const said = await Promise.resolve()
    .then(() => parser.run(text))
    .then((value) => (typeof value === 'string' ? value : inspect(value, { depth: 8 })), describeError);
  assert.match(said, says);
});
