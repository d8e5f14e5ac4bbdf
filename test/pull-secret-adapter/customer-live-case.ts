/**
 * One cluster of a customer who wants everything, in a live installation: a secret in the region of the cluster under a key of its own, in a
 * project whose owner lets the tenant in, rotated with both credentials valid for a time, revoked, and deleted.
 */
import assert from 'node:assert/strict';
import { recordName } from '../../runtime/pull-secret-adapter/names.ts';
import { eventually } from '../control-plane/eventually.ts';
import type { TestSuite } from '../support/suite.ts';
import type { StoredSecret } from './doubles/secret-versions.ts';
import { pullSecret } from './run-job.ts';
import { NAMESPACE, type Stage } from './stage.ts';

const ID = 'cls-customer';
const PROJECT = 'customer-proj';
const PATH = `projects/${PROJECT}/locations/europe-west3/secrets/hyperfleet-${ID}-pull-secret`;
function specOf(label: string): Record<string, unknown> {
  return {
    provider: 'gcp',
    gcp: { projectId: PROJECT, region: 'europe-west3' },
    pullSecret: { data: pullSecret(label) },
  };
}

/** Same effect as `kubectl annotate configmap`. */
async function annotate({ plane }: Stage, name: string, value: string): Promise<void> {
  const { status } = await plane.client.request(
    'PATCH',
    `/api/v1/namespaces/${NAMESPACE}/configmaps/${recordName(ID)}`,
    { metadata: { annotations: { [name]: value } } },
    'application/merge-patch+json',
  );
  assert.equal(status, 200);
}

export function customerLiveCase(
  test: TestSuite,
  stage: Stage,
  run: { readonly program: readonly string[]; readonly sentinel: () => Promise<void> },
): void {
  const { gcp, api } = stage;
  const secret = (): StoredSecret | undefined => gcp.secrets.get(PATH);
  const states = (): readonly string[] => (secret()?.versions ?? []).map(({ state }) => state);
  const available = (): Promise<void> =>
    eventually(() => {
      assert.equal(stage.condition(ID, 'Available'), 'True SecretAvailable', stage.output.slice(-2000));
      assert.equal(api.last(ID)?.observed_generation, api.clusters.get(ID)?.generation);
    });

  test('a regional secret under a key of its own, a tenant that proves itself, two valid credentials, a revocation, an end', async () => {
    const adapter = stage.adapter(run.program, {
      '--location': '{region}',
      '--kms-key': 'projects/{project}/locations/{location}/keyRings/fleet/cryptoKeys/{id}',
      '--challenge': 'project-label',
      '--keep-versions': '5',
      '--previous-for': '168h',
    });
    await eventually(async () => assert.equal(await stage.consumers(), 1));
    // The owner of the project has not let this tenant in.
    gcp.projects.set(PROJECT, {});
    await stage.add(ID, specOf('first'));
    await run.sentinel();
    await eventually(() => assert.equal(stage.condition(ID, 'Available'), 'False TenancyUnproven'));
    const label = /--update-labels=(pullwright-tenant)=([0-9a-f]{32})/.exec(JSON.stringify(api.last(ID)));
    const [, key = '', value = ''] = label ?? [];
    assert.equal(secret(), undefined, 'nothing is sent before');
    // The project's owner follows the report, and a person requests a retry.
    gcp.projects.set(PROJECT, { [key]: value });
    await annotate(stage, 'pullwright.dev/verify', 'the label is set');
    await available();
    assert.deepEqual(
      [[...gcp.secrets.keys()].filter((path) => path.includes(PROJECT)), secret()?.key],
      [[PATH], { kmsKeyName: `projects/${PROJECT}/locations/europe-west3/keyRings/fleet/cryptoKeys/${ID}` }],
    );
    assert.equal(await stage.delivered(ID), pullSecret('first'));

    api.patch(ID, specOf('second'));
    await run.sentinel();
    await available();
    assert.deepEqual(states(), ['ENABLED', 'ENABLED'], 'both credentials are valid for a week');
    assert.match(JSON.stringify(api.last(ID)), /"previousUntil":"20/);
    assert.equal(await stage.delivered(ID), pullSecret('second'));

    await annotate(stage, 'pullwright.dev/revoke', 'leaked on Monday');
    await eventually(() => assert.deepEqual(states(), ['DISABLED', 'ENABLED'], stage.output.slice(-2000)));
    await available();

    // The owner shuts the tenant out again: what is ours is taken back all the same.
    gcp.projects.set(PROJECT, {});
    api.delete(ID);
    await run.sentinel();
    await eventually(() => assert.ok(!api.clusters.has(ID), stage.condition(ID, 'Finalized')));
    assert.equal(stage.condition(ID, 'Finalized'), 'True CleanupConfirmed');
    assert.deepEqual([secret(), await stage.delivered(ID)], [undefined, undefined]);
    assert.match(JSON.stringify(api.last(ID)), new RegExp(`"${PATH}":"removed"`));
    assert.equal(await adapter.stop(), 0);
  });
}
