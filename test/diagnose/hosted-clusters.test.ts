import assert from 'node:assert/strict';
import { MAX_VERDICTS, pullStatus } from '../../runtime/core/kubernetes/pull-status.ts';
import { hostedClustersSaid, type SeenCluster } from '../../runtime/engine/hosted-status.ts';
import { test } from '../support/suite.ts';

const seen = (scope: string, state: SeenCluster['state'], code?: string): SeenCluster => ({
  scope,
  state,
  ...(code === undefined ? {} : { trouble: { code, message: `${scope} has trouble`, hint: 'do this' } }),
});
const many = (count: number, state: SeenCluster['state'], code?: string): readonly SeenCluster[] =>
  Array.from({ length: count }, (_, at) => seen(`c/${String(at).padStart(4, '0')}`, state, code));

for (const [reason, clusters, ready, verdicts] of [
  ['none', [], 'True NoHostedClusters No hosted clusters to reconcile', []],
  ['one', [seen('c/a', 'ready')], 'True HostedClustersServed 1 of 1 hosted cluster is reconciled', []],
  [
    'one that starts',
    [seen('c/a', 'ready'), seen('c/b', 'starting')],
    'False HostedClustersStarting 1 of 2 hosted clusters is starting',
    [],
  ],
  [
    'what fails and may pass is not in order either',
    [seen('c/a', 'ready'), seen('c/b', 'failing')],
    'False HostedClustersStarting 1 of 2 hosted clusters is starting',
    [],
  ],
  [
    'one that fails, beside one that starts',
    [seen('c/b', 'failing', 'KubeconfigMissing'), seen('c/a', 'starting')],
    'False HostedClustersFailing 1 of 2 hosted clusters is not reconciled: "c/b" (KubeconfigMissing)',
    ['c/b Pending KubeconfigMissing c/b has trouble. do this'],
  ],
  [
    'a refused one, in the order of names',
    [seen('c/b', 'refused', 'SameCluster'), seen('c/a', 'failing', 'Unreachable')],
    'False HostedClustersFailing 2 of 2 hosted clusters are not reconciled: "c/a" (Unreachable), "c/b" (SameCluster)',
    ['c/a Pending Unreachable c/a has trouble. do this', 'c/b Rejected SameCluster c/b has trouble. do this'],
  ],
] as const)
  test(reason, () => {
    const said = hostedClustersSaid(clusters);
    const [condition] = said.conditions;
    assert.equal(`${condition?.status} ${condition?.reason} ${condition?.message}`, ready);
    assert.deepEqual(
      said.verdicts.map(({ subject, verdict, reason: code, message }) =>
        [subject, verdict, code, message].join(' '),
      ),
      verdicts,
    );
  });

test('a thousand that fail, with endless words, fit into the object', () => {
  const long = 'x'.repeat(100_000);
  const clusters = many(1000, 'failing', long).map((one) => ({
    ...one,
    scope: `${one.scope}${long}`,
    trouble: { code: long, message: long },
  }));
  const said = hostedClustersSaid(clusters);
  const about = { apiVersion: 'v1', kind: 'Lease', namespace: 'n', name: 'n' };
  const { status } = pullStatus({ reporter: 'r', about, ...said, present: undefined, now: new Date(0) });
  const verdicts = status['verdicts'] as typeof said.verdicts;
  assert.equal(verdicts.length, MAX_VERDICTS);
  assert.ok(verdicts.every(({ subject, message }) => subject.length <= 1024 && message.length <= 4096));
  assert.ok((said.conditions[0]?.message.length ?? 0) < 1000);
  assert.match(said.conditions[0]?.message ?? '', /and 997 more$/);
});
