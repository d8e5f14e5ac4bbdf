/** What is said of nodes before an installation: who is eligible, runtimes, and whether pods are let in. */
import assert from 'node:assert/strict';
import { checkBefore } from '../../runtime/diagnose/checks/installed.ts';
import { suite, table } from '../support/suite.ts';
import { agent, MCO, NOTHING, namespace, node, object, type Row, row, scc } from './check-objects.ts';

const test = suite('check before, of nodes');
const GLOBAL = { systems: ['global-pull-secret'] } as const;

const before: readonly Row[] = [
  row(
    'a namespace that refuses the agent',
    {
      plan: [agent()],
      objects: [namespace('kube-system', { 'pod-security.kubernetes.io/enforce': 'baseline' })],
    },
    ['pod-security', 'fail'],
    /enforces "baseline"/,
    /kubectl label namespace kube-system/,
  ),
  row(
    'one that lets it in',
    { plan: [agent()], objects: [namespace('kube-system')] },
    ['pod-security', 'ok'],
    /lets it in/,
  ),
  row(
    'OpenShift, without constraints for the account',
    { plan: [agent()], objects: [namespace('kube-system'), scc([])] },
    ['scc', 'fail'],
    /may not use the privileged/,
    /oc adm policy add-scc-to-user privileged -z agent -n kube-system/,
  ),
  row(
    'OpenShift, with them',
    { plan: [agent()], objects: [scc(['system:serviceaccount:kube-system:agent'])] },
    ['scc', 'ok'],
    /may use/,
  ),
  row(
    'OpenShift, in a namespace of run level 0',
    { plan: [agent()], objects: [namespace('kube-system', { 'openshift.io/run-level': '0' }), scc([])] },
    ['scc', 'ok'],
    /run level/,
  ),
  row('no node', GLOBAL, ['eligible-nodes', 'warn'], /has no node/),
  row(
    'Linux nodes of a stand-alone cluster',
    { ...GLOBAL, objects: [node('a'), node('w', { labels: { 'kubernetes.io/os': 'windows' } })] },
    ['eligible-nodes', 'ok'],
    /1 of 2 nodes/,
  ),
  row(
    'nodes of pools without the label',
    { ...GLOBAL, nodes: 'pools', objects: [node('a')] },
    ['eligible-nodes', 'fail'],
    /NodePools with upgradeType Replace/,
    /"nodes"/,
  ),
  row(
    'nodes that the fleet does not select',
    { ...GLOBAL, nodes: [{ key: 'pool', operator: 'In', values: ['x'] }], objects: [node('a')] },
    ['eligible-nodes', 'fail'],
    /none has "nodes"/,
  ),
  row(
    'nodes of the Machine Config Operator alone',
    { ...GLOBAL, objects: [node('a', { annotations: MCO })] },
    ['eligible-nodes', 'fail'],
    /looks after all of them/,
    /openshift-config\/pull-secret/,
  ),
  row(
    'the Machine Config Operator',
    { objects: [node('a', { annotations: MCO })] },
    ['machine-config-operator', 'warn'],
    /looks after 1 node \(a\)/,
  ),
  row(
    'the provider on containerd',
    { systems: ['credential-provider'], objects: [node('a')] },
    ['runtime', 'fail'],
    /1 of 1 node does not run CRI-O \(a\)/,
  ),
  row(
    'the provider on CRI-O',
    { systems: ['credential-provider'], objects: [node('a', { runtime: 'cri-o://1.36.0' })] },
    ['runtime', 'ok'],
    /cri-o:\/\/1\.36/,
  ),
  row(
    'the provider on old kubelets',
    {
      systems: ['credential-provider'],
      objects: [node('a', { runtime: 'cri-o://1.33.0', kubelet: 'v1.33.1' })],
    },
    ['kubelet', 'fail'],
    /older than 1\.34 \(a\)/,
  ),
  row(
    'HyperShift',
    {
      objects: [
        object(
          'apps/v1',
          'DaemonSet',
          'global-pull-secret-syncer',
          {
            metadata: {
              name: 'global-pull-secret-syncer',
              namespace: 'kube-system',
              managedFields: [{ manager: 'hosted-cluster-config-operator-manager', operation: 'Update' }],
            },
          },
          'kube-system',
        ),
      ],
    },
    ['hypershift', 'warn'],
    /ours observes it/,
    /mode: own/,
  ),
];
table(test, before, ({ input, check, level, says, fix }) => {
  const found = checkBefore({ ...NOTHING, ...input }).filter((line) => line.check === check);
  const line = found.find((one) => says.test(one.message));
  assert.ok(line, JSON.stringify(found));
  assert.equal(line.level, level);
  if (fix !== undefined) assert.match(line.fix ?? '', fix);
});

test.run();
