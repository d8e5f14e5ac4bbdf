// deadline: 240 s
/** What the reconciler wants is taken by a real API server with the real definitions: MachineConfigs, and the status. */
import assert from 'node:assert/strict';
import { credentialProviderConfig, credentialProviderCrd } from '../../runtime/credential-provider/kind.ts';
import { credentialProviderReconciler } from '../../runtime/credential-provider/reconciler/reconcile.ts';
import { missingControlPlane } from '../control-plane/build.ts';
import { startControlPlane } from '../control-plane/control-plane.ts';
import { installCrd } from '../control-plane/crds.ts';
import { suite } from '../support/suite.ts';
import { clusterObjects, worldOf } from './support/world-double.ts';

const test = suite('credential provider reconciler on a real API server');
const missing = missingControlPlane();
const PATH = '/apis/config.openshift.io/v1/criocredentialproviderconfigs/cluster';

async function withPlane(): Promise<void> {
  const plane = await startControlPlane({ crds: ['machineconfigs.machineconfiguration.openshift.io'] });
  await installCrd(plane.client, credentialProviderCrd());
  const reconciler = credentialProviderReconciler({ mode: 'auto', platform: 'AWS', secretAnnotation: false });

  test('MachineConfigs and status are stored as they are wanted', async () => {
    const matchImages = ['docker.io', '*.dkr.ecr.us-east-1.amazonaws.com'];
    const stored = await plane.apply(credentialProviderConfig(matchImages));
    const others = clusterObjects({ platform: 'AWS', deleted: true, pools: ['worker'] });
    const result = reconciler.reconcile(worldOf([{ ...stored, spec: { matchImages } }, ...others]), {
      scope: 'local',
      name: 'cluster',
    });
    const objects = (result.apply ?? []).flatMap((one) => ('object' in one ? [one.object] : []));
    const [config] = objects.filter(({ kind }) => kind === 'MachineConfig');
    assert.ok(config !== undefined);
    const made = await plane.apply(config);
    assert.deepEqual(made['spec'], config.spec);
    const patch = result.status?.find(({ ref }) => ref.kind === 'CRIOCredentialProviderConfig');
    const body = {
      apiVersion: 'config.openshift.io/v1',
      kind: 'CRIOCredentialProviderConfig',
      metadata: { name: 'cluster' },
      status: patch?.status,
    };
    const answer = await plane.client.request(
      'PATCH',
      `${PATH}/status?fieldManager=pullwright-credential-provider&force=true`,
      body,
      'application/apply-patch+yaml',
    );
    assert.equal(answer.status, 200, JSON.stringify(answer.body));
    const reasons = (answer.body.status.conditions as readonly { type: string; reason: string }[]).map(
      ({ type, reason }) => `${type} ${reason}`,
    );
    assert.deepEqual(reasons.sort(), [
      'MachineConfigRendered MachineConfigRenderingSucceeded',
      'Validated ConfigurationPartiallyApplied',
    ]);
  });

  test('our own status does not look like that of another manager', async () => {
    const { body } = await plane.client.request('GET', PATH);
    const reader = worldOf([body, ...clusterObjects({ platform: 'AWS', deleted: true, pools: ['worker'] })]);
    const { apply = [] } = reconciler.reconcile(reader, { scope: 'local', name: 'cluster' });
    assert.ok(apply.some((one) => 'object' in one && one.object.kind === 'MachineConfig'));
  });

  test.lastly('the control plane stops', () => plane.stop());
}

if (missing === undefined) await withPlane();
else test.skip('everything', missing);
test.run();
