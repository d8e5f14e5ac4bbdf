import assert from 'node:assert/strict';
import { PullwrightError } from '../../runtime/core/errors.ts';
import { connectBus, SystemdOverBus } from '../../runtime/node/systemd.ts';
import { fakeClock } from '../support/fake-clock.ts';
import { type BusScript, scriptedBus } from '../support/scripted-bus.ts';
import { type Case, table, test } from '../support/suite.ts';

const never = new AbortController().signal;

interface Job extends Case {
  readonly script: BusScript;
  readonly result?: string;
  readonly code?: string;
}

table(
  test,
  [
    { name: 'done', reason: 'the usual order', script: { result: 'done' }, result: 'done' },
    { name: 'failed', reason: 'only done is success', script: { result: 'failed' }, result: 'failed' },
    {
      name: 'JobRemoved before the reply',
      reason: 'a unit that starts at once ends its job before the reply is read',
      script: { result: 'done', early: true },
      result: 'done',
    },
    {
      name: 'refused',
      reason: 'the error of the bus is passed on',
      script: {
        result: 'done',
        refused: ['org.freedesktop.systemd1.NoSuchUnit', 'Unit kubelet.service not found.'],
      },
      code: 'BusRefused',
    },
    {
      name: 'bus lost at the call, unit restarted',
      reason: 'a new invocation that is active says that the job was done',
      script: { result: null, losesAt: 'RestartUnit', after: { active: 'active', invocation: 'bb' } },
      result: 'done',
    },
    {
      name: 'bus lost at the call, unit untouched',
      reason: 'the same invocation says that nothing was restarted',
      script: { result: null, losesAt: 'RestartUnit', after: { active: 'active', invocation: 'aa' } },
      result: 'failed',
    },
    {
      name: 'bus lost before the call',
      reason: 'nothing was asked for yet, so there is nothing to look up',
      script: { result: null, losesAt: 'Subscribe' },
      code: 'BusLost',
    },
    {
      name: 'job never ends and stays busy',
      reason: 'the wait is bounded',
      script: { result: null, after: { active: 'activating', invocation: 'bb', busy: true } },
      code: 'JobOverdue',
    },
    {
      name: 'signal lost, unit up again',
      reason: 'when the deadline passes, the unit itself is asked',
      script: { result: null, after: { active: 'active', invocation: 'bb' } },
      result: 'done',
    },
  ] satisfies Job[],
  async ({ script, result, code }) => {
    const { connect, calls } = scriptedBus(script);
    const systemd = new SystemdOverBus({ connect, clock: fakeClock() });
    const end = await systemd.restart('kubelet.service', never).catch((error: unknown) => error);
    if (code === undefined) assert.deepEqual(end, { result });
    else assert.equal(end instanceof PullwrightError ? end.code : end, code);
    const before = (first: string, second: string): boolean => calls.indexOf(first) < calls.indexOf(second);
    if (calls.includes('RestartUnit'))
      assert.ok(before('AddMatch', 'RestartUnit') && before('Subscribe', 'RestartUnit'));
  },
);

test('a wait for a job ends when the program is told to stop', async () => {
  const { connect } = scriptedBus({
    result: null,
    after: { active: 'activating', invocation: 'bb', busy: true },
  });
  const stop = new AbortController();
  const ended = new SystemdOverBus({ connect, jobMs: 60_000 }).restart('kubelet.service', stop.signal);
  setImmediate(() => stop.abort());
  await assert.rejects(ended, { code: 'Stopped' });
});

test('a socket that is not there is named, with what to mount', async () => {
  await assert.rejects(connectBus('/nonexistent/system_bus_socket', 1000), (error: unknown) => {
    assert.ok(error instanceof PullwrightError);
    assert.equal(error.code, 'BusUnreachable');
    assert.match(error.message, /^Cannot connect to the bus at "\/nonexistent\/system_bus_socket": /);
    assert.match(error.hint ?? '', /not the socket itself/);
    return true;
  });
});

test('a path that a bus address cannot hold is refused before anything is opened', async () => {
  await assert.rejects(connectBus('/tmp/a:b', 1000), /holds one of : = , ; %/);
});
