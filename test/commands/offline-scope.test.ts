import assert from 'node:assert/strict';
import { hostedPairs } from '../../runtime/commands/reconcile/scopes.ts';
import { ObjectStore } from '../../runtime/engine/store.ts';
import { type Case, table, test } from '../support/suite.ts';

const VERSION = 'hypershift.openshift.io/v1beta1';

interface Row extends Case {
  /** `kind namespace/name [annotation]`. */
  readonly objects: readonly string[];
  readonly wanted?: string;
  readonly dirs?: readonly string[];
  readonly pairs?: readonly string[];
  readonly error?: RegExp;
}

const PROD = 'HostedControlPlane clusters-prod/prod clusters/prod';
const STAGE = 'HostedControlPlane clusters-stage/stage clusters/stage';

const rows: readonly Row[] = [
  {
    name: 'one control plane',
    reason: 'no need to name it',
    objects: [PROD],
    pairs: ['clusters/prod in clusters-prod from dump'],
  },
  {
    name: 'one control plane without annotation',
    reason: 'the namespace says it by convention',
    objects: ['HostedControlPlane clusters-a-b/a-b'],
    pairs: ['clusters/a-b in clusters-a-b from dump'],
  },
  {
    name: 'only a HostedCluster',
    reason: 'the control plane is named by convention',
    objects: ['HostedCluster clusters/a.b'],
    pairs: ['clusters/a.b in clusters-a-b from dump'],
  },
  {
    name: 'cluster and control plane',
    reason: 'are one',
    objects: [PROD, 'HostedCluster clusters/prod'],
    pairs: ['clusters/prod in clusters-prod from dump'],
  },
  {
    name: 'several, one named',
    reason: 'the flag decides',
    objects: [PROD, STAGE],
    wanted: 'clusters/stage',
    pairs: ['clusters/stage in clusters-stage from dump'],
  },
  {
    name: 'several with folders',
    reason: 'a fleet is reconciled in one go',
    objects: [PROD, STAGE],
    dirs: ['dump/clusters/prod', 'dump/clusters/stage'],
    pairs: [
      'clusters/prod in clusters-prod from dump/clusters/prod',
      'clusters/stage in clusters-stage from dump/clusters/stage',
    ],
  },
  {
    name: 'several, some with folders',
    reason: 'a cluster without a dump cannot be judged',
    objects: [PROD, STAGE],
    dirs: ['dump/clusters/stage'],
    pairs: ['clusters/stage in clusters-stage from dump/clusters/stage'],
  },
  {
    name: 'several without folders',
    reason: 'guessing would write one cluster onto another',
    objects: [PROD, STAGE],
    error: /set --hosted-cluster to one of clusters\/prod, clusters\/stage/,
  },
  {
    name: 'none',
    reason: 'the wrong folder',
    objects: [],
    error: /contains no HostedControlPlane and no HostedCluster/,
  },
  {
    name: 'a name that is not there',
    reason: 'a typo',
    objects: [PROD],
    wanted: 'clusters/prd',
    error: /Cannot find hosted cluster "clusters\/prd": the management folder contains clusters\/prod/,
  },
];

function storeOf(objects: readonly string[]): ObjectStore {
  const store = new ObjectStore();
  for (const text of objects) {
    const [kind = '', place = '', annotation] = text.split(' ');
    const [namespace = '', name = ''] = place.split('/');
    store.set({
      apiVersion: VERSION,
      kind,
      metadata: {
        namespace,
        name,
        ...(annotation === undefined
          ? {}
          : { annotations: { 'hypershift.openshift.io/cluster': annotation } }),
      },
    });
  }
  return store;
}

table(test, rows, (row) => {
  const run = () =>
    hostedPairs(storeOf(row.objects), 'dump/', row.wanted, (path) => row.dirs?.includes(path) === true);
  if (row.error !== undefined) assert.throws(run, { message: row.error });
  else
    assert.deepEqual(
      run().map(
        ({ scope, hostedDir }) =>
          `${scope.name} in ${scope.controlPlaneNamespace} from ${hostedDir.replace(/\/$/, '')}`,
      ),
      row.pairs,
    );
});
