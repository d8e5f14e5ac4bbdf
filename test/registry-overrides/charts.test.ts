import assert from 'node:assert/strict';
import fc from 'fast-check';
import {
  mirrorMachineConfig,
  mirrorSetObject,
  registryOverridesSystem,
  schema,
} from '../../charts/registry-overrides/chart.ts';
import type { Access } from '../../charts/shared/system.ts';
import { parseRegistriesConf } from '../../runtime/core/mirrors/registries-conf.ts';
import type { MirrorRule } from '../../runtime/core/mirrors/resolve.ts';
import { formatRegistriesConf } from '../../runtime/registry-overrides/mirror-sets/fix.ts';
import { table, test } from '../support/suite.ts';
import { mirrorSet } from './mirror-set.ts';

const CLUSTER = {
  name: 'mgmt',
  kind: 'management',
  delivery: 'gitops',
  namespace: 'pullwright-system',
  image: 'registry.example.com/pullwright:0.1.0',
  hosted: [],
  discovery: false,
} as const;

table(
  test,
  [
    {
      name: 'digest',
      reason: 'the default',
      type: undefined,
      kind: 'ImageDigestMirrorSet',
      list: 'imageDigestMirrors',
    },
    { name: 'tag', reason: 'tags', type: 'tag', kind: 'ImageTagMirrorSet', list: 'imageTagMirrors' },
    {
      name: 'policy',
      reason: 'deprecated',
      type: 'content-source-policy',
      kind: 'ImageContentSourcePolicy',
      list: 'repositoryDigestMirrors',
    },
  ] as const,
  (row) => {
    const object = mirrorSetObject(
      mirrorSet('a', [{ source: 'quay.io', mirrors: ['z.example.com', 'a.example.com'] }], row.type),
    );
    assert.equal(object.kind, row.kind);
    assert.deepEqual((object.spec as Record<string, unknown>)[row.list], [
      { source: 'quay.io', mirrors: ['z.example.com', 'a.example.com'] },
    ]);
  },
);

test('check() speaks of the place in the section', () => {
  const config = {
    mirrorSets: [
      mirrorSet('a', [
        { source: 'quay.io', mirrors: ['m.example.com'] },
        { source: 'x.example.com', mirrors: ['ok.example.com', 'https://no'] },
      ]),
    ],
  };
  assert.deepEqual(
    registryOverridesSystem.check?.(config, CLUSTER).map((problem) => problem.path),
    [['mirrorSets', 0, 'entries', 1, 'mirrors', 1]],
  );
});

test('the schema refuses what a content source policy cannot say', () => {
  const entries = [
    { source: 'quay.io', mirrors: ['m.example.com'], mirrorSourcePolicy: 'NeverContactSource' as const },
  ];
  assert.equal(
    schema.safeParse({ mirrorSets: [mirrorSet('a', entries, 'content-source-policy')] }).success,
    false,
  );
  assert.equal(schema.safeParse({ mirrorSets: [mirrorSet('a', entries)] }).success, true);
  assert.equal(schema.safeParse({ mirrorSets: [{ name: 'a', entries, more: 1 }] }).success, false);
});

test('a MachineConfig carries the drop-in', () => {
  const object = mirrorMachineConfig('worker', [
    mirrorSet('a', [
      { source: 'quay.io', mirrors: ['m.example.com'], mirrorSourcePolicy: 'NeverContactSource' },
    ]),
  ]);
  assert.equal(object.metadata.labels?.['machineconfiguration.openshift.io/role'], 'worker');
  const [file] = (
    object.spec as {
      config: { storage: { files: { path: string; mode: number; contents: { source: string } }[] } };
    }
  ).config.storage.files;
  assert.equal(file?.path, '/etc/containers/registries.conf.d/50-pullwright-mirrors.conf');
  assert.equal(file?.mode, 420);
  const text = Buffer.from(file?.contents.source.split('base64,')[1] ?? '', 'base64').toString();
  assert.equal(
    text,
    '[[registry]]\nlocation = "quay.io"\nblocked = true\n[[registry.mirror]]\nlocation = "m.example.com"\npull-from-mirror = "digest-only"\n',
  );
});

