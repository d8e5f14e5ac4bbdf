// deadline: 180 s
/** `install-provider --dry-run`: what it prints, that it cannot write, and what it says of bad input. */
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { parse } from 'yaml';
import { credentialProviderCrd } from '../../charts/credential-provider/crd.ts';
import { installerObjects } from '../../charts/credential-provider/installer.ts';
import { planInstall } from '../../runtime/credential-provider/installer-plan.ts';
import { sha256Hex } from '../../runtime/host/sha256.ts';
import { missingControlPlane, startControlPlane } from '../control-plane/control-plane.ts';
import { eventually } from '../control-plane/eventually.ts';
import type { Rule } from '../control-plane/users.ts';
import { type ProcessResult, runProcess } from '../support/process.ts';
import { type Case, suite, table } from '../support/suite.ts';

const test = suite('install-provider --dry-run');
const missing = missingControlPlane();
const root = new URL('../..', import.meta.url).pathname;

const UNIT =
  '[Service]\nExecStart=/usr/bin/kubelet --image-credential-provider-config=/etc/ecr.yaml --image-credential-provider-bin-dir=/opt/plugins\n';
const PRESENT =
  'apiVersion: kubelet.config.k8s.io/v1\nkind: CredentialProviderConfig\nproviders:\n- name: ecr\n  apiVersion: credentialprovider.kubelet.k8s.io/v1\n  matchImages: ["*.dkr.ecr.*.amazonaws.com"]\n  defaultCacheDuration: 12h\n';
const VERSIONS = { kubeletVersion: 'v1.35.0', containerRuntimeVersion: 'cri-o://1.35.0' };

/** The files that a run leaves on a host, as the plan has them. */
function installed(matchImages: readonly string[]): Readonly<Record<string, string>> {
  const plan = planInstall({
    node: { apiVersion: 'v1', kind: 'Node', metadata: { name: 'worker' }, status: { nodeInfo: VERSIONS } },
    matchImages,
    unit: [{ path: '/etc/systemd/system/kubelet.service', text: UNIT }],
    pointers: { config: '/etc/ecr.yaml', binDir: '/opt/plugins' },
    present: PRESENT,
    configDir: '/etc/kubernetes/credential-providers',
    digest: sha256Hex,
    parseYaml: (text) => parse(text) as unknown,
  });
  assert.ok(plan.ok);
  return {
    'etc/systemd/system/kubelet.service.d/40-kubelet-crio-image-credential-provider.conf': plan.dropIn,
    [plan.config?.path.slice(1) ?? '']: plan.config?.text ?? '',
    'opt/plugins/crio-credential-provider': 'the program',
  };
}

