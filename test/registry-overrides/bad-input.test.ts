import assert from 'node:assert/strict';
import type { KubeObject } from '../../runtime/rules/kube-object.ts';
import { parseImageOverrides } from '../../runtime/rules/registry-overrides.ts';
import { suite, table } from '../support/suite.ts';
import {
  after,
  condition,
  DEPLOYMENTS,
  DIGESTS,
  documentOf,
  hostedCluster,
  mirrorSet,
  run,
  statusOf,
  TAGS,
  variable,
} from './world.ts';

const test = suite('registry-overrides bad input');

const BAD: readonly {
  readonly name: string;
  readonly reason: string;
  readonly objects: readonly KubeObject[];
  readonly annotations?: Readonly<Record<string, string>>;
  readonly says: RegExp;
}[] = [
  {
    name: 'a source with a comma',
    reason: 'it would become two pairs',
    objects: [
      mirrorSet('ImageContentSourcePolicy', 'bad', [{ source: 'a,b=c', mirrors: ['m.example.com'] }]),
    ],
    says: /a,b=c/,
  },
  {
    name: 'a mirror set without a list',
    reason: 'never throws',
    objects: [mirrorSet('ImageDigestMirrorSet', 'bad', 'text' as unknown as unknown[])],
    says: /is no list/,
  },
  {
    name: 'entries that are no objects',
    reason: 'never throws',
    objects: [mirrorSet('ImageDigestMirrorSet', 'bad', [null, 7, 'x', []])],
    says: /no usable source/,
  },
  {
    name: 'a thousand bad entries',
    reason: 'the status is bounded',
    objects: [
      mirrorSet(
        'ImageDigestMirrorSet',
        'bad',
        Array.from({ length: 1000 }, (_, at) => ({ source: `A_${at}`, mirrors: ['m'] })),
      ),
    ],
    says: /more verdicts are not shown/,
  },
  {
    name: 'a source of a hundred thousand characters',
    reason: 'the status is bounded',
    objects: [
      mirrorSet('ImageDigestMirrorSet', 'bad', [{ source: `-${'a'.repeat(100_000)}`, mirrors: ['m'] }]),
    ],
    says: /no usable source/,
  },
  {
    name: 'an unknown switch',
    reason: 'it is said, and the mirrors stay on',
    objects: [],
    annotations: { 'pullwright.dev/registry-overrides': 'maybe' },
    says: /wanted "on" or "off"/,
  },
  {
    name: 'an unknown mode',
    reason: 'it is said, and the configured mode counts',
    objects: [],
    annotations: { 'pullwright.dev/registry-overrides-mode': 'mine' },
    says: /wanted "own", "observe" or "auto"/,
  },
  {
    name: 'a list of denied sources with empty entries',
    reason: 'the good ones count',
    objects: [],
    annotations: { 'pullwright.dev/registry-overrides-deny': 'registry.example.com,,https://x' },
    says: /has the entry/,
  },
];

table(test, BAD, (row) => {
  const out = run([hostedCluster(row.annotations), DIGESTS, TAGS, ...row.objects, ...DEPLOYMENTS]);
  assert.match(
    variable(out, 'ignition-server') ?? '',
    /quay\.io\/ocp=a\.example\.com\/ocp/,
    'the good entries stay',
  );
  const status = statusOf(out);
  assert.match(status.verdicts.map((verdict) => verdict.message + verdict.subject).join('\n'), row.says);
  assert.ok(status.verdicts.length <= 200);
  assert.ok(
    status.verdicts.every((verdict) => verdict.message.length <= 4096 && verdict.subject.length <= 1024),
  );
});

test('what the variable cannot carry is left out of it, and the text stays readable', () => {
  const odd = mirrorSet('ImageContentSourcePolicy', 'odd', [
    { source: 'q.io', mirrors: ['a,b', 'ok.example.com'] },
  ]);
  const out = run([hostedCluster(), odd, ...DEPLOYMENTS]);
  assert.deepEqual(
    parseImageOverrides(variable(out, 'ignition-server') ?? ''),
    new Map([['q.io', ['ok.example.com']]]),
  );
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

test.run();
