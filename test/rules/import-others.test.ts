/** What import makes of Kyverno, External Secrets, registry-creds and imagepullsecret-patcher. */
import assert from 'node:assert/strict';
import { importObjects } from '../../runtime/rules/import/import.ts';
import type { KubeObject } from '../../runtime/rules/kubernetes/object.ts';
import { type Case, suite, table } from '../support/suite.ts';

const test = suite('importing from other tools');

interface ImportCase extends Case {
  readonly object: KubeObject;
  /** Outcome and text of the note. */
  readonly note: readonly [string, RegExp];
  /** Of the profile, if one is made. */
  readonly spec?: Readonly<Record<string, unknown>>;
}

const kyverno = (rule: object): KubeObject => ({
  apiVersion: 'kyverno.io/v1',
  kind: 'ClusterPolicy',
  metadata: { name: 'sync' },
  spec: { rules: [{ name: 'pull', ...rule }] },
});
const onNamespaces = (more: object = {}): object => ({
  match: { any: [{ resources: { kinds: ['Namespace'], ...more } }] },
});
const onPods = (more: object = {}): object => ({
  match: { any: [{ resources: { kinds: ['Pod'], ...more } }] },
});
const clone = { generate: { kind: 'Secret', name: 'reg', clone: { namespace: 'hub', name: 'quay' } } };
const adds = { mutate: { patchStrategicMerge: { spec: { imagePullSecrets: [{ name: 'reg' }] } } } };

table<ImportCase>(
  test,
  [
    {
      name: 'a clone of a Secret',
      reason: 'the usual way with Kyverno',
      object: kyverno({ ...onNamespaces({ selector: { matchLabels: { team: 'a' } } }), ...clone }),
      note: ['changed', /profile reg/],
      spec: {
        namespaceSelector: { matchLabels: { team: 'a' } },
        mode: 'Distribute',
        secrets: [{ name: 'reg', sources: [{ namespace: 'hub', name: 'quay' }] }],
      },
    },
    {
      name: 'a clone with an exclusion',
      reason: 'a selector cannot say it',
      object: kyverno({ ...onNamespaces(), exclude: { any: [] }, ...clone }),
      note: ['dropped', /excludes some: write a profile/],
    },
    {
      name: 'a Secret in clear',
      reason: 'no value is ever read',
      object: kyverno({ ...onNamespaces(), generate: { kind: 'Secret', name: 'reg', data: { data: {} } } }),
      note: ['dropped', /holds its Secret in clear/],
    },
    {
      name: 'names added to pods',
      reason: 'that is a profile which injects',
      object: kyverno({ ...onPods(), ...adds }),
      note: ['carried', /names only/],
      spec: { namespaceSelector: {}, selector: {}, mode: 'Inject', secrets: [{ name: 'reg' }] },
    },
    {
      name: 'names added to pods of a pattern',
      reason: 'namespaces cannot be selected by one',
      object: kyverno({ ...onPods({ namespaces: ['team-*'] }), ...adds }),
      note: ['dropped', /matches namespaces by a pattern/],
    },
    {
      name: 'names added to pods with an image of a registry',
      reason: 'every pod would get them: an anchor is a condition',
      object: kyverno({
        ...onPods(),
        mutate: {
          patchStrategicMerge: {
            spec: { containers: [{ '<(image)': 'corp.example/*' }], imagePullSecrets: [{ name: 'reg' }] },
          },
        },
      }),
      note: ['dropped', /its anchors or targets choose/],
    },
    {
      name: 'names added beside another field',
      reason: '+() adds what is not there, and chooses no pods',
      object: kyverno({
        ...onPods(),
        mutate: {
          patchStrategicMerge: { spec: { '+(dnsPolicy)': 'x', imagePullSecrets: [{ name: 'reg' }] } },
        },
      }),
      note: ['carried', /names only/],
      spec: { namespaceSelector: {}, selector: {}, mode: 'Inject', secrets: [{ name: 'reg' }] },
    },
    {
      name: 'a ClusterExternalSecret',
      reason: 'it goes on working',
      object: {
        apiVersion: 'external-secrets.io/v1',
        kind: 'ClusterExternalSecret',
        metadata: { name: 'reg' },
        spec: { externalSecretSpec: { target: { template: { type: 'kubernetes.io/dockerconfigjson' } } } },
      },
      note: ['kept', /goes on making Secret reg/],
    },
    {
      name: 'a ClusterPullSecret',
      reason: 'registry-creds',
      object: {
        apiVersion: 'ops.alexellis.io/v1',
        kind: 'ClusterPullSecret',
        metadata: { name: 'hub' },
        spec: { secretRef: { name: 'quay', namespace: 'kube-system' } },
      },
      note: ['changed', /profile hub/],
      spec: {
        namespaceSelector: {
          matchExpressions: [
            { key: 'kubernetes.io/metadata.name', operator: 'NotIn', values: ['kube-system'] },
          ],
        },
        selector: {},
        mode: 'InjectAndDistribute',
        secrets: [{ name: 'hub', sources: [{ namespace: 'kube-system', name: 'quay' }] }],
      },
    },
    {
      name: 'imagepullsecret-patcher',
      reason: 'told by its image',
      object: {
        apiVersion: 'apps/v1',
        kind: 'Deployment',
        metadata: { name: 'patcher', namespace: 'tools' },
        spec: {
          template: {
            spec: {
              containers: [
                {
                  image: 'quay.io/titansoft/imagepullsecret-patcher:v0.14',
                  env: [{ name: 'CONFIG_EXCLUDED_NAMESPACES', value: 'kube-system, web, dev-*' }],
                },
              ],
              volumes: [{ name: 'src', secret: { secretName: 'src' } }],
            },
          },
        },
      },
      note: ['changed', /profile image-pull-secret/],
      spec: {
        namespaceSelector: {
          matchExpressions: [
            {
              key: 'kubernetes.io/metadata.name',
              operator: 'NotIn',
              values: ['tools', 'kube-system', 'web'],
            },
          ],
        },
        selector: {},
        mode: 'InjectAndDistribute',
        secrets: [{ name: 'image-pull-secret', sources: [{ namespace: 'tools', name: 'src' }] }],
      },
    },
  ],
  ({ object, note: [outcome, message], spec }) => {
    const { fleet, notes } = importObjects([object]);
    const found = notes.find(({ subject }) => subject.includes(object.metadata.name));
    assert.equal(found?.outcome, outcome);
    assert.match(found?.message ?? '', message);
    const [cluster] = fleet['clusters'] as readonly {
      systems: Record<string, { profiles: { spec: unknown }[] }>;
    }[];
    assert.deepEqual(cluster?.systems['pull-secret-injection']?.profiles[0]?.spec, spec);
  },
);

