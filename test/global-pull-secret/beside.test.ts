// deadline: 420 s
// needs: control plane
/**
 * Beside HyperShift's operator, with each mode and each delivery, and with the rendered tree applied again and again as a GitOps
 * tool does: in either order, the operator's objects stay unchanged, and all writes stop.
 */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { parse, parseAllDocuments } from 'yaml';
import { renderFleet } from '../../charts/app.ts';
import { readFleet } from '../../charts/fleet.ts';
import { eventually } from '../control-plane/eventually.ts';
import type { TestObject } from '../control-plane/resource-path.ts';
import { discovering, type ReconcilerProcess } from '../reconcile/process.ts';
import {
  additional,
  declare,
  GLOBAL,
  inKubeSystem,
  makeNamespaces,
  ORIGINAL,
  registriesOf,
  SYNCER,
  touched,
} from '../reconcile/scene.ts';
import { startTwoPlanes } from '../reconcile/two-planes.ts';
import { HostedClusterConfigOperator, OPERATOR_IMAGE } from '../support/hosted-cluster-config-operator.ts';
import { hostedCluster, platformOf } from '../support/hypershift.ts';
import { meta } from '../support/meta.ts';
import { type Case, table, test } from '../support/suite.ts';

type Mode = 'auto' | 'observe' | 'own';
type Delivery = 'gitops' | 'reconciler';

const STATUS = inKubeSystem('PullStatus', 'secret-original-pull-secret', 'pullwright.dev/v1alpha1');
const TENANT_STATUS = inKubeSystem('PullStatus', 'secret-additional-pull-secret', 'pullwright.dev/v1alpha1');
const ACCOUNT = inKubeSystem('ServiceAccount', 'global-pull-secret-syncer');
const THEIRS: readonly TestObject[] = [GLOBAL, ORIGINAL, SYNCER, ACCOUNT];
const ROUNDS = 5;
const ELIGIBLE = { 'hypershift.openshift.io/nodepool-globalps-enabled': 'true' };

/** The tree of the hosted cluster, and the configuration of its reconciler. */
function rendered(mode: Mode, delivery: Delivery): { objects: readonly TestObject[]; config: string } {
  const { tree } = renderFleet(
    readFleet({
      image: 'registry.example.com/pullwright:0.1.0',
      clusters: [
        { name: 'hub', kind: 'management' },
        {
          name: 'one',
          kind: 'hosted',
          management: 'hub',
          delivery,
          systems: { 'global-pull-secret': { mode } },
        },
      ],
    }),
  );
  const objects = [...tree]
    .filter(([path]) => path.startsWith('one/') && !path.endsWith('kustomization.yaml'))
    .flatMap(([, text]) => parseAllDocuments(text).map((document) => document.toJS() as TestObject));
  const map = parse(tree.get('hub/pullwright-system/configmap-pullwright-reconciler-config.yaml') ?? '') as {
    data: Readonly<Record<string, string>>;
  };
  return { objects, config: map.data['config.yaml'] ?? '' };
}

const { management, hosted } = await startTwoPlanes();
await makeNamespaces(management, 'clusters');
await hosted.apply({ apiVersion: 'v1', kind: 'Node', metadata: { name: 'worker', labels: ELIGIBLE } });
await declare(management, 'one', readFileSync(hosted.kubeconfig, 'utf8'));
const operator = new HostedClusterConfigOperator(hosted, () =>
  management.get(meta('v1 Secret', { name: 'pull-secret', namespace: 'clusters-one' })),
);

let process: ReconcilerProcess | undefined;
const start = (config: string): ReconcilerProcess => {
  const path = `${management.folder}/config.yaml`;
  writeFileSync(path, config);
  process = discovering(management.kubeconfig, path, ['--metrics-port=0']);
  return process;
};

const versions = (): Promise<readonly unknown[]> =>
  Promise.all(
    [...THEIRS, STATUS].map(async (ref) => {
      const metadata = (await hosted.get(ref))?.metadata;
      return [ref.metadata.name, metadata?.['uid'], metadata?.['resourceVersion']];
    }),
  );
const imageOf = async (): Promise<unknown> =>
  (await hosted.get(SYNCER))?.['spec']?.template.spec.containers[0].image;
const readiness = async (): Promise<string> => {
  const { conditions = [] } = ((await hosted.get(STATUS))?.['status'] ?? {}) as {
    conditions?: readonly Record<'type' | 'status' | 'reason' | 'message', string>[];
  };
  const ready = conditions.find(({ type }) => type === 'Ready');
  return `${ready?.status} ${ready?.reason} ${ready?.message}`;
};
const says = (what: RegExp): Promise<void> =>
  eventually(async () => assert.match(JSON.stringify((await hosted.get(STATUS))?.['status'] ?? {}), what));

/** A hosted cluster as it was before anybody came. */
const cleared = async (platformType: 'None' | 'AWS'): Promise<void> => {
  if (process?.running === true) await process.stop('SIGKILL');
  for (const ref of [...THEIRS, STATUS, TENANT_STATUS]) await hosted.remove(ref);
  const cluster = hostedCluster('one');
  await management.remove(cluster);
  await management.apply({ ...cluster, spec: { ...cluster['spec'], platform: platformOf(platformType) } });
  await hosted.apply(additional('tenant.example.com'));
};

