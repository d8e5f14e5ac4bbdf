// deadline: 900 s
// needs: control plane
/** `pullwright explain` against an API server, with the rights that it declares and with one fewer. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { parse } from 'yaml';
import type { Report } from '../../runtime/diagnose/model/cluster.ts';
import { pullKinds } from '../../runtime/diagnose/model/look.ts';
import { ObjectStore } from '../../runtime/engine/store.ts';
import { controlPlane } from '../control-plane/live.ts';
import { findPlanted, plantedAuth } from '../support/canary.ts';
import { meta, pullSecretObject } from '../support/meta.ts';
import { runMain } from '../support/process.ts';
import { test } from '../support/suite.ts';

test('asks the API server at most ten times where nothing is blocked or refused', () => {
  for (const more of [{}, { node: 'n' }]) {
    const puller = { namespace: 'web', serviceAccount: 'default', ...more };
    const synced = new ObjectStore();
    synced.set(
      meta('v1 Node', { name: 'n', labels: { 'hypershift.openshift.io/nodepool-globalps-enabled': 'true' } }),
    );
    synced.set(meta('v1 Secret', { name: 'global-pull-secret', namespace: 'kube-system' }));
    const asked = pullKinds(puller).flatMap((step) => step(synced));
    assert.ok(new Set(asked.map((kind) => JSON.stringify(kind))).size <= 10, JSON.stringify(asked));
  }
});

function secret(namespace: string, name: string, key: string, user: string) {
  const config = JSON.stringify({ auths: { [key]: { auth: plantedAuth('live', user) } } });
  return pullSecretObject({ name, namespace }, config);
}

const plane = await controlPlane({ crds: 'all' });
await plane.apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'web' } });
await plane.apply(secret('web', 'pull', 'quay.io/web', 'pod'));
await plane.apply(secret('kube-system', 'global-pull-secret', 'm.io', 'node'));
await plane.apply({
  ...meta('v1 ServiceAccount', { name: 'app', namespace: 'web' }),
  imagePullSecrets: [{ name: 'pull' }],
});
await plane.apply({
  ...meta('config.openshift.io/v1 ImageTagMirrorSet', { name: 'm' }),
  spec: { imageTagMirrors: [{ source: 'quay.io/web', mirrors: ['m.io/web'] }] },
});
const explain = (kubeconfig: string) =>
  runMain([
    'explain',
    'quay.io/web/app:1',
    '-n',
    'web',
    '--service-account',
    'app',
    '--kubeconfig',
    kubeconfig,
  ]);

test('the ServiceAccount of the pod, the file of the node, the mirror', async () => {
  const ran = await explain(plane.kubeconfig);
  assert.equal(ran.code, 0, ran.stderr);
  assert.match(ran.stdout, /1\. pod {2}"quay\.io\/web" in Secret\/web\/pull/);
  assert.match(
    ran.stdout,
    /1\. m\.io\/web\/app:1[\s\S]*with node {2}"m\.io" in Secret\/kube-system\/global-pull-secret/,
  );
});

test('a right that is missing is named, and the rest is explained', async () => {
  const rules = [{ apiGroups: [''], resources: ['serviceaccounts'], verbs: ['get'] }];
  const user = await plane.user({ name: 'no-secrets', by: 'token', namespaces: { web: rules } });
  const ran = await explain(user.kubeconfig);
  assert.match(ran.stderr, /Cannot list "Secret in web".*Grant the verb "list"/);
  assert.match(ran.stdout, /Secret pull, listed by ServiceAccount\/web\/app: unknown/);
  assert.match(ran.stdout, /warning: \d+ reads failed, see above/);
});

test('report reads the cluster of a context, and says what it may not read', async () => {
  const report = (kubeconfig: string, ...more: readonly string[]) =>
    runMain(['report', '--kubeconfig', kubeconfig, ...more]);
  const pod = { containers: [{ name: 'app', image: 'quay.io/web/app:1' }], serviceAccountName: 'app' };
  await plane.apply({
    ...meta('apps/v1 Deployment', { name: 'shop', namespace: 'web' }),
    spec: {
      selector: { matchLabels: { app: 'shop' } },
      template: { metadata: { labels: { app: 'shop' } }, spec: pod },
    },
  });
  await plane.apply({ apiVersion: 'v1', kind: 'Node', metadata: { name: 'n-1' } });
  const context = parse(readFileSync(plane.kubeconfig, 'utf8')) as { readonly 'current-context': string };
  const ran = await report(plane.kubeconfig, '--context', context['current-context'], '-o', 'json');
  const found = JSON.parse(ran.stdout) as Report;
  const [cluster] = found.clusters;
  assert.deepEqual([found.unread, cluster?.name], [[], context['current-context']], ran.stderr);
  const pull = cluster?.pulls.find(({ object }) => object === 'Deployment/web/shop');
  assert.deepEqual(
    pull?.explanation?.places.map(({ reference, crio }) => [reference, crio.what]),
    [
      ['m.io/web/app:1', 'entry'],
      ['quay.io/web/app:1', 'kubelet'],
    ],
  );
  assert.equal(cluster?.nodes.total, 1);
  assert.equal(findPlanted(ran.stdout), undefined);

  const rules = [{ apiGroups: ['apps'], resources: ['deployments'], verbs: ['list'] }];
  const user = await plane.user({ name: 'few-rights', by: 'token', cluster: rules });
  const few = await report(user.kubeconfig);
  assert.match(few.stderr, /Cannot list "Secret".*Grant the verb "list"/);
  const none = await report(plane.kubeconfig, '--context', 'nowhere');
  assert.equal(none.code === 0, false);
  assert.match(none.stderr, /nowhere/);
});
