/** A stolen token of the adapter: it runs its own Jobs with the Secrets of clusters, and reads nothing else by a pod of its choice. */
import assert from 'node:assert/strict';
import { pullSecretJob } from '../../runtime/pull-secret-adapter/objects.ts';
import { IMAGE } from './rights-fleets.ts';
import type { Thief } from './rights-live-agents.ts';

type Json = { [key: string]: unknown };
type Pod = Json & { containers: Json[]; volumes: Json[] };

const NAMESPACE = 'hyperfleet-system';
const JOBS = `/apis/batch/v1/namespaces/${NAMESPACE}/jobs`;
const SECRETS = `/api/v1/namespaces/${NAMESPACE}/secrets`;
const RUNS = /runs only its own Jobs/;
const GIVES = /gives its Jobs no Secret but that of a cluster/;
const OWN = /gives its Jobs the folders, variables and authorities of its installation alone/;
const other = { secretKeyRef: { name: 'broker', key: 'url' } };

const STOLEN: Readonly<Record<string, readonly [RegExp, (pod: Pod, job: Json) => void]>> = {
  'another image': [RUNS, (_, job) => (job['image'] = 'registry.example.com/evil')],
  'another command': [RUNS, (_, job) => (job['command'] = ['/bin/sh'])],
  'another of our programs': [
    RUNS,
    (_, job) => (job['args'] = ['adapter', '--api', 'https://evil.example.com']),
  ],
  'another account': [RUNS, (pod) => (pod['serviceAccountName'] = 'default')],
  'a container before it': [RUNS, (pod) => (pod['initContainers'] = [{ name: 'evil', image: IMAGE }])],
  "the node's network": [RUNS, (pod) => (pod['hostNetwork'] = true)],
  'a Secret of somebody else': [
    GIVES,
    (pod) => pod.volumes.push({ name: 'a', secret: { secretName: 'broker' } }),
  ],
  'one of several Secrets': [
    GIVES,
    (pod) => pod.volumes.push({ name: 'a', projected: { sources: [{ secret: { name: 'broker' } }] } }),
  ],
  'a Secret in a variable': [GIVES, (_, job) => (job['env'] as Json[]).push({ name: 'A', valueFrom: other })],
  'a library before its program': [
    OWN,
    (_, job) => (job['env'] as Json[]).push({ name: 'LD_PRELOAD', value: '/results/evil.so' }),
  ],
  'options of its runtime': [
    OWN,
    (_, job) => (job['env'] as Json[]).push({ name: 'BUN_OPTIONS', value: '--preload=/results/evil.js' }),
  ],
  'an API of its own': [
    OWN,
    (_, job) =>
      (job['env'] as Json[]).push({ name: 'SECRET_MANAGER_ENDPOINT', value: 'https://evil.example.com' }),
  ],
  'the value of an option that is another': [
    OWN,
    (_, job) => (job['env'] as Json[]).push({ name: 'IAM_CREDENTIALS_ENDPOINT', value: 'https://evil' }),
  ],
  'authorities of its own': [
    OWN,
    (pod) => pod.volumes.push({ name: 'a', configMap: { name: 'cluster-evil-pullsecret-places' } }),
  ],
  'a folder over one of the image': [
    OWN,
    (_, job) => (job['volumeMounts'] as Json[]).push({ name: 'results', mountPath: '/lib' }),
  ],
  'a folder of the node': [GIVES, (pod) => pod.volumes.push({ name: 'a', hostPath: { path: '/' } })],
};

/** Adds its tests to a suite. */
export function adapterThefts(test: (name: string, body: () => Promise<void>) => void, thief: Thief): void {
  const named = (name: string, more: Partial<Parameters<typeof pullSecretJob>[0]> = {}) =>
    pullSecretJob({
      name,
      namespace: NAMESPACE,
      labels: {},
      annotations: {},
      image: IMAGE,
      serviceAccount: 'pullsecret-adapter-job',
      needsApiServer: true,
      env: { CLUSTER_ID: 'a' },
      dataSecret: 'cluster-a-pullsecret-data',
      passAs: 'file',
      ttlSeconds: 60,
      deadlineSeconds: 60,
      failJobExitCodes: [65],
      ...more,
    });

  test('of the adapter runs its Jobs as they are made, by file, by variable and with a pool of identities', async () => {
    const jobs = {
      file: named('file'),
      variable: named('variable', { passAs: 'env', image: IMAGE.replace(/:[^:]*$/, ':9.9.9') }),
      option: named('option', { env: { IAM_CREDENTIALS_ENDPOINT: 'https://iam.example.com' } }),
      pool: named('pool', { federation: '//iam.googleapis.com/projects/1/p', authorities: 'authorities' }),
    };
    for (const [name, job] of Object.entries(jobs)) {
      const made = await thief.apply(`${JOBS}/${name}`, job);
      assert.equal(made.status, 201, made.body.message);
    }
  });

  for (const [what, [text, change]] of Object.entries(STOLEN))
    test(`of the adapter does not give a Job ${what}`, async () => {
      const evil = structuredClone(named('evil')) as unknown as { spec: { template: { spec: Pod } } };
      const pod = evil.spec.template.spec;
      change(pod, pod.containers[0] ?? {});
      await thief.refused(text, (query) => thief.apply(`${JOBS}/evil`, evil, query));
    });

  test('of the adapter writes no ConfigMap but what it remembers of a cluster', async () => {
    const configMaps = `/api/v1/namespaces/${NAMESPACE}/configmaps`;
    const configMap = (name: string) => ({
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name, namespace: NAMESPACE },
    });
    await thief.refused(/only the ConfigMaps cluster-ID-pullsecret-places/, (query) =>
      thief.apply(`${configMaps}/authorities`, configMap('authorities'), query),
    );
    const own = await thief.apply(
      `${configMaps}/cluster-a-pullsecret-places`,
      configMap('cluster-a-pullsecret-places'),
    );
    assert.equal(own.status, 201, own.body.message);
  });

  test('of the adapter writes no Secret but that of a cluster', async () => {
    const secret = (name: string) => ({
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name, namespace: NAMESPACE },
      type: 'Opaque',
    });
    await thief.refused(/writes and deletes only the Secrets cluster-ID-pullsecret-data/, (query) =>
      thief.apply(`${SECRETS}/broker`, secret('broker'), query),
    );
    const own = await thief.apply(
      `${SECRETS}/cluster-a-pullsecret-data`,
      secret('cluster-a-pullsecret-data'),
    );
    assert.equal(own.status, 201, own.body.message);
  });
}
