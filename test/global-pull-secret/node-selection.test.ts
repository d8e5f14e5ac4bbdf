/** Selected nodes without a NodePool: by the selector of the fleet, and never against the Machine Config Operator. */
import assert from 'node:assert/strict';
import type { KubeObject } from '../../runtime/core/kubernetes/object.ts';
import { runOffline } from '../../runtime/engine/offline/offline.ts';
import { ObjectStore } from '../../runtime/engine/store.ts';
import { reconcilers } from '../../runtime/global-pull-secret/reconciler/reconcile.ts';
import { type Case, table, test } from '../support/suite.ts';
import { NOW, PLATFORM, secret } from './fleet.ts';

const LABEL = 'hypershift.openshift.io/nodepool-globalps-enabled';

function node(name: string, labels: Readonly<Record<string, string>>, mco = false): KubeObject {
  const annotations = mco ? { 'machineconfiguration.openshift.io/currentConfig': 'rendered-worker-1' } : {};
  return { apiVersion: 'v1', kind: 'Node', metadata: { name, uid: name, labels, annotations } };
}

interface Row extends Case {
  readonly nodes: readonly KubeObject[];
  readonly options?: Readonly<Record<string, unknown>>;
  readonly labelled: readonly string[];
  readonly ready: string;
}

const LINUX = { 'kubernetes.io/os': 'linux' };
const KARPENTER = { matchExpressions: [{ key: 'karpenter.sh/nodepool', operator: 'Exists' }] };

table(
  test,
  [
    {
      name: 'all Linux nodes by default',
      reason: 'nobody else writes their file',
      nodes: [node('a', LINUX), node('b', LINUX), node('w', { 'kubernetes.io/os': 'windows' })],
      labelled: ['a', 'b'],
      ready: 'False NodesBehind',
    },
    {
      name: 'those of Karpenter',
      reason: 'any pool, by a label that exists',
      nodes: [node('a', LINUX), node('k', { ...LINUX, 'karpenter.sh/nodepool': 'any' })],
      options: { nodes: KARPENTER },
      labelled: ['k'],
      ready: 'False NodesBehind',
    },
    {
      name: 'nodes of the Machine Config Operator',
      reason: 'a changed file degrades them',
      nodes: [node('m', LINUX, true)],
      labelled: [],
      ready: 'False NoEligibleNodes openshift-config/pull-secret',
    },
    {
      name: 'some of the Machine Config Operator',
      reason: 'the others go on',
      nodes: [node('m', LINUX, true), node('a', LINUX)],
      labelled: ['a'],
      ready: 'False NodesBehind',
    },
    {
      name: 'a selector that selects none',
      reason: 'a typing error is not Ready',
      nodes: [node('a', LINUX)],
      options: { nodes: { matchLabels: { pool: 'none' } } },
      labelled: [],
      ready: 'False NoEligibleNodes',
    },
    {
      name: 'no node',
      reason: '0 of 0 says nothing',
      nodes: [],
      labelled: [],
      ready: 'False NoEligibleNodes',
    },
  ] satisfies Row[],
  ({ nodes, options = {}, labelled, ready }) => {
    const store = new ObjectStore();
    for (const one of nodes) store.set(one);
    store.set(secret('pull-secret', 'openshift-config', { '.dockerconfigjson': PLATFORM }));
    runOffline({
      reconcilers: reconcilers(options),
      scope: { name: 'local', controlPlaneNamespace: 'openshift-config' },
      stores: { hosted: store, management: store },
      now: NOW,
    });
    const found = [...store].filter(
      (object) => object.kind === 'Node' && object.metadata.labels?.[LABEL] === 'true',
    );
    assert.deepEqual(found.map(({ metadata }) => metadata.name).sort(), labelled);
    const status = [...store].find((object) => object.metadata.name === 'secret-original-pull-secret')
      ?.status as {
      conditions: { type: string; status: string; reason: string; message: string }[];
    };
    const condition = status.conditions.find(({ type }) => type === 'Ready');
    const [state, reason, mention = ''] = ready.split(' ');
    assert.deepEqual([condition?.status, condition?.reason], [state, reason]);
    assert.ok(condition?.message.includes(mention), condition?.message);
  },
);

test('a selector that is none is refused with the other options', () => {
  assert.throws(() => reconcilers({ nodes: { matchExpressions: [{ key: 'a', operator: 'in' }] } }), {
    name: 'UsageError',
    message: /nodes\.matchExpressions\[0\]\.operator: /,
  });
});
