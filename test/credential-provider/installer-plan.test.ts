/** Plans of the installer, and reasons for none. */
import assert from 'node:assert/strict';
import { parse } from 'yaml';
import { kubeletRefusal } from '../../runtime/credential-provider/config.ts';
import type { InstallerSettings } from '../../runtime/credential-provider/installer/command.ts';
import { prover } from '../../runtime/credential-provider/installer/installer.ts';
import {
  type InstallInput,
  isOwnDropIn,
  NEUTRAL,
  ownPointers,
  planInstall,
  planNodeUninstall,
} from '../../runtime/credential-provider/installer/plan.ts';
import { kubeletPointers } from '../../runtime/credential-provider/kubelet-unit.ts';
import { meta } from '../support/meta.ts';
import { table, test } from '../support/suite.ts';

const UNIT = {
  path: '/usr/lib/systemd/system/kubelet.service',
  text: '[Service]\nExecStart=/usr/bin/kubelet $KUBELET_EXTRA_ARGS\n',
};
const PRESENT = `apiVersion: kubelet.config.k8s.io/v1
kind: CredentialProviderConfig
providers:
- name: ecr-credential-provider
  apiVersion: credentialprovider.kubelet.k8s.io/v1
  matchImages: ["*.dkr.ecr.*.amazonaws.com"]
  defaultCacheDuration: 12h
`;

function input(
  changes: Partial<InstallInput> = {},
  kubelet = 'v1.34.0',
  runtime = 'cri-o://1.34.0',
): InstallInput {
  return {
    node: {
      ...meta('v1 Node', { name: 'a' }),
      status: { nodeInfo: { kubeletVersion: kubelet, containerRuntimeVersion: runtime } },
    },
    matchImages: ['docker.io'],
    unit: [UNIT],
    pointers: {},
    configDir: '/etc/p',
    ...changes,
  };
}

/** The node with these annotations and labels. */
function nodeWith(metadata: Partial<InstallInput['node']['metadata']>): InstallInput['node'] {
  const { node } = input();
  return { ...node, metadata: { ...node.metadata, ...metadata } };
}

const MCO = 'machineconfiguration.openshift.io';
const FOREIGN = '[Service]\nEnvironment="KUBELET_CRIO_IMAGE_CREDENTIAL_PROVIDER_FLAGS=--v=2"\n';
const pointed = { config: '/etc/ecr.yaml', binDir: '/opt/plugins' };
const late = {
  path: '/etc/systemd/system/kubelet.service.d/90-mine.conf',
  text: '[Service]\nEnvironment=KUBELET_EXTRA_ARGS=--v=2\n',
};

const REFUSED: Readonly<Record<string, Readonly<Record<string, InstallInput>>>> = {
  UnsupportedVersion: {
    'the kubelet is old': input({}, 'v1.33.7'),
    'CRI-O is old': input({}, 'v1.34.0', 'cri-o://1.33.0'),
    'it is no CRI-O': input({}, 'v1.34.0', 'containerd://2.1.0'),
    'the version is no version': input({}, 'latest'),
    'the node says nothing': input({ node: { apiVersion: 'v1', kind: 'Node', metadata: { name: 'a' } } }),
  },
  NoKubeletUnit: {
    'there is no unit': input({ unit: [] }),
    'the unit starts nothing': input({ unit: [{ ...UNIT, text: '[Unit]\n' }] }),
  },
  DropInOverridden: { 'a later drop-in would win': input({ unit: [UNIT, late] }) },
  ConfigMissing: { 'the present file is missing': input({ pointers: pointed }) },
  ConfigInvalid: {
    'the present file is no YAML': input({ pointers: pointed, present: 'a: [' }),
    'the present file is empty': input({ pointers: pointed, present: '' }),
    'the present file has an unknown field': input({ pointers: pointed, present: `${PRESENT}foo: 1\n` }),
    'the present file has a provider twice': input({
      pointers: pointed,
      present: PRESENT + PRESENT.slice(PRESENT.indexOf('- name')),
    }),
  },
  ConfigRefused: { 'the kubelet refuses the merged file': input({ annotationKeys: ['not a key!'] }) },
  ManagedElsewhere: {
    'the Machine Config Operator has rendered the node': input({
      node: nodeWith({ annotations: { [`${MCO}/currentConfig`]: 'rendered-worker-1' } }),
    }),
    'the Machine Config Operator is about to': input({
      node: nodeWith({ annotations: { [`${MCO}/desiredConfig`]: 'rendered-worker-1' } }),
    }),
    'the daemon has left its state on the host': input({
      marks: ['/etc/machine-config-daemon/currentconfig'],
    }),
    'the node belongs to a NodePool': input({
      node: nodeWith({ labels: { 'hypershift.openshift.io/nodePool': 'east' } }),
    }),
  },
  ForeignDropIn: { "the drop-in is somebody else's": input({ presentDropIn: FOREIGN }) },
};

