import assert from 'node:assert/strict';
import type { KubeObject } from '../../runtime/core/kubernetes/object.ts';
import { parseOverridesOptions } from '../../runtime/registry-overrides/options.ts';
import { table, test } from '../support/suite.ts';
import {
  after,
  condition,
  DEPLOYMENTS,
  DIGESTS,
  deployment,
  deploymentOf,
  documentOf,
  hostedCluster,
  mirrorSet,
  podSpec,
  run,
  statusOf,
  TAGS,
  variable,
  verbsOf,
} from './run-once.ts';

const POLICY = mirrorSet('ImageContentSourcePolicy', 'legacy', [
  { source: 'quay.io/ocp', mirrors: ['old.example.com/ocp'] },
]);
const VALUE =
  'quay.io/ocp=old.example.com/ocp,quay.io/ocp=z.example.com/ocp,quay.io/ocp=a.example.com/ocp,registry.example.com/team=m.example.com/team';

test('sets one variable on both Deployments and leaves everything else alone', () => {
  const out = run([hostedCluster(), DIGESTS, TAGS, POLICY, ...DEPLOYMENTS]);
  assert.equal(variable(out, 'control-plane-operator'), VALUE);
  assert.equal(variable(out, 'ignition-server'), VALUE);
  const pod = podSpec(deploymentOf(out, 'control-plane-operator'));
  assert.deepEqual(pod.containers[0]?.env?.[0], { name: 'POD_NAME', value: 'x' });
  assert.equal(pod.containers[0]?.image, 'old');
  assert.deepEqual(pod.containers[1], { name: 'sidecar', image: 's' });
});

test('writes the whole truth as a document: order, policy, tags and digests', () => {
  const object = documentOf(run([hostedCluster(), DIGESTS, TAGS, POLICY, ...DEPLOYMENTS]));
  const text = (object['data'] as Record<string, string>)['overrides.json'] ?? '';
  const { version, rules } = JSON.parse(text) as {
    readonly version: number;
    readonly rules: readonly {
      readonly source: string;
      readonly mirrors: readonly { readonly location: string; readonly pullFrom: string }[];
      readonly mirrorSourcePolicy: string;
    }[];
  };
  assert.equal(version, 1);
  assert.deepEqual(
    rules.map((rule) => [
      rule.source,
      rule.mirrorSourcePolicy === 'NeverContactSource',
      rule.mirrors.map((mirror) => `${mirror.pullFrom} ${mirror.location}`),
    ]),
    [
      [
        'quay.io/ocp',
        false,
        ['digest-only old.example.com/ocp', 'digest-only z.example.com/ocp', 'digest-only a.example.com/ocp'],
      ],
      ['registry.example.com/team', true, ['tag-only m.example.com/team']],
    ],
  );
  assert.match(String(object.metadata.annotations?.['pullwright.dev/overrides-hash']), /^[0-9a-f]{64}$/);
});

test('a second run changes nothing', () => {
  const first = run([hostedCluster(), DIGESTS, TAGS, POLICY, ...DEPLOYMENTS]);
  const second = run(after(first), { now: new Date('2026-03-03T00:00:00Z') });
  assert.deepEqual(
    second.verbs.filter((verb) => !verb.startsWith('unchanged')),
    [],
  );
});

test('without any mirror set the variable says so', () => {
  const out = run([hostedCluster(), ...DEPLOYMENTS]);
  assert.equal(variable(out, 'ignition-server'), '=');
  assert.equal(condition(out, 'Ready'), 'True Reconciled');
});

test('a new kind of mirror set is seen without a restart', () => {
  const first = run([hostedCluster(), ...DEPLOYMENTS]);
  const second = run([...after(first), POLICY]);
  assert.equal(variable(second, 'ignition-server'), 'quay.io/ocp=old.example.com/ocp');
  assert.ok(statusOf(second).verdicts.some((verdict) => verdict.reason === 'Deprecated'));
});

