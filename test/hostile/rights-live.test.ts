// deadline: 600 s
// needs: control plane
/** Somebody has the token of the reconciler: what RBAC cannot narrow, a real API server refuses all the same. */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { dataUrl } from '../../runtime/core/kubernetes/objects.ts';
import { CONFIG_API_VERSION, CONFIG_KIND } from '../../runtime/credential-provider/config.ts';
import { hostedConfigMap, hostedConfigText, ignition } from '../../runtime/credential-provider/objects.ts';
import { platformFile } from '../../runtime/credential-provider/platform.ts';
import { poolFiles } from '../../runtime/credential-provider/pools.ts';
import { eventually } from '../control-plane/eventually.ts';
import { controlPlane } from '../control-plane/live.ts';
import type { Answer, Requester } from '../control-plane/request.ts';
import { meta } from '../support/meta.ts';
import { test } from '../support/suite.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { IMAGE } from './rights-fleets.ts';
import { adapterThefts } from './rights-live-adapter.ts';
import { agentThefts } from './rights-live-agents.ts';
import { deploymentThefts } from './rights-live-deployments.ts';
import { nodeThefts } from './rights-live-nodes.ts';
import { furnish, stolenToken } from './rights-live-plane.ts';
import { walked } from './rights-walk.ts';

const CONFIG = { apiVersion: CONFIG_API_VERSION, kind: CONFIG_KIND } as const;
const RENDERED = /writes MachineConfigs only as they are rendered/;
const folder = tempFolder();
const plane = await controlPlane({ crds: 'all' });
await furnish(plane, folder);
const account = await stolenToken(plane, 'pullwright-system', 'pullwright-reconciler');
const adapter = await stolenToken(plane, 'hyperfleet-system', 'pull-secret-adapter');
test.lastly('the rest stops', () => {
  account.close();
  adapter.close();
});

const SECRETS = '/api/v1/namespaces/kube-system/secrets';
const PULL = { '.dockerconfigjson': Buffer.from('{"auths":{}}').toString('base64') };
const applyAs =
  (thief: Requester) =>
  (path: string, object: object, more = ''): Promise<Answer> =>
    thief.request(
      'PATCH',
      `${path}?fieldManager=thief&force=true&${more}`,
      object,
      'application/apply-patch+yaml',
    );
const apply = applyAs(account);
const patch = (path: string, body: object, type = 'merge'): Promise<Answer> =>
  account.request('PATCH', path, body, `application/${type}-patch+json`);
/** In dry runs, since a policy is taken in some time after it was stored: until then nothing comes of it. */
const refused = (text: RegExp, ask: (query: string) => Promise<Answer>): Promise<void> =>
  eventually(async () => {
    const { status, body } = await ask('dryRun=All');
    assert.ok(status === 403 || status === 422, `${status} ${body.message}`);
    assert.match(body.message, text);
  });

test('makes no Secret that gets the token of a service account', async () => {
  const token = (namespace: string, name: string) => ({
    ...meta('v1 Secret', {
      name,
      namespace,
      labels: { 'pullwright.dev/owner': 'x' },
      annotations: { 'kubernetes.io/service-account.name': 'default' },
    }),
    type: 'kubernetes.io/service-account-token',
  });
  for (const namespace of ['kube-system', 'default', 'openshift-config', 'pullwright-system'])
    await refused(/only Secrets of type kubernetes\.io\/dockerconfigjson|writes only pull secrets/, (query) =>
      apply(
        `/api/v1/namespaces/${namespace}/secrets/global-pull-secret`,
        token(namespace, 'global-pull-secret'),
        query,
      ),
    );
});

test('changes no pull secret of another owner, in any namespace', async () => {
  for (const namespace of ['kube-system', 'default', 'openshift-config', 'pullwright-system']) {
    const secret = {
      ...meta('v1 Secret', { name: 'of-others', namespace }),
      type: 'kubernetes.io/dockerconfigjson',
      data: PULL,
    };
    await plane.apply(secret);
    const path = `/api/v1/namespaces/${namespace}/secrets/of-others`;
    await refused(/changes and deletes only Secrets that it created/, (query) =>
      account.request('DELETE', `${path}?${query}`),
    );
    await refused(/writes only pull secrets with|changes and deletes only/, (query) =>
      apply(path, { ...secret, metadata: { ...secret.metadata, labels: { a: 'b' } } }, query),
    );
  }
  const own = meta('v1 Secret', { name: 'global-pull-secret', namespace: 'kube-system' });
  const made = await apply(`${SECRETS}/global-pull-secret`, {
    ...own,
    type: 'kubernetes.io/dockerconfigjson',
    data: PULL,
  });
  assert.equal(made.status, 201, made.body.message);
});