test('what has nothing to do with pull secrets is not spoken of', () => {
  const objects = [
    kyverno({ ...onPods(), validate: { message: 'x' } }),
    { apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'web' }, spec: 'strange' },
  ];
  assert.deepEqual(importObjects(objects).notes, []);
});

const named = (apiVersion: string, kind: string, name: string, spec: object = {}): KubeObject => ({
  apiVersion,
  kind,
  metadata: { name },
  spec,
});

test('what adds pull secrets in a language of its own is named with the reason', () => {
  const cel = { mutations: [{ patch: 'spec.imagePullSecrets' }] };
  const objects = [
    named('policies.kyverno.io/v1alpha1', 'MutatingPolicy', 'a', cel),
    named('mutations.gatekeeper.sh/v1', 'Assign', 'b', { location: 'spec.imagePullSecrets' }),
    named('admissionregistration.k8s.io/v1', 'MutatingAdmissionPolicy', 'c', cel),
  ];
  const { notes, others } = importObjects(objects);
  assert.deepEqual(
    notes.map(({ outcome, subject }) => `${outcome} ${subject}`),
    ['dropped MutatingPolicy/a', 'dropped Assign/b', 'dropped MutatingAdmissionPolicy/c'],
  );
  assert.deepEqual(others, {});
});

test('what has no part in it is counted by kind, not listed', () => {
  const deployments = Array.from({ length: 30 }, (_, at) => named('apps/v1', 'Deployment', `web-${at}`));
  const unrelated = named('kyverno.io/v1', 'ClusterPolicy', 'labels', { rules: [{ name: 'r', mutate: {} }] });
  const told = kyverno({ ...onPods(), ...adds });
  const { notes, others } = importObjects([...deployments, unrelated, told]);
  assert.deepEqual(others, { ClusterPolicy: 1, Deployment: 30 });
  assert.equal(notes.filter(({ subject }) => /Deployment|labels/.test(subject)).length, 0);
});

test.run();