if (missing !== undefined) test.skip('everything', missing);
else {
  const plane = await startControlPlane();
  const objects = installerObjects({ image: 'registry.example.com/pullwright:1' });
  const rules = (objects.find(({ kind }) => kind === 'ClusterRole') as unknown as { rules: readonly Rule[] })
    .rules;
  const user = await plane.user({ name: 'installer', by: 'token', cluster: rules });
  const nobody = await plane.user({ name: 'nobody', by: 'token' });
  const work = mkdtempSync(join(tmpdir(), 'pullwright-dry-run-'));
  const account = (name: string, tokenFile: string): string => {
    const folder = join(work, name);
    mkdirSync(folder);
    writeFileSync(join(folder, 'ca.crt'), plane.ca);
    symlinkSync(tokenFile, join(folder, 'token'));
    return folder;
  };
  const good = account('account', user.tokenFile);
  const powerless = account('nobody', nobody.tokenFile);
  const program = join(work, 'program');
  writeFileSync(program, 'the program');
  await plane.apply(credentialProviderCrd());
  const entries = (...matchImages: readonly string[]): Promise<unknown> =>
    eventually(() =>
      plane.apply({
        apiVersion: 'config.openshift.io/v1',
        kind: 'CRIOCredentialProviderConfig',
        metadata: { name: 'cluster' },
        spec: { matchImages },
      }),
    );
  await entries('docker.io', '123.dkr.ecr.eu-west-1.amazonaws.com');
  await plane.apply({ apiVersion: 'v1', kind: 'Node', metadata: { name: 'worker' } });
  const nodeInfo = Object.fromEntries(
    ['machineID', 'systemUUID', 'bootID', 'kernelVersion', 'osImage', 'kubeProxyVersion', 'operatingSystem']
      .concat('architecture')
      .map((field) => [field, '']),
  );
  const patched = await plane.client.request(
    'PATCH',
    '/api/v1/nodes/worker/status',
    {
      status: {
        nodeInfo: { ...nodeInfo, ...VERSIONS },
      },
    },
    'application/merge-patch+json',
  );
  assert.equal(patched.status, 200);

  let count = 0;
  /** A host with a kubelet that has a provider of its cloud. */
  const host = (files: Readonly<Record<string, string>> = {}): string => {
    const folder = join(work, `host-${(count += 1)}`);
    const all = {
      'etc/systemd/system/kubelet.service': UNIT,
      'etc/ecr.yaml': PRESENT,
      ...files,
    };
    for (const [name, text] of Object.entries(all)) {
      mkdirSync(dirname(join(folder, name)), { recursive: true });
      writeFileSync(join(folder, name), text);
    }
    return folder;
  };

  interface Run {
    readonly folder: string;
    readonly flags?: readonly string[];
    readonly serviceAccount?: string;
    readonly env?: NodeJS.ProcessEnv;
    readonly program?: string;
  }
  /** Under the permission model, with what the command declares to read and nothing to write. */
  const dryRun = (run: Run): Promise<ProcessResult> => {
    const serviceAccount = run.serviceAccount ?? good;
    const reads = ['main.ts', 'package.json', 'charts', 'runtime', 'node_modules'].map((name) =>
      join(root, name),
    );
    const allowed = [
      ...reads,
      run.folder,
      serviceAccount,
      work,
      dirname(user.tokenFile),
      dirname(nobody.tokenFile),
    ];
    return runProcess(
      [
        process.execPath,
        '--permission',
        ...allowed.map((path) => `--allow-fs-read=${path}`),
        join(root, 'main.ts'),
        'install-provider',
        '--dry-run',
        `--root=${run.folder}`,
        '--node-name=worker',
        `--executable=${run.program ?? program}`,
        `--service-account-dir=${serviceAccount}`,
        ...(run.flags ?? []),
      ],
      {
        env: {
          ...process.env,
          KUBERNETES_SERVICE_HOST: '127.0.0.1',
          KUBERNETES_SERVICE_PORT: new URL(plane.server).port,
          ...run.env,
        },
      },
    );
  };
  const namesIn = (folder: string): readonly string[] =>
    readdirSync(folder, { recursive: true }).map(String).sort();

  test('prints by meaning what would be written and restarted, and writes nothing', async () => {
    const folder = host();
    const before = namesIn(folder);
    const ran = await dryRun({ folder });
    assert.equal(ran.code, 1, ran.stderr);
    const plugin = '/opt/plugins/crio-credential-provider';
    const config = '/etc/kubernetes/credential-providers/pullwright-[0-9a-f]{16}\\.yaml';
    assert.match(
      ran.stdout,
      new RegExp(
        [
          '^Writing: The file differs from what is wanted',
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
          ' +when it does not stay up, three times, the old drop-in is put back',
          'left out: 123\\.dkr\\.ecr\\.eu-west-1\\.amazonaws\\.com: images that match it can also match .* of provider "ecr"\n$',
        ].join('\n'),
      ),
    );
    assert.deepEqual(namesIn(folder), before);
  });

  test('--output json and yaml say the same', async () => {
    const folder = host();
    const json = JSON.parse((await dryRun({ folder, flags: ['--output=json'] })).stdout);
    assert.deepEqual(
      json.would.map(({ action }: { action: string }) => action),
      ['create', 'create', 'create', 'reload', 'restart'],
    );
    assert.deepEqual([json.node, json.ready, json.reason], ['worker', false, 'Writing']);
    assert.deepEqual(parse((await dryRun({ folder, flags: ['--output=yaml'] })).stdout), json);
  });

  test('a change of entries names the entries; a node that is as it should be has nothing to do', async () => {
    const same = await dryRun({ folder: host(installed(['docker.io'])), flags: ['--output=json'] });
    assert.deepEqual([same.code, JSON.parse(same.stdout).would], [0, []], same.stderr);
    const other = await dryRun({ folder: host(installed(['docker.io', 'quay.io'])) });
    assert.equal(other.code, 1);
    assert.match(other.stdout, /provider crio-credential-provider: -quay\.io\n/);
    assert.match(other.stdout, /would replace \S+40-kubelet/);
    assert.match(other.stdout, /would remove +\S+pullwright-\S+\.yaml\n +once the kubelet is up/);
  });

  interface Bad extends Case, Partial<Omit<Run, 'folder'>> {
    readonly files?: Readonly<Record<string, string>>;
    readonly code: 1 | 2;
    readonly says: RegExp;
  }
  const bad: readonly Bad[] = [
    {
      name: 'flag that is none',
      reason: 'a typing mistake must not pass',
      flags: ['--uninstal'],
      code: 2,
      says: /uninstal/,
    },
    {
      name: 'format that is none',
      reason: 'say which there are',
      flags: ['--output=xml'],
      code: 2,
      says: /Flag --output is "xml": wanted text, json or yaml/,
    },
    {
      name: 'window that is none',
      reason: 'all kubelets would restart at once',
      flags: ['--restart-window=5m'],
      code: 2,
      says: /Flag --restart-window is "5m": wanted seconds/,
    },
    {
      name: 'no pod',
      reason: 'it must say how the API server is found',
      env: { KUBERNETES_SERVICE_HOST: undefined },
      code: 1,
      says: /KUBERNETES_SERVICE_HOST is not set/,
    },
    {
      name: 'no token',
      reason: 'the file is named',
      serviceAccount: work,
      code: 1,
      says: /Cannot read ".*ca\.crt": it does not exist/,
    },
    {
      name: 'no rights',
      reason: 'the verb and the object are named',
      serviceAccount: powerless,
      code: 1,
      says: /nodes "worker" is forbidden|Node.*worker.*forbidden/i,
    },
    {
      name: 'no such node',
      reason: 'the name is wrong',
      flags: ['--node-name=nowhere'],
      code: 1,
      says: /Cannot find Node "nowhere".*Set --node-name/,
    },
    {
      name: 'no unit',
      reason: 'another name on this distribution',
      flags: ['--unit=k3s.service'],
      code: 1,
      says: /NoKubeletUnit: .*no unit of the kubelet with an ExecStart line.*Set --unit/,
    },
    {
      name: 'present file that is none',
      reason: 'the kubelet would not start',
      files: { 'etc/ecr.yaml': 'providers: [' },
      code: 1,
      says: /ConfigInvalid: .*"\/etc\/ecr\.yaml"/,
    },
    {
      name: 'program that is not there',
      reason: 'the image was built without it',
      program: '/nowhere/pullwright',
      files: { 'opt/plugins/crio-credential-provider': 'older' },
      code: 1,
      says: /\/nowhere\/pullwright/,
    },
    {
      name: 'node of the Machine Config Operator',
      reason: 'two writers would fight over its kubelet',
      files: { 'etc/machine-config-daemon/currentconfig': '{}' },
      code: 1,
      says: /ManagedElsewhere: .*currentconfig.*--take-over/,
    },
  ];
  table(test, bad, async (row) => {
    const folder = host(row.files);
    const before = namesIn(folder);
    const ran = await dryRun({ ...row, folder });
    assert.equal(ran.code, row.code, ran.stdout + ran.stderr);
    assert.match(ran.stdout + ran.stderr, row.says);
    assert.doesNotMatch(ran.stderr, /^ +at /m);
    assert.deepEqual(namesIn(folder), before);
  });

  test.lastly('the control plane stops', () => {
    rmSync(work, { recursive: true });
    return plane.stop();
  });
}
test.run();
