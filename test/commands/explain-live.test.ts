// deadline: 900 s
/** `pullwright explain` against an API server, with the rights that it declares and with one fewer. */
import assert from 'node:assert/strict';
import { kindsFor, nextKindsFor } from '../../runtime/commands/explain/world.ts';
import { ObjectStore } from '../../runtime/controller/store.ts';
import { missingControlPlane, startControlPlane } from '../control-plane/control-plane.ts';
import { plantedAuth } from '../support/canary.ts';
import { runProcess } from '../support/process.ts';
import { suite } from '../support/suite.ts';

const test = suite('pullwright explain in a cluster');
const main = new URL('../../main.ts', import.meta.url).pathname;
const missing = missingControlPlane();

test('asks the API server at most nine times where nothing is blocked or refused', () => {
  const pod = { kind: 'Pod', name: 'a' };
  for (const puller of [{}, { node: 'n' }, { pod }, { pod, node: 'n' }].map((more) => ({
    namespace: 'web',
    serviceAccount: 'default',
    ...more,
  }))) {
    const synced = new ObjectStore();
    synced.set({
      apiVersion: 'v1',
      kind: 'Node',
      metadata: { name: 'n', labels: { 'hypershift.openshift.io/nodepool-globalps-enabled': 'true' } },
    });
    synced.set({
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 'global-pull-secret', namespace: 'kube-system' },
    });
    const later = nextKindsFor(puller).flatMap((next) => next(synced));
    assert.ok(kindsFor(puller).length + later.length <= 9, JSON.stringify(puller));
  }
});

function secret(namespace: string, name: string, key: string, user: string) {
  const config = JSON.stringify({ auths: { [key]: { auth: plantedAuth('live', user) } } });
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name, namespace },
    type: 'kubernetes.io/dockerconfigjson',
    data: { '.dockerconfigjson': Buffer.from(config).toString('base64') },
  };
}

if (missing !== undefined) test.skip('all of it', missing);
else {
  const plane = await startControlPlane({ crds: 'all' });
  await plane.apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'web' } });
  await plane.apply(secret('web', 'pull', 'quay.io/web', 'pod'));
  await plane.apply(secret('kube-system', 'global-pull-secret', 'm.io', 'node'));
  await plane.apply({
    apiVersion: 'v1',
    kind: 'ServiceAccount',
    metadata: { name: 'app', namespace: 'web' },
    imagePullSecrets: [{ name: 'pull' }],
  });
  await plane.apply({
    apiVersion: 'config.openshift.io/v1',
    kind: 'ImageTagMirrorSet',
    metadata: { name: 'm' },
    spec: { imageTagMirrors: [{ source: 'quay.io/web', mirrors: ['m.io/web'] }] },
  });
  const explain = (kubeconfig: string) =>
    runProcess([
      process.execPath,
      main,
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
    assert.match(ran.stdout, /warning: \d+ things could not be read, as said before/);
  });

  test.lastly('the control plane stops', () => plane.stop());
}

test.run();
