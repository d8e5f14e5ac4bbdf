/** Rows of `status`: Deployments that do not run, urgency, and many rows that are in order. */
import assert from 'node:assert/strict';
import {
  byUrgency,
  deploymentRow,
  foldReady,
  nodesRow,
  type StatusRow,
} from '../../runtime/diagnose/checks/status.ts';
import { statusRows } from '../../runtime/diagnose/commands/status.ts';
import { ObjectStore } from '../../runtime/engine/store.ts';
import { type Case, table, test } from '../support/suite.ts';

interface Row extends Case {
  readonly spec?: Readonly<Record<string, unknown>>;
  readonly command?: readonly string[];
  readonly status?: Readonly<Record<string, unknown>>;
  readonly state: StatusRow['state'];
  readonly says: RegExp;
}

const rows: readonly Row[] = [
  {
    name: 'no replica runs',
    reason: 'everything else that is reported is as old as the last one',
    spec: { replicas: 2 },
    status: { replicas: 2, unavailableReplicas: 2 },
    state: 'Attention',
    says: /^0 of 2 replicas ready: .*out of date/,
  },
  {
    name: 'one of two',
    reason: 'the other one leads',
    spec: { replicas: 2 },
    status: { readyReplicas: 1 },
    state: 'Progressing',
    says: /^1 of 2/,
  },
  {
    name: 'all of them',
    reason: 'nothing to say',
    spec: { replicas: 2 },
    status: { readyReplicas: 2 },
    state: 'Ready',
    says: /^2 of 2/,
  },
  {
    name: 'scaled to none',
    reason: 'somebody wanted it so',
    spec: { replicas: 0 },
    status: {},
    state: 'Ready',
    says: /^0 of 0/,
  },
  {
    name: 'a manifest',
    reason: 'a folder has no status',
    spec: { replicas: 2 },
    state: 'Unknown',
    says: /not reported yet/,
  },
];

table(test, rows, ({ spec, status, state, says }) => {
  const row = deploymentRow({
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'pullwright-reconciler', namespace: 'pullwright-system' },
    ...(spec === undefined ? {} : { spec }),
    ...(status === undefined ? {} : { status }),
  });
  assert.equal(row.state, state);
  assert.match(row.message, says);
});

const row = (reporter: string, subject: string, state: StatusRow['state']): StatusRow => ({
  check: '',
  severity: 'ok',
  reporter,
  subject,
  state,
  message: '',
});

test('byUrgency() puts what wants attention first and keeps the order of the rest', () => {
  const mixed = [
    row('a', '1', 'Ready'),
    row('b', '2', 'Unknown'),
    row('c', '3', 'Attention'),
    row('d', '4', 'Ready'),
  ];
  assert.deepEqual(
    byUrgency(mixed).map(({ subject }) => subject),
    ['3', '2', '1', '4'],
  );
});

test('foldReady() folds only what is in order, system by system', () => {
  const many = [
    row('a', 'bad', 'Attention'),
    ...['1', '2', '3'].map((object) => row('a', object, 'Ready')),
    row('b', '4', 'Ready'),
  ];
  assert.deepEqual(
    foldReady(many, 2).map(({ reporter, subject }) => `${reporter} ${subject}`),
    ['a bad', 'b 4', 'a 3 objects'],
  );
});

const AGENTS: readonly Row[] = [
  {
    name: 'agents that the controller has not counted yet',
    reason: 'nothing runs, and nothing has been shown',
    status: {},
    state: 'Progressing',
    says: /has not observed the change yet; 1 of 1 node eligible/,
  },
  {
    name: 'agents of an older generation',
    reason: 'they are counted for what was there before',
    status: { observedGeneration: 1, numberReady: 1, desiredNumberScheduled: 1 },
    state: 'Progressing',
    says: /has not observed the change yet/,
  },
  {
    name: 'no node for the agent',
    reason: '0 of 0 is no success',
    status: { observedGeneration: 2 },
    state: 'Attention',
    says: /^0 of 0 agents ready/,
  },
  {
    name: 'an agent that is behind',
    reason: 'it is on its way',
    status: { observedGeneration: 2, numberReady: 1, desiredNumberScheduled: 2 },
    state: 'Progressing',
    says: /^1 of 2/,
  },
  {
    name: 'agents that are done and do not report',
    reason: 'their pods are all that is known',
    status: { observedGeneration: 2, numberReady: 2, desiredNumberScheduled: 2 },
    state: 'Ready',
    says: /^2 of 2 agents ready, 1 of 1 node eligible; nodes do not report their content/,
  },
  {
    name: 'agents that are ready and report, with no pull secret to compare with',
    reason: 'nothing has been brought to a node',
    status: { observedGeneration: 2, numberReady: 2, desiredNumberScheduled: 2 },
    command: ['/pullwright', 'agent', '--report'],
    state: 'Progressing',
    says: /^2 of 2 agents ready, 1 of 1 node eligible; no pull secret exists yet/,
  },
  {
    name: 'a manifest of agents',
    reason: 'a folder has no status',
    state: 'Unknown',
    says: /not reported yet/,
  },
];

table(test, AGENTS, ({ status, command, state, says }) => {
  const node = {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name: 'a', labels: { 'hypershift.openshift.io/nodepool-globalps-enabled': 'true' } },
  };
  const row = nodesRow([node], {
    apiVersion: 'apps/v1',
    kind: 'DaemonSet',
    metadata: { name: 'global-pull-secret-syncer', namespace: 'kube-system', generation: 2 },
    spec: { template: { spec: { containers: [{ name: 'agent', command }] } } },
    ...(status === undefined ? {} : { status }),
  });
  assert.equal(row?.state, state);
  assert.match(row?.message ?? '', says);
});

test('an object counts in whichever version it is given, and once', () => {
  const store = new ObjectStore();
  const metadata = { name: 'cluster' };
  const status = { conditions: [{ type: 'Ready', status: 'True', reason: 'Verified', message: 'm' }] };
  const subjects = () => statusRows(store).map(({ subject }) => subject);
  store.set({ apiVersion: 'config.openshift.io/v1alpha1', kind: 'CRIOCredentialProviderConfig', metadata });
  store.set({ apiVersion: 'apps.kruise.io/v1alpha1', kind: 'SidecarSet', metadata, status });
  const both = ['CRIOCredentialProviderConfig/cluster', 'SidecarSet/cluster'];
  assert.deepEqual(subjects().toSorted(), both);
  store.set({ apiVersion: 'config.openshift.io/v1', kind: 'CRIOCredentialProviderConfig', metadata });
  store.set({ apiVersion: 'apps.kruise.io/v1beta1', kind: 'SidecarSet', metadata, status });
  assert.deepEqual(subjects().toSorted(), both);
});