table(
  test,
  Object.entries(REFUSED).flatMap(([code, rows]) =>
    Object.entries(rows).map(([name, given]) => ({
      name: `nothing is written: ${name}`,
      reason: 'a kubelet that does not start takes the whole node down',
      given,
      code,
    })),
  ),
  ({ given, code }) => {
    const plan = planInstall(given);
    assert.ok(!plan.ok);
    assert.equal(plan.code, code);
    assert.match(plan.message, /^Cannot install the provider: ./);
    assert.ok(plan.hint.length > 10);
  },
);

test('who says so takes a node over', () => {
  const annotations = { [`${MCO}/currentConfig`]: 'rendered-worker-1' };
  const plan = planInstall(
    input({ node: nodeWith({ annotations }), presentDropIn: FOREIGN, takeOver: true }),
  );
  assert.ok(plan.ok && isOwnDropIn(plan.dropIn));
});

test('our own drop-ins are known as such, and those of others are not', () => {
  const plan = planInstall(input());
  assert.ok(plan.ok && isOwnDropIn(plan.dropIn));
  assert.ok(isOwnDropIn(NEUTRAL));
  for (const text of ['', FOREIGN, '# a comment\n', '[Service]\nExecStart=\nExecStart=/usr/bin/kubelet\n'])
    assert.equal(isOwnDropIn(text), false, text);
});

test('what is installed can be taken back whatever the node runs', () => {
  const present = planInstall(input());
  assert.ok(present.ok);
  for (const changes of [{}, { unit: [] }, { pointers: pointed }]) {
    const plan = planInstall(
      input({ ...changes, matchImages: [], presentDropIn: present.dropIn }, 'v1.30.0', 'containerd://2.0.0'),
    );
    assert.ok(plan.ok && plan.dropIn === NEUTRAL, JSON.stringify(changes));
  }
  assert.equal(planNodeUninstall(present.dropIn, '/p', false).dropIn, NEUTRAL);
  assert.equal(planNodeUninstall(FOREIGN, '/p', false).dropIn, FOREIGN, 'what somebody else wrote stays');
  assert.equal(planNodeUninstall(FOREIGN, '/p', true).dropIn, NEUTRAL);
});

test('the file has its digest in its name, the kubelet takes it, and the drop-in adds to a variable', () => {
  const plan = planInstall(input());
  assert.ok(plan.ok);
  assert.match(plan.config?.path ?? '', /^\/etc\/p\/pullwright-[0-9a-f]{16}\.yaml$/);
  assert.equal(kubeletRefusal(plan.config?.text ?? '', parse), undefined);
  assert.match(
    plan.dropIn,
    /\nEnvironment="KUBELET_EXTRA_ARGS=--image-credential-provider-bin-dir=\/usr\/libexec\/\S+ --image-credential-provider-config=\/etc\/p\/pullwright-\S+\.yaml"\n$/,
  );
  assert.doesNotMatch(plan.dropIn, /ExecStart/);
  assert.equal(ownPointers(plan.dropIn).config, plan.config?.path);
  assert.deepEqual(planInstall(input()), plan);
  const other = planInstall(input({ matchImages: ['quay.io'] }));
  assert.ok(other.ok && other.config?.path !== plan.config?.path);
});

test('a variable that a file sets is set again by a file of ours, with what it held', () => {
  const environment = ['KUBELET_KUBEADM_ARGS="--a"\n', 'KUBELET_EXTRA_ARGS=--node-ip=10.0.0.1 \\\n  --v=4\n'];
  const plan = planInstall(input({ environment }));
  assert.ok(plan.ok && plan.environment !== undefined);
  assert.match(plan.environment.path, /^\/etc\/p\/pullwright-[0-9a-f]{16}\.env$/);
  assert.match(
    plan.environment.text,
    /^KUBELET_EXTRA_ARGS="--node-ip=10\.0\.0\.1 --v=4 --image-credential-provider-bin-dir=\S+ --image-credential-provider-config=\S+\.yaml"\n$/,
  );
  assert.ok(plan.dropIn.endsWith(`\nEnvironmentFile=-${plan.environment.path}\n`));
  assert.ok(isOwnDropIn(plan.dropIn));
  assert.equal(ownPointers(plan.dropIn).config, plan.config?.path);
  // An empty value counts as set.
  assert.ok((planInstall(input({ environment: ['KUBELET_EXTRA_ARGS=\n'] })) as typeof plan).environment);
});

