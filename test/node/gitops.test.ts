// deadline: 600 s
// needs: node, Flux
/**
 * A fleet that Flux brings from git to a real node of kubeadm, by the commands of docs/gitops.md: from the commit to the pods
 * that run, through a rotation, an upgrade, drift and bad commits, and out by docs/operations.md.
 */
import assert from 'node:assert/strict';
import type { TestObject } from '../control-plane/resource-path.ts';
import { PROFILE } from '../gitops/scene.ts';
import { meta } from '../support/meta.ts';
import { test } from '../support/suite.ts';
import { GitOpsScene, type Owner } from './gitops-scene.ts';
import { NODE_NAME } from './machine/node.ts';
import { IMAGE, ok } from './machine/product.ts';
import { changes, clusterObjects, nodeFiles } from './machine/snapshot.ts';
import { inMachine, step } from './machine/steps.ts';

const CONFIG = '/var/lib/kubelet/config.json';
const BASE = 'pullwright-prod';
const PROFILES = 'pullwright-prod-pullwright.dev';
const AGENT = 'manifests/prod/kube-system/daemonset-global-pull-secret-syncer.yaml';
const OWNERS: readonly Owner[] = ['tenant', 'team'];
const SYNCER: TestObject = meta('apps/v1 DaemonSet', {
  name: 'global-pull-secret-syncer',
  namespace: 'kube-system',
});

await inMachine(import.meta.filename, journey);

