// deadline: 400 s
/** The report as a page of the reconciler: its account, two tenants and the platform with real tokens, and bad input. */
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type FleetInput, readFleet, renderFleet, writeTree } from '../../charts/mod.ts';
import type { Report } from '../../runtime/rules/report/types.ts';
import { missingControlPlane, startControlPlane } from '../control-plane/control-plane.ts';
import { eventually } from '../control-plane/eventually.ts';
import { NODE, ReconcilerProcess } from '../reconcile/process.ts';
import { findPlanted, plantedAuth } from '../support/canary.ts';
import { makeCertificates } from '../support/certificates.ts';
import { suite } from '../support/suite.ts';

const test = suite('the report as a page of the reconciler');
const missing = missingControlPlane();
const AUDIENCE = 'reports.pullwright.dev';
const OWN = 'pullwright-system';

const fleet: FleetInput = {
  image: 'registry.example.com/pullwright:0.1.0',
  clusters: [
    {
      name: 'alone',
      path: '.',
      reconciler: { reports: { certificates: { kind: 'manual' }, every: '5s' } },
      systems: { 'global-pull-secret': {} },
    },
  ],
};

interface Said {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
}

if (missing !== undefined) test.skip('the page in a cluster', missing);
else {
  const folder = mkdtempSync(join(tmpdir(), 'pullwright-page-'));
  const plane = await startControlPlane({ crds: 'all' });
  await plane.client.request('POST', '/api/v1/namespaces', { metadata: { name: 'openshift-config' } });
  writeTree(join(folder, 'tree'), renderFleet(readFleet(fleet)).tree);
  const applied = await plane.kubectl(
    'apply',
    '--server-side',
    '--force-conflicts',
    '-k',
    join(folder, 'tree'),
  );
  assert.equal(applied.code, 0, applied.stderr);
  for (const name of ['tenant-a', 'tenant-b']) await plantTenant(name);
  const { ca, cert, key } = makeCertificates();
  const tls = join(folder, 'tls');
  mkdirSync(tls);
  writeFileSync(join(tls, 'tls.crt'), cert);
  writeFileSync(join(tls, 'tls.key'), key);
  const config = join(folder, 'config.yaml');
  writeFileSync(config, 'systems: { global-pull-secret: {} }\n');
  const reconciler = new ReconcilerProcess(NODE, [
    `--kubeconfig=${await plane.account(OWN, 'pullwright-reconciler')}`,
    `--config=${config}`,
    '--report-port=0',
    `--report-cert-dir=${tls}`,
    '--report-every=5s',
  ]);
  const port = await reconciler.port('report');
  test.lastly('all stops', async () => {
    await reconciler.stop();
    await plane.stop();
    rmSync(folder, { recursive: true });
  });

  const get = (path: string, token?: string, more: Readonly<Record<string, string>> = {}, method = 'GET') =>
    new Promise<Said>((resolve, reject) => {
      const headers = { ...(token === undefined ? {} : { authorization: `Bearer ${token}` }), ...more };
      const call = request({ host: '127.0.0.1', port, path, method, headers, ca }, (answer) => {
        const chunks: Buffer[] = [];
        answer.on('data', (chunk: Buffer) => chunks.push(chunk));
        answer.on('end', () =>
          resolve({
            status: answer.statusCode ?? 0,
            headers: answer.headers,
            text: Buffer.concat(chunks).toString(),
          }),
        );
      });
      call.on('error', reject);
      call.end();
    });

  /** As `kubectl create token` does. */
  async function tokenOf(namespace: string, name: string, audience = AUDIENCE): Promise<string> {
    await plane.apply({ apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name, namespace } });
    const made = await plane.kubectl('create', 'token', name, '-n', namespace, '--audience', audience);
    assert.equal(made.code, 0, made.stderr);
    return made.stdout.trim();
  }

  async function bind(namespace: string | undefined, role: string, account: string): Promise<void> {
    const [where = '', name = ''] = account.split('/');
    await plane.apply({
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: namespace === undefined ? 'ClusterRoleBinding' : 'RoleBinding',
      metadata: { name: `${role}-${name}`, ...(namespace === undefined ? {} : { namespace }) },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: role },
      subjects: [{ kind: 'ServiceAccount', name, namespace: where }],
    });
  }

  async function plantTenant(name: string): Promise<void> {
    await plane.apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
    const auths = { [`${name}.registry.example.com`]: { auth: plantedAuth(name) } };
    const text = Buffer.from(JSON.stringify({ auths })).toString('base64');
    await plane.apply({
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: `${name}-pull`, namespace: name },
      type: 'kubernetes.io/dockerconfigjson',
      data: { '.dockerconfigjson': text },
    });
    const spec = {
      containers: [{ name: 'app', image: `${name}.registry.example.com/${name}-shop:1` }],
      imagePullSecrets: [{ name: `${name}-pull` }, { name: `${name}-gone` }],
    };
    await plane.apply({
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name: `${name}-web`, namespace: name },
      spec: {
        selector: { matchLabels: { app: name } },
        template: { metadata: { labels: { app: name } }, spec },
      },
    });
    await plane.apply({ apiVersion: 'v1', kind: 'Node', metadata: { name: `node-of-${name}` } });
  }

  const [a, b, platform] = await Promise.all([
    tokenOf('tenant-a', 'viewer'),
    tokenOf('tenant-b', 'viewer'),
    tokenOf(OWN, 'operator'),
  ]);
  await bind('tenant-a', 'pullwright-namespace-report-view', 'tenant-a/viewer');
  await bind('tenant-b', 'pullwright-namespace-report-view', 'tenant-b/viewer');
  await bind(undefined, 'pullwright-report-view', `${OWN}/operator`);

  test('the platform sees the cluster, and its account may read all that the page is made of', async () => {
    const said = await eventually(async () => {
      const one = await get('/report.json', platform);
      assert.equal(one.status, 200, one.text);
      return one;
    });
    const report = JSON.parse(said.text) as Report;
    assert.deepEqual(report.unread, []);
    const [cluster] = report.clusters;
    assert.deepEqual(
      cluster?.namespaces.map(({ name }) => name).filter((name) => name.startsWith('tenant-')),
      ['tenant-a', 'tenant-b'],
    );
    assert.equal(findPlanted(said.text), undefined);
    const page = await get('/report.html', platform);
    assert.equal(page.status, 200);
    assert.match(String(page.headers['content-security-policy']), /default-src 'none'; script-src 'sha256-/);
    assert.equal(page.headers['cache-control'], 'no-store');
    assert.equal(findPlanted(page.text), undefined);
  });

  test('a tenant sees what concerns their namespace and nothing else', async () => {
    for (const [token, own, other] of [
      [a, 'tenant-a', 'tenant-b'],
      [b, 'tenant-b', 'tenant-a'],
    ] as const) {
      for (const form of ['json', 'html']) {
        const said = await eventually(async () => {
          const one = await get(`/namespaces/${own}/report.${form}`, token);
          assert.equal(one.status, 200, one.text);
          return one;
        });
        assert.ok(said.text.includes(`${own}-shop`), said.text.slice(0, 500));
        assert.ok(said.text.includes(`${own}-pull`));
        assert.equal(said.text.includes(other), false, `${form} of ${own} names ${other}`);
        assert.equal(said.text.includes(`node-of-${own}`), false, "nodes are no tenant's");
        assert.equal(findPlanted(said.text), undefined);
      }
      assert.equal((await get(`/namespaces/${other}/report.json`, token)).status, 403);
      assert.equal((await get('/report.json', token)).status, 403);
      assert.equal((await get('/namespaces/kube-system/report.json', token)).status, 403);
    }
  });

  test('a right that is taken away ends within seconds', async () => {
    const token = await tokenOf('tenant-a', 'leaver');
    await bind('tenant-a', 'pullwright-namespace-report-view', 'tenant-a/leaver');
    const path = '/namespaces/tenant-a/report.json';
    await eventually(async () => assert.equal((await get(path, token)).status, 200));
    await plane.remove({
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'RoleBinding',
      metadata: { name: 'pullwright-namespace-report-view-leaver', namespace: 'tenant-a' },
    });
    await eventually(async () => assert.equal((await get(path, token)).status, 403), { withinMs: 60_000 });
    await plane.remove({
      apiVersion: 'v1',
      kind: 'ServiceAccount',
      metadata: { name: 'leaver', namespace: 'tenant-a' },
    });
    await eventually(async () => assert.equal((await get(path, token)).status, 401), { withinMs: 60_000 });
  });

  test('bad input: no token, other audiences, other methods, huge headers, no such page', async () => {
    const bare = await get('/report.html');
    assert.equal(bare.status, 401);
    assert.match(String(bare.headers['www-authenticate']), /^Bearer /);
    const wrong = await get('/report.html', await tokenOf(OWN, 'operator', 'https://kubernetes.default.svc'));
    assert.equal(wrong.status, 401);
    assert.match(wrong.text, /made for the audience reports\.pullwright\.dev/);
    assert.equal((await get('/report.html', 'no.such.token')).status, 401);
    assert.equal((await get('/report.html', 'x y')).status, 400);
    assert.equal((await get('/report.html', undefined, { authorization: 'Basic YTpi' })).status, 400);
    assert.equal((await get('/report.html', 'a'.repeat(9000))).status, 400);
    assert.equal((await get('/report.html', 'a'.repeat(40_000))).status, 431);
    for (const method of ['POST', 'PUT', 'DELETE', 'OPTIONS', 'TRACE'])
      assert.equal((await get('/report.html', platform, {}, method)).status, 405, method);
    for (const path of [
      '/namespaces/report.json',
      '/namespaces/A/report.json',
      '/namespaces/a%2fb/report.json',
      '/../report.json',
      '/metrics',
    ])
      assert.equal((await get(path, platform)).status, 404, path);
    const entry = await get('/');
    assert.equal(entry.status, 200);
    assert.match(entry.text, /kubectl create token/);
    assert.match(String(entry.headers['content-security-policy']), /connect-src 'self'/);
  });

  test('an API server that refuses the reviews lets nobody in, and the page says why', async () => {
    const role = {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRoleBinding',
      metadata: { name: 'pullwright-reports' },
    };
    const binding = await plane.get(role);
    await plane.remove(role);
    const token = await tokenOf('tenant-a', 'late');
    await eventually(async () => {
      const said = await get('/namespaces/tenant-a/report.json', token);
      assert.equal(said.status, 503, said.text);
      assert.match(said.text, /may not ask the cluster who you are/);
    });
    assert.ok(binding);
    const {
      managedFields: _fields,
      resourceVersion: _version,
      uid: _uid,
      ...metadata
    } = binding['metadata'] as Record<string, unknown>;
    await plane.apply({ ...binding, metadata } as never);
  });

  test('no token stands in the log', () => {
    for (const token of [a, b, platform]) assert.equal(reconciler.log.includes(token), false);
  });
}

test.run();
