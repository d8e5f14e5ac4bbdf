// deadline: 300 s
// needs: systemd, control plane
/** The compiled installer with a real systemd and API server: installs, follows changes, uninstalls, rolls back, reports. */
import assert from 'node:assert/strict';
import {
  appendFileSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { parse } from 'yaml';
import { trialService } from '../../runtime/credential-provider/installer/source.ts';
import { SystemdOverBus } from '../../runtime/node/systemd.ts';
import { eventually } from '../control-plane/eventually.ts';
import { freePort } from '../support/loopback.ts';
import { RunningAgent } from '../support/node-agent.ts';
import { runProcess } from '../support/process.ts';
import { test } from '../support/suite.ts';
import { digestOf, until } from '../support/systemd.ts';
import {
  GOOD_VERSIONS as GOOD,
  InstallerCluster,
  inSync,
  installerScene,
} from './support/installer-scene.ts';

const cluster = await InstallerCluster.start({ report: true });
const { plane, program } = cluster;
const entries = (...images: readonly string[]): Promise<void> => cluster.entries(...images);
const scene = installerScene.bind(undefined, { test, cluster });

scene(
  'installs, restarts the kubelet with the flags, follows the entries, and takes everything back',
  ['v1.34.2', 'cri-o://1.34.1'],
  async (node) => {
    await entries('docker.io', '*.example.io');
    // With this interval only the watch can report changes.
    const agent = node.run(['--poll=10m']);
    await inSync(agent);
    const [config = ''] = node.configs;
    assert.deepEqual(node.starts(), [
      'plain',
      `--image-credential-provider-bin-dir=${node.machine.state}/plugins --image-credential-provider-config=${node.machine.state}/providers/${config}`,
    ]);
    const document = parse(readFileSync(join(node.machine.state, 'providers', config), 'utf8')) as {
      providers: { matchImages: string[] }[];
    };
    assert.deepEqual(document.providers[0]?.matchImages, ['*.example.io', 'docker.io']);
    assert.equal(statSync(node.plugin).mode & 0o777, 0o755);
    assert.deepEqual(readFileSync(node.plugin), readFileSync(program));
    await entries('quay.io');
    await until('the kubelet runs with the new file', () => node.starts().length === 3, 60_000);
    await until('the old file is gone', () => node.configs.length === 1 && node.configs[0] !== config);
    assert.ok(node.starts()[2]?.endsWith(node.configs[0] ?? '-'));
    await agent.stop();
    const second = node.run(['--once']);
    assert.equal(await second.ended, 0);
    assert.equal(node.starts().length, 3, 'nothing to do restarts nothing');
    await entries();
    assert.equal(await node.run(['--once']).ended, 0);
    assert.deepEqual([node.starts().at(-1), node.configs], ['plain', []]);
  },
);

scene(
  'a kubelet that does not come up: the old state is back, the kubelet runs, the same is not tried again',
  ['v1.35.0', 'cri-o://1.34.0'],
  async (node) => {
    await entries('docker.io');
    writeFileSync(join(node.machine.state, 'refuse'), '');
    const agent = node.run();
    await until('it gives up', () => agent.reason() === 'BreakerOpen', 60_000);
    assert.equal(existsSync(node.dropIn), false);
    assert.equal(node.machine.activeState(), 'active');
    assert.equal(node.starts().at(-1), 'plain');
    const starts = node.starts().length;
    await agent.stop();
    assert.equal(await node.run(['--once']).ended, 1);
    assert.equal(node.starts().length, starts);
    rmSync(join(node.machine.state, 'refuse'));
    await entries('quay.io');
    assert.equal(await node.run(['--once']).ended, 0);
    await entries('docker.io');
    writeFileSync(join(node.machine.state, 'refuse'), '');
  },
);

// systemd before 257 reports NeedDaemonReload=no for the first drop-in of a folder that it has not seen.
scene('the first drop-in was written by a killed run, and not loaded: it is used', GOOD, async (node) => {
  await entries('docker.io');
  assert.equal(await node.run(['--once']).ended, 0);
  const dropIn = readFileSync(node.dropIn, 'utf8');
  rmSync(dirname(node.dropIn), { recursive: true });
  node.machine.systemctl('daemon-reload');
  node.machine.systemctl('restart', 'kubelet.service');
  mkdirSync(dirname(node.dropIn));
  writeFileSync(node.dropIn, dropIn);
  const [wanted, numbers] = [digestOf(dropIn), { failures: 0, notBefore: 0, waitMs: 0 }];
  const change = { phase: 'writing', wanted, source: wanted, invocation: '', restart: true, removes: false };
  const journal = { version: 1, breakers: {}, restarts: [], change: { ...change, ...numbers } };
  const file = join(node.folder, '.pullwright/journal.json');
  writeFileSync(file, JSON.stringify({ version: 1, journal, ledger: {} }));
  // With this interval no later look at the unit can help.
  assert.equal(await node.run(['--once', '--poll=10m']).ended, 0);
  const [, flags, plain, again] = node.starts();
  assert.deepEqual([plain, again], ['plain', flags]);
});

scene('CRI-O that is too old: nothing is written, and why', ['v1.34.0', 'cri-o://1.33.4'], async (node) => {
  await entries('docker.io');
  const agent = node.run(['--once']);
  assert.equal(await agent.ended, 1);
  assert.equal(agent.reason(), 'UnsupportedVersion');
  assert.match(agent.text(), new RegExp(`found ${node.name} \\(kubelet v1\\.34\\.0`));
  assert.deepEqual(
    [existsSync(node.dropIn), node.configs, existsSync(node.plugin), node.starts()],
    [false, [], false, ['plain']],
  );
});

scene(
  '--uninstall takes back all of it without the API server, and leaves what others did',
  GOOD,
  async (node) => {
    await entries('docker.io');
    assert.equal(await node.run(['--once']).ended, 0);
    assert.equal(node.starts().length, 2);
    assert.ok(existsSync(node.plugin) && node.configs.length === 1);
    const offline = ['--uninstall', '--once', '--service-account-dir=/nowhere'];
    const preview = await runProcess(node.command([...offline, '--dry-run']));
    assert.match(
      preview.stdout,
      /would replace \S+40-kubelet\S+\n +--image-credential-provider-config: \S+ -> none/,
    );
    assert.match(preview.stdout, /would remove +\S+pullwright-[0-9a-f]{16}\.yaml/);
    const agent = node.run(offline);
    assert.equal(await agent.ended, 0);
    assert.equal(agent.reason(), 'Uninstalled');
    assert.doesNotMatch(agent.text(), /may be left/);
    for (const folder of [dirname(node.dropIn), dirname(node.plugin), node.folder])
      assert.equal(existsSync(folder), false, folder);
    assert.equal(node.starts().at(-1), 'plain');
    assert.equal(node.machine.systemctl('show', '-P', 'NeedDaemonReload', 'kubelet.service'), 'no');
    const starts = node.starts().length;
    assert.equal(await node.run(offline).ended, 0, 'a second time there is nothing to do');
    assert.equal(await node.run(['--once']).ended, 0, 'and it can be installed again');
    assert.equal(node.starts().length, starts + 1);
    writeFileSync(node.plugin, 'somebody else put this here');
    assert.equal(await node.run(offline).ended, 0);
    assert.ok(existsSync(node.plugin), 'an executable of somebody else stays');
    assert.equal(await node.run(['--once']).ended, 0);
    assert.equal(await node.run(offline).ended, 0);
    assert.ok(existsSync(dirname(node.plugin)), 'a folder that others had something in stays');
  },
);

scene('--uninstall after an upgrade that could not copy: the older executable goes', GOOD, async (node) => {
  await entries('docker.io');
  const older = join(node.machine.state, 'older');
  copyFileSync(program, older);
  appendFileSync(older, 'older');
  // rmdir on the host cannot remove a symbolic link.
  symlinkSync(mkdtempSync(join(node.machine.state, 'real-')), node.folder);
  const [, ...args] = node.command(['--once']);
  const ends = (command: readonly string[]): Promise<number | null> =>
    new RunningAgent([...command, ...args], node.env).ended;
  assert.equal(await ends([older]), 0);
  const installed = readFileSync(node.plugin);
  assert.equal(await ends(['prlimit', '--fsize=1000000', program]), 1);
  assert.deepEqual(readFileSync(node.plugin), installed);
  const agent = node.run(['--once', '--uninstall']);
  assert.equal(await agent.ended, 0);
  assert.equal(existsSync(node.plugin), false, agent.text());
  assert.match(agent.text(), /Empty folders may be left/);
});

scene('nodes of the Machine Config Operator are left alone, unless told otherwise', GOOD, async (node) => {
  await entries('docker.io');
  const annotations = { 'machineconfiguration.openshift.io/currentConfig': 'rendered-worker-1' };
  await plane.apply({ apiVersion: 'v1', kind: 'Node', metadata: { name: node.name, annotations } });
  const agent = node.run(['--once']);
  assert.equal(await agent.ended, 1);
  assert.equal(agent.reason(), 'ManagedElsewhere');
  assert.match(agent.text(), /currentConfig is \\"rendered-worker-1\\".*Exclude this node in nodeSelector/);
  assert.deepEqual(
    [node.starts(), existsSync(node.plugin), existsSync(node.dropIn)],
    [['plain'], false, false],
  );
  assert.equal(await node.run(['--once', '--take-over']).ended, 0);
  assert.equal(node.starts().length, 2);
});

scene(
  'a drop-in of somebody else stays; taken over, it comes back when the kubelet does not',
  GOOD,
  async (node) => {
    await entries('docker.io');
    const foreign = '[Service]\nEnvironment="KUBELET_CRIO_IMAGE_CREDENTIAL_PROVIDER_FLAGS="\n';
    mkdirSync(join(node.units, 'kubelet.service.d'));
    writeFileSync(node.dropIn, foreign);
    const agent = node.run(['--once']);
    assert.equal(await agent.ended, 1);
    assert.equal(agent.reason(), 'ForeignDropIn');
    assert.equal(await node.run(['--once', '--uninstall']).ended, 0);
    assert.equal(readFileSync(node.dropIn, 'utf8'), foreign);
    writeFileSync(join(node.machine.state, 'refuse'), '');
    const second = node.run(['--once', '--take-over']);
    assert.equal(await second.ended, 1);
    assert.equal(second.reason(), 'BreakerOpen');
    assert.equal(readFileSync(node.dropIn, 'utf8'), foreign);
    assert.equal(node.machine.activeState(), 'active');
  },
);

scene('reports to PullStatus and Events, and counts', GOOD, async (node) => {
  const status = async (): Promise<{
    conditions: { type: string; reason: string }[];
    verdicts: unknown[];
  }> =>
    (
      (await plane.get({
        apiVersion: 'pullwright.dev/v1alpha1',
        kind: 'PullStatus',
        metadata: { name: `credential-provider-node-${node.name}`, namespace: 'kube-system' },
      })) as { status?: { conditions: { type: string; reason: string }[]; verdicts: unknown[] } } | undefined
    )?.status ?? { conditions: [], verdicts: [] };
  await entries('docker.io', 'a.io:99999');
  mkdirSync(join(node.machine.state, 'auth'));
  const left = join(node.machine.state, `auth/app-${'0'.repeat(64)}.json`);
  writeFileSync(left, '{}');
  utimesSync(left, Date.now() / 1000 - 700, Date.now() / 1000 - 700);
  const port = await freePort();
  const agent = node.run(['--report', `--health-port=${port}`]);
  await inSync(agent);
  await eventually(async () => {
    const { conditions, verdicts } = await status();
    assert.equal(conditions.find(({ type }) => type === 'Ready')?.reason, 'InSync', agent.text());
    assert.equal(verdicts.length, 2);
  });
  const page = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
  for (const line of [
    /^pullwright_installer_in_sync 1$/m,
    /^pullwright_installer_writes_total 1$/m,
    /^pullwright_installer_restarts_total 1$/m,
    /^pullwright_installer_rollbacks_total 0$/m,
    /^pullwright_installer_state_info\{reason="InSync"\} 1$/m,
    /^pullwright_installer_entries\{verdict="rendered"\} 1$/m,
    /^pullwright_installer_entries\{verdict="left_out"\} 1$/m,
    /^pullwright_installer_executable_info\{version="\S+",sha256="[0-9a-f]{64}"\} 1$/m,
    /^pullwright_auth_file_oldest_seconds 7\d\d\./m,
  ])
    assert.match(page, line);
  assert.equal(page.match(/^# TYPE pullwright_installer_entries /gm)?.length, 1);
  await entries('poison.example.com');
  await eventually(
    async () =>
      assert.equal((await status()).conditions.find(({ type }) => type === 'Stalled')?.reason, 'BreakerOpen'),
    { withinMs: 60_000 },
  );
  const { body } = await plane.client.request('GET', '/apis/events.k8s.io/v1/events');
  const reasons = (body.items as { reason: string; regarding: { name: string } }[])
    .filter(({ regarding }) => regarding.name === node.name)
    .map(({ reason }) => reason);
  for (const reason of [
    'CredentialProviderWritten',
    'KubeletRestarted',
    'CredentialProviderRolledBack',
    'BreakerOpen',
  ])
    assert.ok(reasons.includes(reason), `${reason} in ${reasons.join()}`);
});

scene(
  'a node that is upgraded while it waits is installed then',
  ['v1.33.9', 'cri-o://1.33.0'],
  async (node) => {
    await entries('docker.io');
    const agent = node.run();
    await until('it waits', () => agent.reason() === 'UnsupportedVersion', 60_000);
    await cluster.versions(node.name, 'v1.34.0', 'cri-o://1.33.0');
    await cluster.versions(node.name, 'v1.34.0', 'cri-o://1.34.0');
    await inSync(agent);
    await cluster.versions(node.name, 'v1.33.9', 'cri-o://1.33.0');
    await until('it says so', () => agent.reason() === 'UnsupportedVersion', 60_000);
    assert.equal(node.starts().length, 2, 'what is installed stays');
  },
);

scene('the unit counts as systemd reads it, not as it looks', GOOD, async (node) => {
  await entries('docker.io');
  const { state } = node.machine;
  const head = '[Unit]\nDefaultDependencies=no\n[Service]\nType=notify\nNotifyAccess=all\nTimeoutStopSec=2\n';
  node.machine.unit(
    `${head}Environment=KUBELET_EXTRA_ARGS="--label=a b" 'KUBELET_EXTRA_ARGS=--label="x y" --v=2'\nExecStart=${state}/kubelet \\\n # --image-credential-provider-config=/old.yaml \\\n; --old \\\n  --first \\\n  $KUBELET_EXTRA_ARGS\n`,
  );
  node.machine.systemctl('restart', 'kubelet.service');
  assert.equal(await node.run(['--once']).ended, 0);
  assert.match(
    node.starts().at(-1) ?? '',
    /^--first --label=x y --v=2 --image-credential-provider-bin-dir=\S+ --image-credential-provider-config=\S+$/,
  );
  for (const command of [
    `/bin/bash -c "exec ${state}/kubelet $KUBELET_EXTRA_ARGS"`,
    `:${state}/kubelet $KUBELET_EXTRA_ARGS`,
    `${state}/kubelet --label=$KUBELET_EXTRA_ARGS`,
  ]) {
    node.machine.unit(`${head}ExecStart=${command}\n`);
    const agent = node.run(['--once']);
    assert.equal(await agent.ended, 1, command);
    assert.equal(agent.reason(), 'NoPlaceForFlags', command);
  }
});

scene(
  'an executable that does not work on the node is not in sync, and says what it lacks',
  GOOD,
  async (node) => {
    await entries('docker.io');
    const agent = node.run(['--once', '--provider-arg=--ca-file=/nowhere.crt']);
    assert.equal(await agent.ended, 1);
    assert.equal(agent.reason(), 'ProviderFails');
    assert.match(agent.text(), /no CA found in \/nowhere\.crt/);
    assert.equal(await node.run(['--once']).ended, 0);
    const looking = node.run();
    await inSync(looking);
    const works = readFileSync(node.plugin);
    const swap = (content: string | Buffer): void => {
      // A running executable cannot be overwritten.
      writeFileSync(`${node.plugin}.new`, content, { mode: 0o755 });
      renameSync(`${node.plugin}.new`, node.plugin);
    };
    swap('#!/bin/false\n');
    await until('it is tried again', () => looking.reason() === 'ProviderNotTried', 60_000);
    swap(works);
    await inSync(looking);
    await looking.stop();
    const { state } = node.machine;
    writeFileSync(join(state, 'real'), readFileSync(join(state, 'kubelet')), { mode: 0o755 });
    writeFileSync(join(state, 'kubelet'), `#!/bin/bash\nexec ${state}/real --none\n`);
    node.machine.systemctl('restart', 'kubelet.service');
    const second = node.run(['--once']);
    assert.equal(await second.ended, 1);
    assert.equal(second.reason(), 'KubeletWithoutFlags');
  },
);

scene('a check that does not end when it is told to is killed', GOOD, async ({ machine }) => {
  const program = join(machine.state, 'crio-credential-provider');
  writeFileSync(program, '#!/bin/bash\ntrap "" TERM\nwhile :; do sleep 1; done\n', { mode: 0o755 });
  const plan = { ok: true, dropIn: '', binDir: machine.state, verdicts: [] } as const;
  // Without its own limit, systemd would wait for 90 seconds.
  const service = trialService(plan, join(machine.state, 'check.json'), undefined).map(
    ([name, type, value]) => [name, type, name === 'TimeoutStartUSec' ? 100_000n : value] as const,
  );
  const systemd = new SystemdOverBus({ socket: machine.bus, jobMs: 60_000 });
  const result = await systemd.run('check.service', service, new AbortController().signal);
  assert.notEqual(result, 'done');
});

test.lastly('the control plane stops', () => plane.stop());
