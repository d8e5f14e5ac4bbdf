/** The variable by its meaning: the administrator's order is kept, nothing is written for the same meaning, and what never is asked goes first. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import type { KubeObject } from '../../runtime/core/kubernetes/object.ts';
import { parseImageOverrides } from '../../runtime/registry-overrides/overrides.ts';
import { suite } from '../support/suite.ts';
import {
  after,
  DEPLOYMENTS,
  DIGESTS,
  deployment,
  documentOf,
  hostedCluster,
  mirrorSet,
  type RunOutput,
  run,
  statusOf,
  variable,
} from './world.ts';

const test = suite('the value of OPENSHIFT_IMG_OVERRIDES');
const TARGET = 'ignition-server';
const ORDERED = 'quay.io/ocp=z.example.com/ocp,quay.io/ocp=a.example.com/ocp';
const SORTED = 'quay.io/ocp=a.example.com/ocp,quay.io/ocp=z.example.com/ocp';

function written(value: string, manager?: string): KubeObject {
  return deployment(TARGET, [{ name: 'OPENSHIFT_IMG_OVERRIDES', value }], manager);
}

function writes(out: RunOutput): readonly string[] {
  return out.verbs.filter((verb) => verb.startsWith('configured Deployment'));
}

function hashOf(out: RunOutput): unknown {
  return documentOf(out).metadata.annotations?.['pullwright.dev/overrides-hash'];
}

test('the order of the administrator is the order in which mirrors are asked', () => {
  assert.equal(variable(run([hostedCluster(), DIGESTS, ...DEPLOYMENTS]), TARGET), ORDERED);
  const sorted = run([hostedCluster(), DIGESTS, written(SORTED)]);
  assert.equal(variable(sorted, TARGET), ORDERED);
});

/** The object as it is, also as to who wrote it, with another value. */
const withValue = (object: KubeObject, value: string): KubeObject =>
  JSON.parse(JSON.stringify(object).replaceAll(JSON.stringify(ORDERED), JSON.stringify(value))) as KubeObject;

test('what an older version sorted stays until the mirror sets change', () => {
  const older = after(run([hostedCluster(), DIGESTS, ...DEPLOYMENTS])).map((object) =>
    object.metadata.name === TARGET ? withValue(object, SORTED) : object,
  );
  const upgraded = run(older);
  assert.equal(variable(upgraded, TARGET), SORTED);
  assert.ok(
    statusOf(upgraded).verdicts.some(({ message }) => message.endsWith('until the mirror sets change')),
  );
  const more = mirrorSet('ImageDigestMirrorSet', 'more', [{ source: 'r.io', mirrors: ['m.example.com'] }]);
  assert.equal(variable(run([...after(upgraded), more]), TARGET), `${ORDERED},r.io=m.example.com`);
});

test('a value that means the same stays as it is written', () => {
  const twice = `,${ORDERED},quay.io/ocp=z.example.com/ocp`;
  const out = run([hostedCluster(), DIGESTS, written(twice)]);
  assert.equal(variable(out, TARGET), twice);
  assert.deepEqual(writes(run(after(out))), []);
});

test('what HyperShift writes is no drift, in any order, and with the targets of its own flag', () => {
  for (const value of [ORDERED, SORTED, `=,${SORTED}`]) {
    const out = run([hostedCluster(), DIGESTS, written(value, 'control-plane-operator')]);
    assert.ok(
      statusOf(out).verdicts.some(({ reason }) => reason === 'Observed'),
      value,
    );
    assert.ok(out.metrics.includes('pullwright_override_drifted{} 0'), out.metrics.join('\n'));
  }
});