test('changes one label of a Node, and nothing else', async () => {
  await plane.apply({ apiVersion: 'v1', kind: 'Node', metadata: { name: 'n1', labels: { zone: 'a' } } });
  const label = 'hypershift.openshift.io/nodepool-globalps-enabled';
  const ours = await patch('/api/v1/nodes/n1', { metadata: { labels: { [label]: 'true' } } });
  assert.equal(ours.status, 200, ours.body.message);
  for (const body of [
    { metadata: { labels: { 'node-role.kubernetes.io/master': '' } } },
    { metadata: { labels: { zone: null } } },
    { metadata: { annotations: { a: 'b' } } },
    { spec: { unschedulable: true } },
    { spec: { taints: [{ key: 'a', effect: 'NoExecute' }] } },
  ])
    await refused(/may change only the label .* of nodes/, (query) =>
      patch(`/api/v1/nodes/n1?${query}`, body),
    );
  const gone = await patch('/api/v1/nodes/n1', { metadata: { labels: { [label]: null } } });
  assert.equal(gone.status, 200, gone.body.message);
});

test('changes one label of a Machine, and nothing else', async () => {
  const place = { name: 'm1', namespace: 'clusters-guest' };
  await plane.apply({
    ...meta('cluster.x-k8s.io/v1beta1 Machine', place),
    spec: { clusterName: 'guest', bootstrap: { dataSecretName: 'a' }, infrastructureRef: {} },
  });
  const path = `/apis/cluster.x-k8s.io/v1beta1/namespaces/${place.namespace}/machines/m1`;
  const label = 'managed.hypershift.openshift.io.hypershift.openshift.io/nodepool-globalps-enabled';
  const ours = await patch(path, { metadata: { labels: { [label]: 'true' } } });
  assert.equal(ours.status, 200, ours.body.message);
  for (const body of [{ spec: { clusterName: 'other' } }, { metadata: { labels: { other: 'x' } } }])
    await refused(/may change only the label .* of machines/, (query) => patch(`${path}?${query}`, body));
});

test('brings two files to nodes by MachineConfig, and nothing else', async () => {
  const at = '/apis/machineconfiguration.openshift.io/v1/machineconfigs';
  const config = (name: string, spec: object) => ({
    ...meta('machineconfiguration.openshift.io/v1 MachineConfig', {
      name,
      labels: { 'machineconfiguration.openshift.io/role': 'worker' },
    }),
    spec,
  });
  const ours = '97-worker-generated-credentialproviderconfig';
  const filesOf = (platform: string) => poolFiles(platformFile(platform), CONFIG);
  const good = ignition(filesOf('AWS'));
  const [file] = (good['storage'] as { readonly files: readonly object[] }).files;
  const withFile = (more: object) => ({ ...good, storage: { files: [{ ...file, ...more }] } });
  const evil = '[Service]\nExecStartPre=/bin/sh\n';
  for (const [made, status] of [
    [ignition([]), 201],
    [good, 200],
    [ignition(filesOf('None')), 200],
  ] as const) {
    const answer = await apply(`${at}/${ours}`, config(ours, { config: made }));
    assert.equal(answer.status, status, answer.body.message);
  }
  for (const spec of [
    { config: withFile({ path: '/etc/shadow' }) },
    { config: withFile({ path: '/etc/kubernetes/credential-providers/other.yaml' }) },
    { config: withFile({ path: '/etc/kubernetes/credential-providers/../manifests/pod.yaml' }) },
    { config: withFile({ mode: 0o777 }) },
    { config: withFile({ contents: { source: 'https://example.com/file' } }) },
    { config: withFile({ contents: { source: `${dataUrl('')},` } }) },
    { config: ignition(filesOf('None').map((one, index) => (index === 0 ? one : { ...one, text: evil }))) },
    { config: ignition([...filesOf('AWS'), { path: '/etc/shadow', text: '' }]) },
    {
      config: {
        ...good,
        ignition: { version: '3.5.0', config: { merge: [{ source: 'https://example.com' }] } },
      },
    },
    { config: { ...good, storage: { ...good['storage'], links: [{ path: '/a', target: '/b' }] } } },
    { config: { ...good, systemd: { units: [{ name: 'a.service', enabled: true, contents: '' }] } } },
    { config: { ...good, passwd: { users: [{ name: 'core', sshAuthorizedKeys: ['x'] }] } } },
    { config: good, osImageURL: 'registry.example.com/evil' },
    { config: good, kernelArguments: ['init=/bin/sh'] },
  ])
    await refused(RENDERED, (query) => apply(`${at}/${ours}`, config(ours, spec), query));
  await refused(/cannot (patch|create)/, (query) =>
    apply(`${at}/99-evil`, config('99-evil', { config: good }), query),
  );
});

