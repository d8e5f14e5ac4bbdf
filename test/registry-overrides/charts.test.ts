import assert from 'node:assert/strict';
import fc from 'fast-check';
import {
  lintMirrorSets,
  type MirrorSet,
  mirrorMachineConfig,
  mirrorSetObject,
  registryOverridesSystem,
  schema,
} from '../../charts/registry-overrides/chart.ts';
import type { Access } from '../../charts/shared/system.ts';
import { parseRegistriesConf } from '../../runtime/core/mirrors/registries-conf.ts';
import type { MirrorRule } from '../../runtime/core/mirrors/resolve.ts';
import { formatRegistriesConf } from '../../runtime/registry-overrides/mirror-sets/fix.ts';
import { forAll } from '../support/for-all.ts';
import { type Case, table, test } from '../support/suite.ts';

function mirrorSet(name: string, entries: MirrorSet['entries'], type?: MirrorSet['type']): MirrorSet {
  return { name, entries, ...(type === undefined ? {} : { type }) };
}

/** The set `a` of sources with a mirror each. */
function mirroring(mirrors: Readonly<Record<string, string>>): MirrorSet {
  const entries = Object.entries(mirrors).map(([source, mirror]) => ({ source, mirrors: [mirror] }));
  return mirrorSet('a', entries);
}

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
  forAll({ numRuns: 500, seed: 8 }, fc.uniqueArray(rule, { selector: (one) => one.prefix }), (rules) => {
    assert.deepEqual(parseRegistriesConf(formatRegistriesConf(rules)), rules);
  });
});

// Problems of mirror sets in a fleet file.

interface LintCase extends Case {
  readonly sets: readonly MirrorSet[];
  readonly codes: readonly string[];
}

const LINT: readonly LintCase[] = [
  {
    name: 'nothing wrong',
    reason: 'silence',
    sets: [mirrorSet('a', [{ source: 'quay.io/x', mirrors: ['m.example.com/x'] }])],
    codes: [],
  },
  {
    name: 'a comma in a mirror',
    reason: 'the text format cannot carry it',
    sets: [mirrorSet('a', [{ source: 'quay.io', mirrors: ['a,b'] }])],
    codes: ['MirrorInvalid', 'NoMirror'],
  },
  {
    name: 'a tag in a source',
    reason: 'rules are for repositories',
    sets: [mirrorSet('a', [{ source: 'quay.io/x:1', mirrors: ['m.example.com'] }])],
    codes: ['SourceInvalid'],
  },
  {
    name: 'the same mirror twice',
    reason: 'the CRD refuses it',
    sets: [mirrorSet('a', [{ source: 'quay.io', mirrors: ['m.example.com', 'm.example.com'] }])],
    codes: ['DuplicateMirror'],
  },
  {
    name: 'the same entry in two sets',
    reason: 'one of them is not needed',
    sets: [
      mirrorSet('a', [{ source: 'quay.io', mirrors: ['m.example.com'] }]),
      mirrorSet('b', [{ source: 'quay.io', mirrors: ['m.example.com'] }]),
    ],
    codes: ['DuplicateEntry'],
  },
  {
    name: 'a source within another',
    reason: 'the wider mirrors are not tried',
    sets: [mirroring({ 'quay.io': 'm.example.com', 'quay.io/x': 'n.example.com/x' })],
    codes: ['Overlap'],
  },
  {
    name: 'a host within a wildcard',
    reason: 'the wider mirrors are not tried',
    sets: [mirroring({ '*.example.org': 'm.example.com', 'long.example.org': 'n.example.com' })],
    codes: ['WildcardNodesOnly', 'Overlap'],
  },
  {
    name: 'a host as long as a wildcard',
    reason: 'it is never used',
    sets: [mirroring({ '*.example.org': 'm.example.com', 'a.example.org': 'n.example.com' })],
    codes: ['WildcardNodesOnly', 'Unreachable'],
  },
  {
    name: 'a loop',
    reason: 'mirrors are not mirrored',
    sets: [mirroring({ 'x.example.com': 'y.example.com', 'y.example.com': 'x.example.com' })],
    codes: ['Loop', 'Loop'],
  },
  {
    name: 'a chain',
    reason: 'mirrors are not mirrored',
    sets: [mirroring({ 'x.example.com': 'y.example.com', 'y.example.com': 'z.example.com' })],
    codes: ['MirrorIsSource'],
  },
  {
    name: 'a blocked mirror',
    reason: 'it is never tried',
    sets: [
      mirrorSet('a', [
        { source: 'x.example.com', mirrors: ['y.example.com'] },
        { source: 'y.example.com', mirrors: ['z.example.com'], mirrorSourcePolicy: 'NeverContactSource' },
      ]),
    ],
    codes: ['MirrorBlocked'],
  },
  {
    name: 'a bare host for a repository',
    reason: 'the image has no repository then',
    sets: [mirrorSet('a', [{ source: 'quay.io/x', mirrors: ['m.example.com'] }])],
    codes: ['MirrorWithoutPath'],
  },
  {
    name: 'opposite policies of a digest set and a content source policy',
    reason: 'the operator tells one fault, of which the advice can be followed',
    sets: [
      mirrorSet('a', [
        { source: 'quay.io', mirrors: ['m.example.com'], mirrorSourcePolicy: 'NeverContactSource' },
      ]),
      {
        ...mirrorSet('b', [{ source: 'quay.io', mirrors: ['n.example.com'] }]),
        type: 'content-source-policy',
      },
    ],
    codes: ['PolicyConflict'],
  },
  {
    name: 'two policies for one source',
    reason: 'nodes refuse both',
    sets: [
      mirrorSet('a', [
        { source: 'quay.io', mirrors: ['m.example.com'], mirrorSourcePolicy: 'NeverContactSource' },
      ]),
      mirrorSet('b', [{ source: 'quay.io', mirrors: ['n.example.com'] }]),
    ],
    codes: ['PolicyConflict'],
  },
  {
    name: 'opposite orders',
    reason: 'the order is not specified',
    sets: [
      mirrorSet('a', [{ source: 'quay.io', mirrors: ['m.example.com', 'n.example.com'] }]),
      mirrorSet('b', [{ source: 'quay.io', mirrors: ['n.example.com', 'm.example.com'] }]),
    ],
    codes: ['OrderConflict'],
  },
];

table(test, LINT, (row) => {
  const problems = lintMirrorSets(row.sets);
  assert.deepEqual(
    problems.map((problem) => problem.code),
    row.codes,
  );
  for (const problem of problems) assert.match(problem.message, /^Image\w+\/[ab] spec\./);
});
