/**
 * The end of a cluster in a live installation, whatever has happened to the places that its pull secret was written to. Each ends with
 * `Finalized=True`, its receipt, and nothing left at Google.
 */
import assert from 'node:assert/strict';
import { JOB_CLUSTER_ROLE } from '../../runtime/pull-secret-adapter/objects.ts';
import { eventually } from '../control-plane/eventually.ts';
import type { TestObject } from '../control-plane/resource-path.ts';
import { meta } from '../support/meta.ts';
import { type Case, type TestSuite, table } from '../support/suite.ts';
import { goodSpec } from './scene.ts';
import type { Stage } from './stage.ts';

type Sentinel = () => Promise<void>;

interface Row extends Case {
  readonly id: string;
  /** Setup before the deletion. */
  readonly before: (stage: Stage, id: string, sentinel: Sentinel) => Promise<void> | void;
  /** Afterwards, so that nothing of it is left. */
  readonly after?: (stage: Stage, id: string) => Promise<void>;
  /** Result for each target of the deletion. */
  readonly receipt: Readonly<Record<string, string>>;
}

function namespaceOf(id: string): TestObject {
  return { apiVersion: 'v1', kind: 'Namespace', metadata: { name: `clusters-${id}` } };
}

function held(id: string, finalizers: readonly string[]): TestObject {
  const metadata = { name: 'held', namespace: `clusters-${id}`, finalizers };
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata };
}

function google(id: string, project = 'cust-proj'): string {
  return `projects/${project}/secrets/hyperfleet-${id}-pull-secret`;
}

function kubernetes(id: string): string {
  return `namespaces/clusters-${id}/secrets/pull-secret`;
}

const ROWS: readonly Row[] = [
  {
    name: 'the management namespace is gone',
    reason: 'others tear down at the same time',
    id: 'end-gone',
    before: async ({ plane }, id) => {
      await plane.remove(namespaceOf(id));
      await eventually(async () => assert.equal(await plane.get(namespaceOf(id)), undefined));
    },
    receipt: { [kubernetes('end-gone')]: 'its namespace does not exist', [google('end-gone')]: 'removed' },
  },
  {
    name: 'the management namespace is being deleted, and something holds it up',
    reason: 'no binding can be made in it, and the secret at Google must not stay readable for that',
    id: 'end-ending',
    before: async ({ plane }, id) => {
      await plane.apply(held(id, ['example.com/held']));
      await plane.remove(namespaceOf(id));
      await eventually(async () => {
        const found = await plane.get(namespaceOf(id));
        assert.notEqual(found?.metadata['deletionTimestamp'], undefined);
      });
    },
    after: async ({ plane }, id) => {
      await plane.apply(held(id, []));
      await eventually(async () => assert.equal(await plane.get(namespaceOf(id)), undefined));
    },
    receipt: {
      [kubernetes('end-ending')]: 'its namespace is being deleted',
      [google('end-ending')]: 'removed',
    },
  },
  {
    name: 'the project was changed before',
    reason: 'both are gone to',
    id: 'end-moved',
    before: async (stage, id, sentinel) => {
      stage.api.patch(id, { ...goodSpec(id), gcp: { projectId: 'other-proj' } });
      await sentinel();
      await eventually(() => {
        assert.ok(stage.gcp.secrets.has(google(id, 'other-proj')));
        assert.equal(stage.api.last(id)?.observed_generation, 2);
        assert.equal(stage.condition(id, 'Available'), 'True SecretAvailable');
      });
      assert.ok(stage.gcp.secrets.has(google(id)), 'the first one is there as well');
    },
    receipt: {
      [kubernetes('end-moved')]: 'removed',
      [google('end-moved')]: 'removed',
      [google('end-moved', 'other-proj')]: 'removed',
    },
  },
];

export function deletionLiveCases(test: TestSuite, stage: Stage, sentinel: Sentinel): void {
  const store = async (id: string): Promise<void> => {
    await stage.add(id, goodSpec(id));
    await sentinel();
    await eventually(() => assert.equal(stage.condition(id, 'Available'), 'True SecretAvailable'));
  };
  const ended = async (id: string, receipt: Readonly<Record<string, string>>): Promise<void> => {
    await eventually(() => assert.ok(!stage.api.clusters.has(id), stage.condition(id, 'Finalized')));
    assert.equal(stage.condition(id, 'Finalized'), 'True CleanupConfirmed');
    assert.deepEqual(stage.api.last(id)?.data?.['receipt'], receipt);
    const left = [...stage.gcp.secrets.keys()].filter((name) => name.includes(id));
    assert.deepEqual(left, []);
  };

  table(test, ROWS, async (row) => {
    await store(row.id);
    await row.before(stage, row.id, sentinel);
    stage.api.delete(row.id);
    await sentinel();
    await ended(row.id, row.receipt);
    await row.after?.(stage, row.id);
    stage.api.faults = [];
  });

  test('Google does not answer, and the Jobs lose their right: the deletion waits, says why, and ends once they are back', async () => {
    const [away, bare] = ['end-away', 'end-right'];
    for (const id of [away, bare]) await store(id);
    stage.gcp.faults = [{ rpc: 'DeleteSecret', code: 'UNAVAILABLE' }];
    stage.api.delete(away);
    await sentinel();
    const finalized = (id: string, wanted: string): Promise<void> =>
      eventually(() => assert.equal(stage.condition(id, 'Finalized'), wanted));
    await finalized(away, 'False SecretManagerUnavailable');
    assert.ok(stage.gcp.secrets.has(google(away)), 'it is not said to be gone');
    stage.gcp.faults = [];
    const role: TestObject = meta('rbac.authorization.k8s.io/v1 ClusterRole', { name: JOB_CLUSTER_ROLE });
    const right = await stage.plane.get(role);
    assert.ok(right);
    await stage.plane.remove(role);
    stage.api.delete(bare);
    await sentinel();
    await finalized(bare, 'False ManagementNamespaceMissing');
    assert.notEqual(await stage.delivered(bare), undefined);
    assert.equal(stage.stored(bare), undefined, 'what can be removed is removed');
    const { rules } = right as { readonly rules?: unknown };
    await stage.plane.apply({ ...role, rules });
    await ended(away, { [kubernetes(away)]: 'removed', [google(away)]: 'removed' });
    await ended(bare, { [kubernetes(bare)]: 'removed', [google(bare)]: 'removed' });
    assert.equal(await stage.delivered(bare), undefined);
  });
}
