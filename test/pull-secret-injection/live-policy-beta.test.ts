// deadline: 240 s
// needs: control plane
/**
 * Kubernetes 1.34 and 1.35 have policies that change pods as v1beta1, behind a gate. A real API server that leaves v1 out of its discovery
 * stands for them: what it does with a v1beta1 policy is the same.
 */
import assert from 'node:assert/strict';
import { INJECTION_POLICY_NAME } from '../../runtime/pull-secret-injection/plan/plan.ts';
import { eventually } from '../control-plane/eventually.ts';
import type { TestObject } from '../control-plane/resource-path.ts';
import { FaultServer } from '../reconcile/fault-server.ts';
import { test } from '../support/suite.ts';
import { createPod, readyNamespace, startCommand, startPlane } from './live.ts';
import { applySource, conditionOf, messageOf, teamProfile } from './live-scene.ts';

const GROUP = 'admissionregistration.k8s.io';
const KINDS = ['MutatingAdmissionPolicy', 'MutatingAdmissionPolicyBinding'];
const RESOURCES = ['mutatingadmissionpolicies', 'mutatingadmissionpolicybindings'];
const SOON = { everyMs: 100, withinMs: 60_000 };

const plane = await startPlane({ apiServerFlags: [`--runtime-config=${GROUP}/v1beta1=true`] });
const old = new FaultServer(plane);
old.hidden = { [`/apis/${GROUP}/v1`]: RESOURCES };
const kubeconfig = await old.start('old');
const reconciler = startCommand(kubeconfig, {}, [process.execPath, 'main.ts']);
const team = teamProfile();
const stored = (kind: string): Promise<TestObject | undefined> =>
  plane.get({ apiVersion: `${GROUP}/v1`, kind, metadata: { name: INJECTION_POLICY_NAME } });
let pods = 0;
const namesOf = (namespace: string): ReturnType<typeof createPod> =>
  createPod(plane, { name: `pod-${(pods += 1)}`, namespace });

test('pods of the namespaces that are selected get the names, and others do not', async () => {
  await applySource(plane);
  await Promise.all([readyNamespace(plane, 'shop', { team: 'a' }), readyNamespace(plane, 'other')]);
  await plane.apply(team);
  await eventually(async () => assert.deepEqual(await namesOf('shop'), { names: ['reg'] }), SOON);
  assert.deepEqual(await namesOf('other'), { names: [] });
});

test('the profile says that a pod was tried', () =>
  eventually(async () => {
    assert.equal(await conditionOf(plane, 'team', 'Injecting'), 'True Policy');
    assert.match(await messageOf(plane, 'team', 'Injecting'), /dry run passed/);
  }, SOON));

test('policy and binding were written as v1beta1', async () => {
  for (const resource of RESOURCES) {
    const path = `/apis/${GROUP}/v1/${resource}/${INJECTION_POLICY_NAME}`;
    const managed = (await plane.client.request('GET', path)).body.metadata.managedFields as {
      readonly apiVersion: string;
    }[];
    assert.deepEqual(
      [resource, ...managed.map(({ apiVersion }) => apiVersion)],
      [resource, `${GROUP}/v1beta1`],
    );
  }
});

test('with the profile gone they go', async () => {
  await plane.remove(team);
  await eventually(
    async () => assert.deepEqual(await Promise.all(KINDS.map(stored)), [undefined, undefined]),
    SOON,
  );
  await eventually(async () => assert.deepEqual(await namesOf('shop'), { names: [] }), SOON);
});

test.lastly('it ends', async () => {
  await reconciler.stop();
  await old.stop();
});
