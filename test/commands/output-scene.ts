/** Inputs for the test of the commands' JSON: a cluster in a folder, and a double of an API server. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { Door } from '../support/loopback.ts';
import { meta, pullSecretObject } from '../support/meta.ts';
import { tempFolder } from '../support/temp-folder.ts';

const work = tempFolder();
const doors: Door[] = [];
const DIGEST = `sha256:${'a'.repeat(64)}`;

/** A file below the folder of the test. */
export function put(name: string, ...documents: readonly object[]): string {
  const path = join(work, name);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, documents.map((one) => `${JSON.stringify(one)}\n`).join('---\n'));
  return path;
}

/** A path below it where nothing is. */
export function nowhere(name: string): string {
  return join(work, name);
}

const pullSecret = (namespace: string, name: string, ...keys: readonly string[]): object =>
  pullSecretObject({ name, namespace }, dockerConfig(...keys));

function dockerConfig(...keys: readonly string[]): string {
  const auth = Buffer.from('output:test').toString('base64');
  return JSON.stringify({ auths: Object.fromEntries(keys.map((key) => [key, { auth }])) });
}

const mirrorSet = (...mirrors: readonly string[]): object => ({
  ...meta('config.openshift.io/v1 ImageDigestMirrorSet', { name: 'm' }),
  spec: { imageDigestMirrors: [{ source: 'quay.io/shop', mirrors }] },
});

/** A workload whose pod fails, its Secrets, a mirror set, and what another tool copies. */
export const CLUSTER: string = dirname(
  put(
    'cluster/objects.yaml',
    pullSecret('shop', 'pull', 'quay.io/shop', 'quay.io/other'),
    pullSecret('openshift-config', 'pull-secret', 'quay.io', 'm.io'),
    mirrorSet('m.io/shop'),
    {
      ...meta('apps/v1 Deployment', { name: 'web', namespace: 'shop' }),
      spec: {
        template: {
          spec: {
            imagePullSecrets: [{ name: 'pull' }, { name: 'gone' }],
            containers: [{ name: 'a', image: `quay.io/shop/web@${DIGEST}` }],
          },
        },
      },
    },
    {
      ...meta('v1 Pod', { name: 'web-1', namespace: 'shop' }),
      spec: {
        imagePullSecrets: [{ name: 'gone' }],
        containers: [{ name: 'a', image: `quay.io/shop/web@${DIGEST}` }],
      },
      status: {
        phase: 'Pending',
        containerStatuses: [
          {
            name: 'a',
            ready: false,
            state: { waiting: { reason: 'ErrImagePull', message: 'image "quay.io/shop/web": unauthorized' } },
          },
        ],
      },
    },
    pullSecretObject(
      {
        name: 'copied',
        namespace: 'shop',
        annotations: { 'reflector.v1.k8s.emberstack.com/reflection-allowed': 'true' },
      },
      dockerConfig('r.io'),
    ),
    meta('apps/v1 Deployment', {
      name: 'reconciler',
      namespace: 'pullwright-system',
      labels: { 'app.kubernetes.io/part-of': 'pullwright' },
    }),
    {
      ...meta('rbac.authorization.k8s.io/v1 ClusterRole', { name: 'reader' }),
      rules: [{ apiGroups: [''], resources: ['secrets'], verbs: ['get', 'list'] }],
    },
    {
      ...meta('rbac.authorization.k8s.io/v1 ClusterRoleBinding', { name: 'reader' }),
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'reader' },
      subjects: [{ kind: 'ServiceAccount', namespace: 'shop', name: 'web' }],
    },
  ),
);

/** A change of its mirror set. */
export const CHANGE: string = put('change.yaml', mirrorSet('n.io/shop', 'm.io/shop'));

/** A folder that holds nothing of use. */
export const EMPTY: string = dirname(
  put('empty/object.yaml', { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'web' } }),
);

/** A node's file and the Secret that is mounted beside it. */
export function nodeFiles(): readonly string[] {
  const original = join(work, 'node/original');
  mkdirSync(dirname(original), { recursive: true });
  writeFileSync(original, dockerConfig('quay.io'));
  return [
    `--original=${original}`,
    `--global=${nowhere('none')}`,
    `--file=${join(work, 'node/config.json')}`,
  ];
}

/** A kubeconfig of a server that has nothing: lists are empty, and objects are not there. */
export async function emptyCluster(): Promise<string> {
  const door = await Door.open();
  door.server.on('request', (request, response) => {
    const isName = basename(new URL(request.url ?? '/', 'http://a').pathname).includes('-');
    response.writeHead(isName ? 404 : 200, { 'content-type': 'application/json' });
    response.end(JSON.stringify(isName ? { kind: 'Status', code: 404 } : { items: [], metadata: {} }));
  });
  doors.push(door);
  return door.kubeconfig;
}

/** Stops the servers. */
export async function tidy(): Promise<void> {
  for (const door of doors) await door.close();
}
