/** Nodes whose kubelet file belongs to somebody else: the same agent keeps a file for the credential provider, and reports alike. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readFleet } from '../../charts/fleet.ts';
import { offerDaemonSets } from '../../charts/global-pull-secret/objects.ts';
import { parseOptions } from '../../runtime/global-pull-secret/reconciler/options.ts';
import type { KubeObject } from '../../runtime/rules/kubernetes/object.ts';
import { suite } from '../support/suite.ts';
import { additional, auth, config } from './fleet.ts';
import { ReportingNodes } from './support/reporting-nodes.ts';

const test = suite('pull secrets by the credential provider');
const root = mkdtempSync(join(tmpdir(), 'pullwright-offer-'));
const nodes = { matchLabels: { 'example.com/pool': 'in-place' } };
const OFFER = {
  apiVersion: 'apps/v1',
  kind: 'DaemonSet',
  namespace: 'kube-system',
  name: 'global-pull-secret-offer',
} as const;

const ofOperator = (name: string): KubeObject => ({
  apiVersion: 'v1',
  kind: 'Node',
  metadata: {
    name,
    uid: name,
    labels: { 'example.com/pool': 'in-place' },
    annotations: { 'machineconfiguration.openshift.io/currentConfig': 'rendered-1' },
  },
  status: { conditions: [{ type: 'Ready', status: 'True' }] },
});

function cluster(folder: string, options: object): ReportingNodes {
  const one = new ReportingNodes(['a'], join(root, folder), { ...options });
  one.hosted.set(ofOperator('a'));
  one.hosted.set(additional(config({ 'new.example': auth('tenant') })));
  return one;
}

test('its DaemonSet runs beside no other agent, keeps a file of its own, and restarts nothing', () => {
  const { agent } = parseOptions({ provider: { nodes }, agent: { janitor: true } });
  const [object] = offerDaemonSets(agent);
  const spec = object?.spec as { readonly template: { readonly spec: Record<string, unknown> } };
  const pod = spec.template.spec;
  assert.deepEqual(pod['affinity'], {
    nodeAffinity: {
      requiredDuringSchedulingIgnoredDuringExecution: {
        nodeSelectorTerms: [
          {
            matchExpressions: [
              { key: 'example.com/pool', operator: 'In', values: ['in-place'] },
              {
                key: 'hypershift.openshift.io/nodepool-globalps-enabled',
                operator: 'NotIn',
                values: ['true'],
              },
            ],
          },
        ],
      },
    },
  });
  assert.equal(pod['nodeSelector'], undefined);
  const text = JSON.stringify(pod);
  assert.match(text, /--file=\/var\/lib\/pullwright\/global-pull-secret\/config\.json/);
  assert.match(text, /--restart=never/);
  assert.doesNotMatch(text, /dbus|"\/var\/lib\/kubelet"|janitor/);
  assert.deepEqual(offerDaemonSets(parseOptions({}).agent), []);
});

test('a node of the Machine Config Operator gets it so, and its report counts like every other', () => {
  const without = cluster('without', {});
  without.reconcile();
  assert.equal(without.condition('original'), 'False NoEligibleNodes');
  assert.match(without.message('original'), /offer (it|them) by the credential provider \(provider\.nodes/);
  const one = cluster('with', { provider: { nodes } });
  one.reconcile();
  assert.equal(one.condition('original'), 'False NodesBehind');
  assert.match(one.message('original'), /used on 0 of 1 node; a \(no agent has reported/);
  assert.ok(one.verdicts('original').includes('node a Accepted'));
  assert.doesNotMatch(JSON.stringify(one.status('original')), /MachineConfigOperator/);
  const node = one.hosted.get({ apiVersion: 'v1', kind: 'Node', name: 'a' });
  assert.deepEqual(node?.metadata.labels, { 'example.com/pool': 'in-place' }, 'no label of ours');
  one.bring('a');
  one.reconcile();
  assert.equal(one.condition('original'), 'True Copied');
  assert.match(JSON.stringify(one.status()), /used on 1 of 1 node/);
});

test('the DaemonSet goes when the option goes', () => {
  const one = cluster('goes', { provider: { nodes } });
  one.reconcile();
  assert.notEqual(one.hosted.get(OFFER), undefined);
  const next = cluster('gone', {});
  for (const object of one.hosted) next.hosted.set(object);
  next.reconcile();
  assert.equal(next.hosted.get(OFFER), undefined);
});

for (const provider of [
  true,
  {},
  { nodes: {} },
  { nodes: { matchLabels: {} } },
  { nodes: { matchExpressions: [{ key: 'a', operator: 'Near' }] } },
  { nodes, more: 1 },
])
  test(`reconcile refuses provider: ${JSON.stringify(provider)}`, () =>
    assert.throws(() => parseOptions({ provider }), {
      name: 'UsageError',
      message: /provider: must be a map of nodes, a selector with at least one label/,
    }));

for (const [section, wanted] of [
  [{ provider: { nodes: {} } }, /expected at least one label/],
  [{ provider: { nodes }, agent: { alsoNodes: [{ a: 'b' }] } }, /two agents/],
  [{ provider: { nodes: { matchExpressions: [{ key: 'a', operator: 'In' }] } } }, /provider/],
] as const)
  test(`a fleet with ${JSON.stringify(section)} is refused`, () =>
    assert.throws(
      () =>
        readFleet({
          image: 'registry.example.com/pullwright:0.1.0',
          clusters: [{ name: 'prod', systems: { 'global-pull-secret': section } }],
        }),
      wanted,
    ));

test.lastly('the folder is removed', () => rmSync(root, { recursive: true }));
test.run();
