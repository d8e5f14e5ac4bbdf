// deadline: 400 s
// needs: control plane
/** Two hosted clusters whose kubeconfigs lead to one API server, or one that leads back to the management cluster. */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { type ControlPlane, startControlPlane } from '../control-plane/control-plane.ts';
import { eventually } from '../control-plane/eventually.ts';
import type { TestObject } from '../control-plane/resource-path.ts';
import { HYPERSHIFT_CRDS, kubeconfigSecret } from '../support/hypershift.ts';
import { meta } from '../support/meta.ts';
import { test } from '../support/suite.ts';
import { discovering } from './process.ts';
import {
  additional,
  eventsAbout,
  GLOBAL,
  hostedControlPlane,
  makeNamespaces,
  pullSecret,
  registriesOf,
} from './scene.ts';

const REPORT: TestObject = meta('pullwright.dev/v1alpha1 PullStatus', {
  name: 'lease-pullwright-reconciler',
  namespace: 'pullwright-system',
});

const [management, one, two] = await Promise.all([
  startControlPlane({ crds: [...HYPERSHIFT_CRDS, 'pullstatuses.pullwright.dev'] }),
  startControlPlane({ crds: ['pullstatuses.pullwright.dev'] }),
  startControlPlane({ crds: ['pullstatuses.pullwright.dev'] }),
]);
for (const plane of [management, one, two]) {
  await makeNamespaces(plane, 'openshift-config');
  await plane.apply(additional('tenant.example.com'));
}
await makeNamespaces(
  management,
  'clusters',
  'clusters-a',
  'clusters-b',
  'clusters-none',
  'pullwright-system',
);

/** Another name of the same server: it is not the address that tells. */
const kubeconfigOf = (plane: ControlPlane): string =>
  readFileSync(plane.kubeconfig, 'utf8').replace('127.0.0.1', 'localhost');
const lead = (name: string, text: string): Promise<unknown> => management.apply(kubeconfigSecret(name, text));
const platform = (name: string, registry: string): Promise<unknown> =>
  management.apply(pullSecret('pull-secret', `clusters-${name}`, [registry]));
const config = `${management.folder}/config.yaml`;
writeFileSync(
  config,
  'systems: { global-pull-secret: { removals: { delay: 0s } }, pull-secret-injection: false, registry-overrides: {}, credential-provider: false }\n',
);
const process = discovering(management.kubeconfig, config, [
  '--lease-namespace=pullwright-system',
  // Nothing but its end takes the Lease from it, however busy the machine is.
  '--lease-duration=15',
  '--refresh=2',
  '--metrics-port=0',
]);
const holds = (plane: ControlPlane, registry: string): Promise<void> =>
  eventually(async () => {
    const found = registriesOf(await plane.get(GLOBAL));
    assert.deepEqual(found, [registry, 'tenant.example.com'], process.log.slice(-1500));
  });
const metrics = async (pattern: RegExp): Promise<void> => {
  const url = `http://127.0.0.1:${await process.port('metrics')}/metrics`;
  await eventually(async () => assert.match(await (await fetch(url)).text(), pattern));
};
/** What the PullStatus beside the Lease says: its condition, and a line for each verdict. */
const said = (pattern: RegExp): Promise<void> =>
  eventually(async () => {
    const { conditions, verdicts } = (await management.get(REPORT))?.['status'] ?? {};
    const [ready] = conditions ?? [];
    const lines = [`${ready?.status} ${ready?.reason} ${ready?.message}`];
    for (const { subject, verdict, reason } of verdicts ?? []) lines.push(`${subject} ${verdict} ${reason}`);
    assert.match(lines.join('\n'), pattern);
  });
const refusals = (): readonly string[] =>
  process
    .said('cannot connect to hosted cluster')
    .flatMap((line) => (line['code'] === 'SameCluster' ? [String(line['problem'])] : []));
const refused = (pattern: RegExp): Promise<void> =>
  eventually(() => assert.match(refusals().join('\n'), pattern, process.log.slice(-1500)));
const versionOf = async (plane: ControlPlane): Promise<unknown> =>
  (await plane.get(GLOBAL))?.metadata['resourceVersion'];
