// deadline: 600 s
// needs: node
/**
 * Injection and distribution on a real node, by the commands in docs/pull-secret-injection.md: up to a running pod, and one that
 * must not run.
 */
import assert from 'node:assert/strict';
import type { TestObject } from '../control-plane/resource-path.ts';
import { plantedPassword } from '../support/canary.ts';
import { docBlocks, docCommands } from '../support/doc-blocks.ts';
import { test } from '../support/suite.ts';
import { webhookSteps } from './injection-webhook.ts';
import { injects, Journey, RUNS, WAITS } from './machine/journey.ts';
import { podOf } from './machine/node.ts';
import { grantImage, IMAGE, pushProduct } from './machine/product.ts';
import { inMachine, step } from './machine/steps.ts';

const PAGE = 'docs/pull-secret-injection.md';
const HOST = 'quay.example.com';
const FLEET = `
image: ${IMAGE}
imagePullSecrets: [pullwright-registry]
clusters:
  - name: prod
    systems: { pull-secret-injection: {} }
`;

/** Namespaces with default objects, Secrets of people or cert-manager, and its kind. */
const THEIRS =
  /^\+ (Namespace|ConfigMap \S+ kube-root-ca.crt$|ServiceAccount \S+ default$|Secret \S+ (quay-robot|pullwright-registry|pullwright-webhook-tls)$|(CustomResourceDefinition <none> certificates|APIService <none> v1).cert-manager.io$)/;

await inMachine(import.meta.filename, walk);

async function walk(): Promise<void> {
  const journey = await Journey.start({ registries: { [HOST]: 'robot' } });
  const { node, within, ok, shell, write, becomes, make, inOrder, doctor } = journey;
  const image = node.image(HOST, 'team/web', '1');
  const changed = await journey.snapshot();
  const walk = docBlocks(PAGE)
    .filter(({ heading, language }) => heading === 'Example' && language === 'yaml')
    .map(({ text }) => text);
  /** The page's command with this prefix, with this machine's registry and image. */
  const command = (begin: string): string => {
    const found = docCommands(PAGE, 'Example').find((one) => one.startsWith(begin));
    assert.ok(found !== undefined, `the page has no command that begins with "${begin}"`);
    return found
      .replaceAll('quay.io/team/web', `${image} --image-pull-policy=Always`)
      .replaceAll('quay.io', HOST);
  };
  const pod = (namespace: string, name: string): TestObject => podOf(name, image, namespace);
  const profileSays = (wanted: RegExp): Promise<void> =>
    within(async () => assert.match(await ok('kubectl get pullsecretprofile team-registry'), wanted));

  step('without a grant the profile says so, and a pod of the namespace does not run', async () => {
    await pushProduct(node);
    await grantImage(node);
    write('token', node.registry(HOST).password);
    for (const [name, kind] of [
      ['profile', 'PullSecretProfile'],
      ['grant', 'PullSecretGrant'],
    ] as const)
      write(`${name}.yaml`, walk.find((text) => text.includes(`kind: ${kind}`)) ?? '');
    await journey.deliver(FLEET);
    await ok('kubectl -n pullwright-system rollout status deployment/pullwright-reconciler --timeout=120s');
    for (const begin of [
      'kubectl create namespace platform',
      'kubectl -n platform create secret',
      'kubectl apply -f profile.yaml',
      'kubectl create namespace team-a',
      'kubectl label namespace team-a',
    ])
      await ok(command(begin));
    await profileSays(/False +NotGranted/);
    assert.equal((await shell('pullwright status')).code, 1);
    await injects(journey, 'team-registry');
    await make(pod('team-a', 'early'), WAITS);
    await doctor(
      pod('team-a', 'early'),
      /broken +secrets-exist .*PullSecretProfile\/team-registry should create it: NotGranted: /,
    );
  });

  step(
    'with it the copy is there, the pod that waited runs, and so does a new one; nothing wants attention',
    async () => {
      await ok(command('kubectl apply -f grant.yaml'));
      await becomes(pod('team-a', 'early'), RUNS);
      await ok(command('kubectl -n team-a run web'));
      await becomes(pod('team-a', 'web'), RUNS);
      await profileSays(/1\/1 +True +Current/);
      await inOrder();
      assert.match(
        await doctor(pod('team-a', 'web'), undefined),
        /ok +injection +the pod lists 1 imagePullSecret; profiles and SidecarSets add no other/,
      );
    },
  );

  step('a namespace that is made later has it too; one that is not selected gets nothing', async () => {
    await ok(
      'kubectl create namespace team-b; kubectl label namespace team-b registry=team; kubectl create namespace other',
    );
    await make(pod('team-b', 'web'));
    await make(pod('other', 'web'), WAITS);
    await doctor(pod('other', 'web'), /broken +credential +no listed credential matches/);
    await profileSays(/2\/2 +True +Current/);
  });

  step('a rotation reaches every namespace, also when the reconciler is killed meanwhile', async () => {
    await journey.rotate(HOST, 'rotated');
    write('token', plantedPassword('rotated'));
    await ok(
      `kubectl -n platform create secret docker-registry quay-robot --docker-server=${HOST} --docker-username=robot \\
         --docker-password="$(cat token)" --dry-run=client -o json | jq '{data}' > rotated.json
       kubectl -n platform patch secret quay-robot --patch-file rotated.json`,
    );
    node.system.kill(/pullwright reconcile/);
    for (const namespace of ['team-a', 'team-b']) {
      await make(pod(namespace, 'rotated'));
    }
  });

  step('taken back, the copies go, and new pods wait', async () => {
    await ok('kubectl delete -f grant.yaml');
    await within(async () => {
      const { code } = await shell('kubectl -n team-a get secret team-registry');
      assert.equal(code, 1);
    });
    await profileSays(/False/);
    await make(pod('team-a', 'late'), WAITS);
    await doctor(pod('team-a', 'late'), /broken +secrets-exist .*team-registry should create it: /);
    assert.match(await journey.state(pod('team-a', 'web')), RUNS);
  });

  step('the way out', async () => {
    await ok('pullwright uninstall --yes');
    const kinds = 'all,roles,rolebindings,clusterroles,clusterrolebindings,crds,validatingadmissionpolicies';
    const left = await ok(`kubectl get ${kinds} -A -l app.kubernetes.io/part-of=pullwright -o name`);
    assert.equal(left, '');
    await make(pod('team-b', 'after'), WAITS);
    await node.plane.remove(pod('team-b', 'after'));
  });

  webhookSteps(step, journey, image);

  step('and out again: node and cluster are as they were, but for what people made', async () => {
    await ok('pullwright uninstall --yes');
    const { files, objects } = await changed();
    assert.deepEqual([...files, ...objects.filter((line) => !THEIRS.test(line))], []);
  });

  test.lastly('the machine stops', journey.stop);
}
