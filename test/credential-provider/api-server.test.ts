// deadline: 120 s
/** How the provider finds the API server and its CA, in the layouts of kubeadm and OpenShift. */
import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import {
  currentCluster,
  findApiServer,
  usualCluster,
} from '../../runtime/credential-provider/plugin/api-server.ts';
import { defaultOptions, type ProviderOptions } from '../../runtime/credential-provider/provider-flags.ts';
import { parseYaml } from '../../runtime/kube/yaml.ts';
import { makeCertificates } from '../support/certificates.ts';
import { type Case, table, test } from '../support/suite.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { startApi } from './support/api-double.ts';
import { makeNode, requestFor, runOn, tokenFor } from './support/node-double.ts';
import { CONF, IMAGE, SECRET } from './support/one-run.ts';

const PEM = { a: pemOf('a'), b: pemOf('b') } as const;

function pemOf(name: string): string {
  return `-----BEGIN CERTIFICATE-----\n${name}\n-----END CERTIFICATE-----\n`;
}

function kubeconfig(cluster: Readonly<Record<string, string>>): string {
  const lines = Object.entries(cluster).map(([name, value]) => `    ${name}: ${value}\n`);
  return `apiVersion: v1\nclusters:\n- cluster:\n${lines.join('')}  name: default\ncontexts:\n- context:\n    cluster: default\n    user: node\n  name: x\ncurrent-context: x\nkind: Config\n`;
}

const data = (pem: string): string => Buffer.from(pem).toString('base64');

/** A kubeconfig with a CA in it. */
function trusting(server: string, more: Readonly<Record<string, string>> = {}): string {
  return kubeconfig({ server, ...more, 'certificate-authority-data': data(PEM.a) });
}

interface Row extends Case {
  readonly files: Readonly<Record<string, string>>;
  readonly options?: Partial<ProviderOptions>;
  readonly url?: string;
  /** @default {PEM.a} */
  readonly ca?: string;
  readonly serverName?: string;
  readonly fails?: RegExp;
}

