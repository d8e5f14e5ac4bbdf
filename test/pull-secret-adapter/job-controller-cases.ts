/** Inputs of the Job from the kubelet, and the Job controller's reaction to its exit codes. */
import assert from 'node:assert/strict';
import { eventually } from '../control-plane/eventually.ts';
import type { TestObject } from '../control-plane/resource-path.ts';
import { findPlanted } from '../support/canary.ts';
import type { TestSuite } from '../support/suite.ts';
import { type JobPlane, jobNamed, NAMESPACE, secretNamed } from './job-plane.ts';
import { pullSecret } from './run-job.ts';

/** Clusters that these need a namespace for. */
export const CONTROLLER_CLUSTERS = ['cls-env', 'cls-denied', 'cls-later', 'cls-ttl'] as const;

export function jobControllerCases(test: TestSuite, cluster: JobPlane): void {
  test('passAs env: the kubelet takes the value from the Secret; the Job object holds none', async () => {
    await cluster.bind('cls-env');
    const name = await cluster.startJob('cls-env', { passAs: 'env' });
    assert.equal(await cluster.verdict(name), 'Complete', cluster.kubelet.output.slice(-500));
    const [run] = cluster.kubelet.runs.filter((one) => one.pod.startsWith(name));
    assert.equal(run?.env['PULL_SECRET_DATA'], pullSecret('cls-env'));
    assert.equal(run?.env['PULL_SECRET_FILE'], undefined);
    assert.deepEqual(run?.tokens, ['/var/run/secrets/kubernetes.io/serviceaccount']);
    assert.equal(findPlanted(JSON.stringify(await cluster.plane.get(jobNamed(name)))), undefined);
    const secret = await cluster.plane.get(secretNamed('clusters-cls-env', 'pull-secret'));
    const { data = {}, type } = secret as TestObject & { data?: Record<string, string>; type?: string };
    assert.equal(type, 'kubernetes.io/dockerconfigjson');
    assert.equal(Buffer.from(data['.dockerconfigjson'] ?? '', 'base64').toString(), pullSecret('cls-env'));
    assert.equal(
      cluster.gcp.secrets
        .get('projects/cust-proj/secrets/hyperfleet-cls-env-pull-secret')
        ?.versions[0]?.data.toString(),
      pullSecret('cls-env'),
    );
  });

  test('a Job that writes nothing in the cluster gets no token of it', async () => {
    const name = await cluster.startJob('cls-none', { managementNamespace: '' });
    assert.equal(await cluster.verdict(name), 'Complete', cluster.kubelet.output.slice(-500));
    assert.deepEqual(cluster.kubelet.runs.find((one) => one.pod.startsWith(name))?.tokens, []);
  });

  test('a terminal exit code fails the Job at once, by its podFailurePolicy', async () => {
    const secret = 'projects/cust-proj/secrets/hyperfleet-cls-denied-pull-secret';
    cluster.gcp.put(secret, { labels: { 'managed-by': 'hyperfleet', 'cluster-id': 'cls-9' } });
    const name = await cluster.startJob('cls-denied');
    assert.equal(await cluster.verdict(name), 'Failed: PodFailurePolicy');
    assert.deepEqual(cluster.exitCodes(name), [73]);
  });

  test('a passing exit code is tried again by the Job controller, and then completes', async () => {
    // Without a RoleBinding: the Job sees the same as for a missing namespace.
    const name = await cluster.startJob('cls-later');
    await eventually(() => assert.deepEqual(cluster.exitCodes(name), [75]));
    await cluster.bind('cls-later');
    assert.equal(await cluster.verdict(name), 'Complete');
    assert.deepEqual(cluster.exitCodes(name), [75, 0]);
  });

  test('a finished Job goes after its time, and what it owns with it', async () => {
    await cluster.bind('cls-ttl');
    const name = await cluster.startJob('cls-ttl', { jobTtlSeconds: 1 });
    await eventually(() => assert.deepEqual(cluster.exitCodes(name), [0]));
    await eventually(async () => {
      assert.equal(await cluster.plane.get(jobNamed(name)), undefined);
      assert.equal(
        await cluster.plane.get(secretNamed(NAMESPACE, 'cluster-cls-ttl-pullsecret-data')),
        undefined,
      );
    });
  });

  test('no container printed a secret', () => assert.equal(findPlanted(cluster.kubelet.output), undefined));
}
