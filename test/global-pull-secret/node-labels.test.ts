import assert from 'node:assert/strict';
import type { KubeObject } from '../../runtime/core/kubernetes/object.ts';
import { applied } from '../../runtime/kube/drift.ts';
import { meta, refOf } from '../support/meta.ts';
import { type Case, table, test } from '../support/suite.ts';
import { type Fleet, fleet, PLATFORM } from './fleet.ts';

const LABEL = 'hypershift.openshift.io/nodepool-globalps-enabled';
const MANAGER = 'pullwright-global-pull-secret';

function pool(platformType: string, upgradeType: string): KubeObject {
  return {
    ...meta('hypershift.openshift.io/v1beta1 NodePool', { name: 'p', namespace: 'clusters', uid: 'p' }),
    spec: { platform: { type: platformType }, management: { upgradeType } },
  };
}

const machine: KubeObject = {
  ...meta('cluster.x-k8s.io/v1beta1 Machine', {
    name: 'm',
    namespace: 'clusters-a',
    uid: 'm',
    annotations: { 'hypershift.openshift.io/nodePool': 'clusters/p' },
  }),
  status: { nodeRef: { name: 'n' } },
};

const node = (labels: Readonly<Record<string, string>> = {}): KubeObject =>
  meta('v1 Node', { name: 'n', uid: 'n', labels });

function nodeFleet(
  platformType: string,
  upgradeType: string,
  start: KubeObject,
  options?: Readonly<Record<string, unknown>>,
): Fleet {
  const one = fleet(PLATFORM, undefined, options);
  one.management.set(pool(platformType, upgradeType));
  one.management.set(machine);
  one.hosted.set(start);
  return one;
}

const labelOf = (one: Fleet): string | undefined =>
  one.hosted.get(refOf('v1 Node', 'n'))?.metadata.labels?.[LABEL];

const IN_PLACE = ['AWS', 'InPlace'] as const;

interface NodeRow extends Case {
  /** Platform and type of upgrade. @default {IN_PLACE} */
  readonly pool?: readonly [string, string];
  readonly start?: KubeObject;
  readonly options?: Readonly<Record<string, unknown>>;
  /** Absent: the label is not there. */
  readonly label?: string;
  readonly overridden?: boolean;
}

const ours = applied(
  { apiVersion: 'v1', kind: 'Node', metadata: { name: 'n', labels: { [LABEL]: 'true' } } },
  node({ other: '1' }),
  MANAGER,
);

const shared: KubeObject = {
  ...ours,
  metadata: {
    ...ours.metadata,
    managedFields: [
      ...(ours.metadata.managedFields ?? []),
      {
        manager: 'hosted-cluster-config-operator-manager',
        operation: 'Update',
        fieldsV1: { 'f:metadata': { 'f:labels': { [`f:${LABEL}`]: {} } } },
      },
    ],
  },
};

table<NodeRow>(
  test,
  [
    { name: 'AWS Replace', reason: 'requirement 1', pool: ['AWS', 'Replace'], label: 'true' },
    { name: 'Azure Replace', reason: 'requirement 1', pool: ['Azure', 'Replace'], label: 'true' },
    {
      name: 'AWS InPlace',
      reason: 'the Machine Config Daemon works on the same file',
    },
    {
      name: 'KubeVirt Replace',
      reason: "not on upstream's list",
      pool: ['KubeVirt', 'Replace'],
    },
    {
      name: 'KubeVirt Replace, opted in',
      reason: 'platforms is an option',
      pool: ['KubeVirt', 'Replace'],
      options: { platforms: ['KubeVirt'] },
      label: 'true',
    },
    {
      name: 'a pool that becomes InPlace',
      reason: 'our label comes off again',
      start: ours,
    },
    {
      name: 'a pool that becomes InPlace, with a label that somebody else owns too',
      reason: 'the API server would keep it',
      start: shared,
      label: 'true',
      overridden: true,
    },
    {
      name: 'a label set by hand',
      reason: 'by hand is by intent',
      start: node({ [LABEL]: 'true' }),
      label: 'true',
      overridden: true,
    },
    {
      name: 'a label switched off by hand',
      reason: 'by hand is by intent',
      pool: ['AWS', 'Replace'],
      start: node({ [LABEL]: 'false' }),
      label: 'false',
      overridden: true,
    },
    {
      name: 'a label of another controller that agrees',
      reason: 'it is theirs, and there is nothing to say',
      pool: ['AWS', 'Replace'],
      start: node({ [LABEL]: 'true' }),
      label: 'true',
    },
  ],
  (row) => {
    const one = nodeFleet(...(row.pool ?? IN_PLACE), row.start ?? node(), row.options);
    one.reconcile();
    assert.equal(labelOf(one), row.label);
    assert.equal(
      one.verdicts('original').some((verdict) => verdict === 'node n Warning'),
      row.overridden === true,
    );
  },
);

const MACHINE_LABEL = `managed.hypershift.openshift.io.${LABEL}`;

const ourMachine = applied(
  { ...machine, metadata: { ...machine.metadata, labels: { [MACHINE_LABEL]: 'true' } } },
  machine,
  MANAGER,
);
const theirMachine = {
  ...machine,
  metadata: { ...machine.metadata, labels: { [MACHINE_LABEL]: 'false' } },
};

interface MachineRow extends Case {
  /** Platform and type of upgrade. @default {IN_PLACE} */
  readonly pool?: readonly [string, string];
  readonly machine?: KubeObject;
  /** Absent: the label is not there. */
  readonly label?: string;
}

table<MachineRow>(
  test,
  [
    {
      name: 'a Machine on AWS',
      reason: 'its node has the label from the start',
      pool: ['AWS', 'Replace'],
      label: 'true',
    },
    { name: 'a Machine of an InPlace pool', reason: 'never' },
    {
      name: 'a Machine whose pool becomes InPlace',
      reason: 'our label comes off',
      machine: ourMachine,
    },
    {
      name: 'a Machine that somebody else labelled',
      reason: 'it is theirs',
      pool: ['AWS', 'Replace'],
      machine: theirMachine,
      label: 'false',
    },
  ],
  (row) => {
    const one = nodeFleet(...(row.pool ?? IN_PLACE), node());
    one.management.set(row.machine ?? machine);
    one.reconcile();
    const found = one.management.get(refOf('cluster.x-k8s.io/v1beta1 Machine', 'm', 'clusters-a'));
    assert.equal(found?.metadata.labels?.[MACHINE_LABEL], row.label);
  },
);

test('two Machines that name one node are told, and its label stays as it is', () => {
  for (const start of [node(), ours]) {
    const one = nodeFleet('AWS', 'InPlace', start);
    one.management.set({
      ...machine,
      metadata: { ...machine.metadata, name: 'left-over', uid: 'left-over' },
    });
    one.reconcile();
    assert.equal(labelOf(one), start.metadata.labels?.[LABEL]);
    const said = one.status('original')?.verdicts.find(({ reason }) => reason === 'MachineAmbiguous');
    assert.match(said?.message ?? '', /^Machines left-over and m both name it/);
  }
});