const rows: readonly Row[] = [
  {
    name: 'kubeadm',
    reason: 'server, name and CA are in the kubelet’s own kubeconfig',
    files: {
      '/etc/kubernetes/kubelet.conf': trusting('https://10.99.0.10:6443', {
        'tls-server-name': 'kubernetes',
      }),
      '/etc/kubernetes/pki/ca.crt': PEM.b,
    },
    url: 'https://10.99.0.10:6443',
    serverName: 'kubernetes',
  },
  {
    name: 'OpenShift',
    reason: 'the address of the Machine Config Operator wins, the CA is from the kubeconfig',
    files: {
      '/etc/kubernetes/apiserver-url.env':
        "KUBERNETES_SERVICE_HOST='api-int.example.com'\nKUBERNETES_SERVICE_PORT='6443'\n",
      '/var/lib/kubelet/kubeconfig': trusting('https://other.example.com:6443', {
        'tls-server-name': 'other',
      }),
      '/etc/kubernetes/kubelet-ca.crt': PEM.b,
    },
    url: 'https://api-int.example.com:6443',
  },
  {
    name: 'the same address in both',
    reason: 'the name in the certificate belongs to the address',
    files: {
      '/etc/kubernetes/apiserver-url.env': 'KUBERNETES_SERVICE_HOST=fd00::1\nKUBERNETES_SERVICE_PORT=443\n',
      '/etc/kubernetes/kubeconfig': kubeconfig({
        server: '"https://[fd00::1]/"',
        'tls-server-name': 'api',
        'certificate-authority': 'pki/a.crt',
      }),
      '/etc/kubernetes/pki/a.crt': PEM.a,
    },
    url: 'https://[fd00::1]:443',
    serverName: 'api',
  },
  {
    name: 'a path before the API',
    reason: 'as behind a proxy of clusters',
    files: {
      '/etc/kubernetes/kubelet.conf': trusting('https://r.example.com/k8s/clusters/c-1/'),
    },
    url: 'https://r.example.com:443/k8s/clusters/c-1',
  },
  {
    name: 'a CA that is not there',
    reason: 'the next place has one',
    files: {
      '/etc/kubernetes/kubelet.conf': kubeconfig({
        server: 'https://10.0.0.1:6443',
        'certificate-authority': '/etc/kubernetes/gone.crt',
      }),
      '/etc/kubernetes/pki/ca.crt': PEM.b,
    },
    url: 'https://10.0.0.1:6443',
    ca: PEM.b,
  },
  {
    name: 'indented lists, the name first',
    reason: 'as other tools write; the current context decides between two clusters',
    files: {
      '/etc/kubernetes/kubelet.conf': `clusters:\n  - name: b\n    cluster:\n      server: https://b\n  - name: a\n    cluster:\n      server: 'https://h:1' # here\n      certificate-authority-data: ${data(PEM.a)}\ncontexts:\n  - name: x\n    context: {cluster: a}\ncurrent-context: x\n`,
    },
    url: 'https://h:1',
  },
  {
    name: 'the file of another kind',
    reason: "on OpenShift it is the kubelet's own configuration",
    files: {
      '/etc/kubernetes/kubelet.conf': 'kind: KubeletConfiguration\nclusterDomain: cluster.local\n',
      '/etc/kubernetes/kubeconfig': trusting('https://10.0.0.1:6443'),
    },
    url: 'https://10.0.0.1:6443',
  },
  {
    name: 'one CA and no other',
    reason: '--ca-file is not argued with',
    files: {
      '/etc/kubernetes/kubelet.conf': trusting('https://10.0.0.1:6443'),
      '/etc/my.crt': PEM.b,
    },
    options: { caFile: '/etc/my.crt' },
    url: 'https://10.0.0.1:6443',
    ca: PEM.b,
  },
  {
    name: 'only a CA',
    reason: 'the address falls to this host, as it always has',
    files: { '/etc/kubernetes/ca.crt': PEM.a },
    url: 'https://localhost:6443',
  },
  {
    name: 'plain HTTP',
    reason: 'a token goes to no server without TLS',
    files: { '/etc/kubernetes/kubelet.conf': kubeconfig({ server: 'http://10.0.0.1:8080' }) },
    fails: /server "http:\/\/10\.0\.0\.1:8080" of ".*kubelet\.conf" is not the address/,
  },
  { name: 'nothing', reason: 'nothing is sent', files: {}, fails: /no CA found/ },
];

table(test, rows, async ({ files, options = {}, url, ca = PEM.a, serverName, fails }) => {
  const root = tempFolder();
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(root + path), { recursive: true });
    writeFileSync(root + path, text.replaceAll('/etc/kubernetes/gone', `${root}/gone`));
  }
  const at = (paths: readonly string[]): readonly string[] => paths.map((path) => root + path);
  const usual = defaultOptions(undefined);
  const here: ProviderOptions = {
    ...usual,
    apiServerEnv: root + usual.apiServerEnv,
    kubeconfigs: at(usual.kubeconfigs),
    caFiles: at(usual.caFiles),
    caFile: options.caFile === undefined ? undefined : root + options.caFile,
  };
  if (fails !== undefined) return await assert.rejects(findApiServer(here), fails);
  const found = await findApiServer(here);
  assert.deepEqual([found.url, found.ca, found.serverName], [url, ca, serverName]);
});