test('brings to nodes of hosted clusters the rendered MachineConfig, whatever the file of their kubelet says', async () => {
  const hosted = { namespace: 'clusters', name: 'guest' };
  const executable = { image: IMAGE };
  const path = '/api/v1/namespaces/clusters/configmaps/guest-crio-credential-provider';
  const textOf = (platform: string, more: object = {}) =>
    hostedConfigText(poolFiles(platformFile(platform), { ...CONFIG, ...more }), executable);
  const providers = Array.from({ length: 200 }, (_, index) => ({ name: `provider-${index}` }));
  const write = (text: string, query = 'dryRun=All', more: object = {}) => {
    const object = hostedConfigMap(hosted, []);
    return apply(path, { ...object, data: { config: text, ...more } }, query);
  };
  for (const text of [
    hostedConfigText([], executable),
    ...['AWS', 'GCP', 'Azure', 'None'].map((platform) => textOf(platform)),
    textOf('None', { providers }),
  ]) {
    const { status, body } = await write(text);
    assert.equal(status, 201, body.message);
  }
  const own = textOf('None');
  const [, content = ''] = /base64,([^"]+)"/.exec(own) ?? [];
  for (const text of [
    'kind: MachineConfig',
    own.replace(content, `${content}"},"path":"/etc/shadow"},{"contents":{"source":"data:,`),
    own.replace(content, `${content}\\n`),
    own.replace(content, `${content}===`),
    own.replace('"mode": 420', '"mode": 2541'),
    own.replace('40-kubelet-crio-image-credential-provider.conf', 'evil.conf'),
    hostedConfigText(poolFiles(platformFile('None'), CONFIG)),
    hostedConfigText(poolFiles(platformFile('None'), CONFIG), { image: 'registry.example.com/evil:1' }),
    `${own}---\n${own}`,
    own.slice(0, 600),
  ])
    await refused(RENDERED, (query) => write(text, query));
  await refused(RENDERED, (query) => write(own, query, { other: own }));
  await refused(/may write only overrides\.json/, (query) =>
    apply(
      '/api/v1/namespaces/clusters-guest/configmaps/registry-overrides',
      {
        ...meta('v1 ConfigMap', {
          name: 'registry-overrides',
          namespace: 'clusters-guest',
          labels: { 'hypershift.openshift.io/core-ignition-config': 'true' },
        }),
        data: { config: own },
      },
      query,
    ),
  );
});

const walkAs =
  (one: ReturnType<typeof applyAs>) =>
  async (list: string, document: string, kind: string, path: string, object: object): Promise<void> => {
    const { body } = await plane.client.request('GET', document);
    const { refused: count, admitted } = await walked(body, kind, object, (changed) =>
      one(path, changed, 'dryRun=All'),
    );
    assert.ok(count > 400, `${count} refused`);
    const file = join(import.meta.dirname, '../golden/rbac/fields', `${list}.json`);
    const text = `${JSON.stringify(admitted, undefined, 2)}\n`;
    if (process.env['UPDATE_GOLDEN'] === '1') writeFileSync(file, text);
    assert.equal(text, readFileSync(file, 'utf8'), 'run it with UPDATE_GOLDEN=1');
  };
agentThefts(test, { apply, refused, walk: walkAs(apply) });
adapterThefts(test, { apply: applyAs(adapter), refused, walk: walkAs(applyAs(adapter)) });
nodeThefts(test, plane);
// The whole of its fields, since an apply takes nothing away that another manager set.
const replace = (path: string, { spec }: { readonly spec?: unknown }, query: string): Promise<Answer> =>
  patch(`${path}?${query}`, [{ op: 'replace', path: '/spec', value: spec }] as object, 'json');
deploymentThefts(test, { plane, apply, patch, refused, walk: walkAs(replace as typeof apply) });

test('runs no pod', async () => {
  const path = '/api/v1/namespaces/kube-system/pods';
  const pod = {
    ...meta('v1 Pod', { name: 'evil', namespace: 'kube-system' }),
    spec: { containers: [{ name: 'a', image: 'registry.example.com/evil' }] },
  };
  await eventually(async () => {
    const { status, body } = await account.request('POST', path, pod);
    assert.match(body.message, /creates pods only in dry runs/, `${status}`);
  });
});
