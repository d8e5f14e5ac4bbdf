/** Reconcilers of two versions in one cluster: after each other, beside each other, and what uninstall makes of both. */
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type ControlPlane, startControlPlane } from '../control-plane/control-plane.ts';
import { eventually } from '../control-plane/eventually.ts';
import type { TestObject } from '../control-plane/resource-path.ts';
import { ReconcilerProcess } from '../reconcile/process.ts';
import { additional, furnish, GLOBAL, registriesOf, touched } from '../reconcile/scene.ts';
import { inSync, OLD, startNode } from '../support/agent-scene.ts';
import { runProcess } from '../support/process.ts';
import { digestOf, until } from '../support/systemd.ts';
import { tempFolder } from '../support/temp-folder.ts';
import type { Judge, Pair } from './pair.ts';

const OWNED = 'pullwright.dev/owner';
const LISTS: readonly string[] = [
  '/api/v1/secrets',
  '/api/v1/configmaps',
  '/apis/apps/v1/daemonsets',
  '/apis/pullwright.dev/v1alpha1/pullstatuses',
];

/** Objects that reconcilers keep, as text: identity and content, without fields that every write changes. */
async function kept(plane: ControlPlane): Promise<readonly string[]> {
  const lists = await Promise.all(
    LISTS.map(async (path) => {
      const selector = path.includes('pullstatuses') ? '' : `?labelSelector=${OWNED}`;
      const { body } = await plane.client.request('GET', `${path}${selector}`);
      return (body['items'] as TestObject[]).map(({ metadata, data }) =>
        [path, metadata.namespace, metadata.name, metadata['uid'], digestOf(JSON.stringify(data ?? ''))].join(
          ' ',
        ),
      );
    }),
  );
  return lists.flat().sort();
}

class Cluster {
  readonly plane: ControlPlane;
  readonly #running: ReconcilerProcess[] = [];

  constructor(plane: ControlPlane) {
    this.plane = plane;
  }

  start(program: string): ReconcilerProcess {
    const started = new ReconcilerProcess(
      [program],
      ['--kubeconfig', this.plane.kubeconfig, '--lease-namespace=default', '--metrics-port=0'],
    );
    this.#running.push(started);
    return started;
  }

  async merged(...registries: string[]): Promise<void> {
    await eventually(async () => {
      assert.deepEqual(registriesOf(await this.plane.get(GLOBAL)), [...registries].sort());
    }).catch((error: unknown) => {
      const log = this.#running.at(-1)?.log.slice(-2000) ?? '';
      throw new Error(`the Secret is not merged: ${String(error)}\n${log}`);
    });
  }

