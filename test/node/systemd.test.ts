import assert from 'node:assert/strict';
import { PullwrightError } from '../../runtime/core/errors.ts';
import { connectBus, loadedService, SystemdOverBus } from '../../runtime/node/systemd.ts';
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
    if (code === undefined) assert.equal(end, result);
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

// Replies of systemd about a service: recorded from systemd 252, from older versions, and invalid.

const value = <T>(given: T): { readonly value: T } => ({ value: given });
const UNIT = {
  LoadState: value('loaded'),
  FragmentPath: value('/lib/systemd/system/kubelet.service'),
  DropInPaths: value(['/usr/lib/systemd/system/kubelet.service.d/10-kubeadm.conf']),
  NeedDaemonReload: value(false),
};
const words = ['/usr/bin/kubelet', '$KUBELET_EXTRA_ARGS'];
const SERVICE = {
  ExecStartEx: value([['/usr/bin/kubelet', words, ['no-env-expand'], 0n, 0n, 0n, 0n, 0, 0, 0]]),
  ExecStart: value([['/usr/bin/kubelet', words, false, 0n, 0n, 0n, 0n, 0, 0, 0]]),
  Environment: value(['A=b c']),
  EnvironmentFiles: value([['/etc/default/kubelet', true]]),
  MainPID: value(42),
};

test('files in order, words, variables, and the line of the main process', () => {
  const processes = [
    ['/system.slice/kubelet.service', 41, '/bin/helper --kubeconfig=/a'],
    ['/system.slice/kubelet.service', 42, '/usr/bin/kubelet --kubeconfig=/b'],
  ];
  assert.deepEqual(loadedService(UNIT, SERVICE, processes), {
    files: [UNIT.FragmentPath.value, ...UNIT.DropInPaths.value],
    command: { words, isVerbatim: true },
    environment: ['A=b c'],
    environmentFiles: [{ path: '/etc/default/kubelet', optional: true }],
    isStale: false,
    commandLine: '/usr/bin/kubelet --kubeconfig=/b',
  });
});

test('systemd before 243 has no flags of commands', () => {
  const { ExecStartEx, ...old } = SERVICE;
  assert.ok(ExecStartEx);
  const loaded = loadedService(UNIT, old, undefined);
  assert.deepEqual([loaded?.command, loaded?.commandLine], [{ words, isVerbatim: false }, '']);
});

test('no such unit, a masked one, and answers of other shapes are no service', () => {
  for (const unit of [
    undefined,
    'text',
    {},
    { ...UNIT, LoadState: value('not-found') },
    { ...UNIT, LoadState: value('masked') },
    { ...UNIT, FragmentPath: value('') },
  ])
    assert.equal(loadedService(unit, SERVICE, []), undefined);
  const empty = loadedService(UNIT, { ExecStart: value('x'), EnvironmentFiles: value([7]) }, [[], 3]);
  assert.deepEqual(
    [empty?.command, empty?.environment, empty?.environmentFiles],
    [{ words: [], isVerbatim: false }, [], [{ path: '', optional: false }]],
  );
});
