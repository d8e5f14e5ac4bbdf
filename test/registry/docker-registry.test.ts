// deadline: 240 s
/** Against real registries: TLS, htpasswd, tokens signed by a service of ours, and skopeo pulling through the same mirrors. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { mirrorDropIn } from '../../charts/registry-overrides/mirror-objects.ts';
import { type ProcessResult, runProcess } from '../support/process.ts';
import { suite } from '../support/suite.ts';
import {
  authFile,
  freePort,
  missingTool,
  ociLayout,
  push,
  type Registry,
  scratch,
  startRegistry,
  USER,
} from './docker-registry.ts';
import { certificates } from './https-server.ts';

const test = suite('real registries');
const root = new URL('../..', import.meta.url).pathname;
const folder = scratch();
const registries: Registry[] = [];

const COMPONENTS = {
  cli: 'quay.example.com/ocp/art@sha256:'.concat('1'.repeat(64)),
  installer: 'quay.example.com/ocp/art@sha256:'.concat('2'.repeat(64)),
};
const REFERENCES = JSON.stringify({
  kind: 'ImageStream',
  metadata: { name: '4.22.3' },
  spec: {
    tags: Object.entries(COMPONENTS).map(([name, image]) => ({
      name,
      from: { kind: 'DockerImage', name: image },
    })),
  },
});

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
  return runProcess([process.execPath, join(root, 'main.ts'), ...args], { deadlineMs: 60_000 });
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

const missing = missingTool();
if (missing !== undefined) test.skip('commands against docker-registry', `${missing} is not installed`);
else {
  test('release finds the release at the second mirror, with the credential of the longest key', async () => {
    const empty = await start('empty');
    const full = await start('full');
    const layout = ociLayout(
      join(folder, 'release'),
      { 'release-manifests/image-references': REFERENCES, 'etc/other': 'x'.repeat(2_000_000) },
      { architectures: ['amd64', 'arm64'], labels: { 'io.openshift.release': '4.22.3' } },
    );
    push(layout, full, 'proxy/ocp/release:4.22.3', folder);
    const from = mirrorFolder('release', 'quay.example.com/ocp', [
      `${empty.host}/ocp`,
      `${full.host}/proxy/ocp`,
    ]);
    const auth = authFile(join(folder, 'auth.json'), {
      [empty.host]: `${USER}:${empty.password}`,
      [full.host]: `${USER}:wrong`,
      [`${full.host}/proxy`]: `${USER}:${full.password}`,
    });
    const args = [
      'release',
      'quay.example.com/ocp/release:4.22.3',
      '--from',
      from,
      '--authfile',
      auth,
      ...access(empty, full),
    ];
    const found = await cli([...args, '--output', 'json']);
    assert.equal(found.code, 0, found.stderr);
    const { skipped, ...release } = JSON.parse(found.stdout);
    assert.deepEqual(
      skipped.map((one: { reference: string }) => one.reference),
      [`${empty.host}/ocp/release:4.22.3`],
    );
    assert.deepEqual(release, {
      version: '4.22.3',
      from: `${full.host}/proxy/ocp/release:4.22.3`,
      digest: layout.digest,
      architecture: 'amd64',
      signature: { state: 'Unknown', message: `no signature for ${layout.digest} was given` },
      components: COMPONENTS,
    });
    assert.match(found.stderr, new RegExp(`skipped: ${empty.host}/ocp/release:4.22.3: .*manifest unknown`));
    const translated = await cli([
      ...args,
      '--translate',
      '--arch',
      'arm64',
      '--registry-overrides',
      `${empty.host}=cache.example.com`,
    ]);
    assert.match(translated.stdout, new RegExp(`^cli {8}cache\\.example\\.com/ocp/art@sha256:1{64}$`, 'm'));
    const absent = await cli([...args, '--arch', 's390x']);
    assert.equal(absent.code, 1);
    assert.match(absent.stderr, /has no image for s390x: it has amd64, arm64/);
  });

  test('mirrors --probe says what each place answers', async () => {
    const [empty, full] = registries as [Registry, Registry];
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
      join(folder, 'auth.json'),
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

  test('a damaged layer is seen before anything of it is used', async () => {
    const [, full] = registries as [Registry, Registry];
    const layout = ociLayout(join(folder, 'damaged'), {
      'release-manifests/image-references': REFERENCES.replace('4.22.3', '4.22.4'),
    });
    push(layout, full, 'proxy/damaged:1', folder);
    const blobs = join(folder, 'full', 'data', 'docker', 'registry', 'v2', 'blobs', 'sha256');
    const manifest = JSON.parse(
      readFileSync(join(folder, 'damaged', 'blobs', 'sha256', layout.digest.slice(7)), 'utf8'),
    ) as { layers: { digest: string }[] };
    const hex = manifest.layers[0]?.digest.slice(7) ?? '';
    const file = join(blobs, hex.slice(0, 2), hex, 'data');
    const bytes = readFileSync(file);
    // A byte of the gzip header's time stamp: it unpacks all the same.
    writeFileSync(file, Buffer.concat([bytes.subarray(0, 4), Buffer.from([7]), bytes.subarray(5)]));
    const ran = await cli([
      'release',
      `${full.host}/proxy/damaged:1`,
      '--authfile',
      join(folder, 'auth.json'),
      ...access(full),
    ]);
    assert.equal(ran.code, 1);
    assert.match(ran.stderr, /have the digest/);
    assert.ok(readdirSync(blobs).length > 0);
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
}

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

test.run();
