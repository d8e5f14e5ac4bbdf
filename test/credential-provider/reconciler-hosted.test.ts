/** A hosted cluster: NodePools that hold the rendering, NodePools without the ConfigMap, and advice to their owners. */
import assert from 'node:assert/strict';
import { parse } from 'yaml';
import type { KubeObject } from '../../runtime/core/kubernetes/object.ts';
import { parseReconcilerOptions } from '../../runtime/credential-provider/options.ts';
import { meta } from '../support/meta.ts';
import { type Case, table, test } from '../support/suite.ts';
import type { ClusterShape } from './support/reader-double.ts';
import { reconcile as once } from './support/reconcile-once.ts';

const CONFIG_MAP = 'east-crio-credential-provider';

interface PoolShape {
  readonly name: string;
  readonly config?: readonly string[];
  readonly cluster?: string;
  readonly conditions?: Readonly<Record<string, 'True' | 'False'>>;
  readonly observed?: number;
}

function nodePool({ name, config, cluster = 'east', conditions = {}, observed = 2 }: PoolShape): KubeObject {
  return {
    ...meta('hypershift.openshift.io/v1beta1 NodePool', { name, namespace: 'clusters', generation: 2 }),
    spec: {
      clusterName: cluster,
      ...(config === undefined ? {} : { config: config.map((one) => ({ name: one })) }),
    },
    status: {
      conditions: Object.entries(conditions).map(([type, status]) => ({
        type,
        status,
        observedGeneration: observed,
      })),
    },
  };
}

function reconcile(pools: readonly PoolShape[], nodes: NonNullable<ClusterShape['nodes']> = []) {
  const seen = once({ hosted: true, platform: 'AWS', nodes, more: pools.map(nodePool) });
  const ready = seen.reported.get('Ready');
  return { ...seen, isRendered: seen.configs.length > 0, ready: `${ready?.status} ${ready?.reason}` };
}

test('a NodePool that does not refer is told what to set, what it has already kept', () => {
  const {
    outcome: result,
    isRendered,
    ready,
    verdicts,
  } = reconcile([{ name: 'workers', config: ['chrony'] }]);
  assert.ok(isRendered);
  assert.equal(ready, 'False NodePoolsNotConfigured');
  const verdict = verdicts.get('NodePool clusters/workers');
  assert.deepEqual([verdict?.verdict, verdict?.reason], ['Pending', 'NotReferenced']);
  const pasted = verdict?.message.slice(verdict.message.indexOf('spec:')) ?? '';
  assert.deepEqual(parse(pasted), { spec: { config: [{ name: 'chrony' }, { name: CONFIG_MAP }] } });
  const told = (result.errors ?? []).map(({ code, regarding }) => ({ code, regarding }));
  const apiVersion = 'hypershift.openshift.io/v1beta1';
  const regarding = {
    role: 'management',
    apiVersion,
    kind: 'NodePool',
    namespace: 'clusters',
    name: 'workers',
  };
  assert.deepEqual(told, [{ code: 'NodePoolNotConfigured', regarding }]);
});

interface Rollout extends Case {
  readonly pools: readonly PoolShape[];
  readonly ready: string;
  readonly gauges: readonly string[];
}

const refers = (name: string, more: Partial<PoolShape> = {}): PoolShape => ({
  name,
  config: [CONFIG_MAP],
  ...more,
});
const rollouts: readonly Rollout[] = [
  {
    name: 'all have it',
    reason: 'nothing is left to do',
    pools: [refers('a', { conditions: { UpdatingConfig: 'False', ValidMachineConfig: 'True' } })],
    ready: 'True RolledOut',
    gauges: ['clusters/a 1'],
  },
  {
    name: 'HyperShift has not seen the change yet',
    reason: 'a condition of an older generation says nothing of it',
    pools: [refers('a', { conditions: { UpdatingConfig: 'False' }, observed: 1 })],
    ready: 'False RollingOut',
    gauges: ['clusters/a 0'],
  },
  {
    name: 'nodes are being replaced',
    reason: 'it takes a while',
    pools: [refers('a', { conditions: { UpdatingConfig: 'True' } })],
    ready: 'False RollingOut',
    gauges: ['clusters/a 0'],
  },
  {
    name: 'HyperShift refuses the config',
    reason: 'it would never arrive',
    pools: [refers('a', { conditions: { UpdatingConfig: 'False', ValidMachineConfig: 'False' } })],
    ready: 'False RollingOut',
    gauges: ['clusters/a 0'],
  },
  {
    name: 'one of two refers',
    reason: 'the other is named',
    pools: [refers('a', { conditions: { UpdatingConfig: 'False' } }), { name: 'b' }],
    ready: 'False NodePoolsNotConfigured',
    gauges: ['clusters/a 1', 'clusters/b 0'],
  },
  {
    name: 'NodePools of another cluster in the same namespace',
    reason: 'they are none of ours',
    pools: [refers('a', { conditions: { UpdatingConfig: 'False' } }), { name: 'b', cluster: 'west' }],
    ready: 'True RolledOut',
    gauges: ['clusters/a 1'],
  },
];
table(test, rollouts, ({ pools, ready, gauges }) => {
  const seen = reconcile(pools);
  assert.equal(seen.ready, ready);
  assert.deepEqual(
    (seen.outcome.metrics ?? []).map(({ labels, value }) => `${labels?.['pool']} ${value}`),
    gauges,
  );
});

