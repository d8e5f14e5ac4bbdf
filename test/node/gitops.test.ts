// deadline: 600 s
// needs: node, Flux
/**
 * A fleet that Flux delivers from git to a real node of kubeadm, by the commands of docs/gitops.md: from the commit to running
 * pods, through a rotation, an upgrade and drift, and the removal by docs/operations.md.
 */
import assert from 'node:assert/strict';
import { inKubeSystem, SYNCER } from '../reconcile/scene.ts';
import { test } from '../support/suite.ts';
import { GitOpsScene, type Owner } from './gitops-scene.ts';
import { injects, RUNS, WAITS } from './machine/journey.ts';
import { NODE_NAME } from './machine/node.ts';
import { IMAGE } from './machine/product.ts';
import { inMachine, step } from './machine/steps.ts';

const CONFIG = '/var/lib/kubelet/config.json';
const BASE = 'pullwright-prod';
const PROFILES = 'pullwright-prod-pullwright.dev';
const OWNERS: readonly Owner[] = ['tenant', 'team'];
const AGENT = 'manifests/prod/kube-system/daemonset-global-pull-secret-syncer.yaml';
const NODE_STATUS = inKubeSystem('PullStatus', `node-${NODE_NAME}`, 'pullwright.dev/v1alpha1');

await inMachine(import.meta.filename, journey);

async function journey(): Promise<void> {
  const scene = await GitOpsScene.start();
  const { node, flux, repository } = scene;
  const { plane } = node;
  const changed = await scene.snapshot();
  const agentOf = async (): Promise<{ image: string; command: readonly string[] }> =>
    (await plane.get(SYNCER))?.['spec'].template.spec.containers[0];
  /** Expects that both report all objects in git as applied and healthy. */
  const synced = (): Promise<void> =>
    scene.within(async () => {
      for (const name of [BASE, PROFILES]) {
        assert.equal(await flux.ready(name), 'True', await flux.report());
        assert.equal(await flux.revision(name), `main@sha1:${repository.revision}`);
      }
    });
  const containers = (): Promise<readonly (string | undefined)[]> =>
    Promise.all(
      OWNERS.map(
        async (owner) => /"containerID":"([^"]+)"/.exec(await scene.state(scene.pod(owner, 'web')))?.[1],
      ),
    );
  const nodeReport = (): Promise<string> => scene.state(NODE_STATUS);

  step(
    'from the commit to pods of ours that run: the base is ready, what waits for people says so',
    async () => {
      repository.write('fleet.yaml', scene.fleet());
      await scene.run('Flux: install');
      await injects(scene, 'team-registry');
      for (const owner of OWNERS) await scene.make(scene.pod(owner, 'web'), WAITS);
      // The page's profile injects the name into pods of every namespace.
      for (const owner of OWNERS)
        await scene.doctor(
          scene.pod(owner, 'web'),
          /secrets-exist .*team-registry should create it: SourceMissing/,
        );
      await scene.within(async () => assert.equal(await flux.ready(PROFILES), 'False', await flux.report()));
      assert.match(await scene.run('Flux: look'), /PullSecretProfile\/team-registry status: 'Failed'/);
      assert.match(await scene.ok('pullwright status || true'), /Attention .*team-registry +SourceMissing/);
    },
  );

  step('with the Secrets of tenant and team both run, and everybody says so', async () => {
    for (const owner of OWNERS) await scene.secret(owner);
    for (const owner of OWNERS) await scene.becomes(scene.pod(owner, 'web'), RUNS);
    await scene.inOrder();
    for (const owner of OWNERS) {
      await scene.pullsAtOnce(owner, 'first');
      await scene.doctor(scene.pod(owner, 'web'), undefined);
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
        await scene.make(scene.pod(owner, 'rotated'), WAITS);
        await scene.doctor(scene.pod(owner, 'rotated'), /registry/);
        await scene.secret(owner, next);
        if (owner === 'tenant') await scene.within(async () => assert.notEqual(await nodeReport(), before));
        else await scene.becomes(scene.pod(owner, 'rotated'), RUNS);
        // It must not report success before a new pod can pull.
        await scene.inOrder();
        await scene.pullsAtOnce(owner, 'after');
        await scene.becomes(scene.pod(owner, 'rotated'), RUNS);
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
      for (const owner of OWNERS) await scene.doctor(scene.pod(owner, 'meanwhile'), undefined);
    },
  );

  step('drift: an agent that somebody changed by hand costs no pull, is told, and is put back', async () => {
    const wanted = await agentOf();
    await scene.ok(
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

  step(
    'a manifest that the API server refuses: Flux names it, and what runs goes on; rendered again, it is whole',
    async () => {
      const before = { agent: await agentOf(), containers: await containers() };
      repository.edit(AGENT, 'hostNetwork: true', 'hostNetwork: maybe');
      const check = await repository.shell('pullwright synth --fleet fleet.yaml --to manifests --check');
      assert.equal(check.code, 1);
      assert.match(check.stdout + check.stderr, /daemonset-global-pull-secret-syncer\.yaml/);
      await scene.quietly(async () => {
        const pushed = await repository.shell(
          "git commit -qam 'Break the agent' && git push -q && kubectl -n flux-system annotate gitrepository pullwright reconcile.fluxcd.io/requestedAt=bad --overwrite",
        );
        assert.equal(pushed.code, 0, pushed.stderr);
        await scene.within(async () => assert.equal(await flux.ready(BASE), 'False', await flux.report()));
        assert.match(await flux.report(), /DaemonSet\/kube-system\/global-pull-secret-syncer/);
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
    for (const owner of OWNERS) assert.match(await scene.state(scene.pod(owner, 'web')), RUNS);
    const kept = new RegExp(`^\\+ (f 600 0:0 |[0-9a-f]{64} {2})${CONFIG}$`);
    await scene.within(async () => {
      const { files, objects } = await changed();
      assert.deepEqual(
        [...files.filter((line) => !kept.test(line)), ...objects],
        [
          '+ GitRepository flux-system pullwright',
          '+ Secret kube-system additional-pull-secret',
          '+ Secret platform quay-robot',
        ],
      );
    });
  });

  test.lastly('the machine stops', () => scene.end());
}