test('a command without a variable of its own is never repeated', () => {
  for (const command of [
    '/usr/bin/kubelet --v=2',
    '/bin/sh -c "exec /usr/bin/kubelet $KUBELET_EXTRA_ARGS"',
    '/usr/bin/kubelet ${KUBELET_EXTRA_ARGS}',
    '/usr/bin/kubelet --x=$KUBELET_EXTRA_ARGS',
    '/usr/bin/kubelet \\\n  # $KUBELET_EXTRA_ARGS\n  --v=2',
    '/usr/bin/kubelet $KUBELET_EXTRA_ARGS --image-credential-provider-config=/etc/ecr.yaml',
    '/usr/bin/start $KUBELET_EXTRA_ARGS',
    ':/usr/bin/kubelet $KUBELET_EXTRA_ARGS',
    '-:/usr/bin/kubelet $KUBELET_EXTRA_ARGS',
  ]) {
    const plan = planInstall(input({ unit: [{ ...UNIT, text: `[Service]\nExecStart=${command}\n` }] }));
    assert.equal(plan.ok ? plan.dropIn : plan.code, 'NoPlaceForFlags', command);
  }
  const named = '[Service]\nExecStart=@/usr/bin/kubelet $KUBELET_EXTRA_ARGS\n';
  assert.ok(planInstall(input({ unit: [{ ...UNIT, text: named }] })).ok);
});

test('existing providers stay in their folder; the images that they serve are excluded', () => {
  const plan = planInstall(
    input({
      pointers: pointed,
      present: PRESENT,
      matchImages: ['docker.io', '1.dkr.ecr.us-east-1.amazonaws.com'],
    }),
  );
  assert.ok(plan.ok);
  assert.deepEqual(
    plan.verdicts.map(({ verdict }) => verdict),
    ['Rendered', 'Conflict'],
  );
  assert.match(plan.config?.text ?? '', /ecr-credential-provider[\s\S]*crio-credential-provider/);
  assert.equal(plan.binDir, '/opt/plugins');
  assert.match(plan.dropIn, /--image-credential-provider-bin-dir=\/opt\/plugins /);
});

test('without an entry the drop-in has no effect', () => {
  const plan = planInstall(input({ matchImages: [] }));
  assert.deepEqual(plan, {
    ok: true,
    dropIn: NEUTRAL,
    binDir: '/usr/libexec/kubelet-image-credential-provider-plugins',
    verdicts: [],
  });
});

test('the kubelet looks for providers where its command line says last', () => {
  const [config, binDir] = ['--image-credential-provider-config', '--image-credential-provider-bin-dir'];
  for (const [text, found] of [
    ['ExecStart=/usr/bin/kubelet', {}],
    [`KUBELET_EXTRA_ARGS="--v=2 ${config}=/a.yaml ${binDir}=/b"`, { config: '/a.yaml', binDir: '/b' }],
    [`ExecStart=/usr/bin/kubelet \\\n  ${config} /a.yaml`, { config: '/a.yaml' }],
    [`# ${config}=/a.yaml`, {}],
    [`${config}=/a.yaml\n${config}=/c.yaml`, { config: '/c.yaml' }],
  ] as const)
    assert.deepEqual(kubeletPointers(text), { config: undefined, binDir: undefined, ...found }, text);
});
test('a trial that is cut off proves nothing; one that systemd does not answer says so', async () => {
  const plan = planInstall(input());
  const options = { busSocket: '/nonexistent/bus', uninstall: false } as InstallerSettings;
  const state = { ready: true, reason: 'InSync', message: '' };
  for (const [signal, reason] of [
    [AbortSignal.abort(), 'Trying'],
    [new AbortController().signal, 'ProviderNotTried'],
  ] as const) {
    const published: string[] = [];
    const publish = (now: typeof state): unknown => published.push(now.reason);
    const prove = prover(options, { plan }, { publish: (now) => void publish(now), signal });
    const proven = [await prove(state), await prove(state)].map((now) => [now.ready, now.reason]);
    assert.deepEqual(proven, [
      [false, reason],
      [false, reason],
    ]);
    assert.deepEqual(published, ['Trying'], 'once for each drop-in');
  }
});
