/** A platform pull secret that is not there: a fault where it is missed, none where nobody ever had one. */
import assert from 'node:assert/strict';
import type { KubeObject } from '../../runtime/core/kubernetes/object.ts';
import type { ClusterPair } from '../../runtime/engine/contract.ts';
import { runOffline } from '../../runtime/engine/offline/offline.ts';
import { ObjectStore } from '../../runtime/engine/store.ts';
import { reconcilers } from '../../runtime/global-pull-secret/reconciler/reconcile.ts';
import { test } from '../support/suite.ts';
import { additional, auth, config, eligibleNode, NOW, secret } from './fleet.ts';

const BEFORE = config({ 'quay.io': auth('quay') });
const TENANT = config({ 'tenant.example.com': auth('tenant') });

test('faults are counted: none where there is nothing yet in a stand-alone cluster, one where a pull secret is missed', () => {
  const faults = (scope: ClusterPair, objects: readonly KubeObject[]): number | undefined => {
    const store = new ObjectStore();
    for (const object of [eligibleNode, ...objects]) store.set(object);
    const { reports } = runOffline({
      reconcilers: reconcilers({ agent: { report: false } }),
      scope,
      stores: { hosted: store, management: scope.hostedCluster === undefined ? store : new ObjectStore() },
      now: NOW,
    });
    const samples = reports.flatMap(({ metrics }) => metrics);
    return samples.find(({ name }) => name === 'pullwright_platform_faults')?.value;
  };
  const standalone = { name: 'local', controlPlaneNamespace: 'openshift-config' };
  const hosted = {
    name: 'clusters/a',
    controlPlaneNamespace: 'clusters-a',
    hostedCluster: { namespace: 'clusters', name: 'a' },
  };
  const copy = secret('original-pull-secret', 'kube-system', { '.dockerconfigjson': BEFORE });
  assert.deepEqual(
    [
      faults(standalone, []),
      faults(standalone, [additional(TENANT)]),
      faults(standalone, [copy]),
      faults(hosted, []),
    ],
    [0, 0, 1, 1],
  );
});