test('both kinds at once count, and are reported', () => {
  const out = run([hostedCluster(), DIGESTS, POLICY, ...DEPLOYMENTS]);
  assert.ok(statusOf(out).verdicts.some((verdict) => verdict.reason === 'BothKinds'));
});

table(
  test,
  [
    {
      name: 'off',
      reason: 'a hosted cluster that cannot reach the mirrors',
      annotations: { 'pullwright.dev/registry-overrides': 'off' },
      value: '=',
    },
    {
      name: 'deny a source',
      reason: 'everything at and below it is left out',
      annotations: { 'pullwright.dev/registry-overrides-deny': 'registry.example.com' },
      value: 'quay.io/ocp=old.example.com/ocp,quay.io/ocp=z.example.com/ocp,quay.io/ocp=a.example.com/ocp',
    },
    {
      name: 'deny a mirror set',
      reason: 'by kind and name',
      annotations: {
        'pullwright.dev/registry-overrides-deny': 'ImageContentSourcePolicy/legacy, ImageTagMirrorSet/team',
      },
      value: 'quay.io/ocp=z.example.com/ocp,quay.io/ocp=a.example.com/ocp',
    },
    {
      name: 'allow one source',
      reason: 'only that',
      annotations: { 'pullwright.dev/registry-overrides-allow': '*.example.com' },
      value: 'registry.example.com/team=m.example.com/team',
    },
    {
      name: 'deny wins over allow',
      reason: 'the narrower right',
      annotations: {
        'pullwright.dev/registry-overrides-allow': 'quay.io',
        'pullwright.dev/registry-overrides-deny': 'quay.io/ocp',
      },
      value: '=',
    },
  ],
  (row) => {
    const out = run([hostedCluster(row.annotations), DIGESTS, TAGS, POLICY, ...DEPLOYMENTS]);
    assert.equal(variable(out, 'control-plane-operator'), row.value);
    assert.equal(condition(out, 'Ready'), 'True Reconciled');
  },
);

test('observes what HyperShift writes: nothing is written, drift is said', () => {
  const written = [
    deployment(
      'control-plane-operator',
      [{ name: 'OPENSHIFT_IMG_OVERRIDES', value: 'quay.io/ocp=stale.example.com' }],
      'hypershift-operator',
    ),
    deployment(
      'ignition-server',
      [
        {
          name: 'OPENSHIFT_IMG_OVERRIDES',
          value: 'quay.io/ocp=z.example.com/ocp,quay.io/ocp=a.example.com/ocp',
        },
      ],
      'control-plane-operator',
    ),
  ];
  const out = run([hostedCluster(), DIGESTS, TAGS, ...written]);
  assert.deepEqual(verbsOf(out, /Deployment/), []);
  assert.equal(condition(out, 'ManagedElsewhere'), 'True Drifted');
  const verdicts = statusOf(out).verdicts.filter((verdict) => verdict.subject.startsWith('Deployment/'));
  assert.deepEqual(
    verdicts.map((verdict) => `${verdict.subject} ${verdict.reason}`),
    ['Deployment/control-plane-operator Drifted', 'Deployment/ignition-server Observed'],
  );
});

test('own is explicit: by option or by annotation', () => {
  const written = [deployment('ignition-server', [], 'hypershift-controlplane-manager')];
  assert.equal(variable(run([hostedCluster(), DIGESTS, ...written]), 'ignition-server'), undefined);
  const value = 'quay.io/ocp=z.example.com/ocp,quay.io/ocp=a.example.com/ocp';
  assert.equal(
    variable(run([hostedCluster(), DIGESTS, ...written], { options: { mode: 'own' } }), 'ignition-server'),
    value,
  );
  const asked = hostedCluster({ 'pullwright.dev/registry-overrides-mode': 'own' });
  assert.equal(variable(run([asked, DIGESTS, ...written]), 'ignition-server'), value);
});

