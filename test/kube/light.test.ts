/** lightObject(): what stays of an object that is too heavy to be kept whole, and of which kinds. */
import assert from 'node:assert/strict';
import { lightObject } from '../../runtime/kube/light.ts';
import type { KubeObject } from '../../runtime/rules/kubernetes/object.ts';
import { type Case, suite, table } from '../support/suite.ts';

const test = suite('lightObject()');

const many = (count: number, text: number): Record<string, string> =>
  Object.fromEntries(Array.from({ length: count }, (_, at) => [`team.example/k${at}`, 'x'.repeat(text)]));
const names = (count: number): { name: string }[] =>
  Array.from({ length: count }, (_, at) => ({ name: `secret-${at}-${'x'.repeat(80)}` }));

interface Row extends Case {
  readonly object: KubeObject;
  /** Fields of the object that stay as they are; undefined: the object itself is kept. */
  readonly stays?: Partial<KubeObject>;
}

const heavyAnnotations = {
  ...many(1000, 200),
  'pullwright.dev/inject': 'false',
  'kubernetes.io/enforce-mountable-secrets': 'true',
  'openshift.io/sa.scc.uid-range': '1000/10000',
};
const meant = {
  'pullwright.dev/inject': 'false',
  'kubernetes.io/enforce-mountable-secrets': 'true',
  'openshift.io/sa.scc.uid-range': '1000/10000',
  'pullwright.dev/left-out': 'true',
};

const rows: readonly Row[] = [
  {
    name: 'a usual pod',
    reason: 'what is not heavy is kept as it was read',
    object: {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'a', annotations: many(50, 100) },
      spec: { containers: [{ name: 'a', image: 'i', env: names(200) }] },
    },
  },
  {
    name: 'a pod of many variables and arguments',
    reason: 'nobody here reads them',
    object: {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'a', uid: 'u', labels: { app: 'a' }, annotations: heavyAnnotations },
      spec: {
        nodeName: 'n',
        serviceAccountName: 's',
        imagePullSecrets: [{ name: 'reg' }],
        volumes: names(2000),
        containers: [{ name: 'a', image: 'i', env: names(5000), args: ['x'.repeat(100_000)] }],
      },
      status: {
        phase: 'Pending',
        containerStatuses: [
          {
            name: 'a',
            ready: false,
            state: { waiting: { reason: 'ErrImagePull', message: 'm', more: 'x' } },
          },
        ],
      },
    },
    stays: {
      metadata: { name: 'a', uid: 'u', labels: { app: 'a' }, annotations: meant },
      spec: {
        nodeName: 'n',
        serviceAccountName: 's',
        containers: [{ name: 'a', image: 'i' }],
        imagePullSecrets: [{ name: 'reg' }],
      },
      status: {
        phase: 'Pending',
        containerStatuses: [
          { name: 'a', ready: false, state: { waiting: { reason: 'ErrImagePull', message: 'm' } } },
        ],
      },
    },
  },
  {
    name: 'an account of ten thousand names',
    reason: 'each pod of it would have them all: nobody does that',
    object: {
      apiVersion: 'v1',
      kind: 'ServiceAccount',
      metadata: { name: 'a' },
      imagePullSecrets: names(10_000),
      secrets: names(10),
      automountServiceAccountToken: true,
    },
    stays: {
      metadata: { name: 'a', annotations: { 'pullwright.dev/left-out': 'true' } },
      imagePullSecrets: names(50),
      secrets: names(10),
    },
  },
  {
    name: 'a namespace of many annotations',
    reason: 'its labels say who is meant, and what we and the platform say of it stays',
    object: {
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: {
        name: 'a',
        labels: { 'pullwright.dev/distribute': 'false', team: 'a' },
        annotations: heavyAnnotations,
      },
      spec: { finalizers: ['kubernetes'] },
      status: { phase: 'Active' },
    },
    stays: {
      metadata: {
        name: 'a',
        labels: { team: 'a', 'pullwright.dev/distribute': 'false' },
        annotations: meant,
      },
      spec: { finalizers: ['kubernetes'] },
      status: { phase: 'Active' },
    },
  },
  {
    name: 'a heavy ConfigMap',
    reason: 'we write some, and who owns which of its fields has to be seen',
    object: { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'a' }, data: many(1000, 1000) },
  },
];

table(test, rows, ({ object, stays }) => {
  const light = lightObject(object);
  if (stays === undefined) assert.equal(light, object);
  else {
    const { apiVersion, kind } = object;
    assert.deepEqual(light, { apiVersion, kind, ...stays });
  }
});

const copiesOf = (length: number, value: object): object[] => Array.from({ length }, () => ({ ...value }));

test('the heaviest that is kept of a pod, an account and a namespace is small', () => {
  const long = 'x'.repeat(100_000);
  const metadata = {
    name: 'a',
    labels: many(5000, 63),
    annotations: { ...many(5000, 500), 'a.kubernetes.io/b': long },
  };
  const container = { name: long, image: long, env: [{ name: 'a', value: long }] };
  const state = { waiting: { reason: long, message: long } };
  for (const object of [
    {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata,
      spec: {
        containers: copiesOf(300, container),
        imagePullSecrets: copiesOf(3000, { name: long }),
      },
      status: { containerStatuses: copiesOf(300, { name: long, state }) },
    },
    { apiVersion: 'v1', kind: 'ServiceAccount', metadata, secrets: copiesOf(3000, { name: long }) },
    { apiVersion: 'v1', kind: 'Namespace', metadata },
  ])
    assert.ok(JSON.stringify(lightObject(object)).length < 256 * 1024, object.kind);
});

test.run();
