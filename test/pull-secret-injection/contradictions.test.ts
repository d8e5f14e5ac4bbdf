/** Contradicting options are rejected or reported, and a finding that many share is reported once. */
import assert from 'node:assert/strict';
import { sectionProblems } from '../../charts/pull-secret-injection/chart.ts';
import type { KubeObject } from '../../runtime/core/kubernetes/object.ts';
import { judgeManifests } from '../../runtime/diagnose/checks/documents.ts';
import type { PullSecretInjectionInput } from '../../runtime/pull-secret-injection/options.ts';
import { type Case, table, test } from '../support/suite.ts';
import { conditionOf, grant, namespace, profile, readyMessage, scene, source } from './scene.ts';

const sources = [{ namespace: 'platform', name: 'quay' }];
const spec = { namespaceSelector: {}, selector: {}, secrets: [{ name: 'reg', sources }] };

/** A profile that distributes another Secret as `reg`. */
function rival(more: object): { readonly name: string; readonly spec: Readonly<Record<string, unknown>> } {
  const secrets = [{ name: 'reg', sources: [{ namespace: 'platform', name: 'other' }] }];
  return { name: 'rival', spec: { ...spec, secrets, ...more } };
}

interface Row extends Case {
  readonly config: PullSecretInjectionInput;
  readonly says: readonly RegExp[];
}

table<Row>(
  test,
  [
    {
      name: 'secretNames without a name that a profile writes',
      reason: 'the reconciler would be refused by the API server',
      config: { secretNames: ['other'], profiles: [{ name: 'team', spec }] },
      says: [/delivers Secret "reg", which is not in secretNames: add it there/],
    },
    {
      name: 'secretNames with it',
      config: { secretNames: ['reg'], profiles: [{ name: 'team', spec }] },
      says: [],
    },
    {
      name: 'secretNames, and a profile that only injects',
      reason: 'it writes no Secret',
      config: { secretNames: ['other'], profiles: [{ name: 'team', spec: { ...spec, mode: 'Inject' } }] },
      says: [],
    },
    {
      name: 'two profiles that bring different Secrets under one name everywhere',
      reason: 'the API server would refuse the later one',
      config: { profiles: [{ name: 'team', spec }, rival({})] },
      says: [/delivers a different Secret "reg" to the same namespaces as profile "team"/],
    },
    {
      name: 'one of them in fewer namespaces',
      reason: 'the wider one selects them too, whichever comes first',
      config: {
        profiles: [rival({ namespaceSelector: { matchLabels: { a: 'b' } } }), { name: 'team', spec }],
      },
      says: [/as profile "rival"/],
    },
    ...[
      { name: 'in namespaces of other labels', more: { namespaceSelector: { matchLabels: { a: 'c' } } } },
      { name: 'from the same source', more: { secrets: spec.secrets } },
      { name: 'under another name', more: { secrets: [{ name: 'other', sources }] } },
      { name: 'that only injects', more: { mode: 'Inject' } },
      { name: 'whose successor is named', more: { successor: 'narrow' } },
    ].map(({ name, more }) => ({
      name: `two profiles, one of them ${name}`,
      config: {
        profiles: [
          { name: 'narrow', spec: { ...spec, namespaceSelector: { matchLabels: { a: 'b' } } } },
          rival({ namespaceSelector: { matchLabels: { a: 'b' } }, ...more }),
        ],
      },
      says: [],
    })),
    {
      name: 'namespaces without that of a source',
      reason: 'the rights of the same fleet do not reach it',
      config: { namespaces: ['a'], profiles: [{ name: 'team', spec }] },
      says: [/has a source in namespace "platform", which is not in namespaces: add it there/],
    },
    {
      name: 'namespaces with that of a source',
      config: { namespaces: ['a', 'platform'], profiles: [{ name: 'team', spec }] },
      says: [],
    },
    {
      name: 'namespaces, and a profile that only injects',
      reason: 'its sources are not read',
      config: { namespaces: ['a'], profiles: [{ name: 'team', spec: { ...spec, mode: 'Inject' } }] },
      says: [],
    },
    {
      name: 'a profile without a selector of pods',
      reason: 'synth refuses what the API server does',
      config: { profiles: [{ name: 'team', spec: { namespaceSelector: {}, secrets: [{ name: 'reg' }] } }] },
      says: [/^spec\.selector: required value/],
    },
    {
      name: 'two Secrets of several without a source, to be distributed',
      config: {
        profiles: [
          {
            name: 'team',
            spec: {
              namespaceSelector: {},
              mode: 'Distribute',
              secrets: [
                { name: 'a' },
                { name: 'b', sources: [{ namespace: 'p', name: 'b' }] },
                { name: 'c', sources: [] },
              ],
            },
          },
        ],
      },
      says: [/^spec\.secrets\[0\]\.sources: must name a source/, /^spec\.secrets\[2\]\.sources: must name/],
    },
  ],
  ({ config, says }) => {
    const found = sectionProblems(config, { kind: 'standalone' }).map(({ text }) => text);
    assert.equal(found.length, says.length, found.join('; '));
    for (const [at, pattern] of says.entries()) assert.match(found[at] ?? '', pattern);
  },
);

