// deadline: 180 s
// needs: control plane
/** Where HyperShift's own operator manages the objects: it is watched, and nothing is written, however it behaves. */
import assert from 'node:assert/strict';
import { redact } from '../../runtime/core/redacted.ts';
import { upstreamDaemonSet } from '../../runtime/global-pull-secret/daemon-set.ts';
import { configHash } from '../../runtime/global-pull-secret/eligibility.ts';
import { eventually } from '../control-plane/eventually.ts';
import { controlPlane } from '../control-plane/live.ts';
import type { TestObject } from '../control-plane/resource-path.ts';
import { NODE, ReconcilerProcess } from '../reconcile/process.ts';
import {
  additional,
  furnish,
  GLOBAL,
  inKubeSystem,
  ORIGINAL,
  pullSecret,
  registriesOf,
  STATUS,
  SYNCER,
  secretOf,
  touched,
} from '../reconcile/scene.ts';
import { OPERATOR_IMAGE } from '../support/hosted-cluster-config-operator.ts';
import { test } from '../support/suite.ts';

const OPERATOR = 'hosted-cluster-config-operator-manager';

const plane = await controlPlane({ crds: ['pullstatuses.pullwright.dev'] });
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

const says = (about: TestObject, wanted: RegExp): Promise<void> =>
  eventually(async () => assert.match(JSON.stringify((await plane.get(about))?.['status'] ?? {}), wanted), {
    withinMs: 60_000,
  });
/** One verdict, as the status has it. */
const verdict = (subject: string, kind: string, reason: string, says: string): RegExp =>
  new RegExp(
    `(?=[^}]*"subject":"${subject}")(?=[^}]*"verdict":"${kind}")(?=[^}]*"reason":"${reason}")(?=[^}]*${says})`,
  );

test('verdicts describe what the operator made, and what a merge of ours would change', async () => {
  await says(STATUS, verdict('tenant.example.com', 'Pending', 'NotTaken', 'would be used'));
  await plane.apply(additional('theirs.example.com', 'quay.io', 'tenant.example.com'));
  await says(STATUS, verdict('quay.io', 'Shadowed', 'OriginalWins', 'original pull secret'));
  // The operator takes what it has not taken before.
  const taken = (await plane.get(inKubeSystem('Secret', 'additional-pull-secret'))) as TestObject;
  await plane.apply({ ...GLOBAL, type: taken['type'], data: taken['data'] }, OPERATOR);
  await says(STATUS, verdict('tenant.example.com', 'Accepted', 'InGlobalPullSecret', 'HyperShift made it'));
});

test('one bad entry, for which the operator refuses the whole, is named on all', async () => {
  const text = '{"auths":{"bad.example.com":{"auth":"-"},"good.example.com":{"auth":"cm9ib3Q6eA=="}}}';
  const data = { '.dockerconfigjson': Buffer.from(text).toString('base64') };
  await plane.apply(secretOf('additional-pull-secret', 'kube-system', data));
  await says(STATUS, verdict('good.example.com', 'Rejected', 'UpstreamRejectsAll', 'bad.example.com'));
  await says(STATUS, verdict('bad.example.com', 'Rejected', 'UpstreamRejectsAll', 'would be ignored'));
});

test('what nodes have is said by the operator’s DaemonSet, as far as it can be known', async () => {
  const PLATFORM = inKubeSystem('PullStatus', 'secret-original-pull-secret', 'pullwright.dev/v1alpha1');
  await says(PLATFORM, verdict('nodes', 'Warning', 'NoAgents', 'no DaemonSet'));
  const value = String((await plane.get(GLOBAL))?.['data']?.['.dockerconfigjson']);
  const daemonSet = (hash: string): TestObject =>
    upstreamDaemonSet({ image: OPERATOR_IMAGE }, { merged: true, configHash: hash });
  await plane.apply(daemonSet('00000000'), OPERATOR);
  await says(PLATFORM, verdict('nodes', 'Pending', 'OlderContent', 'another state'));
  await plane.apply(daemonSet(configHash(redact(Buffer.from(value, 'base64').toString()))), OPERATOR);
  await says(PLATFORM, verdict('nodes', 'Pending', 'AgentsBehind', 'on 0 of 0 nodes'));
  const status = {
    observedGeneration: 2,
    currentNumberScheduled: 3,
    numberMisscheduled: 0,
    desiredNumberScheduled: 3,
    updatedNumberScheduled: 3,
    numberReady: 2,
  };
  const patch = (numberReady: number): Promise<unknown> =>
    plane.client.request(
      'PATCH',
      '/apis/apps/v1/namespaces/kube-system/daemonsets/global-pull-secret-syncer/status',
      { status: { ...status, numberReady } },
      'application/merge-patch+json',
    );
  await patch(2);
  await says(PLATFORM, verdict('nodes', 'Pending', 'AgentsBehind', 'on 2 of 3 nodes'));
  await patch(3);
  await says(PLATFORM, verdict('nodes', 'Accepted', 'AgentsHaveIt', 'on 3 of 3 nodes'));
});

test.lastly('it stops with exit code 0', async () => assert.equal(await process.stop(), 0));
