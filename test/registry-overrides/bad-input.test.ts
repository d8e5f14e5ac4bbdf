/** Invalid mirror sets and annotations, and their verdicts. */
import assert from 'node:assert/strict';
import type { KubeObject } from '../../runtime/core/kubernetes/object.ts';
import { type Case, table, test } from '../support/suite.ts';
import {
  after,
  condition,
  DEPLOYMENTS,
  DIGESTS,
  hostedCluster,
  mirrorSet,
  run,
  statusOf,
  variable,
} from './run-once.ts';

interface BadInput extends Case {
  readonly object?: KubeObject;
  readonly annotations?: Readonly<Record<string, string>>;
  /** In the verdicts. */
  readonly says: RegExp;
  /** Pairs of the variable besides those of the valid sets. */
  readonly adds?: string;
}

const policy = (...entries: readonly unknown[]): KubeObject =>
  mirrorSet('ImageContentSourcePolicy', 'bad', entries);
const digests = (...entries: readonly unknown[]): KubeObject =>
  mirrorSet('ImageDigestMirrorSet', 'bad', entries);
const many = <T>(count: number, make: (at: number) => T): T[] =>
  Array.from({ length: count }, (_, at) => make(at));
const M = ['m.example.com'];

const BAD_INPUTS: readonly BadInput[] = [
  {
    name: 'an empty source',
    reason: 'it would match every image',
    object: policy({ source: '', mirrors: M }, { source: 'quay.io/good', mirrors: M }),
    says: /spec\.repositoryDigestMirrors\[0\] has no usable source: it is missing, empty or not a string/,
    adds: 'quay.io/good=m.example.com,',
  },
  {
    name: 'no source',
    reason: 'never throws',
    object: digests({ mirrors: M }),
    says: /has no usable source: it is missing, empty or not a string/,
  },
  {
    name: 'a source that is a port',
    reason: 'there is no host',
    object: policy({ source: ':5000', mirrors: M }),
    says: /":5000" does not start with a host name/,
  },
  {
    name: 'a port without number',
    reason: 'it is no port',
    object: policy({ source: 'quay.io:', mirrors: M }),
    says: /"quay\.io:" does not start with a host name/,
  },
  {
    name: 'a source with a tag',
    reason: 'a rule is for repositories',
    object: policy({ source: 'quay.io/team/app:1', mirrors: M }),
    says: /"quay\.io\/team\/app:1" has a tag/,
  },
  {
    name: 'a source with a digest',
    reason: 'a rule is for repositories',
    object: policy({ source: `quay.io/team/app@sha256:${'a'.repeat(64)}`, mirrors: M }),
    says: /has a digest: expected a host with optional port and path/,
  },
  {
    name: 'a source with a scheme',
    reason: 'copied out of a browser',
    object: policy({ source: 'https://quay.io/team', mirrors: M }),
    says: /"https:\/\/quay\.io\/team" has a scheme/,
  },
  {
    name: 'a source with a trailing slash',
    reason: 'the last segment is empty',
    object: policy({ source: 'quay.io/team/', mirrors: M }),
    says: /has the path part ""/,
  },
  {
    name: 'a wildcard with a path',
    reason: 'no runtime follows it',
    object: policy({ source: '*.quay.io/team', mirrors: M }),
    says: /is not a wildcard: expected "\*\.example\.com"/,
  },
  {
    name: 'a source with a comma',
    reason: 'it would become two pairs',
    object: policy({ source: 'a,b=c', mirrors: M }),
    says: /a,b=c/,
  },
  {
    name: 'a mirror with a comma',
    reason: 'it would become two pairs',
    object: policy({ source: 'quay.io/good', mirrors: ['a,b', 'ok.example.com'] }),
    says: /cannot be used as mirror of "quay\.io\/good"/,
    adds: 'quay.io/good=ok.example.com,',
  },
  {
    name: 'a mirror with a digest',
    reason: 'a mirror is a repository',
    object: policy({ source: 'quay.io/good', mirrors: [`m.example.com@sha256:${'a'.repeat(64)}`] }),
    says: /mirrors\[0\] cannot be used as mirror.*has a digest/,
  },
  {
    name: 'no mirror',
    reason: 'the entry does nothing',
    object: policy({ source: 'quay.io/good', mirrors: [] }),
    says: /has no effect, it does not even block it/,
  },
  {
    name: 'a mirror set without a list',
    reason: 'never throws',
    object: mirrorSet('ImageDigestMirrorSet', 'bad', 'text' as unknown as unknown[]),
    says: /must be a list/,
  },
  {
    name: 'entries that are no objects',
    reason: 'never throws',
    object: digests(null, 7, 'x', []),
    says: /no usable source/,
  },
  {
    name: 'a thousand bad entries',
    reason: 'the status is bounded',
    object: policy(...many(1000, (at) => ({ source: `A_${at}`, mirrors: ['m'] }))),
    says: /more verdicts are not shown/,
  },
  {
    name: 'a thousand entries, one of them bad',
    reason: 'the others are in place',
    object: policy(
      ...many(1000, (at) => ({ source: at === 500 ? 'quay.io/-' : `quay.io/n${at}`, mirrors: M })),
    ),
    says: /spec\.repositoryDigestMirrors\[500\] has no usable source/,
    adds: many(1000, (at) => `n${at}`)
      .filter((name) => name !== 'n500')
      .sort()
      .map((name) => `quay.io/${name}=m.example.com,`)
      .join(''),
  },
  {
    name: 'a thousand mirrors, one of them bad',
    reason: 'the others are in place',
    object: policy({
      source: 'quay.io/good',
      mirrors: many(1000, (at) => (at === 7 ? '-' : `m${at}.example.com`)),
    }),
    says: /mirrors\[7\] cannot be used/,
    adds: many(1000, (at) => `m${at}.example.com`)
      .filter((mirror) => mirror !== 'm7.example.com')
      .sort()
      .map((mirror) => `quay.io/good=${mirror},`)
      .join(''),
  },
  {
    name: 'a source of a hundred thousand characters',
    reason: 'the status is bounded',
    object: policy({ source: `-${'a'.repeat(100_000)}`, mirrors: ['m'] }),
    says: /no usable source/,
  },
  {
    name: 'an unknown mode',
    reason: 'it is said, and the configured mode counts',
    annotations: { 'pullwright.dev/registry-overrides-mode': 'mine' },
    says: /expected "own", "observe" or "auto"/,
  },
];

