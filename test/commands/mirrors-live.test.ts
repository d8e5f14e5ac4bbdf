// deadline: 900 s
/** `mirrors`, `release`, `explain` and `doctor` against an API server: mirror sets, the Image object, several clusters, rights. */
import assert from 'node:assert/strict';
import { missingControlPlane, startControlPlane } from '../control-plane/control-plane.ts';
import type { TestObject } from '../control-plane/resource-path.ts';
import { hostedCluster } from '../support/hypershift.ts';
import { type ProcessResult, runProcess } from '../support/process.ts';
import { suite } from '../support/suite.ts';
import { idms, image, machineConfig } from './mirror-objects.ts';

const test = suite('mirrors in a cluster');
const main = new URL('../../main.ts', import.meta.url).pathname;
const missing = missingControlPlane();
const DIGEST = `sha256:${'a'.repeat(64)}`;

if (missing !== undefined) test.skip('all of it', missing);
else {
  const plane = await startControlPlane({ crds: 'all' });
  const cli = (...args: readonly string[]): Promise<ProcessResult> =>
    runProcess([process.execPath, main, ...args, '--request-timeout', '30s']);
  const live = (...args: readonly string[]): Promise<ProcessResult> =>
    cli(...args, '--kubeconfig', plane.kubeconfig);
  await plane.apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'web' } });
  await plane.apply({
    apiVersion: 'v1',
    kind: 'ServiceAccount',
    metadata: { name: 'app', namespace: 'web' },
  });
  await plane.apply(idms('release', 'quay.invalid/a', 'mirror.invalid/a') as TestObject);
  await plane.apply(image({ blockedRegistries: ['blocked.invalid'] }) as TestObject);
  await plane.apply({
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'shop', namespace: 'web' },
    spec: {
      selector: { matchLabels: { app: 'shop' } },
      template: {
        metadata: { labels: { app: 'shop' } },
        spec: { serviceAccountName: 'app', containers: [{ name: 'shop', image: 'blocked.invalid/x:1' }] },
      },
    },
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
    assert.match(ran.stdout.replace(/\s+/g, ' '), /The rule for "blocked\.invalid" forbids to contact it/);
  });

  test('doctor says that the image may be pulled from nowhere', async () => {
    const ran = await live('doctor', 'deploy/shop', '-n', 'web');
    assert.equal(ran.code, 1, ran.stderr);
    assert.match(
      ran.stdout,
      /broken {3}places .*"blocked\.invalid\/x:1" may be pulled from nowhere[\s\S]*image\.config\.openshift\.io\/cluster/,
    );
  });

  test('release asks the mirrors of the cluster, then the image', async () => {
    const ran = await live('release', `quay.invalid/a/release@${DIGEST}`, '--timeout', '5');
    assert.equal(ran.code, 1);
    assert.match(ran.stderr, /mirror\.invalid\/a\/release@[\s\S]*quay\.invalid\/a\/release@/);
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
      apiVersion: 'operator.openshift.io/v1alpha1',
      kind: 'ImageContentSourcePolicy',
      metadata: { name: 'bad' },
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
      /refuses all mirror sets because of ImageContentSourcePolicy\/bad: nodes keep MachineConfig/,
    );
    assert.match(shown.stdout, /1 {2}kept\.invalid\/a\/x:1/);
    assert.match(explained.stdout, /kept\.invalid\/a\/x:1/);
    assert.match(explained.stderr, /nodes keep MachineConfig\/99-worker-generated-registries/);
    await plane.remove(policy);
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

  test.lastly('the control plane stops', () => plane.stop());
}

test.run();
