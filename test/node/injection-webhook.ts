/** Injection by the webhook on plain Kubernetes, without a certificate, with an own one, and with cert-manager's. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TestObject } from '../control-plane/resource-path.ts';
import { docBlock, docBlocks } from '../support/doc-blocks.ts';
import type { TestBody } from '../support/suite.ts';
import { CertManager } from './machine/cert-manager.ts';
import type { Journey } from './machine/journey.ts';
import { podOf } from './machine/node.ts';
import { IMAGE, workFolder } from './machine/product.ts';

const NAMESPACE = 'team-a';
const SECRET = 'team-registry';

function fleet(certificates: string): string {
  return `
image: ${IMAGE}
imagePullSecrets: [pullwright-registry]
clusters:
  - name: prod
    systems: { pull-secret-injection: { admission: webhook, certificates: ${certificates} } }
`;
}

/** Requires a node after the page's walk-through and its removal, with `profile.yaml` in its folder. */
export function webhookSteps(
  step: (name: string, body: TestBody) => void,
  { node, plane, within, ok, make, deliver, inOrder, wantsAttention }: Journey,
  image: string,
): void {
  const [files = '', secret = ''] = docBlocks('docs/pull-secret-injection.md')
    .filter(({ heading, language }) => heading === 'A certificate of your own' && language === 'sh')
    .map(({ text }) => text);
  const profileSays = (wanted: RegExp): Promise<void> =>
    within(async () => assert.match(await ok(`kubectl get pullsecretprofile ${SECRET} -o yaml`), wanted));
  const pod = (name: string): TestObject => podOf(name, image, NAMESPACE);
  /** Whether a new pod gets the name, by a dry run, in which the API server calls the webhook too. */
  const wouldGet = async (): Promise<boolean> => {
    const path = `/api/v1/namespaces/${NAMESPACE}/pods?dryRun=All`;
    const { body } = await plane.client.request('POST', path, pod('tried'));
    return JSON.stringify(body['spec'] ?? {}).includes(`"imagePullSecrets":[{"name":"${SECRET}"}]`);
  };
  const runs = async (name: string): Promise<void> => {
    await within(async () => assert.ok(await wouldGet()));
    await make(pod(name));
  };

  step(
    'the webhook without its certificate: its pods wait, no profile is Ready, status says so',
    async () => {
      const printed = await ok(files);
      assert.equal(
        printed.trim().split('\n').at(-1),
        btoa(readFileSync(join(workFolder(node), 'ca.crt'), 'latin1')),
      );
      await deliver(fleet(`{ kind: manual, caBundle: ${printed.trim().split('\n').at(-1)} }`));
      await ok(
        `until kubectl apply -f profile.yaml; do sleep 1; done
       kubectl apply -f grant.yaml`,
      );
      await profileSays(/reason: WebhookDown/);
      assert.doesNotMatch(await ok(`kubectl get pullsecretprofile ${SECRET} --no-headers`), / True /);
      await wantsAttention(/Attention .*WebhookDown/);
      assert.equal(await wouldGet(), false);
    },
  );

  step('with one of its own it serves: a pod gets the name and runs, and all is in order', async () => {
    await ok(secret);
    await runs('own');
    await profileSays(/reason: Webhook$/m);
    await inOrder();
  });

  step(
    'with an issuer of cert-manager: untrusted until that has written, then without a restart',
    async () => {
      const pods = async (): Promise<string> =>
        ok('kubectl -n pullwright-system get pods -l app.kubernetes.io/name=pullwright-webhook -o name');
      const manager = new CertManager(plane);
      await manager.install();
      const before = await pods();
      await deliver(fleet('{ kind: cert-manager, issuer: { kind: ClusterIssuer, name: platform } }'));
      await profileSays(/reason: WebhookUntrusted/);
      await wantsAttention(/Attention .*WebhookUntrusted/);
      await ok(docBlock('docs/pull-secret-injection.md', 'Who changes the pod', 'sh'));
      await manager.issue('pullwright-system', 'pullwright-webhook');
      await runs('issued');
      assert.equal(await pods(), before);
      await inOrder();
    },
  );
}