test('sections render mirror sets, or MachineConfigs where roles are named', () => {
  const mirrorSets = [mirrorSet('a', [{ source: 'quay.io', mirrors: ['m.example.com'] }])];
  assert.deepEqual(
    registryOverridesSystem.objects({ mirrorSets }, CLUSTER).map((object) => object.kind),
    ['ImageDigestMirrorSet'],
  );
  assert.deepEqual(
    registryOverridesSystem
      .objects({ mirrorSets, machineConfigRoles: ['worker', 'infra'] }, CLUSTER)
      .map((object) => object.metadata.name),
    ['99-worker-pullwright-mirrors', '99-infra-pullwright-mirrors'],
  );
  assert.deepEqual(registryOverridesSystem.objects({ mirrorSets }, { ...CLUSTER, kind: 'hosted' }), []);
});

test('the reconciler patches Deployments by name and reads no Secret', () => {
  const part = registryOverridesSystem.managementReconciler?.({ ...CLUSTER, discovery: true }, [], {
    mode: 'own',
  });
  assert.deepEqual(part?.options, { mode: 'own' });
  const rules = part?.access.flatMap((access) => access.rules) ?? [];
  assert.ok(rules.every((rule) => !rule.resources.includes('secrets') && !rule.resources.includes('*')));
  const deployments = rules.filter((rule) => rule.resources.includes('deployments'));
  assert.equal(deployments.length, 1);
  assert.ok((deployments[0]?.resourceNames?.length ?? 0) > 0);
});

test('askRegistries grants the one pull secret of exactly these hosted clusters', () => {
  const hosted = ['a', 'b'].map((name) => ({
    cluster: {
      name,
      hostedCluster: { namespace: 'clusters', name },
      controlPlaneNamespace: `clusters-${name}`,
      delivery: 'gitops',
      image: CLUSTER.image,
      namespace: CLUSTER.namespace,
      systems: [],
    } as const,
    config: name === 'a' ? { askRegistries: true } : {},
  }));
  const secretsIn = (access: readonly Access[] | undefined): readonly unknown[] =>
    (access ?? []).flatMap(({ namespace, rules }) =>
      rules.filter(({ resources }) => resources.includes('secrets')).map((rule) => ({ namespace, ...rule })),
    );
  const rights = { apiGroups: [''], resources: ['secrets'], resourceNames: ['pull-secret'], verbs: ['get'] };
  const part = registryOverridesSystem.managementReconciler?.(CLUSTER, hosted, undefined);
  assert.deepEqual(secretsIn(part?.access), [{ namespace: 'clusters-a', ...rights }]);
  assert.partialDeepStrictEqual(part?.options, { clusters: { 'clusters/a': { askRegistries: true } } });
  const found = registryOverridesSystem.managementReconciler?.({ ...CLUSTER, discovery: true }, [], {
    askRegistries: true,
  });
  assert.deepEqual(secretsIn(found?.access), [{ namespace: undefined, ...rights }]);
});

const location = fc
  .tuple(fc.constantFrom('a', 'b.c', 'd.e:5000'), fc.constantFrom('', '/x', '/y/z'))
  .map(([h, p]) => h + p);
const mirror = fc
  .tuple(location, fc.constantFrom('all' as const, 'digest-only' as const, 'tag-only' as const))
  .map(([place, pullFrom]) => ({ location: place, pullFrom }));
const rule = fc
  .tuple(fc.oneof(location, fc.constantFrom('*.a.b', '*.c')), fc.boolean(), fc.array(mirror))
  .map(
    ([source, blocked, mirrors]): MirrorRule => ({
      prefix: source,
      location: source.startsWith('*.') ? '' : source,
      blocked,
      insecure: false,
      mirrors,
    }),
  );

test('formatRegistriesConf() is read back as it was', () => {
  fc.assert(
    fc.property(fc.uniqueArray(rule, { selector: (one) => one.prefix }), (rules) => {
      assert.deepEqual(parseRegistriesConf(formatRegistriesConf(rules)), rules);
    }),
    { numRuns: 500, seed: 8 },
  );
});
