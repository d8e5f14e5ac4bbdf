/** The variable by its meaning: keeps the administrator's order, and an equal value is not written. */

import assert from 'node:assert/strict';
import fc from 'fast-check';
import type { KubeObject } from '../../runtime/core/kubernetes/object.ts';
import { forAll } from '../support/for-all.ts';
import { test } from '../support/suite.ts';
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
} from './run-once.ts';

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

/** Entries with one to four sources and random mirrors. */
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
  forAll({ numRuns: 60, seed: 17 }, entries, fc.integer({ min: 0, max: 3 }), (list, how) => {
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
  });
});
