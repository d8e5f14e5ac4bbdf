// deadline: 900 s
// needs: control plane
/** `mirrors`, `explain` and `doctor` against an API server: mirror sets, the Image object, several clusters, rights. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { controlPlane } from '../control-plane/live.ts';
import type { TestObject } from '../control-plane/resource-path.ts';
import { certificates, startServer, stopServers } from '../registry/https-server.ts';
import { plantedAuth } from '../support/canary.ts';
import { hostedCluster } from '../support/hypershift.ts';
import { meta } from '../support/meta.ts';
import { type ProcessResult, runMain } from '../support/process.ts';
import { test } from '../support/suite.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { idms, image, machineConfig } from './mirror-objects.ts';

const DIGEST = `sha256:${'a'.repeat(64)}`;
const AUTH = plantedAuth('live', 'robot');

function deployment(name: string, image: string): TestObject {
  return {
    ...meta('apps/v1 Deployment', { name, namespace: 'web' }),
    spec: {
      selector: { matchLabels: { app: name } },
      template: {
        metadata: { labels: { app: name } },
        spec: { serviceAccountName: 'app', containers: [{ name: 'c', image }] },
      },
    },
  };
}

const plane = await controlPlane({ crds: 'all' });
const folder = tempFolder();
const ca = join(folder, 'ca.crt');
writeFileSync(ca, certificates.ca);
const { host } = await startServer(({ authorization }, response) => {
  const isIn = authorization === `Basic ${AUTH}`;
  if (isIn) response.writeHead(200, { 'docker-content-digest': DIGEST });
  else response.writeHead(401, { 'www-authenticate': 'Basic realm="team"' });
  response.end();
});
const cli = (...args: readonly string[]): Promise<ProcessResult> =>
  runMain([...args, '--request-timeout', '30s']);
const live = (...args: readonly string[]): Promise<ProcessResult> =>
  cli(...args, '--kubeconfig', plane.kubeconfig);
await plane.apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'web' } });
await plane.apply(meta('v1 ServiceAccount', { name: 'app', namespace: 'web' }));
await plane.apply(idms('release', 'quay.invalid/a', 'mirror.invalid/a') as TestObject);
await plane.apply(image({ blockedRegistries: ['blocked.invalid'] }) as TestObject);
await plane.apply(deployment('shop', 'blocked.invalid/x:1'));
await plane.apply(deployment('used', `quay.invalid/a/x@${DIGEST}`));
await plane.apply(deployment('short', 'till:2'));
await plane.apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'openshift-config' } });
await plane.apply({
  ...meta('v1 Secret', { name: 'pull-secret', namespace: 'openshift-config' }),
  type: 'kubernetes.io/dockerconfigjson',
  stringData: { '.dockerconfigjson': JSON.stringify({ auths: { [host]: { auth: AUTH } } }) },
});

test('mirrors follows the mirror sets and the Image object of the cluster', async () => {
  const ran = await live('mirrors', `quay.invalid/a/x@${DIGEST}`, 'blocked.invalid/x:1', '--for', 'node');
  assert.equal(ran.code, 1, ran.stderr);
  assert.match(ran.stdout, /1 {2}mirror\.invalid\/a\/x@.*ImageDigestMirrorSet\/release/);
  assert.match(ran.stdout, /rule {3}blocked\.invalid \(Image\/cluster spec\.registrySources/);
});

test('explain says that the Image object blocks the image', async () => {
  const ran = await live('explain', 'blocked.invalid/x:1', '-n', 'web', '--service-account', 'app');
  assert.equal(ran.code, 1, ran.stderr);
  assert.match(ran.stdout.replace(/\s+/g, ' '), /The rule for "blocked\.invalid" blocks it/);
});

test('doctor says that the image has no usable pull source', async () => {
  const ran = await live('doctor', 'deploy/shop', '-n', 'web');
  assert.equal(ran.code, 1, ran.stderr);
  assert.match(
    ran.stdout,
    /broken {3}pull-sources .*no usable pull source for "blocked\.invalid\/x:1"[\s\S]*image\.config\.openshift\.io\/cluster/,
  );
});

test('what may not be read is said, and the rest is answered', async () => {
  const config = 'config.openshift.io';
  const rules = [
    { apiGroups: [config], resources: ['imagedigestmirrorsets', 'imagetagmirrorsets'], verbs: ['list'] },
  ];
  const user = await plane.user({ name: 'no-image', by: 'token', cluster: rules });
  const ran = await cli('mirrors', `quay.invalid/a/x@${DIGEST}`, '--kubeconfig', user.kubeconfig);
  assert.match(ran.stderr, /warning: Cannot get "Image\/cluster".*Grant the verb "get"/);
  assert.match(ran.stdout, /1 {2}mirror\.invalid\/a\/x@/);
});

test('what nodes keep is read where the operator refuses', async () => {
  const policy = {
    ...meta('operator.openshift.io/v1alpha1 ImageContentSourcePolicy', { name: 'bad' }),
    spec: { repositoryDigestMirrors: [{ source: 'quay.invalid/b', mirrors: ['bad/'] }] },
  };
  await plane.apply(policy);
  await plane.apply(
    machineConfig(
      '[[registry]]\n  location = "quay.invalid/a"\n  [[registry.mirror]]\n    location = "kept.invalid/a"\n',
    ) as TestObject,
  );
  const [shown, explained] = await Promise.all([
    live('mirrors', 'quay.invalid/a/x:1', '--for', 'node'),
    live('explain', 'quay.invalid/a/x:1', '-n', 'web', '--service-account', 'app'),
  ]);
  assert.match(
    shown.stdout,
    /rejects all mirror sets because of ImageContentSourcePolicy\/bad: nodes keep MachineConfig/,
  );
  assert.match(shown.stdout, /1 {2}kept\.invalid\/a\/x:1/);
  assert.match(explained.stdout, /kept\.invalid\/a\/x:1/);
  assert.match(explained.stderr, /nodes keep MachineConfig\/99-worker-generated-registries/);
  await plane.remove(policy);
});

test('a change is held against the images in use, with the pull secret of the cluster', async () => {
  const change = join(folder, 'change.json');
  writeFileSync(change, JSON.stringify(idms('release', 'quay.invalid/a', `${host}/a`, 'other.invalid/a')));
  const ran = await live('mirrors', '--what-if', change, '--in-use');
  assert.equal(ran.code, 1, ran.stderr);
  assert.match(
    ran.stdout,
    /^change every node drains .* mirror "mirror\.invalid\/a" of .* is removed\n3 images in use: 1 changes, 0 lose .*, 1 gains/,
  );
  assert.match(
    ran.stdout,
    /credential {2}quay\.invalid\/a\/x@.* {2}\(Deployment\/web\/used, for node\)\n {12}before: mirror\.invalid.*\n {12}after: .*\n {12}no credential: other\.invalid\/a\/x@[^,]*\n/,
  );
  const wrong = await live('mirrors', '--what-if', join(folder, 'nowhere.json'), '--in-use');
  assert.equal(wrong.code, 1, wrong.stdout + wrong.stderr);
  assert.match(wrong.stderr, /nowhere\.json/);
});

test('--probe asks with the pull secret of the cluster, and says where it may not read it', async () => {
  const change = join(folder, 'probed.json');
  writeFileSync(change, JSON.stringify(idms('release', 'quay.invalid/a', `${host}/a`)));
  const image = `quay.invalid/a/x@${DIGEST}`;
  const args = ['mirrors', image, '--for', 'node', '--what-if', change, '--probe', '--timeout', '20'];
  const trust = ['--ca', ca, '--allow-host', host];
  const rules = [
    {
      apiGroups: ['config.openshift.io'],
      resources: ['imagedigestmirrorsets', 'imagetagmirrorsets', 'images', 'clusterversions'],
      verbs: ['get', 'list'],
    },
  ];
  const user = await plane.user({ name: 'no-secrets', by: 'token', cluster: rules });
  const [ran, without] = await Promise.all([
    live(...args, ...trust),
    cli(...args, ...trust, '--kubeconfig', user.kubeconfig),
  ]);
  assert.match(ran.stdout, /Valid: sha256:/, ran.stderr);
  assert.match(without.stdout, /Invalid: .*requires a credential/, without.stderr);
  assert.match(without.stderr, /warning: Cannot get "Secret\/openshift-config\/pull-secret"/);
  assert.doesNotMatch(ran.stdout + ran.stderr + without.stdout + without.stderr, new RegExp(AUTH));
});

test('a management cluster has several, and is asked which', async () => {
  await plane.apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'clusters' } });
  const hosted = hostedCluster('prod');
  await plane.apply({
    ...hosted,
    spec: {
      ...(hosted['spec'] as object),
      imageContentSources: [{ source: 'quay.invalid/a', mirrors: ['hosted.invalid/a'] }],
    },
  });
  const asked = await live('mirrors', `quay.invalid/a/x@${DIGEST}`);
  assert.equal(asked.code, 2);
  assert.match(asked.stderr, /choose one with --cluster: management, clusters\/prod/);
  const at = ['--cluster', 'clusters/prod', '--for', 'node'];
  const ran = await live('mirrors', `quay.invalid/a/x@${DIGEST}`, ...at);
  assert.match(
    ran.stdout,
    /1 {2}hosted\.invalid\/a\/x@.*HostedCluster\/clusters\/prod spec\.imageContentSources/,
  );
});

test.lastly('the registries stop', stopServers);
