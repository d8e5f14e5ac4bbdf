/** The reconciler: rendered objects per pool, held pools, reports, and no fights with other managers. */

import assert from 'node:assert/strict';
import fc from 'fast-check';
import type { KubeObject } from '../../runtime/core/kubernetes/object.ts';
import { parseReconcilerOptions } from '../../runtime/credential-provider/options.ts';
import { forAll } from '../support/for-all.ts';
import { meta } from '../support/meta.ts';
import { type Case, cases, table, test } from '../support/suite.ts';
import { filesOf } from './support/machine-config-files.ts';
import type { ClusterShape } from './support/reader-double.ts';
import { reconcile } from './support/reconcile-once.ts';

const MC = 'machineconfiguration.openshift.io/v1';
const DROP_IN = '/etc/systemd/system/kubelet.service.d/40-kubelet-crio-image-credential-provider.conf';

test('one MachineConfig per built-in pool, owned by the object', () => {
  const { configs, conditions } = reconcile({ platform: 'AWS', nodes: [{ name: 'w', pool: 'worker' }] });
  assert.deepEqual(
    configs.map(({ metadata }) => metadata.name),
    ['97-master-generated-credentialproviderconfig', '97-worker-generated-credentialproviderconfig'],
  );
  assert.equal(configs[0]?.metadata.ownerReferences?.[0]?.uid, 'uid-1');
  assert.equal(conditions.get('MachineConfigRendered')?.status, 'True');
  assert.equal(conditions.get('Validated')?.observedGeneration, 3);
});

test('an empty desired state renders nothing, whatever the nodes run', () => {
  const { configs, conditions } = reconcile({
    matchImages: null,
    nodes: [{ name: 'n', pool: 'worker', kubelet: 'v1.30.0' }],
  });
  assert.equal(filesOf(configs[1]).size, 0);
  assert.equal(conditions.get('MachineConfigRendered')?.status, 'True');
});

test('deleted: the desired state is empty, so that the engine prunes', () => {
  assert.deepEqual(reconcile({ deleted: true }).outcome, {});
});

function rendered(config: object): KubeObject {
  return { ...meta(`${MC} MachineConfig`, { name: 'rendered-worker-1' }), spec: { config } };
}

/** The pool's rendered config with this kubelet unit. */
function unit(execStart: string): KubeObject {
  const contents = `[Service]\nExecStart=${execStart}\n`;
  return rendered({ systemd: { units: [{ name: 'kubelet.service', contents }] } });
}

/** The cluster's object as in a dump. */
function dumped(spec: unknown, status?: object): KubeObject {
  const type = 'config.openshift.io/v1 CRIOCredentialProviderConfig';
  return {
    ...meta(type, { name: 'cluster', uid: 'uid-1', generation: 3 }),
    spec,
    ...(status === undefined ? {} : { status }),
  };
}

test("the file of the pool's own rendering is merged into, not the known template", () => {
  const text =
    'apiVersion: kubelet.config.k8s.io/v1\nkind: CredentialProviderConfig\nproviders:\n- name: house\n  apiVersion: credentialprovider.kubelet.k8s.io/v1\n  matchImages: ["house.example.com"]\n  defaultCacheDuration: 1m\n- name: crio-credential-provider\n  apiVersion: credentialprovider.kubelet.k8s.io/v1\n  matchImages: ["old.example.com"]\n  defaultCacheDuration: 1s\n';
  const file = {
    path: '/etc/kubernetes/credential-providers/ecr-credential-provider.yaml',
    contents: { source: `data:,${encodeURIComponent(text)}` },
  };
  const { configs } = reconcile({
    platform: 'AWS',
    pools: ['worker'],
    more: [rendered({ storage: { files: [file] } })],
  });
  const [made = ''] = filesOf(configs[0]).values();
  assert.match(made, /name: house/);
  assert.doesNotMatch(made, /ecr-credential-provider|old\.example\.com/);
});

test('a unit that does not read the variable gets nothing, and what was rendered for it goes', () => {
  for (const command of [
    '/usr/local/bin/kubenswrapper \\\n    /usr/bin/kubelet \\\n      --config=/etc/kubernetes/kubelet.conf',
    '/bin/sh -c "exec kubelet $KUBELET_CRIO_IMAGE_CREDENTIAL_PROVIDER_FLAGS"',
  ]) {
    const { configs, conditions } = reconcile({ pools: ['worker'], more: [unit(command)] });
    assert.deepEqual([...filesOf(configs[0]).keys()], []);
    const condition = conditions.get('MachineConfigRendered');
    assert.equal(condition?.reason, 'NoPlaceForFlags');
    assert.match(condition.message, /would break the kubelet when a release changes it/);
  }
});

