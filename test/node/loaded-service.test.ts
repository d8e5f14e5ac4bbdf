/** What the answers of systemd say of a service: as recorded from systemd 252, from older ones, and from none at all. */
import assert from 'node:assert/strict';
import { loadedService } from '../../runtime/node/systemd.ts';
import { test } from '../support/suite.ts';

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
    command: words,
    isVerbatim: true,
    environment: ['A=b c'],
    environmentFiles: [{ path: '/etc/default/kubelet', optional: true }],
    isStale: false,
    commandLine: '/usr/bin/kubelet --kubeconfig=/b',
    mainPid: 42,
  });
});

test('systemd before 243 has no flags of commands', () => {
  const { ExecStartEx, ...old } = SERVICE;
  assert.ok(ExecStartEx);
  const loaded = loadedService(UNIT, old, undefined);
  assert.deepEqual([loaded?.command, loaded?.isVerbatim, loaded?.commandLine], [words, false, '']);
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
    [[], [], [{ path: '', optional: false }]],
  );
});
