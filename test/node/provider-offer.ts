/** A pull secret of the whole cluster by the credential provider, where the kubelet's own file is not to be touched. */
import assert from 'node:assert/strict';
import { readFileSync, statSync } from 'node:fs';
import { inKubeSystem } from '../reconcile/scene.ts';
import type { TestBody } from '../support/suite.ts';
import { NODE_NAME, podOf } from './machine/node.ts';
import { ok, pullSecretOf } from './machine/product.ts';
import { MIRROR, type ProviderScene } from './provider-scene.ts';

const FILE = '/var/lib/pullwright/global-pull-secret/config.json';
const KUBELETS = '/var/lib/kubelet/config.json';
/** As docs/global-pull-secret.md has it. */
const SECTION = `
      global-pull-secret:
        nodes: { matchLabels: { example.com/none: "true" } }
        provider: { nodes: { matchLabels: { kubernetes.io/os: linux } } }`;

export function offerSteps(step: (name: string, body: TestBody) => void, scene: ProviderScene): void {
  const { node } = scene;
  const { plane } = node;
  const stranger = (name: string, image: string) =>
    podOf(name, image, 'team-b', { containers: [{ name: 'main', image, imagePullPolicy: 'Always' }] });

  step(
    'the pull secret of the cluster is offered by the provider, and the kubelet’s file stays as it is',
    async () => {
      const before = readFileSync(KUBELETS, 'utf8');
      await ok(
        node,
        `sed -i 's#matchImages: .*#matchImages: [quay.example.com, ${MIRROR}]\\n        provider: { platformAuthFile: ${FILE} }#' fleet.yaml
       cat >> fleet.yaml <<'X'${SECTION}
X
       pullwright validate fleet.yaml
       pullwright synth --fleet fleet.yaml --to manifests
       kubectl apply --server-side -k manifests/prod
       kubectl apply --server-side -k manifests/prod/overlays/config.openshift.io`,
      );
      await scene.within(async () =>
        assert.match(
          node.run('/bin/sh', '-c', 'cat /etc/kubernetes/credential-providers/pullwright-*'),
          /platform-auth-file/,
        ),
      );
      await scene.inState('True', 'InSync');
      node.image(MIRROR, 'acme/offered', '1');
      const [mirrored, plain] = [
        stranger('mirrored', 'quay.example.com/acme/offered:1'),
        stranger('plain', `${MIRROR}/acme/offered:1`),
      ];
      for (const pod of [mirrored, plain]) await scene.make(pod, /ErrImagePull|ImagePullBackOff/);
      const started = node.invocation();
      const config = node.registry(MIRROR).config();
      await plane.apply(pullSecretOf('kube-system', 'additional-pull-secret', config));
      await scene.within(async () => assert.match(readFileSync(FILE, 'utf8'), /mirror\.example\.com/));
      assert.equal(statSync(FILE).mode & 0o777, 0o600);
      // By the auth file for the mirror, and by the answer to the kubelet for an image of the mirror itself.
      for (const pod of [mirrored, plain]) await scene.becomes(pod, /"running"/);
      assert.equal(readFileSync(KUBELETS, 'utf8'), before);
      assert.equal(node.invocation(), started, 'the kubelet was not restarted');
      const report = inKubeSystem('PullStatus', `node-${NODE_NAME}`, 'pullwright.dev/v1alpha1');
      const platform = inKubeSystem('PullStatus', 'secret-original-pull-secret', 'pullwright.dev/v1alpha1');
      const statusOf = async (ref: typeof report): Promise<string> =>
        JSON.stringify((await plane.get(ref))?.['status'] ?? {});
      await scene.within(async () => assert.match(await statusOf(report), /"InSync"/));
      await scene.within(async () => {
        assert.match(await statusOf(platform), /"OfferedByProvider"/);
        assert.match(await statusOf(platform), /used on 1 of 1 node/);
      });
      for (const pod of [mirrored, plain]) await plane.remove(pod);
    },
  );

  step('what is taken away is no longer offered', async () => {
    await ok(node, 'kubectl -n kube-system delete secret additional-pull-secret');
    await scene.within(async () => assert.doesNotMatch(readFileSync(FILE, 'utf8'), /mirror\.example\.com/));
    const pod = stranger('later', `${MIRROR}/acme/offered:1`);
    await scene.make(pod, /ErrImagePull|ImagePullBackOff/);
    await plane.remove(pod);
  });
}
