/** When a node is called in sync: not before what was installed was tried, and no longer than it works. */
import assert from 'node:assert/strict';
import { Proof, type TrialFailure } from '../../runtime/credential-provider/installer/trial.ts';
import type { NodeState } from '../../runtime/node/task.ts';
import { suite } from '../support/suite.ts';

const test = suite('Proof');
const IN_SYNC: NodeState = { ready: true, reason: 'InSync', message: 'in sync' };
const FAILS: TrialFailure = { reason: 'ProviderFails', message: 'no CA' };

function scene(results: (TrialFailure | Error | undefined)[]): {
  readonly proof: Proof;
  readonly said: string[];
} {
  const said: string[] = [];
  const proof = new Proof(
    async () => {
      await Promise.resolve();
      const result = results.shift();
      if (result instanceof Error) throw result;
      return result;
    },
    ({ ready, reason }) => said.push(`${reason}${ready ? '' : '!'}`),
  );
  return { proof, said };
}

test('in sync only after the trial; a failure takes it back, and the next look tries again', async () => {
  const { proof, said } = scene([undefined, FAILS, undefined]);
  for (let looks = 0; looks < 3; looks += 1) {
    proof.state(IN_SYNC, 'a');
    await proof.settled();
  }
  assert.deepEqual(said, ['Trying!', 'InSync', 'InSync', 'ProviderFails!', 'ProviderFails!', 'InSync']);
});

test('another content is tried anew; what was tried meanwhile is not its result', async () => {
  const { proof, said } = scene([undefined, FAILS]);
  proof.state(IN_SYNC, 'a');
  proof.state(IN_SYNC, 'b');
  await proof.settled();
  proof.state(IN_SYNC, 'b');
  await proof.settled();
  assert.deepEqual(said, ['Trying!', 'Trying!', 'Trying!', 'ProviderFails!']);
});

test('nothing to try, and a state that is not good, are passed on', async () => {
  const { proof, said } = scene([]);
  proof.state(IN_SYNC, undefined);
  proof.state({ ready: false, reason: 'BackOff', message: '' }, 'a');
  await proof.settled();
  assert.deepEqual(said, ['InSync', 'BackOff!']);
});

test('a bus that does not answer proves nothing', async () => {
  const { proof, said } = scene([new Error('no bus')]);
  proof.state(IN_SYNC, 'a');
  await proof.settled();
  assert.deepEqual(said, ['Trying!', 'ProviderNotTried!']);
});

test.run();
