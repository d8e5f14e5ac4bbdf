// deadline: 240 s
// needs: registry
/** Against real registries: TLS, htpasswd, tokens signed by a service of ours, and skopeo pulling through the same mirrors. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { mirrorDropIn } from '../../charts/registry-overrides/chart.ts';
import { freePort } from '../support/loopback.ts';
import { type ProcessResult, runMain } from '../support/process.ts';
import { test } from '../support/suite.ts';
import { authFile, ociLayout, push, type Registry, scratch, startRegistry, USER } from './docker-registry.ts';
import { certificates } from './https-server.ts';

const folder = scratch();
const registries: Registry[] = [];

async function start(label: string, tls = true): Promise<Registry> {
  const certificate = join(folder, 'server.crt');
  const key = join(folder, 'server.key');
  writeFileSync(certificate, certificates.cert);
  writeFileSync(key, certificates.key, { mode: 0o600 });
  writeFileSync(join(folder, 'ca.crt'), certificates.ca);
  const registry = await startRegistry(folder, label, tls ? { certificate, key } : undefined);
  registries.push(registry);
  return registry;
}

function cli(args: readonly string[]): Promise<ProcessResult> {
  return runMain(args, { deadlineMs: 60_000 });
}

/** Mirror sets of one source in a folder for `--from`. */
function mirrorFolder(name: string, source: string, mirrors: readonly string[]): string {
  const file = join(folder, `${name}.yaml`);
  const spec = { imageDigestMirrors: [{ source, mirrors }] };
  const tags = { imageTagMirrors: [{ source, mirrors }] };
  const object = (kind: string, body: unknown): string =>
    JSON.stringify({ apiVersion: 'config.openshift.io/v1', kind, metadata: { name }, spec: body });
  writeFileSync(file, `${object('ImageDigestMirrorSet', spec)}\n---\n${object('ImageTagMirrorSet', tags)}\n`);
  return file;
}

function access(...hosts: readonly Registry[]): readonly string[] {
  return ['--ca', join(folder, 'ca.crt'), ...hosts.flatMap((registry) => ['--allow-host', registry.host])];
}
test('mirrors --probe says what each place answers, with the credential of the longest key', async () => {
  const empty = await start('empty');
  const full = await start('full');
  const layout = ociLayout(join(folder, 'release'), { 'etc/release': '4.22.3' });
  push(layout, full, 'proxy/ocp/release:4.22.3', folder);
  const auth = authFile(join(folder, 'auth.json'), {
    [empty.host]: `${USER}:${empty.password}`,
    [full.host]: `${USER}:wrong`,
    [`${full.host}/proxy`]: `${USER}:${full.password}`,
  });
  const dead = `127.0.0.1:${await freePort()}`;
  const from = mirrorFolder('probe', 'quay.example.com/ocp', [
    `${empty.host}/ocp`,
    `${full.host}/wrong/ocp`,
    `${full.host}/proxy/ocp`,
    `${dead}/ocp`,
  ]);
  const ran = await cli([
    'mirrors',
    'quay.example.com/ocp/release:4.22.3',
    '--from',
    from,
    '--probe',
    '--output',
    'json',
    '--authfile',
    auth,
    ...access(empty, full),
    '--allow-host',
    dead,
    '--timeout',
    '5',
  ]);
  const { reports } = JSON.parse(ran.stdout) as {
    reports: { candidates: { reference: string; probe?: { verdict: string } }[] }[];
  };
  assert.deepEqual(
    (reports[0]?.candidates ?? [])
      .filter((line) => line.reference.endsWith(':4.22.3'))
      .slice(0, 4)
      .map((line) => line.probe?.verdict),
    ['NotFound', 'Invalid', 'Valid', 'Unreachable'],
  );
  assert.equal(ran.code, 0);
});

test('a registry whose certificate is not known is not trusted', async () => {
  const [, full] = registries as [Registry, Registry];
  const ran = await cli([
    'mirrors',
    `${full.host}/proxy/ocp/release:4.22.3`,
    '--probe',
    '--authfile',
    join(folder, 'auth.json'),
    '--allow-host',
    full.host,
  ]);
  assert.equal(ran.code, 1);
  assert.match(ran.stdout, /Untrusted: the certificate of/);
});

test('skopeo pulls through the mirrors with the drop-in and the auth file', async () => {
  const [empty, full] = registries as [Registry, Registry];
  const layout = ociLayout(join(folder, 'app'), { 'app.txt': 'hello' });
  push(layout, full, 'proxy/team/app:1', folder);
  const conf = join(folder, 'drop-in.conf');
  const entries = [
    {
      source: 'quay.example.com/team',
      mirrors: [`${empty.host}/team`, `${full.host}/proxy/team`],
      mirrorSourcePolicy: 'NeverContactSource' as const,
    },
  ];
  writeFileSync(conf, mirrorDropIn([{ name: 'team', entries }]));
  const image = `quay.example.com/team/app@${layout.digest}`;
  const pulled = await skopeo(conf, image);
  assert.equal(
    createHash('sha256').update(pulled.stdout).digest('hex'),
    layout.digest.slice(7),
    pulled.stderr,
  );
  assert.match(empty.log(), /GET \/v2\/team\/app\/manifests/);
  const tag = await skopeo(conf, 'quay.example.com/team/app:1');
  assert.notEqual(tag.code, 0, 'a mirror for digests serves no tag, and the source is blocked');
});

test.lastly('the registries are stopped', () => {
  for (const registry of registries) registry.stop();
  rmSync(folder, { recursive: true });
});

function skopeo(conf: string, image: string): Promise<{ code: number; stdout: Buffer; stderr: string }> {
  const trusted = join(folder, 'trusted');
  mkdirSync(trusted, { recursive: true });
  writeFileSync(join(trusted, 'ca.crt'), certificates.ca);
  const args = [
    '--registries-conf',
    conf,
    'inspect',
    '--raw',
    '--authfile',
    join(folder, 'auth.json'),
    '--cert-dir',
    trusted,
    `docker://${image}`,
  ];
  return new Promise((resolve) => {
    execFile('skopeo', args, { timeout: 30_000, encoding: 'buffer' }, (error, stdout, stderr) =>
      resolve({ code: error === null ? 0 : 1, stdout, stderr: stderr.toString() }),
    );
  });
}