interface Gate extends Case {
  readonly pools: readonly PoolShape[];
  readonly nodes: NonNullable<ClusterShape['nodes']>;
  readonly isRendered: boolean;
  readonly verdict?: readonly [subject: string, reason: string];
}

const old = { pool: 'worker', kubelet: 'v1.33.6', runtime: 'cri-o://1.33.4' };
const gates: readonly Gate[] = [
  {
    name: 'an old NodePool that does not take it',
    reason: 'NodePools of one cluster may be some versions apart; those that can have it get it',
    pools: [refers('new'), { name: 'old' }],
    nodes: [
      { name: 'n', pool: 'worker', nodePool: 'new' },
      { name: 'o', ...old, nodePool: 'old' },
    ],
    isRendered: true,
    verdict: ['NodePool clusters/old', 'UnsupportedVersion'],
  },
  {
    name: 'an old NodePool that takes it',
    reason: 'its kubelets would not start',
    pools: [refers('new'), refers('old')],
    nodes: [
      { name: 'n', pool: 'worker', nodePool: 'new' },
      { name: 'o', ...old, nodePool: 'old' },
    ],
    isRendered: false,
    verdict: ['NodePool clusters/old', 'UnsupportedVersion'],
  },
  {
    name: 'an old node of no NodePool',
    reason: 'it cannot be told what it takes',
    pools: [refers('new')],
    nodes: [{ name: 'o', ...old }],
    isRendered: false,
  },
  {
    name: 'no NodePool at all',
    reason: 'where they cannot be read, every node counts',
    pools: [],
    nodes: [{ name: 'o', ...old }],
    isRendered: false,
  },
];
table(test, gates, ({ pools, nodes, isRendered, verdict }) => {
  const seen = reconcile(pools, nodes);
  assert.equal(seen.isRendered, isRendered);
  if (verdict !== undefined) assert.equal(seen.verdicts.get(verdict[0])?.reason, verdict[1]);
});

test('a NodePool with ten configs cannot take one more, and is told so', () => {
  const { verdicts } = reconcile([{ name: 'full', config: Array.from({ length: 10 }, (_, at) => `c${at}`) }]);
  assert.match(verdicts.get('NodePool clusters/full')?.message ?? '', /10 entries already/);
});

test('options that are none are refused by their path', () => {
  for (const [clusters, says] of [
    [[], /clusters: .*must be an object/],
    [{ 'a/b': { mode: 'mine' } }, /clusters\["a\/b"\]\.mode: "mine" is none of auto, own, observe/],
    [{ 'a/b': { clusters: {} } }, /clusters\["a\/b"\]\.clusters: unknown field/],
    [{ east: { mode: 'observe' } }, /clusters\["east"\]: invalid value "east": must be <namespace>\/<name>/],
    [{ 'a/b/c': {} }, /clusters\["a\/b\/c"\]: invalid value/],
    [{ 'a/b': { namespaces: {} } }, /clusters\["a\/b"\]\.namespaces: unknown field/],
  ] as const)
    assert.throws(() => parseReconcilerOptions({ clusters }), says);
});

test('a platform whose kubelet unit cannot be seen is warned of', () => {
  for (const [platform, isWarned] of [
    ['KubeVirt', true],
    ['BareMetal', false],
    ['AWS', false],
  ] as const) {
    const { outcome } = once({ hosted: true, platform, more: [nodePool(refers('a'))] });
    assert.equal(JSON.stringify(outcome.status).includes('FlagsMayNotReach'), isWarned, platform);
  }
});
