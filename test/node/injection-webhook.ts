/** Injection by the webhook on plain Kubernetes, with certificates that no platform makes: none, one's own, those of cert-manager. */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { eventually } from '../control-plane/eventually.ts';
import type { TestObject } from '../control-plane/resource-path.ts';
import { docBlock, docBlocks } from '../support/doc-blocks.ts';
import type { TestBody } from '../support/suite.ts';
import { CertManager } from './machine/cert-manager.ts';
import { type NodeMachine, podOf } from './machine/node.ts';
import { IMAGE, ok, shell } from './machine/product.ts';

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

/** On a node where the walk of the page has been gone and taken back, and `profile.yaml` lies in its folder. */
export function webhookSteps(
  step: (name: string, body: TestBody) => void,
  node: NodeMachine,
  image: string,
): void {
  const { plane } = node;
  const work = join(node.folder, 'work');
  const within = <T>(check: () => Promise<T>): Promise<T> =>
    eventually(check, { withinMs: 180_000, everyMs: 500 });
  const [files = '', secret = ''] = docBlocks('docs/pull-secret-injection.md')
    .filter(({ heading, language }) => heading === 'A certificate of your own' && language === 'sh')
    .map(({ text }) => text);
  const apply = async (certificates: string): Promise<void> => {
    writeFileSync(join(work, 'fleet.yaml'), fleet(certificates));
    await ok(
      node,
      `pullwright validate fleet.yaml
       rm -rf manifests
       pullwright synth --fleet fleet.yaml --to manifests
       kubectl apply --server-side -k manifests/prod`,
    );
  };
  const profileSays = (wanted: RegExp): Promise<void> =>
    within(async () =>
      assert.match(await ok(node, `kubectl get pullsecretprofile ${SECRET} -o yaml`), wanted),
    );
  const attention = async (reason: RegExp): Promise<void> => {
    const { code, stdout } = await shell(node, 'pullwright status');
    assert.equal(code, 1, stdout);
    assert.match(stdout, reason);
  };
  const pod = (name: string): TestObject => podOf(name, image, NAMESPACE);
  /** Whether a pod that is made now would get the name: the API server asks the webhook in a dry run, too. */
  const wouldGet = async (): Promise<boolean> => {
    const path = `/api/v1/namespaces/${NAMESPACE}/pods?dryRun=All`;
    const { body } = await plane.client.request('POST', path, pod('tried'));
    return JSON.stringify(body['spec'] ?? {}).includes(`"imagePullSecrets":[{"name":"${SECRET}"}]`);
  };
  const said = async (): Promise<string> => {
    const { stdout } = await shell(
      node,
      `kubectl get mutatingwebhookconfigurations -o yaml
       kubectl -n pullwright-system get pods -o wide
       tail -n 8 /var/log/pods/pullwright-system_pullwright-webhook*/*/*.log`,
    );
    return `${stdout}\n${node.logs()}`;
  };
  const runs = async (name: string): Promise<void> => {
    await within(async () => assert.ok(await wouldGet(), await said()));
    await plane.apply(pod(name));
    await within(async () =>
      assert.match(JSON.stringify((await plane.get(pod(name)))?.['status'] ?? {}), /"running"/),
    );
  };

  step(
    'the webhook without its certificate: its pods wait, no profile is Ready, status says so',
    async () => {
      const printed = await ok(node, files);
      assert.equal(printed.trim().split('\n').at(-1), btoa(readFileSync(join(work, 'ca.crt'), 'latin1')));
      await apply(`{ kind: manual, caBundle: ${printed.trim().split('\n').at(-1)} }`);
      await ok(
        node,
        `until kubectl apply -f profile.yaml; do sleep 1; done
       kubectl apply -f grant.yaml`,
      );
      await profileSays(/reason: WebhookDown/);
      assert.doesNotMatch(await ok(node, `kubectl get pullsecretprofile ${SECRET} --no-headers`), / True /);
      await attention(/Attention .*WebhookDown/);
      assert.equal(await wouldGet(), false);
    },
  );

  step('with one of its own it serves: a pod gets the name and runs, and all is in order', async () => {
    await ok(node, secret);
    await runs('own');
    await profileSays(/reason: Webhook$/m);
    await within(async () => void (await ok(node, 'pullwright status')));
  });

  step(
    'with an issuer of cert-manager: untrusted until that has written, then without a restart',
    async () => {
      const pods = async (): Promise<string> =>
        ok(
          node,
          'kubectl -n pullwright-system get pods -l app.kubernetes.io/name=pullwright-webhook -o name',
        );
      const manager = new CertManager(plane);
      await manager.install();
      const before = await pods();
      await apply('{ kind: cert-manager, issuer: { kind: ClusterIssuer, name: platform } }');
      await profileSays(/reason: WebhookUntrusted/);
      await attention(/Attention .*WebhookUntrusted/);
      await ok(node, docBlock('docs/pull-secret-injection.md', 'Who changes the pod', 'sh'));
      await manager.issue('pullwright-system', 'pullwright-webhook');
      await runs('issued');
      assert.equal(await pods(), before);
      await within(async () => void (await ok(node, 'pullwright status')));
    },
  );
}
