/** A stolen token of the adapter: it runs its own Jobs with the Secrets of clusters, and reads nothing else by a pod of its choice. */
import assert from 'node:assert/strict';
import { jobObject } from '../../runtime/pull-secret-adapter/adapter/resources.ts';
import { type AdapterSettings, DEFAULT_SETTINGS } from '../../runtime/pull-secret-adapter/options.ts';
import { cluster } from '../pull-secret-adapter/reconcile-parts.ts';
import { meta } from '../support/meta.ts';
import { IMAGE } from './rights-fleets.ts';
import type { Thief } from './rights-live-agents.ts';

type Json = { [key: string]: unknown };
type Pod = Json & { containers: Json[]; volumes: Json[] };

const NAMESPACE = 'hyperfleet-system';
const JOBS = `/apis/batch/v1/namespaces/${NAMESPACE}/jobs`;
const SECRETS = `/api/v1/namespaces/${NAMESPACE}/secrets`;
const POLICY = /ValidatingAdmissionPolicy 'pull-secret-adapter-jobs'/;
const other = { secretKeyRef: { name: 'broker', key: 'url' } };

const STOLEN: Readonly<Record<string, (pod: Pod, job: Json) => void>> = {
  'another image': (_, job) => (job['image'] = 'registry.example.com/evil'),
  'an older image of ours': (_, job) => (job['image'] = IMAGE.replace(/:[^:]*$/, ':0.0.9')),
  'another command': (_, job) => (job['command'] = ['/bin/sh']),
  'another of our programs': (_, job) => (job['args'] = ['adapter', '--api', 'https://evil.example.com']),
  'a Secret of somebody else': (pod) => pod.volumes.push({ name: 'a', secret: { secretName: 'broker' } }),
  'a Secret in a variable': (_, job) => (job['env'] as Json[]).push({ name: 'A', valueFrom: other }),
  'a library before its program': (_, job) =>
    (job['env'] as Json[]).push({ name: 'LD_PRELOAD', value: '/results/evil.so' }),
  'options of its runtime': (_, job) =>
    (job['env'] as Json[]).push({ name: 'BUN_OPTIONS', value: '--preload=/results/evil.js' }),
  'an API of its own': (_, job) =>
    (job['env'] as Json[]).push({ name: 'SECRET_MANAGER_ENDPOINT', value: 'https://evil.example.com' }),
  'the value of an option that is another': (_, job) =>
    (job['env'] as Json[]).push({ name: 'IAM_CREDENTIALS_ENDPOINT', value: 'https://evil' }),
  'authorities of its own': (pod) =>
    pod.volumes.push({ name: 'a', configMap: { name: 'cluster-evil-pullsecret-places' } }),
  'a folder over one of the image': (_, job) =>
    (job['volumeMounts'] as Json[]).push({ name: 'results', mountPath: '/lib' }),
};

/** Adds its tests to a suite. */
export function adapterThefts(test: (name: string, body: () => Promise<void>) => void, thief: Thief): void {
  const named = (name: string, more: Partial<AdapterSettings> = {}) => {
    const settings = { ...DEFAULT_SETTINGS, image: IMAGE, jobAuthorities: 'authorities', ...more };
    const purpose = name === 'delete' ? 'delete' : 'store';
    const task = { job: `pullsecret-${name}`, purpose, attempt: 1, places: [] } as const;
    return jobObject({ cluster: cluster(), settings }, task);
  };
  const evilJob = () => structuredClone(named('evil')) as unknown as { spec: { template: { spec: Pod } } };

  test('of the adapter runs its Jobs as they are made, by file, by variable and with the options of its installation', async () => {
    const jobs = {
      file: named('file'),
      delete: named('delete'),
      variable: named('variable', { passAs: 'env' }),
      option: named('option', { jobEnv: { IAM_CREDENTIALS_ENDPOINT: 'https://iam.example.com' } }),
    };
    for (const [name, job] of Object.entries(jobs)) {
      const made = await thief.apply(`${JOBS}/pullsecret-${name}`, job);
      assert.equal(made.status, 201, made.body.message);
    }
  });

  test('of the adapter sets no field of a Job but those of the list', async () => {
    await thief.walk(
      'adapter-job',
      '/openapi/v3/apis/batch/v1',
      'io.k8s.api.batch.v1.Job',
      `${JOBS}/pullsecret-evil`,
      named('evil'),
    );
  });

  for (const [what, change] of Object.entries(STOLEN))
    test(`of the adapter does not give a Job ${what}`, async () => {
      const evil = evilJob();
      const pod = evil.spec.template.spec;
      change(pod, pod.containers[0] ?? {});
      await thief.refused(POLICY, (query) => thief.apply(`${JOBS}/pullsecret-evil`, evil, query));
    });

  test('of the adapter writes no ConfigMap but what it remembers of a cluster', async () => {
    const configMaps = `/api/v1/namespaces/${NAMESPACE}/configmaps`;
    const configMap = (name: string) => meta('v1 ConfigMap', { name, namespace: NAMESPACE });
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
      ...meta('v1 Secret', { name, namespace: NAMESPACE }),
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
