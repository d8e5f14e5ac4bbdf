/** Reports for tests: the example with faults, a large fleet, and hostile names. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { plantedAuth } from '../support/canary.ts';
import { meta } from '../support/meta.ts';

/** Names that mean something to a browser, a terminal, Markdown or a person's eye. */
export const HOSTILE: readonly string[] = [
  '<img src=x onerror=alert(1)>',
  '</script><script>document.title="owned"</script>',
  '<!--<script>',
  'a\u202Egpj.exe\u2066',
  '`code` | [link](javascript:alert(1))',
  'javascript:alert(1)',
  '\'"><svg/onload=alert(1)>',
  'x'.repeat(10_000),
  '\u2028\u2029\u0000\u001b[2J',
  '__proto__',
];

const API = 'v1';

interface Plain {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: Readonly<Record<string, unknown>>;
  readonly [field: string]: unknown;
}

function secret(
  namespace: string,
  name: string,
  auths: Readonly<Record<string, { readonly auth: string }>>,
): Plain {
  const text = Buffer.from(JSON.stringify({ auths })).toString('base64');
  return {
    ...meta(`${API} Secret`, { name, namespace }),
    type: 'kubernetes.io/dockerconfigjson',
    data: { '.dockerconfigjson': text },
  };
}

function deployment(namespace: string, name: string, image: string, secrets: readonly string[]): Plain {
  const spec = {
    containers: [{ name: 'app', image }],
    imagePullSecrets: secrets.map((one) => ({ name: one })),
  };
  return {
    ...meta('apps/v1 Deployment', { name, namespace }),
    spec: { template: { metadata: { labels: {} }, spec } },
  };
}

function node(name: string, eligible: boolean): Plain {
  const labels = eligible ? { 'hypershift.openshift.io/nodepool-globalps-enabled': 'true' } : {};
  return { apiVersion: API, kind: 'Node', metadata: { name, labels } };
}

function write(folder: string, objects: readonly Plain[]): void {
  mkdirSync(folder, { recursive: true });
  writeFileSync(
    join(folder, 'objects.json'),
    JSON.stringify({ apiVersion: API, kind: 'List', items: objects }),
  );
}

/** A folder with one cluster, in which every name that can be is hostile. */
export function writeHostileFolder(folder: string): void {
  write(
    folder,
    HOSTILE.flatMap((text, at) => [
      secret('shop', text, { [text]: { auth: plantedAuth(`entry-${at}`) } }),
      deployment('shop', text, text, [text, `${text}-missing`]),
      node(text, at % 2 === 0),
      {
        ...meta('pullwright.dev/v1alpha1 PullStatus', { name: `node-${text}`, namespace: 'kube-system' }),
        status: {
          reporter: 'global-pull-secret-agent',
          conditions: [{ type: 'Ready', status: 'False', reason: text, message: text }],
        },
      },
      {
        ...meta('config.openshift.io/v1 ImageDigestMirrorSet', { name: text }),
        spec: { imageDigestMirrors: [{ source: text, mirrors: [text] }] },
      },
    ]),
  );
}

/** A folder with one cluster whose nodes run containerd, and one workload with a pull secret. */
export function writeContainerdFolder(folder: string): void {
  const nodeInfo = { containerRuntimeVersion: 'containerd://2.1.4' };
  write(folder, [
    { ...node('worker-0', false), status: { nodeInfo } },
    secret('shop', 'robot', { 'quay.io/shop': { auth: plantedAuth('containerd') } }),
    deployment('shop', 'web', 'quay.io/shop/web:1', ['robot']),
    deployment('shop', 'busybox', 'busybox', []),
  ]);
}

/** Writes `clusters` hosted clusters, each with `nodes` nodes, four workloads and six registry keys. */
export function writeLargeFolder(folder: string, clusters: number, nodes: number): void {
  write(
    join(folder, 'management'),
    Array.from({ length: clusters }, (_, at) => ({
      ...meta('hypershift.openshift.io/v1beta1 HostedCluster', { name: `c-${at}`, namespace: 'clusters' }),
      spec: { imageContentSources: [{ source: 'quay.io/team', mirrors: ['mirror.example.com/team'] }] },
    })),
  );
  for (let at = 0; at < clusters; at += 1) {
    const auths = (label: string, keys: readonly string[]) =>
      Object.fromEntries(keys.map((key) => [key, { auth: plantedAuth(`${label}-${at}`) }]));
    write(join(folder, 'hosted/clusters', `c-${at}`), [
      secret(
        'openshift-config',
        'pull-secret',
        auths('platform', ['quay.io', 'registry.redhat.io', 'mirror.example.com']),
      ),
      secret(
        'kube-system',
        'additional-pull-secret',
        auths('tenant', ['a.example.com', 'b.example.com', 'https://quay.io/']),
      ),
      secret('shop', 'robot', auths('shop', ['a.example.com/shop'])),
      ...Array.from({ length: nodes }, (_, index) => node(`worker-${at}-${index}`, index % 4 !== 0)),
      deployment('shop', 'web', 'a.example.com/shop/web:1', ['robot']),
      deployment('shop', 'api', 'quay.io/team/api@sha256:'.concat('ab'.repeat(32)), ['robot']),
      deployment('shop', 'worker', 'b.example.com/worker:3', at % 10 === 0 ? ['gone'] : ['robot']),
      deployment('tools', 'runner', 'docker.io/library/busybox:1', []),
    ]);
  }
}