for (const args of [
  ['--registry-overrides', 'quay.io/ocp=f.example.com,r.io=g.example.com'],
  ['--registry-overrides=quay.io/ocp=f.example.com,r.io=g.example.com'],
])
  test(`targets of the flag are no drift: ${args[0] === args.at(-1) ? 'one argument' : 'two arguments'}`, () => {
    const value = `${SORTED},quay.io/ocp=f.example.com,r.io=g.example.com`;
    const base = written(value, 'control-plane-operator');
    const { template } = base.spec as { template: { spec: { containers: object[] } } };
    const [first = {}, ...rest] = template.spec.containers;
    const flagged = { ...base, spec: { template: { spec: { containers: [{ ...first, args }, ...rest] } } } };
    assert.ok(
      statusOf(run([hostedCluster(), DIGESTS, flagged])).verdicts.some(({ reason }) => reason === 'Observed'),
    );
    assert.ok(
      statusOf(run([hostedCluster(), DIGESTS, base])).verdicts.some(({ reason }) => reason === 'Drifted'),
    );
  });

/** Entries of one to four sources, each list a random choice of mirrors. */
const entries = fc.array(
  fc.record({
    source: fc.constantFrom('quay.io/a', 'quay.io/b', 'quay.io/a/c', 'docker.io/x'),
    mirrors: fc.uniqueArray(fc.constantFrom('m1.example.com/x', 'm2.example.com/x', 'm3.example.com/x'), {
      minLength: 1,
    }),
  }),
  { minLength: 1, maxLength: 6 },
);

test('the hash and the value change only with the meaning: objects split, renamed, repeated, of the older kind', () => {
  fc.assert(
    fc.property(entries, fc.integer({ min: 0, max: 3 }), (list, how) => {
      const idms = (name: string, own: readonly object[]) => mirrorSet('ImageDigestMirrorSet', name, own);
      const same: readonly (readonly KubeObject[])[] = [
        list.map((entry, at) => idms(`part-${9 - at}`, [entry])),
        [idms('other-name', list.toReversed())],
        [idms('one', list), idms('again', list)],
        [mirrorSet('ImageContentSourcePolicy', 'older', list)],
      ];
      const one = run([hostedCluster(), idms('one', list), ...DEPLOYMENTS]);
      const other = run([hostedCluster(), ...(same[how] ?? []), ...DEPLOYMENTS]);
      assert.equal(hashOf(other), hashOf(one));
      assert.equal(variable(other, TARGET), variable(one, TARGET));
    }),
    { numRuns: 60, seed: 17 },
  );
});

test('too long: sources that no component asks for are left out, and said', () => {
  const source = (host: string, at: number) => ({
    source: `${host}/team-${at}`,
    mirrors: [`mirror.example.com/${'m'.repeat(150)}/${at}`],
  });
  const many = mirrorSet('ImageDigestMirrorSet', 'many', [
    ...Array.from({ length: 1500 }, (_, at) => source('docker.io', at)),
    { source: '*.example.org', mirrors: ['mirror.example.com/w'] },
    source('own.example.net:5000', 1),
    source('pool.example.net', 2),
    source('registry.redhat.io', 3),
  ]);
  const cluster = hostedCluster({}, { release: { image: 'own.example.net:5000/ocp/release:4.22' } });
  const pool = {
    apiVersion: 'hypershift.openshift.io/v1beta1',
    kind: 'NodePool',
    metadata: { name: 'workers', namespace: 'clusters', uid: 'u-pool' },
    spec: { clusterName: 'prod', release: { image: 'pool.example.net/ocp/release:4.21' } },
  };
  const out = run([cluster, pool, DIGESTS, many, ...DEPLOYMENTS]);
  const value = variable(out, TARGET) ?? '';
  assert.deepEqual(
    [...(parseImageOverrides(value)?.keys() ?? [])],
    ['own.example.net:5000/team-1', 'pool.example.net/team-2', 'quay.io/ocp', 'registry.redhat.io/team-3'],
  );
  const left = statusOf(out).verdicts.filter(({ reason }) => reason === 'NeverAsked');
  assert.equal(left[0]?.subject, '*.example.org');
  assert.ok(left.length > 150 && !left.some(({ subject }) => subject.startsWith('pool.')));
  assert.match(
    left[0]?.message ?? '',
    /with all 1505 sources OPENSHIFT_IMG_OVERRIDES would have \d+ characters, at most 131000/,
  );
  assert.match(String(documentOf(out)['data'] === undefined), /false/);
});

test.run();
