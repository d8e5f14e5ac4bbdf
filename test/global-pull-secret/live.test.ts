// deadline: 420 s
// needs: control plane
/** The global pull secret on real API servers, with `delivery: reconciler`: what it owns comes back, however large Secrets are. */
import assert from 'node:assert/strict';
import type { ControlPlane } from '../control-plane/control-plane.ts';
import { eventually } from '../control-plane/eventually.ts';
import { controlPlane } from '../control-plane/live.ts';
import type { TestObject } from '../control-plane/resource-path.ts';
import { NODE, ReconcilerProcess } from '../reconcile/process.ts';
import {
  additional,
  eventsAbout,
  furnish,
  GLOBAL,
  inKubeSystem,
  ORIGINAL,
  platform,
  registriesOf,
  STATUS,
  SYNCER,
  secretOf,
  touched,
} from '../reconcile/scene.ts';
import { runProcess } from '../support/process.ts';
import { type Case, table, test } from '../support/suite.ts';

interface ComesBack extends Case {
  readonly harm: (plane: ControlPlane) => Promise<unknown>;
  readonly whole: (plane: ControlPlane) => Promise<void>;
}

const ROLE = inKubeSystem('Role', 'global-pull-secret-syncer', 'rbac.authorization.k8s.io/v1');
const merge = (plane: ControlPlane, ref: TestObject, path: string, patch: object) =>
  plane.client.request(
    'PATCH',
    path,
    { ...patch, kind: ref.kind, apiVersion: ref.apiVersion },
    'application/merge-patch+json',
  );

const COMES_BACK: readonly ComesBack[] = [
  {
    name: 'a deleted DaemonSet',
    reason: 'without it no node gets the credentials',
    harm: (plane) => plane.remove(SYNCER),
    whole: async (plane) => assert.notEqual(await plane.get(SYNCER), undefined),
  },
  {
    name: 'an edited Role',
    reason: 'rights that somebody added must not stay',
    harm: (plane) =>
      merge(
        plane,
        ROLE,
        '/apis/rbac.authorization.k8s.io/v1/namespaces/kube-system/roles/global-pull-secret-syncer',
        { rules: [{ apiGroups: ['*'], resources: ['*'], verbs: ['*'] }] },
      ),
    whole: async (plane) =>
      assert.equal(JSON.stringify((await plane.get(ROLE))?.['rules']).includes('"*"'), false),
  },
  {
    name: 'a Secret that was made immutable with wrong data',
    reason: 'it cannot be changed in place: it is replaced',
    harm: async (plane) => {
      await merge(plane, GLOBAL, '/api/v1/namespaces/kube-system/secrets/global-pull-secret', {
        immutable: true,
      });
      await plane.apply(additional('immutable.example.com'));
    },
    whole: async (plane) => {
      const secret = await plane.get(GLOBAL);
      assert.deepEqual(registriesOf(secret), ['immutable.example.com', 'quay.io']);
      assert.notEqual(secret?.['immutable'], true);
    },
  },
];

const plane = await controlPlane({ crds: ['pullstatuses.pullwright.dev'] });
await furnish(plane, 'quay.io');
await plane.apply(additional('tenant.example.com'));
const process = new ReconcilerProcess(NODE, ['--kubeconfig', plane.kubeconfig, '--metrics-port=0']);
const merged = (...registries: string[]): Promise<void> =>
  eventually(async () => assert.deepEqual(registriesOf(await plane.get(GLOBAL)), registries.sort()));

const readiness = async (): Promise<string> => {
  const { conditions = [] } = ((await plane.get(STATUS))?.['status'] ?? {}) as {
    conditions?: readonly Record<'type' | 'status' | 'reason' | 'message', string>[];
  };
  const ready = conditions.find(({ type }) => type === 'Ready');
  return `${ready?.status} ${ready?.reason} ${ready?.message}`;
};

test('both secrets and the agent are made', async () => {
  await process.says('caches are synced');
  await merged('quay.io', 'tenant.example.com');
  await eventually(async () => assert.notEqual(await plane.get(SYNCER), undefined));
  assert.deepEqual(registriesOf(await plane.get(ORIGINAL)), ['quay.io']);
});

table(test, COMES_BACK, async ({ harm, whole }) => {
  await harm(plane);
  // Well before the resync of ten minutes: the watch triggered the repair. bench/reconcile.bench.ts measures the delay.
  await eventually(() => whole(plane));
});