test('Deployments of a dump without managedFields are not planned for, because their owner is unknown', () => {
  const bare = DEPLOYMENTS.map((object) => {
    const { managedFields: _fields, ...metadata } = object.metadata;
    return { ...object, metadata };
  });
  const out = run([hostedCluster(), DIGESTS, ...bare]);
  assert.equal(variable(out, 'ignition-server'), undefined);
  assert.deepEqual(
    statusOf(out)
      .verdicts.filter(({ subject }) => subject.startsWith('Deployment/'))
      .map(({ reason }) => reason),
    ['OwnershipUnknown', 'OwnershipUnknown'],
  );
  const owned = run([hostedCluster(), DIGESTS, ...bare], { options: { mode: 'own' } });
  assert.notEqual(variable(owned, 'ignition-server'), undefined);
});

test('observing after owning gives the variable back', () => {
  const first = run([hostedCluster(), DIGESTS, ...DEPLOYMENTS]);
  const second = run(after(first), { options: { mode: 'observe' } });
  assert.equal(variable(second, 'ignition-server'), undefined);
});

test('stops when another writer takes the variable away, and tries again after ten minutes', () => {
  const start = Date.parse('2026-03-02T08:15:00Z');
  const strip = (objects: readonly KubeObject[]): readonly KubeObject[] =>
    objects.map((object) => (object.kind === 'Deployment' ? deployment(object.metadata.name) : object));
  let out = run([hostedCluster(), DIGESTS, ...DEPLOYMENTS], { now: new Date(start) });
  const writes: number[] = [];
  for (let second = 1; second <= 700; second += 1) {
    out = run(strip(after(out)), { now: new Date(start + second * 1000) });
    if (out.verbs.includes('configured Deployment/ignition-server')) writes.push(second);
  }
  assert.deepEqual(writes, [601]);
  assert.equal(condition(out, 'Contested'), 'True AnotherWriter');
  assert.equal(out.events.filter((event) => event.startsWith('Contested')).length, 2);
  const calm = run(after(run(strip(after(out)), { now: new Date(start + 3_000_000) })), {
    now: new Date(start + 3_001_000),
  });
  assert.equal(condition(calm, 'Contested'), 'absent');
});

test('a Deployment without the container is not touched', () => {
  const other = {
    ...deployment('ignition-server'),
    spec: { template: { spec: { containers: [{ name: 'other' }] } } },
  };
  const out = run([hostedCluster(), DIGESTS, other]);
  assert.deepEqual(verbsOf(out, /Deployment/), []);
  assert.ok(statusOf(out).verdicts.some((verdict) => verdict.reason === 'ContainerMissing'));
});

test('without its HostedCluster nothing is removed', () => {
  const first = run([hostedCluster(), DIGESTS, ...DEPLOYMENTS]);
  const second = run(after(first).filter((object) => object.kind !== 'HostedCluster'));
  assert.deepEqual(
    second.verbs.filter((verb) => !verb.startsWith('unchanged')),
    [],
  );
});

test('a document that does not fit keeps the last one', () => {
  const first = run([hostedCluster(), DIGESTS, ...DEPLOYMENTS]);
  const huge = mirrorSet(
    'ImageDigestMirrorSet',
    'huge',
    Array.from({ length: 1000 }, (_, at) => ({
      source: `quay.io/${at}`,
      mirrors: Array.from({ length: 20 }, (__, mirror) => `m${mirror}.example.com/${'p'.repeat(30)}/${at}`),
    })),
  );
  const second = run([...after(first), huge]);
  assert.deepEqual(documentOf(second)['data'], documentOf(first)['data']);
  assert.match(
    second.problems.join(),
    /DocumentTooLarge: Cannot write "ConfigMap\/clusters-prod\/registry-overrides"/,
  );
});

test('parseOptions() names every wrong field', () => {
  assert.throws(
    () => parseOverridesOptions({ mode: 'mine', catalogs: 'yes', tagMirrors: 1, extra: 1 }),
    /mode: .*; catalogs: .*; tagMirrors: .*; extra: unknown field/,
  );
});