async function journey(): Promise<void> {
  const scene = await GitOpsScene.start();
  const { node, flux, repository } = scene;
  const { plane } = node;
  const [files, objects] = [nodeFiles(node), await clusterObjects(node)];
  const agentOf = async (): Promise<{ image: string; command: readonly string[] }> =>
    (await plane.get(SYNCER))?.['spec'].template.spec.containers[0];
  /** Both say that everything which git holds is there and healthy. */
  const synced = (): Promise<void> =>
    scene.within(async () => {
      for (const name of [BASE, PROFILES]) {
        assert.equal(await flux.ready(name), 'True', await flux.report());
        assert.equal(await flux.revision(name), `main@sha1:${repository.revision}`);
      }
    });
  const containers = (): Promise<readonly (string | undefined)[]> =>
    Promise.all(
      OWNERS.map(async (owner) => /"containerID":"([^"]+)"/.exec(await scene.pod(owner, 'web'))?.[1]),
    );
  const nodeReport = async (): Promise<string> =>
    JSON.stringify(
      (
        await plane.get(
          meta('pullwright.dev/v1alpha1 PullStatus', { name: `node-${NODE_NAME}`, namespace: 'kube-system' }),
        )
      )?.['status'] ?? {},
    );

  step(
    'from the commit to pods of ours that run: the base is ready, what waits for people says so',
    async () => {
      repository.write('fleet.yaml', scene.fleet());
      await scene.run('Flux: install');
      // A pod that the API server stores before it has loaded the policy never gets the name.
      await scene.within(async () => {
        const { conditions = [] } = ((await plane.get(PROFILE))?.['status'] ?? {}) as {
          conditions?: readonly { type: string; status: string }[];
        };
        assert.equal(conditions.find(({ type }) => type === 'Injecting')?.status, 'True');
      });
      for (const owner of OWNERS) await scene.make(owner, 'web');
      for (const owner of OWNERS) await scene.waits(owner, 'web');
      // The page's profile gives the name to pods of every namespace.
      for (const owner of OWNERS)
        await scene.doctorSays(owner, 'web', /secrets-there .*team-registry is to bring it: SourceMissing/);
      await scene.within(async () => assert.equal(await flux.ready(PROFILES), 'False', await flux.report()));
      assert.match(await scene.run('Flux: look'), /PullSecretProfile\/team-registry status: 'Failed'/);
      assert.match(await ok(node, 'pullwright status || true'), /Attention .*team-registry +SourceMissing/);
    },
  );

  step('with the Secrets of tenant and team both run, and everybody says so', async () => {
    for (const owner of OWNERS) await scene.secret(owner);
    for (const owner of OWNERS) await scene.runs(owner, 'web');
    await scene.inOrder();
    for (const owner of OWNERS) {
      await scene.pullsAtOnce(owner, 'first');
      await scene.doctorSays(owner, 'web', undefined);
    }
    assert.match(await nodeReport(), /"reason":"InSync","status":"True","type":"Ready"/);
    await scene.run('Flux: drift');
    await scene.repository.shell(
      `kubectl -n flux-system annotate kustomization ${PROFILES} reconcile.fluxcd.io/requestedAt=now --overwrite`,
    );
    await synced();
  });

  step('a rotation: no commit, no attention, and new pods pull with the new password', async () => {
    const applied = repository.revision;
    await scene.quietly(async () => {
      for (const owner of OWNERS) {
        const before = await nodeReport();
        const next = await scene.newPassword(owner);
        await scene.make(owner, 'rotated');
        await scene.waits(owner, 'rotated');
        await scene.doctorSays(owner, 'rotated', /registry/);
        await scene.secret(owner, next);
        if (owner === 'tenant') await scene.within(async () => assert.notEqual(await nodeReport(), before));
        else await scene.runs(owner, 'rotated');
        // What says so must not say it before a pod that nothing has refused yet could pull.
        await scene.inOrder();
        await scene.pullsAtOnce(owner, 'after');
        await scene.runs(owner, 'rotated');
      }
    });
    assert.equal(repository.revision, applied);
    await synced();
  });

  step(
    'an upgrade by commit: the agent rolls, what runs is left alone, and a pod pulls meanwhile',
    async () => {
      const before = { containers: await containers(), kubelet: node.invocation() };
      repository.edit(
        'fleet.yaml',
        'createConfigNamespace: true }\n',
        'createConfigNamespace: true, agent: { restart: on-removal } }\n',
      );
      await scene.quietly(async () => {
        const changed = scene.run('Flux: change');
        await scene.within(async () => assert.ok((await agentOf()).command.includes('--restart=on-removal')));
        for (const owner of OWNERS) await scene.pullsAtOnce(owner, 'meanwhile');
        await changed;
        await scene.inOrder();
        await synced();
      });
      assert.deepEqual({ containers: await containers(), kubelet: node.invocation() }, before);
      for (const owner of OWNERS) await scene.doctorSays(owner, 'meanwhile', undefined);
    },
  );

  step('drift: an agent that somebody changed by hand costs no pull, is told, and is put back', async () => {
    const wanted = await agentOf();
    await ok(
      node,
      'kubectl -n kube-system set image daemonset/global-pull-secret-syncer "*=registry.example.com/pullwright/pullwright:none"',
    );
    await scene.within(async () => {
      const { stdout } = await repository.shell('pullwright status || true');
      assert.match(stdout, /Progressing .*AgentsNotReady/);
    });
    for (const owner of OWNERS) await scene.pullsAtOnce(owner, 'drifted');
    await scene.quietly(async () => {
      await scene.run('Flux: drift');
      assert.deepEqual(await agentOf(), wanted);
      await scene.inOrder();
      await synced();
    });
  });

  step('a fleet that is wrong is refused before anything is rendered or committed', async () => {
    const { revision } = repository;
    repository.edit('fleet.yaml', 'restart: on-removal', 'restart: sometimes');
    const { code, stderr } = await repository.shell('pullwright synth --fleet fleet.yaml --to manifests');
    assert.equal(code, 1, stderr);
    assert.match(
      stderr,
      /fleet\.yaml:\d+:\d+ clusters\[0\]\.systems\.global-pull-secret\.agent\.restart: expected one of/,
    );
    assert.equal((await repository.shell('git status --porcelain')).stdout, ' M fleet.yaml\n');
    await repository.shell('git checkout fleet.yaml');
    assert.equal(repository.revision, revision);
  });

  step(
    'a manifest that the API server refuses: Flux names it, and what runs goes on; rendered again, it is whole',
    async () => {
      const before = { agent: await agentOf(), containers: await containers() };
      repository.edit(AGENT, 'hostNetwork: true', 'hostNetwork: maybe');
      const check = await repository.shell('pullwright synth --fleet fleet.yaml --to manifests --check');
      assert.equal(check.code, 1);
      assert.match(check.stdout + check.stderr, /daemonset-global-pull-secret-syncer\.yaml/);
      await scene.quietly(async () => {
        await scene.push();
        await scene.within(async () => assert.equal(await flux.ready(BASE), 'False', await flux.report()));
        assert.match(await flux.message(BASE), /DaemonSet\/kube-system\/global-pull-secret-syncer/);
        await scene.inOrder();
        for (const owner of OWNERS) await scene.pullsAtOnce(owner, 'refused');
        assert.deepEqual({ agent: await agentOf(), containers: await containers() }, before);
        await scene.run('Flux: change');
        await synced();
        await scene.inOrder();
      });
      assert.equal((await agentOf()).image, IMAGE);
    },
  );

  step('the way out: node and cluster are as they were, but for what people made', async () => {
    assert.match(await scene.run('Out of Flux', 'docs/operations.md'), /removed, \d+ kept/);
    for (const owner of OWNERS) assert.match(await scene.pod(owner, 'web'), /"running"/);
    const kept = new RegExp(`^\\+ (f 600 0:0 |[0-9a-f]{64} {2})${CONFIG}$`);
    assert.deepEqual(
      changes(files, nodeFiles(node)).filter((line) => !kept.test(line)),
      [],
    );
    await scene.within(async () =>
      assert.deepEqual(changes(objects, await clusterObjects(node)), [
        '+ GitRepository flux-system pullwright',
        '+ Secret kube-system additional-pull-secret',
        '+ Secret platform quay-robot',
      ]),
    );
  });

  test.lastly('the machine stops', () => scene.stop());
}
