/** Which kubelets and runtimes a pool must have before its file is rendered. */
import assert from 'node:assert/strict';
import { type Case, suite, table } from '../support/suite.ts';
import { reconcile } from './support/reconcile-once.ts';

const test = suite('credential provider reconciler, versions');

test('an old kubelet holds back its pool alone, and what is rendered stays', () => {
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

interface Version extends Case {
  readonly kubelet: string;
  readonly runtime: string;
  readonly isRendered: boolean;
}

const versions: readonly Version[] = [
  {
    name: '1.34 and CRI-O 1.34',
    reason: 'the oldest that take the file',
    kubelet: 'v1.34.0',
    runtime: 'cri-o://1.34.0',
    isRendered: true,
  },
  {
    name: 'vendor suffix',
    reason: 'OpenShift adds a hash',
    kubelet: 'v1.35.1+abc123',
    runtime: 'cri-o://1.35.2-3.rhaos4.22',
    isRendered: true,
  },
  {
    name: 'CRI-O too old',
    reason: 'it does not look for auth files',
    kubelet: 'v1.34.0',
    runtime: 'cri-o://1.33.5',
    isRendered: false,
  },
  {
    name: 'containerd',
    reason: 'another runtime never looks for auth files',
    kubelet: 'v1.34.0',
    runtime: 'containerd://2.1.0',
    isRendered: false,
  },
  {
    name: 'kubelet says nothing',
    reason: 'a node that does not say is not trusted',
    kubelet: '',
    runtime: 'cri-o://1.34.0',
    isRendered: false,
  },
];
table(test, versions, ({ kubelet, runtime, isRendered }) => {
  const { configs } = reconcile({
    pools: ['worker'],
    nodes: [{ name: 'n', pool: 'worker', kubelet, runtime }],
  });
  assert.equal(configs.length, isRendered ? 1 : 0);
});

test.run();
