import assert from 'node:assert/strict';
import { PullwrightError } from '../../runtime/core/errors.ts';
import { attemptRestart } from '../../runtime/node/restart.ts';
import { connectBus, loadedService, SystemdOverBus } from '../../runtime/node/systemd.ts';
import { fakeClock } from '../support/fake-clock.ts';
import { type BusScript, scriptedBus } from '../support/scripted-bus.ts';
import { type Cases, cases, test } from '../support/suite.ts';

const never = new AbortController().signal;

const UP = { result: null, after: { active: 'active', invocation: 'bb' } };
const AS_BEFORE = { result: null, after: { active: 'active', invocation: 'aa' } };
const BUSY = { result: null, after: { active: 'activating', invocation: 'bb', busy: true } };
const refused = (name: string, text: string): BusScript => ({ result: 'done', refused: [name, text] });
const NO_UNIT = refused('org.freedesktop.systemd1.NoSuchUnit', 'Unit AccessDenied.service not found.');
const DENIED = refused('org.freedesktop.DBus.Error.AccessDenied', 'Rejected by the policy');
const lostAt = (losesAt: string, script: BusScript = UP): BusScript => ({ ...script, losesAt });

/** Result or code of the restart, and the kind of failure of the attempt. */
type Job = [script: BusScript, end: string, kind?: 'bus' | 'unit'];
const jobs: Cases<Job> = [
  ['done', 'the usual order', { result: 'done' }, 'done'],
  ['failed', 'only done is success', { result: 'failed' }, 'failed', 'unit'],
  ['JobRemoved before the reply', 'the unit starts at once', { result: 'done', early: true }, 'done'],
  ['no such unit', 'the error of the bus is passed on', NO_UNIT, 'BusRefused', 'unit'],
  ['denied', 'nothing was restarted, whatever the text of the error', DENIED, 'BusRefused', 'bus'],
  ['bus lost, unit restarted', 'a new active invocation is the job', lostAt('RestartUnit'), 'done'],
  ['bus lost, unit as before', 'nothing was restarted', lostAt('RestartUnit', AS_BEFORE), 'failed', 'unit'],
  ['bus lost before the call', 'there is nothing to look up', lostAt('Subscribe'), 'BusLost', 'bus'],
  ['job never ends and stays busy', 'the wait is bounded', BUSY, 'JobOverdue', 'unit'],
  ['signal lost, unit up again', 'at the deadline, the unit itself is asked', UP, 'done'],
];
cases<Job>(test, jobs, async (script, expected, kind) => {
  const clock = fakeClock();
  const { connect, calls } = scriptedBus(script);
  const systemd = new SystemdOverBus({ connect, clock });
  const end = await systemd.restart('kubelet.service', never).catch((error: unknown) => error);
  assert.equal(end instanceof PullwrightError ? end.code : end, expected);
  const before = (first: string, second: string): boolean => calls.indexOf(first) < calls.indexOf(second);
  if (calls.includes('RestartUnit'))
    assert.ok(before('AddMatch', 'RestartUnit') && before('Subscribe', 'RestartUnit'));
  if (kind === undefined) return;
  const again = new SystemdOverBus({ connect: scriptedBus(script).connect, clock });
  const options = { unit: 'kubelet.service', before: '', settleMs: 0, clock };
  const attempt = await attemptRestart(again, options, never);
  assert.equal(attempt.ok || attempt.kind, kind);
});

test('a wait for a job ends when the program is told to stop', async () => {
  const { connect } = scriptedBus(BUSY);
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
