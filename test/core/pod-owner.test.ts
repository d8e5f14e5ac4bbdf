/** Replacement of a pod, by its owner. */
import assert from 'node:assert/strict';
import { recreation } from '../../runtime/core/kubernetes/pod-owner.ts';
import { test } from '../support/suite.ts';

const OWNERS: readonly (readonly [string, string, boolean, string])[] = [
  ['apps/v1', 'ReplicaSet', true, 'a Deployment'],
  ['apps/v1', 'StatefulSet', true, 'in order'],
  ['apps/v1', 'DaemonSet', true, 'on the same node'],
  ['v1', 'ReplicationController', true, 'a DeploymentConfig of OpenShift'],
  ['batch/v1', 'Job', true, 'as long as it has a try left'],
  ['apps.kruise.io/v1alpha1', 'CloneSet', true, 'Kruise'],
  ['apps.kruise.io/v1beta1', 'StatefulSet', true, 'Kruise'],
  ['apps.kruise.io/v1alpha1', 'BroadcastJob', false, 'it counts failures'],
  ['tekton.dev/v1', 'TaskRun', false, 'it fails with its pod'],
  ['v1', 'Pod', false, 'nobody makes it'],
  ['example.com/v1', 'ReplicaSet', false, 'somebody else’s kind of that name'],
  ['constructor/v1', 'Job', false, 'no group of that name'],
];

for (const [apiVersion, kind, makes, reason] of OWNERS)
  test(`recreation() of a pod of ${apiVersion} ${kind}: ${makes}, ${reason}`, () => {
    const owner = { apiVersion, kind, name: 'o', uid: 'u', controller: true };
    const metadata = { name: 'o-1', ownerReferences: [owner] };
    const text = recreation({ apiVersion: 'v1', kind: 'Pod', metadata });
    assert.equal(text !== 'recreate it', makes);
  });
