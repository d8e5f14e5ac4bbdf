// deadline: 180 s
/** Where HyperShift's own operator manages the objects: it is watched, and nothing is written, however it behaves. */
import assert from 'node:assert/strict';
import { missingControlPlane, startControlPlane } from '../control-plane/control-plane.ts';
import { eventually } from '../control-plane/eventually.ts';
import { NODE, ReconcilerProcess } from '../reconcile/process.ts';
import {
  additional,
  furnish,
  GLOBAL,
  ORIGINAL,
  pullSecret,
  registriesOf,
  STATUS,
  SYNCER,
  touched,
} from '../reconcile/scene.ts';
import { suite } from '../support/suite.ts';

const test = suite('global-pull-secret beside HyperShift');
const missing = missingControlPlane();
const OPERATOR = 'hosted-cluster-config-operator-manager';

if (missing !== undefined) test.skip('observe mode', missing);
else {
  const plane = await startControlPlane({ crds: ['pullstatuses.pullwright.dev'] });
  await furnish(plane, 'quay.io');
  /** What the operator does on every pass. */
  const operatorPass = async (): Promise<void> => {
    await plane.apply(pullSecret('original-pull-secret', 'kube-system', ['quay.io']), OPERATOR);
    await plane.apply(
      pullSecret('global-pull-secret', 'kube-system', ['quay.io', 'theirs.example.com']),
      OPERATOR,
    );
  };
  await operatorPass();
  await plane.apply(additional('tenant.example.com'));
  const process = new ReconcilerProcess(NODE, ['--kubeconfig', plane.kubeconfig, '--metrics-port=0']);
  const versions = async (): Promise<readonly unknown[]> =>
    Promise.all(
      [GLOBAL, ORIGINAL, SYNCER].map(async (ref) => (await plane.get(ref))?.metadata['resourceVersion']),
    );

  test('the tenant is told that somebody else manages it', async () => {
    await process.says('caches are filled');
    await eventually(async () =>
      assert.match(JSON.stringify((await plane.get(STATUS))?.['status'] ?? {}), /ManagedElsewhere/),
    );
  });

  test('two writers do not fight: the resource versions stand still', async () => {
    const before = await versions();
    for (let pass = 0; pass < 8; pass++) {
      await operatorPass();
      // Made to look: an operator that writes the same again changes nothing that a watch would tell.
      await process.looksAfter(() => plane.apply(touched(pass), 'somebody'));
    }
    assert.deepEqual(await versions(), before);
    assert.equal(await plane.get(SYNCER), undefined);
    assert.deepEqual(registriesOf(await plane.get(GLOBAL)), ['quay.io', 'theirs.example.com']);
  });

  test.lastly('it stops with exit code 0', async () => {
    assert.equal(await process.stop(), 0);
    await plane.stop();
  });
}

test.run();