test('a merged secret that hangs in deletion is made again once it is gone', async () => {
  const path = '/api/v1/namespaces/kube-system/secrets/global-pull-secret';
  await merge(plane, GLOBAL, path, { metadata: { finalizers: ['example.com/hold'] } });
  await plane.remove(GLOBAL);
  await process.looksAfter(() => plane.apply(additional('held.example.com')));
  await merge(plane, GLOBAL, path, { metadata: { finalizers: null } });
  await merged('quay.io', 'held.example.com');
});

test('a merge that no Secret can hold leaves out what is too much, says so, and the platform’s rotation goes on', async () => {
  const auths: Record<string, { readonly auth: string }> = {};
  const entry = (index: number): { readonly auth: string } => ({
    auth: btoa(`robot:${'x'.repeat(40)}${index}`),
  });
  // The maximum size of a Secret.
  for (let size = '{"auths":{}}'.length, index = 10_000; size < 1_048_400; index += 1) {
    auths[`r${index}.example.com`] = entry(index);
    size += JSON.stringify({ [`r${index}.example.com`]: entry(index) }).length - 1;
  }
  const data = { '.dockerconfigjson': Buffer.from(JSON.stringify({ auths })).toString('base64') };
  await plane.apply(secretOf('additional-pull-secret', 'kube-system', data));
  const long = `${'w'.repeat(60)}.${'w'.repeat(60)}.example.com`;
  await plane.apply(platform('quay.io', 'while-large.example.com', long));
  await eventually(async () => {
    assert.deepEqual(
      registriesOf(await plane.get(ORIGINAL)),
      ['quay.io', long, 'while-large.example.com'].sort(),
    );
    const merged = registriesOf(await plane.get(GLOBAL));
    assert.ok(merged.includes(long) && merged.includes('r10000.example.com'));
    assert.ok(merged.length < Object.keys(auths).length + 3, `${merged.length} entries`);
    assert.match(JSON.stringify((await plane.get(STATUS))?.['status'] ?? {}), /"reason":"SecretFull"/);
    assert.match(await readiness(), /^False EntriesRejected .*does not fit: the merged Secret would exceed/);
  });
  await plane.apply(additional('small.example.com'));
  // One by one: more than a half at once would be held.
  for (const left of [['quay.io', 'while-large.example.com'], ['quay.io']]) {
    await plane.apply(platform(...left));
    await eventually(async () => assert.deepEqual(registriesOf(await plane.get(ORIGINAL)), left));
  }
  await merged('quay.io', 'small.example.com');
});

test('another program that undoes every write is not fought: it is named, and the object comes to rest', async () => {
  const path = '/apis/rbac.authorization.k8s.io/v1/namespaces/kube-system/roles/global-pull-secret-syncer';
  const undo = (): Promise<unknown> =>
    plane.client.request(
      'PATCH',
      `${path}?fieldManager=another-operator`,
      { rules: [{ apiGroups: [''], resources: ['pods'], verbs: ['get'] }] },
      'application/merge-patch+json',
    );
  const version = async (): Promise<unknown> => (await plane.get(ROLE))?.metadata['resourceVersion'];
  // After it has yielded to the other writer, a reverted write triggers no reconcile.
  for (let round = 0; round < 12 && !/ManagedElsewhere/.test(process.log); round += 1)
    await process.looksAfter(undo);
  await undo();
  const settled = await version();
  // It reconciles everything again, and applies changes that do not concern the Role.
  await plane.apply(additional('fence.example.com'));
  await merged('quay.io', 'fence.example.com');
  assert.equal(await version(), settled, 'the resource version stops moving');
  assert.match(process.log, /ManagedElsewhere/);
  const events = await eventsAbout(plane, 'global-pull-secret-syncer');
  assert.ok(
    events.some(
      (event) => event['reason'] === 'ManagedElsewhere' && /another-operator/.test(String(event['note'])),
    ),
  );
});

test('at rest it sends nothing, however often it is made to look', async () => {
  const touch = (value: number): Promise<unknown> => plane.apply(touched(value), 'somebody');
  await process.looksAfter(() => touch(0));
  const before = await process.writes();
  assert.ok(before > 0);
  for (const value of [1, 2, 3]) await process.looksAfter(() => touch(value));
  assert.equal(await process.writes(), before);
});

test('--dry-run shows what is missing and writes nothing', async () => {
  assert.equal(await process.stop(), 0);
  await plane.remove(SYNCER);
  const dry = await runProcess([...NODE, 'reconcile', '--kubeconfig', plane.kubeconfig, '--dry-run']);
  assert.match(dry.stdout, /created +DaemonSet\/kube-system\/global-pull-secret-syncer/);
  assert.equal(await plane.get(SYNCER), undefined);
});

test.lastly('nothing secret was logged', () => assert.equal(process.log.includes('robot'), false));