test('a unit that knows the variable gets the variable', () => {
  const more = [unit('/usr/bin/kubelet $KUBELET_CRIO_IMAGE_CREDENTIAL_PROVIDER_FLAGS')];
  const { configs } = reconcile({ pools: ['worker'], more });
  assert.match(filesOf(configs[0]).get(DROP_IN) ?? '', /^Environment="KUBELET_CRIO/m);
});

test('where the Machine Config Operator manages it, nothing is written, its status included', () => {
  const theirs: KubeObject = {
    ...meta(`${MC} MachineConfig`, {
      name: '97-worker-generated-credentialproviderconfig',
      annotations: { 'machineconfiguration.openshift.io/generated-by-controller-version': 'abc' },
    }),
    spec: { config: {} },
  };
  const observed = reconcile({ pools: ['worker'], more: [theirs] });
  assert.equal(observed.configs.length, 0);
  assert.equal(observed.conditions.size, 0);
  assert.equal(observed.reported.get('ManagedElsewhere')?.reason, 'Drifted');
  const owned = reconcile({ pools: ['worker'], more: [theirs] }, { mode: 'own' });
  assert.equal(owned.configs.length, 1);
});

test('an object of a dump without managedFields and with a status is not planned for', () => {
  const spec = { matchImages: ['docker.io'] };
  const shape = { pools: ['worker'], deleted: true };
  const observed = reconcile({ ...shape, more: [dumped(spec, { conditions: [] })] });
  assert.equal(observed.configs.length, 0);
  assert.match(observed.reported.get('ManagedElsewhere')?.message ?? '', /--show-managed-fields/);
  const written = reconcile({ ...shape, more: [dumped(spec)] });
  assert.equal(written.configs.length, 1, 'what nobody wrote a status to is new');
  const owned = reconcile({ ...shape, more: [dumped(spec, { conditions: [] })] }, { mode: 'own' });
  assert.equal(owned.configs.length, 1);
});

test('a hosted cluster gets the ConfigMap for its NodePools', () => {
  const { configs } = reconcile({ hosted: true, platform: 'AWS', nodes: [{ name: 'n', pool: 'worker' }] });
  assert.deepEqual(
    configs.map(({ kind, metadata }) => `${kind} ${metadata.namespace}/${metadata.name}`),
    ['ConfigMap clusters/east-crio-credential-provider'],
  );
  const { config = '' } = (configs[0]?.['data'] ?? {}) as { config?: string };
  assert.equal(JSON.parse(config).metadata.name, '97-worker-generated-credentialproviderconfig');
});

test('entries that no image can match fail the validation, and say why', () => {
  const bad = ['*:5000', 'a.io:99999', `${'a'.repeat(64)}.io`, 'registry.io/..', 'registry.io//x'];
  const { conditions, configs } = reconcile({ pools: ['worker'], matchImages: bad });
  const validated = conditions.get('Validated');
  assert.equal(validated?.reason, 'ValidationFailed');
  for (const entry of bad) assert.ok(validated?.message.includes(`"${entry}"`), entry);
  assert.equal(filesOf(configs[0]).size, 0);
});

test('one bad entry leaves the good ones in place', () => {
  const { conditions, configs } = reconcile({ pools: ['worker'], matchImages: ['docker.io', 'a.io:99999'] });
  assert.equal(conditions.get('Validated')?.reason, 'ConfigurationPartiallyApplied');
  assert.match([...filesOf(configs[0]).values()].join(), /docker\.io/);
});

test('the annotation key is handed over when asked for', () => {
  const { configs } = reconcile({ pools: ['worker'] }, { secretAnnotation: true });
  assert.match(
    [...filesOf(configs[0]).values()].join(),
    /optionalServiceAccountAnnotationKeys:\n\s+- pullwright\.dev\/image-pull-secrets/,
  );
});

test('no pool: the condition says what to do instead', () => {
  const { conditions } = reconcile({ pools: [] });
  assert.equal(conditions.get('MachineConfigRendered')?.reason, 'NoMachineConfigPool');
});

test('no pool, and the fleet has the installer: nothing wants attention, and it is said who brings the provider', () => {
  const { conditions, reported } = reconcile({ pools: [] }, { installer: true });
  assert.equal(conditions.get('MachineConfigRendered')?.status, 'False');
  assert.match(conditions.get('MachineConfigRendered')?.message ?? '', /credential-provider-installer/);
  const { status, reason } = reported.get('Ready') ?? {};
  assert.deepEqual([status, reason], ['True', 'InstalledByDaemonSet']);
  const alone = reconcile({ pools: [] }).reported.get('Ready');
  assert.deepEqual([alone?.status, alone?.reason], ['False', 'NoMachineConfigPool']);
  const withPool = reconcile({ pools: ['worker'] }, { installer: true }).reported.get('Ready');
  assert.notEqual(withPool?.reason, 'InstalledByDaemonSet');
});

test('alone in a folder, it is ours to judge, again when our own status is in it, and by its good entries', () => {
  const spec = { matchImages: ['docker.io', 'Docker.io'] };
  const first = reconcile({ pools: [], deleted: true, more: [dumped(spec)] });
  assert.equal(first.conditions.get('Validated')?.reason, 'ConfigurationPartiallyApplied');
  assert.equal(first.outcome.errors?.length, 1, 'what the definition refuses');
  const status = { conditions: [...first.conditions.values()] };
  const again = reconcile({ pools: [], deleted: true, more: [dumped(spec, status)] });
  assert.equal(again.reported.get('ManagedElsewhere'), undefined);
  assert.equal(again.outcome.errors?.length, 1);
});

test('options that do not exist are named', () => {
  assert.throws(
    () => parseReconcilerOptions({ mode: 'mine', colour: 1 }),
    /mode: "mine" is none of auto, own, observe; colour: unknown field/,
  );
});

test('an old kubelet holds back its pool alone, and rendered objects stay', () => {
  const {
    configs,
    outcome: result,
    conditions,
  } = reconcile({
    platform: 'AWS',
    nodes: [
      { name: 'm', pool: 'master' },
      { name: 'old', pool: 'worker', kubelet: 'v1.33.9' },
    ],
  });
  assert.deepEqual(
    configs.map(({ metadata }) => metadata.name),
    ['97-master-generated-credentialproviderconfig'],
  );
  assert.ok(
    result.retain !== 'all' &&
      result.retain?.some(({ name }) => name === '97-worker-generated-credentialproviderconfig'),
  );
  const rendered = conditions.get('MachineConfigRendered');
  assert.equal(rendered?.reason, 'UnsupportedVersion');
  assert.match(rendered?.message ?? '', /pool worker: old \(kubelet v1\.33\.9, cri-o:\/\/1\.34\.1\)/);
});

const VERSIONS = [
  ['1.34 and CRI-O 1.34', 'the oldest that take the file', 'v1.34.0', 'cri-o://1.34.0', true],
  ['vendor suffix', 'OpenShift adds a hash', 'v1.35.1+abc123', 'cri-o://1.35.2-3.rhaos4.22', true],
  ['CRI-O too old', 'it does not look for auth files', 'v1.34.0', 'cri-o://1.33.5', false],
  ['containerd', 'it never looks for auth files', 'v1.34.0', 'containerd://2.1.0', false],
  ['kubelet says nothing', 'a node that does not say is not trusted', '', 'cri-o://1.34.0', false],
] as const;
cases<[kubelet: string, runtime: string, isRendered: boolean]>(
  test,
  VERSIONS,
  (kubelet, runtime, isRendered) => {
    const nodes = [{ name: 'n', pool: 'worker', kubelet, runtime }];
    assert.equal(reconcile({ pools: ['worker'], nodes }).configs.length, isRendered ? 1 : 0);
  },
);

// The file that a pool's kubelets read, by Infrastructure and unit, and when it is unknown.

const FOLDER = '/etc/kubernetes/credential-providers';

interface Row extends Case {
  readonly shape: ClusterShape;
  readonly options?: object;
  /** Rendered paths; none: the pool is held. */
  readonly paths: readonly string[];
  readonly says?: RegExp;
}

const rows: readonly Row[] = [
  {
    name: 'no Infrastructure object',
    reason: 'on a cloud the generic file would take its own providers away',
    shape: { platform: null },
    paths: [],
    says: /Infrastructure\/cluster not found.*"platform"/,
  },
  {
    name: 'no Infrastructure object, but the option',
    reason: 'somebody who knows has said it',
    shape: { platform: null },
    options: { platform: 'AWS' },
    paths: [`${FOLDER}/ecr-credential-provider.yaml`],
  },
  {
    name: 'an Infrastructure object that says nothing',
    reason: 'as bad as none',
    shape: { platform: '' },
    paths: [],
    says: /names no platform/,
  },
  {
    name: 'a platform that is not known',
    reason: 'every platform without a provider of its own has the generic file',
    shape: { platform: 'Moon' },
    paths: [`${FOLDER}/generic-credential-provider.yaml`, DROP_IN],
  },
  {
    name: 'a platform without a provider, and a kubelet that has one',
    reason: 'what the unit says is true of this kubelet',
    shape: {
      platform: 'None',
      more: [
        unit(`/usr/bin/kubelet --image-credential-provider-config=${FOLDER}/ecr-credential-provider.yaml`),
      ],
    },
    paths: [],
    says: /its kubelet reads ".*ecr-credential-provider\.yaml" already/,
  },
  {
    name: 'a cloud whose unit has the flag',
    reason: 'no drop-in is needed',
    shape: {
      platform: 'GCP',
      more: [
        unit(`/usr/bin/kubelet --image-credential-provider-config=${FOLDER}/gcr-credential-provider.yaml`),
      ],
    },
    paths: [`${FOLDER}/gcr-credential-provider.yaml`],
  },
  {
    name: 'a cloud whose unit lacks the flag',
    reason: 'else the file would never be read',
    shape: {
      platform: 'GCP',
      more: [unit('/usr/bin/kubelet --v=2 $KUBELET_CRIO_IMAGE_CREDENTIAL_PROVIDER_FLAGS')],
    },
    paths: [`${FOLDER}/gcr-credential-provider.yaml`, DROP_IN],
  },
  {
    name: 'a rendered config that is not there',
    reason: 'the known template of the platform is what it would hold',
    shape: { platform: 'Azure' },
    paths: [`${FOLDER}/acr-credential-provider.yaml`],
  },
];

table(test, rows, ({ shape, options, paths, says }) => {
  const { configs, conditions, outcome } = reconcile(
    { pools: ['worker'], ...shape },
    parseReconcilerOptions({ ...options })(''),
  );
  assert.deepEqual(configs[0] === undefined ? [] : [...filesOf(configs[0]).keys()], paths);
  if (says === undefined) return;
  const rendered = conditions.get('MachineConfigRendered');
  assert.deepEqual([rendered?.status, rendered?.reason], ['False', 'MachineConfigRenderingFailed']);
  assert.match(rendered?.message ?? '', says);
  assert.ok(
    outcome.retain !== undefined && outcome.retain !== 'all' && outcome.retain.length === 1,
    'it stays',
  );
});

test('without entries nothing is unclear', () => {
  const { configs } = reconcile({ pools: ['worker'], platform: null, matchImages: null });
  assert.equal(configs[0]?.kind, 'MachineConfig');
});

// `spec.matchImages` of any shape, offline: reports invalid entries and renders the valid ones.

function withSpec(spec: unknown) {
  const more = [dumped(spec)];
  const { configs, outcome } = reconcile({ platform: 'AWS', pools: ['worker'], deleted: true, more });
  return {
    text: [...filesOf(configs[0]).values()].join(),
    problems: (outcome.errors ?? []).map(
      ({ retryPolicy, code, message }) => `${retryPolicy} ${code} ${message}`,
    ),
    status: JSON.stringify(outcome.status),
  };
}

/** Errors for a list, and whether docker.io is rendered. */
const BAD: Readonly<Record<string, readonly [matchImages: unknown, says: RegExp, isRendered?: false]>> = {
  'a text instead of a list': ['docker.io', /spec\.matchImages: .*must be a list/, false],
  'a number among the entries': [['docker.io', 5000], /spec\.matchImages\[1\]: .*must be a string/],
  'a dash without a value': [[null, 'docker.io'], /spec\.matchImages\[0\]: must not be null/],
  'upper case': [['docker.io', 'Quay.io'], /\[1\]: invalid value "Quay\.io": must be a host in lower case/],
  'a glob that the kubelet would take': [['docker.io', 'a[0-9].io'], /"a\[0-9\]\.io": must be a host/],
  'the same twice': [['docker.io', 'docker.io'], /spec\.matchImages: duplicate value: "docker\.io"/],
  'a thousand entries': [
    ['docker.io', ...Array.from({ length: 999 }, (_, at) => `r${at}.example.com`)],
    /too many: 1000: must have at most 50 items/,
  ],
};
for (const [name, [matchImages, says, isRendered = true]] of Object.entries(BAD))
  test(`the API server would refuse it: ${name}`, () => {
    const { text, problems, status } = withSpec({ matchImages });
    assert.equal(problems.length, 1);
    assert.match(
      problems[0] ?? '',
      /^terminal RefusedByDefinition Cannot apply "CRIOCredentialProviderConfig\/cluster"/,
    );
    assert.match(problems[0] ?? '', says);
    assert.equal(text.includes('- docker.io'), isRendered);
    assert.match(status, /Invalid \\"spec\.matchImages(?:\[\d\])?\\": /);
  });

test('any other spec is taken without a failure', () => {
  forAll({ numRuns: 200 }, fc.anything(), fc.array(fc.anything()), (spec, matchImages) => {
    assert.equal(typeof withSpec(spec).status, 'string');
    assert.equal(typeof withSpec({ matchImages }).status, 'string');
  });
});
