// deadline: 600 s
// needs: node
/**
 * Injection and distribution on a real node, by the commands of the walk in docs/pull-secret-injection.md: up to the pod that
 * runs, and the one that must not.
 */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { eventually } from '../control-plane/eventually.ts';
import { plantedPassword } from '../support/canary.ts';
import { docBlocks, docCommands } from '../support/doc-blocks.ts';
import { test } from '../support/suite.ts';
import { webhookSteps } from './injection-webhook.ts';
import { NodeMachine, podOf } from './machine/node.ts';
import { grantImage, IMAGE, ok, pushProduct, shell } from './machine/product.ts';
import { changes, clusterObjects, nodeFiles } from './machine/snapshot.ts';
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

/** Namespaces with what each has, Secrets that people or cert-manager made, and its kind. */
const THEIRS =
  /^\+ (Namespace|ConfigMap \S+ kube-root-ca.crt$|ServiceAccount \S+ default$|Secret \S+ (quay-robot|pullwright-registry|pullwright-webhook-tls)$|(CustomResourceDefinition <none> certificates|APIService <none> v1).cert-manager.io$)/;

await inMachine(import.meta.filename, walk);

async function walk(): Promise<void> {
  const node = await NodeMachine.start({ registries: { [HOST]: 'robot' } });
  const tenant = node.registry(HOST);
  const image = node.image(HOST, 'team/web', '1');
  const [files, objects] = [nodeFiles(node), await clusterObjects(node)];
  const within = <T>(check: () => Promise<T>): Promise<T> =>
    eventually(check, { withinMs: 120_000, everyMs: 250 });
  const write = (name: string, text: string): void => writeFileSync(join(node.folder, 'work', name), text);
  const walk = docBlocks(PAGE)
    .filter(({ heading, language }) => heading === 'The walk' && language === 'yaml')
    .map(({ text }) => text);
  /** The command of the page that begins so, with this machine's registry and image in place of the page's. */
  const command = (begin: string): string => {
    const found = docCommands(PAGE, 'The walk').find((one) => one.startsWith(begin));
    assert.ok(found !== undefined, `the page has no command that begins with "${begin}"`);
    return found
      .replaceAll('quay.io/team/web', `${image} --image-pull-policy=Always`)
      .replaceAll('quay.io', HOST);
  };
  const state = async (namespace: string, name: string): Promise<string> =>
    JSON.stringify((await node.plane.get(podOf(name, image, namespace)))?.['status'] ?? {});
  const runs = (namespace: string, name: string): Promise<void> =>
    within(async () => assert.match(await state(namespace, name), /"running"/));
  const waits = (namespace: string, name: string): Promise<void> =>
    within(async () => assert.match(await state(namespace, name), /ErrImagePull|ImagePullBackOff/));
  const start = (namespace: string, name: string): Promise<unknown> =>
    within(() => node.plane.apply(podOf(name, image, namespace)));
  const profileSays = (wanted: RegExp): Promise<void> =>
    within(async () => assert.match(await ok(node, 'kubectl get pullsecretprofile team-registry'), wanted));
  /** What `doctor` says of a pod, and whether it finds something to do. */
  const doctorSays = (namespace: string, name: string, code: 0 | 1, wanted: RegExp): Promise<void> =>
    within(async () => {
      const seen = await shell(node, `pullwright doctor pod/${name} -n ${namespace}`);
      assert.match(seen.stdout, wanted);
      assert.equal(seen.code, code, seen.stdout);
    });
  const injects = (): Promise<void> =>
    within(async () => {
      const condition = `jsonpath={.status.conditions[?(@.type=="Injecting")].status}`;
      assert.equal(await ok(node, `kubectl get pullsecretprofile team-registry -o '${condition}'`), 'True');
    });

  step('without a grant the profile says so, and a pod of the namespace does not run', async () => {
    await pushProduct(node);
    await grantImage(node);
    write('fleet.yaml', FLEET);
    write('token', tenant.password);
    for (const [name, kind] of [
      ['profile', 'PullSecretProfile'],
      ['grant', 'PullSecretGrant'],
    ] as const)
      write(`${name}.yaml`, walk.find((text) => text.includes(`kind: ${kind}`)) ?? '');
    await ok(
      node,
      `pullwright synth --fleet fleet.yaml --to manifests
       kubectl apply --server-side -k manifests/prod
       kubectl -n pullwright-system rollout status deployment/pullwright-reconciler --timeout=120s`,
    );
    for (const begin of [
      'kubectl create namespace platform',
      'kubectl -n platform create secret',
      'kubectl apply -f profile.yaml',
      'kubectl create namespace team-a',
      'kubectl label namespace team-a',
    ])
      await ok(node, command(begin));
    await profileSays(/False +NotGranted/);
    assert.equal((await shell(node, 'pullwright status')).code, 1);
    // A pod that the API server stores before it has loaded the policy never gets the name.
    await injects();
    await start('team-a', 'early');
    await waits('team-a', 'early');
    await doctorSays(
      'team-a',
      'early',
      1,
      /broken +secrets-there .*PullSecretProfile\/team-registry is to bring it: NotGranted: /,
    );
  });

  step(
    'with it the copy is there, the pod that waited runs, and so does a new one; nothing wants attention',
    async () => {
      await ok(node, command('kubectl apply -f grant.yaml'));
      await runs('team-a', 'early');
      await ok(node, command('kubectl -n team-a run web'));
      await runs('team-a', 'web');
      await profileSays(/1\/1 +True +Current/);
      await within(async () => void (await ok(node, 'pullwright status')));
      await doctorSays('team-a', 'web', 0, /ok +injection +the pod lists 1 imagePullSecret,/);
    },
  );

  step('a namespace that is made later has it too; one that is not selected gets nothing', async () => {
    await ok(
      node,
      'kubectl create namespace team-b; kubectl label namespace team-b registry=team; kubectl create namespace other',
    );
    await start('team-b', 'web');
    await runs('team-b', 'web');
    await start('other', 'web');
    await waits('other', 'web');
    await doctorSays('other', 'web', 1, /broken +credential +no credential that is listed matches/);
    await profileSays(/2\/2 +True +Current/);
  });

  step('a rotation reaches every namespace, also when the reconciler is killed meanwhile', async () => {
    const next = plantedPassword('rotated');
    await tenant.stop();
    tenant.setPassword(next);
    await tenant.start();
    write('token', next);
    await ok(
      node,
      `kubectl -n platform create secret docker-registry quay-robot --docker-server=${HOST} --docker-username=robot \\
         --docker-password="$(cat token)" --dry-run=client -o json | jq '{data}' > rotated.json
       kubectl -n platform patch secret quay-robot --patch-file rotated.json`,
    );
    node.system.kill(/pullwright reconcile/);
    for (const namespace of ['team-a', 'team-b']) {
      await start(namespace, 'rotated');
      await runs(namespace, 'rotated');
    }
  });

  step('taken back, the copies go, and new pods wait', async () => {
    await ok(node, 'kubectl delete -f grant.yaml');
    await within(async () => {
      const { code } = await shell(node, 'kubectl -n team-a get secret team-registry');
      assert.equal(code, 1);
    });
    await profileSays(/False/);
    await start('team-a', 'late');
    await waits('team-a', 'late');
    await doctorSays('team-a', 'late', 1, /broken +secrets-there .*team-registry is to bring it: /);
    assert.match(await state('team-a', 'web'), /"running"/);
  });

  step('the way out', async () => {
    await ok(node, 'pullwright uninstall --yes');
    const kinds = 'all,roles,rolebindings,clusterroles,clusterrolebindings,crds,validatingadmissionpolicies';
    const left = await ok(node, `kubectl get ${kinds} -A -l app.kubernetes.io/part-of=pullwright -o name`);
    assert.equal(left, '');
    await start('team-b', 'after');
    await waits('team-b', 'after');
    await node.plane.remove(podOf('after', image, 'team-b'));
  });

  webhookSteps(step, node, image);

  step('and out again: node and cluster are as they were, but for what people made', async () => {
    await ok(node, 'pullwright uninstall --yes');
    assert.deepEqual(changes(files, nodeFiles(node)), []);
    assert.deepEqual(
      changes(objects, await clusterObjects(node)).filter((line) => !THEIRS.test(line)),
      [],
    );
  });

  test.lastly('the machine stops', () => node.stop());
}