test('the certificate is for the name of the kubeconfig, and of its CA', async () => {
  const api = await startApi(
    { secrets: [SECRET] },
    { certificates: makeCertificates({ hosts: ['kubernetes.example.com'] }) },
  );
  const plain = await startApi({ secrets: [SECRET] });
  const node = makeNode({ registriesConf: CONF });
  try {
    const path = join(node.folder, 'kubelet.conf');
    const logOf = async (cluster: Readonly<Record<string, string>>): Promise<string> => {
      writeFileSync(path, kubeconfig({ server: `https://127.0.0.1:${api.port}`, ...cluster }));
      const ran = await runOn(node, requestFor(IMAGE, tokenFor('team-a')), {
        options: { kubeconfigs: [path] },
      });
      return ran.log.join('\n');
    };
    const name = { 'tls-server-name': 'kubernetes.example.com' };
    assert.match(await logOf({ ...name, 'certificate-authority-data': data(api.ca) }), /Wrote auth file/);
    assert.match(await logOf({ 'certificate-authority-data': data(api.ca) }), /is unreachable/);
    assert.match(
      await logOf({ ...name, 'certificate-authority-data': data(makeCertificates().ca) }),
      /did not sign the API server/,
    );
    assert.equal(api.requests.length, 1);
    const kubeadm = {
      server: `https://127.0.0.1:${plain.port}`,
      'certificate-authority-data': data(plain.ca),
    };
    assert.match(await logOf(kubeadm), /Wrote auth file/);
  } finally {
    node.remove();
    await Promise.all([api.close(), plain.close()]);
  }
});

const KUBEADM = trusting('https://10.99.0.10:6443');

/** Kubeconfigs of kubelets with their server, and whether they are parsed without the YAML library. */
const KUBECONFIGS: Readonly<
  Record<string, readonly [text: string, server: string | undefined, usual?: true]>
> = {
  'of kubeadm': [KUBEADM, 'https://10.99.0.10:6443', true],
  'no such context': [KUBEADM.replace('current-context: x', 'current-context: two'), undefined],
  'no current context, one cluster': [KUBEADM.replace('current-context: x\n', ''), 'https://10.99.0.10:6443'],
  'an empty current context': [KUBEADM.replace('-context: x', '-context: ""'), 'https://10.99.0.10:6443'],
  'a context of another cluster': [KUBEADM.replace('    cluster: default', '    cluster: b'), undefined],
  'two contexts': [
    KUBEADM.replace('contexts:\n', 'contexts:\n- context:\n    cluster: b\n  name: y\n'),
    'https://10.99.0.10:6443',
  ],
  'two clusters': [
    KUBEADM.replace('contexts:', '- cluster:\n    server: https://b\n  name: b\ncontexts:'),
    'https://10.99.0.10:6443',
  ],
  'two clusters, no current context': [
    'clusters:\n- cluster:\n    server: https://a\n  name: a\n- cluster:\n    server: https://b\n  name: b\n',
    undefined,
  ],
  JSON: [JSON.stringify(parseYaml(KUBEADM)), 'https://10.99.0.10:6443'],
  'flow maps': ['clusters: [{name: a, cluster: {server: "https://a"}}]\n', 'https://a'],
  'block text': [KUBEADM.replace('server: ', 'server: >-\n      '), 'https://10.99.0.10:6443'],
  'a comment behind a value': [KUBEADM.replace(':6443', ':6443 # here'), 'https://10.99.0.10:6443'],
  'a text over two lines': [KUBEADM.replace(':6443', ':6443\n      b'), 'https://10.99.0.10:6443 b'],
  empty: ['', undefined],
};

for (const [name, [text, server, usual = false]] of Object.entries(KUBECONFIGS))
  test(`kubeconfig: ${name}`, () => {
    assert.equal(usualCluster(text) !== undefined, usual);
    assert.equal((usualCluster(text) ?? currentCluster(parseYaml(text)))?.server, server);
  });

test('a kubeconfig that is read without the YAML library means the same to it, whatever is put in', () => {
  let read = 0;
  for (let at = 0; at < KUBEADM.length; at++)
    for (const part of ['- ', ' ', '#', '"', "'", ': ', ':', '{', '&a ', '|', '\n', '\n  ', 'null', '~']) {
      const text = KUBEADM.slice(0, at) + part + KUBEADM.slice(at);
      const found = usualCluster(text);
      const parsed = found === undefined ? undefined : parsedOr(text);
      // With invalid YAML elsewhere in it the kubelet does not start either.
      if (parsed === undefined) continue;
      read += 1;
      assert.deepEqual(found, currentCluster(parsed), text);
    }
  assert.ok(read > 100, `only ${read} read`);
});

function parsedOr(text: string): unknown {
  try {
    return parseYaml(text);
  } catch {
    return undefined;
  }
}
