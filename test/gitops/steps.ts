/** Shared tests of Flux and Argo CD: two clusters, one delivered from git, one by its reconciler. */
import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { eventually } from '../control-plane/eventually.ts';
import { changes } from '../node/machine/snapshot.ts';
import { additional, GLOBAL, registriesOf, SYNCER } from '../reconcile/scene.ts';
import { docBlock } from '../support/doc-blocks.ts';
import type { TestSuite } from '../support/suite.ts';
import { DeliveredCluster } from './cluster.ts';
import { managersOf, objectNames } from './objects.ts';
import { Repository } from './repository.ts';
import { COPY, DEPLOYMENT, named, PROFILE, ROLE, SOURCE, VERIFY } from './scene.ts';

/** Generous: a busy machine is no failure. */
export const within = <T>(check: () => Promise<T>): Promise<T> => eventually(check, { withinMs: 180_000 });

/** The clusters of the page's fleets, and a repository without a commit. */
export interface Clusters {
  readonly prod: DeliveredCluster;
  readonly lab: DeliveredCluster;
  readonly repository: Repository;
  /** Folder for additional files of a test. */
  readonly folder: string;
}

export async function startClusters(): Promise<Clusters> {
  const [prod, lab] = await Promise.all([DeliveredCluster.start(), DeliveredCluster.start()]);
  for (const name of ['platform', 'team-a']) await prod.plane.apply(named('v1', 'Namespace', name));
  const folder = join(prod.plane.folder, 'user');
  mkdirSync(folder);
  return { prod, lab, folder, repository: await Repository.create(folder, prod.plane.kubeconfig) };
}

/** Clusters to which a tool delivers. */
export interface Delivery extends Clusters {
  readonly title: 'Flux' | 'Argo CD';
  /** The tool's field manager. */
  readonly manager: string;
  readonly report: () => Promise<string>;
  /** Names of the objects of `prod` before anything was delivered. */
  readonly before: ReadonlySet<string>;
}

/** Runs a block of a page unchanged, and returns its output. */
export async function runBlock(
  { repository, report }: Delivery,
  heading: string,
  page = 'docs/gitops.md',
): Promise<string> {
  const block = docBlock(page, heading, 'sh');
  const ran = await repository.shell(block);
  assert.equal(ran.code, 0, `${block}\n${ran.stdout}\n${ran.stderr}\n${await report()}`);
  return ran.stdout;
}

export function testReconciled(test: TestSuite, { prod, lab, manager }: Delivery): void {
  test('what git does not hold, the reconciler makes: its DaemonSet too where it is told to', async () => {
    for (const [{ plane }, maker] of [
      [prod, manager],
      [lab, 'pullwright-global-pull-secret'],
    ] as const) {
      await plane.apply(additional('tenant.example.com'));
      await within(async () =>
        assert.deepEqual(registriesOf(await plane.get(GLOBAL)), ['tenant.example.com']),
      );
      await within(async () => assert.ok(managersOf(await plane.get(SYNCER)).includes(maker)));
    }
  });
}

/** @param look makes the tool look, and waits until it has */
export function testDrift(
  test: TestSuite,
  { prod: { plane } }: Delivery,
  look: () => Promise<unknown>,
): void {
  test('drift: changed or deleted objects are restored, and Secrets are not touched', async () => {
    const secrets = await Promise.all([GLOBAL, COPY, SOURCE].map((one) => plane.get(one)));
    const { name, namespace = '' } = DEPLOYMENT.metadata;
    await plane.kubectl('-n', namespace, 'scale', 'deployment', name, '--replicas=5');
    await plane.kubectl('delete', 'clusterrole', ROLE.metadata.name);
    await look();
    await within(async () => assert.equal((await plane.get(DEPLOYMENT))?.['spec'].replicas, 2));
    await within(async () => assert.notEqual(await plane.get(ROLE), undefined));
    assert.deepEqual(await Promise.all([GLOBAL, COPY, SOURCE].map((one) => plane.get(one))), secrets);
  });
}

export function testUpgrade(test: TestSuite, delivery: Delivery): void {
  const { prod, lab, repository, title } = delivery;
  test('upgrade: a newer image, other options, and a system less', async () => {
    repository.edit('fleet.yaml', 'pullwright:0.1.0', 'pullwright:0.2.0');
    repository.edit('fleet.yaml', '      verify: {}\n', '');
    repository.edit(
      'fleet.yaml',
      'createConfigNamespace: true }\n',
      'createConfigNamespace: true, enforce: deny }\n',
    );
    await runBlock(delivery, `${title}: change`);
    for (const { plane } of [prod, lab]) {
      const [container] = (await plane.get(DEPLOYMENT))?.['spec'].template.spec.containers ?? [];
      assert.match(container.image, /:0\.2\.0$/);
    }
    await within(async () => assert.equal(await prod.plane.get(VERIFY), undefined));
    for (const one of [GLOBAL, COPY, SOURCE, PROFILE]) assert.notEqual(await prod.plane.get(one), undefined);
  });
}

/** @param change commits, and waits until the tool has done what it does by itself */
export function testOverlayLeft(test: TestSuite, delivery: Delivery, change: () => Promise<unknown>): void {
  const {
    prod: { plane },
    repository,
  } = delivery;
  test('an overlay that left the fleet: it goes, with what it brought and what was made of that', async () => {
    const section = / {6}pull-secret-injection:\n[^]*(?= {2}- name: lab)/;
    repository.edit('fleet.yaml', section, '      pull-secret-injection: {}\n');
    await change();
    await within(async () => assert.equal(await plane.get(PROFILE), undefined));
    await within(async () => assert.equal(await plane.get(COPY), undefined));
    for (const one of [GLOBAL, SOURCE, DEPLOYMENT]) assert.notEqual(await plane.get(one), undefined);
  });
}

/** @param of what delivers, as `uninstall` names it @param left what the tool itself leaves */
export function testLeaving(
  test: TestSuite,
  delivery: Delivery,
  { of, left }: { readonly of: string; readonly left: readonly string[] },
): void {
  const {
    prod: { plane },
    repository,
    title,
    before,
  } = delivery;
  test(`uninstall refuses while ${title} delivers`, async () => {
    const refused = await repository.shell('pullwright uninstall --yes');
    assert.equal(refused.code, 1);
    assert.ok(refused.stderr.includes(`by ${of}`), refused.stderr);
    assert.notEqual(await plane.get(DEPLOYMENT), undefined);
  });

  test('uninstall: by the page, nothing of ours stays, and everything of others', async () => {
    assert.match(await runBlock(delivery, `Out of ${title}`, 'docs/operations.md'), /removed, \d+ kept/);
    const theirs = ['+ Secret kube-system additional-pull-secret', '+ Secret platform quay-robot'];
    await within(async () =>
      assert.deepEqual(changes(before, await objectNames(plane)), [...left, ...theirs].sort()),
    );
  });
}
