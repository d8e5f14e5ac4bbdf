// deadline: 180 s
// needs: control plane
/** `install-provider --dry-run`: its output, no writes, and errors for invalid input. */
import assert from 'node:assert/strict';
import { parse } from 'yaml';
import { type Case, table, test } from '../support/suite.ts';
import { type DryRun, DryRunScene, installed, namesIn } from './support/dry-run-scene.ts';

interface Bad extends Case, Partial<Omit<DryRun, 'folder' | 'serviceAccount'>> {
  readonly account?: 'powerless' | 'empty';
  readonly files?: Readonly<Record<string, string>>;
  /** @default {1} */
  readonly code?: 2;
  readonly says: RegExp;
}
const BAD: readonly Bad[] = [
  {
    name: 'flag that is none',
    reason: 'a typing mistake must not pass',
    flags: ['--uninstal'],
    code: 2,
    says: /uninstal/,
  },
  {
    name: 'no pod',
    reason: 'it must say how the API server is found',
    env: { KUBERNETES_SERVICE_HOST: undefined },
    says: /KUBERNETES_SERVICE_HOST is not set/,
  },
  {
    name: 'no token',
    reason: 'the file is named',
    account: 'empty',
    says: /Cannot read ".*ca\.crt": not found/,
  },
  {
    name: 'no rights',
    reason: 'the verb and the object are named',
    account: 'powerless',
    says: /nodes "node-1" is forbidden|Node.*node-1.*forbidden/i,
  },
  {
    name: 'no such node',
    reason: 'the name is wrong',
    flags: ['--node-name=nowhere'],
    says: /Cannot find Node "nowhere".*Set --node-name/,
  },
  {
    name: 'no unit',
    reason: 'another name on this distribution',
    flags: ['--unit=k3s.service'],
    says: /NoKubeletUnit: .*no systemd unit of the kubelet has an ExecStart line.*Set --unit/,
  },
  {
    name: 'present file that is none',
    reason: 'the kubelet would not start',
    files: { 'etc/ecr.yaml': 'providers: [' },
    says: /ConfigInvalid: .*"\/etc\/ecr\.yaml"/,
  },
  {
    name: 'program that is not there',
    reason: 'the image was built without it',
    program: '/nowhere/pullwright',
    files: { 'opt/plugins/crio-credential-provider': 'older' },
    says: /\/nowhere\/pullwright/,
  },
  {
    name: 'node of the Machine Config Operator',
    reason: 'two writers would fight over its kubelet',
    files: { 'etc/machine-config-daemon/currentconfig': '{}' },
    says: /ManagedElsewhere: .*currentconfig.*--take-over/,
  },
];
const scene = await DryRunScene.start();

test('prints by meaning what would be written and restarted, and writes nothing', async () => {
  const folder = scene.host();
  const before = namesIn(folder);
  const ran = await scene.dryRun({ folder });
  assert.equal(ran.code, 1, ran.stderr);
  const plugin = '/opt/plugins/crio-credential-provider';
  const config = '/etc/kubernetes/credential-providers/pullwright-[0-9a-f]{16}\\.yaml';
  assert.match(
    ran.stdout,
    new RegExp(
      [
        '^Writing: The file differs from the desired content',
        `would create  ${plugin}`,
        ' +a copy of this program, mode 0755',
        `would create  ${config}`,
        ' +provider ecr: kept',
        ' +provider crio-credential-provider: added for docker\\.io',
        'would create  /etc/systemd/system/kubelet\\.service\\.d/40-kubelet-crio-image-credential-provider\\.conf',
        ` +--image-credential-provider-config: none -> ${config}`,
        ' +--image-credential-provider-bin-dir: none -> /opt/plugins',
        'would reload  systemd',
        'would restart kubelet\\.service',
        ' +after three failed starts, the old drop-in is restored',
        'ignored: 123\\.dkr\\.ecr\\.eu-west-1\\.amazonaws\\.com: images that match it can also match .* of provider "ecr"\n$',
      ].join('\n'),
    ),
  );
  assert.deepEqual(namesIn(folder), before);
});

test('--output json and yaml say the same', async () => {
  const folder = scene.host();
  const json = JSON.parse((await scene.dryRun({ folder, flags: ['--output=json'] })).stdout);
  assert.deepEqual(
    json.would.map(({ action }: { action: string }) => action),
    ['create', 'create', 'create', 'reload', 'restart'],
  );
  assert.deepEqual([json.node, json.ready, json.reason], ['node-1', false, 'Writing']);
  assert.deepEqual(parse((await scene.dryRun({ folder, flags: ['--output=yaml'] })).stdout), json);
});

test('a change of entries names the entries; a node that is as it should be has nothing to do', async () => {
  const same = await scene.dryRun({
    folder: scene.host(installed(['docker.io'])),
    flags: ['--output=json'],
  });
  assert.deepEqual([same.code, JSON.parse(same.stdout).would], [0, []], same.stderr);
  const other = await scene.dryRun({ folder: scene.host(installed(['docker.io', 'quay.io'])) });
  assert.equal(other.code, 1);
  assert.match(other.stdout, /provider crio-credential-provider: -quay\.io\n/);
  assert.match(other.stdout, /would replace \S+40-kubelet/);
  assert.match(other.stdout, /would remove +\S+pullwright-\S+\.yaml\n +once the kubelet is up/);
});

table(test, BAD, async (row) => {
  const folder = scene.host(row.files);
  const before = namesIn(folder);
  const ran = await scene.dryRun({
    ...row,
    folder,
    ...(row.account === undefined ? {} : { serviceAccount: scene[row.account] }),
  });
  assert.equal(ran.code, row.code ?? 1, ran.stdout + ran.stderr);
  assert.match(ran.stdout + ran.stderr, row.says);
  assert.doesNotMatch(ran.stderr, /^ +at /m);
  assert.deepEqual(namesIn(folder), before);
});

test.lastly('the control plane stops', () => scene.stop());
