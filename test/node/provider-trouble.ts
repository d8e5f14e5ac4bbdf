/** A failed pull and its Event for the owner; responses for invalid tokens and servers; a deleted image. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { tokenFor } from '../control-plane/users.ts';
import type { TestBody } from '../support/suite.ts';
import { WAITS } from './machine/journey.ts';
import { MIRROR, PLUGIN, type ProviderScene, SOURCE } from './provider-scene.ts';

const IMAGE = `${SOURCE}/acme/web:1`;

/** Response of the installed executable to a request of the kubelet; the API server may hang. */
function answerOn({ node }: ProviderScene, token: string): unknown {
  const request = {
    kind: 'CredentialProviderRequest',
    apiVersion: 'credentialprovider.kubelet.k8s.io/v1',
    image: IMAGE,
    serviceAccountToken: token,
  };
  const answer = node.run('/bin/sh', '-c', 'printf %s "$1" | "$2"', 'sh', JSON.stringify(request), PLUGIN);
  return (JSON.parse(answer) as { readonly auth?: unknown }).auth;
}

const KEEPS_PRIVATE = { [IMAGE]: { username: '', password: '' } };

export function troubleSteps(step: (name: string, body: TestBody) => void, scene: ProviderScene): void {
  const { node } = scene;
  const { plane } = node;
  // An image of its own, because an auth file of another account would serve the pull.
  const other = scene.pod('other', { account: 'other' });

  step('why the provider failed stands on the pod and on the node; the node stays in order', async () => {
    node.image(MIRROR, 'acme/other', '1');
    await scene.make(other, WAITS);
    await scene.within(async () => {
      const events = await scene.ok(
        `kubectl -n team-a get events -o json \\
          --field-selector involvedObject.name=other,reason=CredentialProviderFailed | jq -r '.items[].message'`,
      );
      assert.match(events, /secrets is forbidden.*kubectl apply/);
    });
    const [status, reason, message] = await scene.reported();
    assert.deepEqual([status, reason], ['True', 'InSync']);
    assert.match(message ?? '', /the last run of the provider failed for (.*, )?team-a\/other/);
    assert.match((await scene.shell('pullwright status')).stdout, /provider failed for (.*, )?team-a\/other/);
  });

  step('doctor names it as the cause, and what it prints lets the pod pull', async () => {
    const seen = await scene.shell('pullwright doctor other -n team-a');
    assert.equal(seen.code, 1);
    assert.match(
      seen.stdout,
      /broken +mirror-credential +the credential provider of the node failed.*forbidden/,
    );
    await scene.ok(
      '(pullwright doctor other -n team-a --output yaml || true) | kubectl apply --server-side --field-manager=pullwright-fix --force-conflicts -f -',
    );
    // Avoid the kubelet's own back-off.
    await scene.ok('kubectl -n team-a delete pod other --wait');
    await scene.make(other);
    await scene.within(async () => assert.doesNotMatch((await scene.reported())[2] ?? '', /team-a\/other/));
    await plane.remove(other);
  });

  step('a token that has ended: the answer keeps the record, and no file is written', () => {
    const before = scene.authFiles();
    const serviceAccountKey = readFileSync(join(plane.folder, 'sa.key'), 'utf8');
    const ended = tokenFor(
      { serviceAccountKey },
      { namespace: 'team-a', name: 'app', uid: randomUUID(), seconds: -30 },
    );
    assert.deepEqual(answerOn(scene, ended), KEEPS_PRIVATE);
    assert.deepEqual(scene.authFiles(), before);
  });

  step('an API server that hangs: the same', async () => {
    const before = scene.authFiles();
    const token = (await scene.ok('kubectl -n team-a create token app')).trim();
    plane.apiServer.pause();
    try {
      assert.deepEqual(answerOn(scene, token), KEEPS_PRIVATE);
    } finally {
      plane.apiServer.resume();
    }
    assert.deepEqual(scene.authFiles(), before);
    await node.ready();
  });

  step('an image that is gone from the node is pulled again, and is as private as before', async () => {
    const layers = (): number =>
      node
        .registry(MIRROR)
        .log()
        .match(/"GET \/v2\/acme\/lost\/blobs\//g)?.length ?? 0;
    await scene.started('lost');
    await scene.ok('kubectl -n team-a delete pod lost --wait');
    const before = layers();
    // The kubelet removes the container some time after the pod.
    await scene.within(async () =>
      node.run('/usr/bin/skopeo', 'delete', `containers-storage:${SOURCE}/acme/lost:1`),
    );
    await scene.make(scene.pod('lost'));
    assert.ok(layers() > before, 'its layers were fetched again');
    const stranger = scene.pod('seeker', {
      namespace: 'team-b',
      account: 'default',
      policy: 'Never',
      image: 'lost',
    });
    await scene.make(stranger, /ErrImageNeverPull/);
    await plane.remove(stranger);
  });
}
