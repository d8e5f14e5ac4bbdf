import assert from 'node:assert/strict';
import { table, test } from '../support/suite.ts';
import { BAD_INPUTS, GOOD_PAIRS, samePairs } from './bad-inputs.ts';
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
} from './world.ts';

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