let value = 0;
/** The operator passes, the GitOps tool syncs, and the reconciler has to look. */
const round = async (objects: readonly TestObject[]): Promise<void> => {
  await operator.pass();
  for (const object of objects) await hosted.apply(object, 'argocd-controller');
  value += 1;
  await process?.looksAfter(() => hosted.apply(touched(value), 'somebody'));
};

/** No reconciler changes the objects any more, and the operator owns them. */
const assertRest = async (objects: readonly TestObject[]): Promise<void> => {
  for (let count = 0; count < 2; count += 1) await round(objects);
  const before = await versions();
  const writes = [operator.writes, await process?.writes()];
  for (let count = 0; count < ROUNDS; count += 1) await round(objects);
  assert.deepEqual(await versions(), before, 'the resource versions stand still');
  assert.deepEqual([operator.writes, await process?.writes()], writes, 'nobody writes');
  assert.equal(await imageOf(), OPERATOR_IMAGE);
  assert.deepEqual(registriesOf(await hosted.get(GLOBAL)), ['quay.io', 'tenant.example.com']);
};

interface Beside extends Case {
  readonly mode: Mode;
  readonly delivery: Delivery;
  readonly first: 'operator' | 'we';
  readonly says: RegExp;
}

const BESIDE: readonly Beside[] = (['gitops', 'reconciler'] as const).flatMap((delivery) => [
  {
    name: `auto, ${delivery}`,
    reason: 'the operator is seen by its fields',
    mode: 'auto',
    delivery,
    first: 'operator',
    says: /"Observing"/,
  },
  {
    name: `auto, ${delivery}, before the operator comes`,
    reason: 'what was ours is given up when it does',
    mode: 'auto',
    delivery,
    first: 'we',
    says: /"Observing"/,
  },
  {
    name: `observe, ${delivery}`,
    reason: 'that is what it is for',
    mode: 'observe',
    delivery,
    first: 'operator',
    says: /"Observing"/,
  },
  {
    name: `own, ${delivery}`,
    reason: 'there is no way, so that nothing is tried',
    mode: 'own',
    delivery,
    first: 'operator',
    says: /"TakeoverImpossible"/,
  },
]);

table(test, BESIDE, async ({ mode, delivery, first, says: said }) => {
  await cleared('AWS');
  const { objects, config } = rendered(mode, delivery);
  if (first === 'operator') await operator.pass();
  start(config);
  if (first === 'we') await eventually(async () => assert.notEqual(await hosted.get(SYNCER), undefined));
  await round(objects);
  await says(said);
  await assertRest(objects);
  // Killed, and started again: it finds what it left.
  await process?.stop('SIGKILL');
  const before = await versions();
  start(config);
  await process?.says('caches are synced');
  await round(objects);
  assert.deepEqual(await versions(), before);
});

const codesIn = (text: string): string => /confirm-takeover: "([0-9a-f,]+)"/.exec(text)?.[1] ?? '';
const confirm = async (codes: string): Promise<void> => {
  const annotations = { 'pullwright.dev/confirm-takeover': codes };
  const { apiVersion, kind, metadata } = hostedCluster('one');
  await management.apply({ apiVersion, kind, metadata: { ...metadata, annotations } }, 'somebody');
};

test('a confirmed takeover from an operator that is still there is one try, and then all comes to rest', async () => {
  await cleared('None');
  await operator.pass();
  const { objects, config } = rendered('own', 'reconciler');
  start(config);
  await says(/"TakeoverHeld"/);
  const plan = await readiness();
  assert.match(plan, /DaemonSet\/kube-system\/global-pull-secret-syncer \(owner hosted-cluster-config/);
  await process?.looksAfter(() => confirm(codesIn(plan)));
  await eventually(async () => assert.notEqual(await imageOf(), OPERATOR_IMAGE));
  await round(objects);
  await says(/"TakeoverHeld"/);
  await assertRest(objects);
});

test('what an operator left is taken over whole, also when the process is killed in the middle', async () => {
  await cleared('None');
  await operator.pass();
  await hosted.remove(inKubeSystem('Secret', 'additional-pull-secret'));
  const { config } = rendered('own', 'reconciler');
  start(config);
  await says(/"TakeoverHeld"/);
  const uid: unknown = (await hosted.get(SYNCER))?.metadata['uid'];
  const before = (await hosted.get(ORIGINAL))?.metadata['resourceVersion'];
  await confirm(codesIn(await readiness()));
  await eventually(async () => {
    assert.notEqual((await hosted.get(ORIGINAL))?.metadata['resourceVersion'], before);
  });
  await process?.stop('SIGKILL');
  start(config);
  await process?.says('caches are synced');
  await eventually(async () => {
    const made = await hosted.get(SYNCER);
    assert.notEqual(made, undefined);
    assert.notEqual(made?.metadata['uid'], uid);
    assert.equal(await hosted.get(GLOBAL), undefined);
    // No agent runs here.
    assert.match(await readiness(), /^False NodesBehind used on 0 of 1 node/);
  });
  assert.equal((await hosted.get(SYNCER))?.['spec'].template.spec.containers[0].args, undefined);
});

test.lastly('it stops with exit code 0, and nothing secret was logged', async () => {
  assert.equal(process?.log.includes('robot'), false);
  assert.equal(await process?.stop(), 0);
  await Promise.all([management.stop(), hosted.stop()]);
});