/** Pairs of the valid sets. */
const GOOD_PAIRS = 'quay.io/ocp=a.example.com/ocp,quay.io/ocp=z.example.com/ocp';

/** Whether two values of the variable have the same pairs. */
function samePairs(a: string, b: string): boolean {
  return a.split(',').sort().join() === b.split(',').sort().join();
}

table(test, BAD_INPUTS, (row) => {
  const objects = row.object === undefined ? [] : [row.object];
  const out = run([hostedCluster(row.annotations), DIGESTS, ...objects, ...DEPLOYMENTS]);
  const value = variable(out, 'ignition-server') ?? '';
  // Not assert.equal, whose message would show a hundred thousand characters twice.
  assert.ok(samePairs(value, `${row.adds ?? ''}${GOOD_PAIRS}`), `not as wanted: ${value.slice(0, 1000)}`);
  const status = statusOf(out);
  assert.match(status.verdicts.map((verdict) => verdict.message + verdict.subject).join('\n'), row.says);
  assert.ok(status.verdicts.length <= 200);
  assert.ok(
    status.verdicts.every((verdict) => verdict.message.length <= 4096 && verdict.subject.length <= 1024),
  );
});

for (const [name, value, says] of [
  ['registry-overrides', 'maybe', /expected "on" or "off"/],
  ['registry-overrides-deny', 'registry.example.com,,https://x', /has the entry/],
  ['registry-overrides-allow', '', /has the entry ""/],
] as const)
  test(`an annotation ${name} that cannot be read changes nothing, and is named`, () => {
    const cluster = hostedCluster({ [`pullwright.dev/${name}`]: value });
    const first = run([hostedCluster(), DIGESTS, ...DEPLOYMENTS]);
    const there = after(first).filter(({ kind }) => kind !== 'HostedCluster');
    const second = run([...there, cluster]);
    assert.equal(variable(second, 'ignition-server'), variable(first, 'ignition-server'));
    // Nor does it look later as if another writer had removed what is there.
    for (const out of [second, run(after(second))]) {
      const { verdicts } = statusOf(out);
      assert.ok(
        verdicts.every(({ reason, message }) => reason === 'AnnotationInvalid' && says.test(message)),
      );
      assert.equal(condition(out, 'Ready'), 'False AnnotationInvalid');
    }
    assert.equal(variable(run([cluster, DIGESTS, ...DEPLOYMENTS]), 'ignition-server'), undefined);
  });

test('a value that the kernel would refuse is not set; what was there stays', () => {
  const first = run([hostedCluster(), DIGESTS, ...DEPLOYMENTS]);
  const huge = mirrorSet(
    'ImageDigestMirrorSet',
    'huge',
    Array.from({ length: 1000 }, (_, at) => ({
      source: `quay.io/${at}`,
      mirrors: [`${'m'.repeat(200)}.example.com`],
    })),
  );
  const second = run([...after(first), huge]);
  assert.equal(variable(second, 'ignition-server'), variable(first, 'ignition-server'));
  assert.ok(statusOf(second).verdicts.some((verdict) => verdict.reason === 'ValueTooLong'));
  const third = run(after(second).filter((object) => object.metadata.name !== 'huge'));
  assert.equal(condition(third, 'Ready'), 'True Reconciled');
});
