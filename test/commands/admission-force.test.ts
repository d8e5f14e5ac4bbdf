/** Entries that admission adds to the pods of a template, by the cluster's policy, webhook or Kruise and their selectors. */
import assert from 'node:assert/strict';
import type { KubeObject } from '../../runtime/core/kubernetes/object.ts';
import { injectedNames, plannedNames } from '../../runtime/diagnose/model/admission.ts';
import { ObjectStore } from '../../runtime/engine/store.ts';
import { meta } from '../support/meta.ts';
import { type Case, table, test } from '../support/suite.ts';

const V1 = 'admissionregistration.k8s.io/v1';
const CREATED = { creationTimestamp: '2026-11-01T00:00:00Z' };
const POLICY = 'pullwright-pull-secret-injection';
const NOT_EXCLUDED = {
  matchExpressions: [{ key: 'kubernetes.io/metadata.name', operator: 'NotIn', values: ['excluded'] }],
};

const profile = (metadata: object = CREATED): object => ({
  ...meta('pullwright.dev/v1alpha1 PullSecretProfile', { name: 'team', ...metadata }),
  spec: { namespaceSelector: {}, selector: {}, secrets: [{ name: 'reg' }] },
});
const set = (metadata: object = CREATED): object => ({
  ...meta('apps.kruise.io/v1beta1 SidecarSet', { name: 'log', ...metadata }),
  spec: {
    selector: { matchLabels: { app: 'web' } },
    containers: [{ name: 'c' }],
    imagePullSecrets: [{ name: 'log-reg' }],
  },
});
const policy = (apiVersion = V1): readonly object[] => [
  {
    ...meta(`${apiVersion} MutatingAdmissionPolicy`, { name: POLICY, ...CREATED }),
    spec: { matchConstraints: { namespaceSelector: NOT_EXCLUDED } },
  },
  binding(apiVersion),
];
const binding = (apiVersion = V1): object =>
  meta(`${apiVersion} MutatingAdmissionPolicyBinding`, { name: POLICY, ...CREATED });
const webhook = (name: string, hook: string): object => ({
  ...meta(`${V1} MutatingWebhookConfiguration`, { name, ...CREATED }),
  webhooks: [{ name: hook, namespaceSelector: NOT_EXCLUDED }],
});
const ours = webhook('pullwright-webhook', 'pods.pullwright.dev');
const kruise = webhook('kruise-mutating-webhook-configuration', 'mpod.kb.io');

interface Row extends Case {
  readonly objects: readonly object[];
  readonly namespace?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly names: readonly string[];
}

table<Row>(
  test,
  [
    {
      name: 'a policy and its binding',
      reason: 'profiles and SidecarSets are ours',
      objects: [profile(), set(), ...policy()],
      names: ['PullSecretProfile/team reg', 'SidecarSet/log log-reg'],
    },
    {
      name: 'a policy of 1.34',
      reason: 'served as v1beta1 there',
      objects: [profile(), ...policy('admissionregistration.k8s.io/v1beta1')],
      names: ['PullSecretProfile/team reg'],
    },
    {
      name: 'a policy without binding',
      reason: 'does nothing',
      objects: [profile(), ...policy().slice(0, 1)],
      names: [],
    },
    { name: 'nothing', reason: 'nobody injects in this cluster', objects: [profile(), set()], names: [] },
    {
      name: 'a namespace that the policy leaves out',
      reason: 'the operator excluded it, which only the policy says',
      objects: [profile(), ...policy()],
      namespace: 'excluded',
      names: [],
    },
    {
      name: 'our webhook',
      reason: 'as the policy',
      objects: [profile(), ours],
      names: ['PullSecretProfile/team reg'],
    },
    {
      name: 'a namespace that the webhook leaves out',
      reason: 'the same',
      objects: [profile(), ours],
      namespace: 'excluded',
      names: [],
    },
    {
      name: 'Kruise alone',
      reason: 'SidecarSets are its business, profiles of nobody',
      objects: [profile(), set(), kruise],
      names: ['SidecarSet/log log-reg'],
    },
    {
      name: 'Kruise beside our policy',
      reason: 'each its own',
      objects: [profile(), set(), kruise, ...policy()],
      names: ['PullSecretProfile/team reg', 'SidecarSet/log log-reg'],
    },
    {
      name: 'a pod that opted out, with Kruise',
      reason: 'Kruise does not know our label',
      objects: [profile(), set(), kruise, ...policy()],
      labels: { app: 'web', 'pullwright.dev/inject': 'false' },
      names: ['SidecarSet/log log-reg'],
    },
    {
      name: 'a folder of declarations',
      reason: 'it is meant for a cluster whose admission is on',
      objects: [profile({}), set({})],
      names: ['PullSecretProfile/team reg', 'SidecarSet/log log-reg'],
    },
  ],
  ({ objects, namespace = 'shop', labels = { app: 'web' }, names }) => {
    const store = new ObjectStore();
    for (const object of objects) store.set(object as KubeObject);
    const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'web', namespace, labels } };
    assert.deepEqual(
      injectedNames(store, pod, [], undefined).map(({ by, name }) => `${by} ${name}`),
      names,
    );
    assert.ok(plannedNames(store, pod, []).length >= names.length);
  },
);