  async stop(): Promise<void> {
    for (const one of this.#running) if (one.running) await one.stop('SIGKILL');
    await this.plane.stop();
  }
}

/** `first` has done its work; `second` looks at all of it, changes nothing, then carries a change out. */
async function follows(
  cluster: Cluster,
  [first, second]: readonly [string, string],
  suffix: string,
): Promise<string> {
  const { plane } = cluster;
  await plane.apply(additional(`one-${suffix}.example.com`));
  const before = cluster.start(first);
  await cluster.merged('quay.io', `one-${suffix}.example.com`);
  await before.looksAfter(() => plane.apply(additional(`one-${suffix}.example.com`, 'b.example.com')));
  await cluster.merged('quay.io', `one-${suffix}.example.com`, 'b.example.com');
  assert.equal(await before.stop(), 0);
  const left = await kept(plane);
  assert.ok(left.length > 1);
  const after = cluster.start(second);
  await after.says('became leader', 60_000);
  await after.looksAfter(() => plane.apply(touched(suffix === 'up' ? 1 : 2), 'somebody'));
  assert.deepEqual(await kept(plane), left, 'the same objects with the same content');
  await plane.apply(additional(`two-${suffix}.example.com`));
  await cluster.merged('quay.io', `two-${suffix}.example.com`);
  assert.deepEqual(identities(await kept(plane)), identities(left), 'the same objects');
  const writes = await after.writes();
  assert.equal(await after.stop(), 0);
  return `${left.length} objects kept; ${writes} writes of the second for one change`;
}

const identities = (lines: readonly string[]): readonly string[] =>
  lines.map((line) => line.split(' ').slice(0, 4).join(' '));

/** Both run; one leads. What waits takes over when the leader stops. */
async function besides(
  cluster: Cluster,
  [first, second]: readonly [string, string],
  suffix: string,
): Promise<string> {
  const leader = cluster.start(first);
  await leader.says('became leader', 60_000);
  const waiting = cluster.start(second);
  await waiting.says('caches are synced', 60_000);
  await cluster.plane.apply(additional(`three-${suffix}.example.com`));
  await cluster.merged('quay.io', `three-${suffix}.example.com`);
  assert.equal(waiting.said('became leader').length, 0);
  assert.equal(await leader.stop(), 0);
  await waiting.says('became leader', 60_000);
  await cluster.plane.apply(additional(`four-${suffix}.example.com`));
  await cluster.merged('quay.io', `four-${suffix}.example.com`);
  assert.equal(await waiting.stop(), 0);
  return 'one led, the other took over and went on';
}

/** The Secret that a reconciler of one version merged, on a node with an agent of the other. */
async function carries(cluster: Cluster, reconciler: string, agent: string): Promise<string> {
  const running = cluster.start(reconciler);
  await cluster.plane.apply(additional('carried.example.com'));
  await cluster.merged('quay.io', 'carried.example.com');
  await running.stop();
  const secret = await cluster.plane.get(GLOBAL);
  const content = Buffer.from(String(secret?.['data']?.['.dockerconfigjson']), 'base64').toString();
  const node = await startNode();
  try {
    node.original.swap(OLD);
    node.global.swap(content);
    const started = node.agent([], process.env, agent);
    await inSync(started);
    await until('the kubelet has read it', () => node.machine.starts().at(-1) === digestOf(content));
    assert.equal(readFileSync(node.machine.config, 'utf8'), content);
    return 'config.json holds the bytes of the Secret, and the kubelet has read them';
  } finally {
    await node.stop();
  }
}

/** The configuration that one version renders, read by the other. */
async function readsConfig(renders: string, reads: string): Promise<string> {
  const folder = tempFolder();
  const fleet = join(folder, 'fleet.yaml');
  writeFileSync(
    fleet,
    'image: registry.example.com/pullwright:1\nclusters:\n  - { name: one, path: ".", systems: { global-pull-secret: {}, registry-overrides: {}, pull-secret-injection: {}, credential-provider: {} } }\n',
  );
  const rendered = await runProcess([renders, 'synth', '--fleet', fleet, '--to', join(folder, 'manifests')]);
  assert.equal(rendered.code, 0, rendered.stderr);
  const found = await runProcess(['grep', '-rl', 'config.yaml: |', join(folder, 'manifests')]);
  const [file = ''] = found.stdout.split('\n');
  const { parse } = await import('yaml');
  const { data } = parse(readFileSync(file, 'utf8')) as { data: Readonly<Record<string, string>> };
  writeFileSync(join(folder, 'config.yaml'), data['config.yaml'] ?? '');
  mkdirSync(join(folder, 'empty'));
  const ran = await runProcess([
    reads,
    'reconcile',
    '--from',
    join(folder, 'empty'),
    '--config',
    join(folder, 'config.yaml'),
    '--dry-run',
  ]);
  // Newer fields are refused by name, before anything is done: docs/operations.md says so.
  const refused = /Cannot read the configuration|[Uu]nknown|unrecognized/i.test(ran.stderr);
  assert.ok(ran.code === 0 || refused, `exit code ${ran.code}: ${ran.stderr.slice(0, 300)}`);
  return ran.code === 0 ? 'taken' : `refused by name: ${ran.stderr.trim().slice(0, 80)}`;
}

/** Runs the checks of clusters. */
export async function clusterChecks({ older, newer }: Pair, judge: Judge): Promise<void> {
  const plane = await startControlPlane({ controllerManager: true, crds: ['pullstatuses.pullwright.dev'] });
  const cluster = new Cluster(plane);
  const up = [older, newer] as const;
  const down = [newer, older] as const;
  try {
    await furnish(plane, 'quay.io');
    const rows: readonly (readonly [string, () => Promise<string>])[] = [
      ['reconciler: N on the objects of N-1', () => follows(cluster, up, 'up')],
      ['reconciler: N-1 on the objects of N (downgrade)', () => follows(cluster, down, 'down')],
      ['reconciler: N waits beside N-1, and takes over', () => besides(cluster, up, 'up')],
      ['reconciler: N-1 waits beside N, and takes over', () => besides(cluster, down, 'down')],
      ['agent N-1 with reconciler N', () => carries(cluster, newer, older)],
      ['agent N with reconciler N-1', () => carries(cluster, older, newer)],
      ['reconciler N with the configuration that N-1 renders', () => readsConfig(older, newer)],
      ['reconciler N-1 with the configuration that N renders', () => readsConfig(newer, older)],
      ['uninstall of N after both', () => removes(cluster, newer)],
    ];
    for (const [what, look] of rows) await judge({ what, look });
  } finally {
    await cluster.stop();
  }
}

async function removes({ plane }: Cluster, program: string): Promise<string> {
  const ran = await runProcess(
    [program, 'uninstall', '--kubeconfig', plane.kubeconfig, '--yes', '--skip-nodes'],
    { deadlineMs: 120_000 },
  );
  assert.equal(ran.code, 0, ran.stderr);
  const left =
    (await plane.get(GLOBAL)) ??
    (await plane.get({ ...GLOBAL, metadata: { ...GLOBAL.metadata, name: 'original-pull-secret' } }));
  assert.equal(left, undefined);
  assert.ok((await plane.get(additional())) !== undefined, "the tenant's Secret stays");
  return ran.stdout.trim().split('\n').at(-1) ?? '';
}