test('a kubeconfig that leads back to the management cluster is refused, with an Event', async () => {
  await platform('a', 'a.example.com');
  await platform('b', 'b.example.com');
  await lead('a', kubeconfigOf(one));
  await lead('b', kubeconfigOf(management));
  await management.apply(hostedControlPlane('a'));
  await management.apply(hostedControlPlane('b'));
  await holds(one, 'a.example.com');
  await refused(
    /"clusters\/b": .*"Secret\/clusters-b\/pullwright-kubeconfig" leads to the management cluster \(/,
  );
  assert.equal(await management.get(GLOBAL), undefined);
  await metrics(/pullwright_hosted_clusters\{state="refused"\} 1/);
  await eventually(async () => {
    const notes = (await eventsAbout(management, 'b')).map((event) => `${event['reason']} ${event['note']}`);
    assert.match(notes.join('\n'), /^SameCluster Cannot connect to hosted cluster "clusters\/b"/m);
  });
});

test('a control plane whose kubeconfig does not come is told of, and no other waits for it', async () => {
  await management.apply(hostedControlPlane('none'));
  await eventually(async () => {
    const notes = (await eventsAbout(management, 'none')).map(
      (event) => `${event['reason']} ${event['note']}`,
    );
    assert.match(
      notes.join('\n'),
      /^KubeconfigMissing Cannot read kubeconfig "Secret\/clusters-none\/pullwright-kubeconfig": it does not exist/m,
    );
  });
  await metrics(/pullwright_hosted_clusters\{state="failing"\} 1/);
  await said(/^False HostedClustersFailing 2 of 3 .*\n.*clusters\/b Rejected SameCluster\n/s);
  await said(/\nclusters\/none Pending KubeconfigMissing$/);
  await platform('a', 'a1.example.com');
  await holds(one, 'a1.example.com');
  await management.client.request(
    'DELETE',
    '/apis/hypershift.openshift.io/v1beta1/namespaces/clusters-none/hostedcontrolplanes/none',
  );
  await metrics(/pullwright_hosted_clusters\{state="failing"\} 0/);
  await said(/^False HostedClustersFailing 1 of 2 /);
});

test('a second name for a cluster is refused, the first goes on, and both are named', async () => {
  await lead('b', kubeconfigOf(one));
  await refused(/"clusters\/b": .* leads to the cluster of "clusters\/a" \(/);
  await platform('a', 'a2.example.com');
  await holds(one, 'a2.example.com');
  const before = await versionOf(one);
  await platform('b', 'b2.example.com');
  await platform('a', 'a3.example.com');
  await holds(one, 'a3.example.com');
  assert.notEqual(await versionOf(one), before);
});

test('a corrected kubeconfig is taken within a minute, and what was said of it is gone', async () => {
  await lead('b', kubeconfigOf(two));
  await holds(two, 'b2.example.com');
  await metrics(/pullwright_hosted_clusters\{state="refused"\} 0/);
});

test('one that is led astray while it runs keeps the cluster that it had', async () => {
  await lead('b', kubeconfigOf(one));
  await refused(/"clusters\/b": .*"clusters\/a"/);
  await platform('b', 'b3.example.com');
  await holds(two, 'b3.example.com');
  await holds(one, 'a3.example.com');
});

test('when the first goes away, the second may have the cluster', async () => {
  await management.remove(hostedControlPlane('a'));
  await holds(one, 'b3.example.com');
});

test('a cluster that is opened and goes away is told of, too', async () => {
  await said(/^True HostedClustersServed 1 of 1 hosted cluster is reconciled$/);
  await one.stop();
  await metrics(/pullwright_hosted_clusters\{state="failing"\} 1/);
  await said(/^False HostedClustersFailing 1 of 1 .*\nclusters\/b Pending /s);
  await eventually(async () => {
    const events = await eventsAbout(management, 'b');
    assert.ok(
      events.some((event) => event['reason'] !== 'SameCluster' && event['action'] === 'Connect'),
      JSON.stringify(events.map((event) => event['reason'])),
    );
  });
});

test.lastly('everything stops', async () => {
  assert.equal(await process.stop(), 0);
  await Promise.all([management.stop(), two.stop()]);
});