test('two sources for one name cannot be merged where one of them stands: that is said, and the source is left alone', () => {
  const both = profile('team', {
    namespaceSelector: {},
    secrets: [
      {
        name: 'quay',
        sources: [
          { namespace: 'platform', name: 'quay' },
          { namespace: 'hub', name: 'mirror' },
        ],
      },
    ],
  });
  const objects = [
    namespace('platform'),
    namespace('hub'),
    namespace('shop'),
    source('platform/quay', ['quay.io']),
    source('hub/mirror', ['mirror.example']),
  ];
  const seen = scene([...objects, both]);
  assert.deepEqual(seen.registries('shop', 'quay'), ['mirror.example', 'quay.io'], 'merged elsewhere');
  assert.deepEqual(seen.registries('platform', 'quay'), ['quay.io'], 'the source as it is');
  const status = seen.status('PullSecretProfile', 'team');
  assert.equal(conditionOf(status, 'NamesFree'), 'False SourceInPlace');
  assert.match(readyMessage(status), /is itself one of 2 sources of that name.*\(1 of 3 namespaces\)/);
});

test('an excluded namespace is served only by a selector that names it', () => {
  const all = profile('all', { namespaceSelector: {}, secrets: [{ name: 'reg', sources }] });
  const values = ['legacy'];
  const named = profile('all', {
    namespaceSelector: { matchExpressions: [{ key: 'kubernetes.io/metadata.name', operator: 'In', values }] },
    secrets: [{ name: 'reg', sources }],
  });
  const objects = [namespace('platform'), namespace('legacy'), source('platform/quay', ['quay.io'])];
  const options = { excludedNamespaces: ['legacy'] };
  assert.equal(scene([...objects, all], options).registries('legacy', 'reg'), undefined);
  assert.deepEqual(scene([...objects, named], options).registries('legacy', 'reg'), ['quay.io']);
});

test('one lost source of hundreds of namespaces is one status and one event, and no PullStatus', () => {
  const names = Array.from({ length: 300 }, (_, at) => `team-${at}`);
  const team = profile('team', { secrets: [{ name: 'reg', sources }] });
  const quay = source('platform/quay', ['quay.io']);
  const before = scene([
    namespace('platform'),
    quay,
    team,
    ...names.map((name) => namespace(name, { team: 'a' })),
  ]);
  const lost = before.after([{ gone: quay }]);
  assert.equal(conditionOf(lost.status('PullSecretProfile', 'team'), 'SourcesReady'), 'False SourceMissing');
  assert.match(readyMessage(lost.status('PullSecretProfile', 'team')), /\(300 of 300 namespaces\)/);
  const written = lost.result.objects.filter(({ verb }) => verb !== 'unchanged');
  assert.deepEqual(
    written.map(({ verb, ref }) => `${verb} ${ref.kind}/${ref.name}`),
    ['configured PullSecretProfile/team', 'configured PullSecretGrant/of-quay'],
  );
  const events = lost.result.reports.flatMap((report) => report.events);
  assert.deepEqual(
    events.map(({ reason }) => reason),
    ['SourceMissing'],
  );
  assert.ok(
    names.every((name) => lost.registries(name, 'reg') !== undefined),
    'copies stay',
  );
});

test('patterns of namespace names are warned about', () => {
  const judged = (object: KubeObject): readonly string[] =>
    judgeManifests([{ object, file: 'a.yaml', line: 1 }]).map(
      ({ severity, check, path }) => `${severity} ${check} ${path}`,
    );
  assert.deepEqual(judged(grant({ namespaces: ['team-a'] })), []);
  assert.deepEqual(judged(grant({ namespaces: ['team-a', 'team-*'] })), [
    'warning PatternIsNoConsent spec.namespaces',
  ]);
});
