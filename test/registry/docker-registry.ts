/** Real registries (docker-registry) on loopback with htpasswd, and images in them, for tests. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { plantedPassword } from '../support/canary.ts';
import { freePort } from '../support/loopback.ts';

/** Why these tests cannot run here, or undefined. */
export function missingTool(): string | undefined {
  const places = (process.env['PATH'] ?? '').split(':');
  const lost = ['docker-registry', 'skopeo', 'htpasswd'].find(
    (tool) => !places.some((place) => existsSync(join(place, tool))),
  );
  return lost && `${lost} is not installed`;
}

export const USER = 'robot';

export interface Registry {
  /** `127.0.0.1:<port>` */
  readonly host: string;
  readonly password: string;
  readonly log: () => string;
  stop(): void;
}

export function scratch(): string {
  return mkdtempSync(join(tmpdir(), 'pullwright-registry-'));
}

/** Starts a registry with one user; `tls` are the paths of its certificate and key. */
export async function startRegistry(
  folder: string,
  label: string,
  tls?: { readonly certificate: string; readonly key: string },
): Promise<Registry> {
  const home = join(folder, label);
  mkdirSync(home, { recursive: true });
  const password = plantedPassword(label);
  const entry = execFileSync('htpasswd', ['-niB', USER], { input: password, encoding: 'utf8' });
  writeFileSync(join(home, 'htpasswd'), entry);
  const port = await freePort();
  const config = {
    version: 0.1,
    log: { accesslog: { disabled: false }, level: 'info' },
    storage: { filesystem: { rootdirectory: join(home, 'data') } },
    auth: { htpasswd: { realm: 'test', path: join(home, 'htpasswd') } },
    http: { addr: `127.0.0.1:${port}`, ...(tls === undefined ? {} : { tls }) },
  };
  writeFileSync(join(home, 'config.yml'), JSON.stringify(config));
  const child = spawn('docker-registry', ['serve', join(home, 'config.yml')], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const log: string[] = [];
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk: Buffer) => log.push(chunk.toString()));
  await untilListening(port, child);
  return { host: `127.0.0.1:${port}`, password, log: () => log.join(''), stop: () => child.kill('SIGKILL') };
}

export async function untilListening(port: number, child: ChildProcess): Promise<void> {
  for (const end = performance.now() + 60_000; performance.now() < end; await delay(50)) {
    if (child.exitCode !== null) throw new Error(`docker-registry ended with ${child.exitCode}`);
    const open = await new Promise<boolean>((resolve) => {
      const socket = connect(port, '127.0.0.1', () => resolve(true));
      socket.once('error', () => resolve(false));
      socket.once('connect', () => socket.end());
    });
    if (open) return;
  }
  throw new Error('docker-registry does not listen');
}

export interface Layout {
  readonly folder: string;
  readonly digest: string;
}

/** An OCI layout with one image of one layer that holds `files`. */
export function ociLayout(folder: string, files: Readonly<Record<string, string>>): Layout {
  const blobs = join(folder, 'blobs', 'sha256');
  mkdirSync(blobs, { recursive: true });
  const put = (bytes: Uint8Array): { digest: string; size: number } => {
    const hex = createHash('sha256').update(bytes).digest('hex');
    writeFileSync(join(blobs, hex), bytes);
    return { digest: `sha256:${hex}`, size: bytes.length };
  };
  const json = (value: unknown): Buffer => Buffer.from(JSON.stringify(value));
  const tar = tarOf(folder, files);
  const diff = `sha256:${createHash('sha256').update(tar).digest('hex')}`;
  const config = json({ architecture: 'amd64', os: 'linux', rootfs: { type: 'layers', diff_ids: [diff] } });
  const mediaType = 'application/vnd.oci.image.manifest.v1+json';
  const manifest = put(
    json({
      schemaVersion: 2,
      mediaType,
      config: { mediaType: 'application/vnd.oci.image.config.v1+json', ...put(config) },
      layers: [{ mediaType: 'application/vnd.oci.image.layer.v1.tar+gzip', ...put(gzipSync(tar)) }],
    }),
  );
  writeFileSync(join(folder, 'oci-layout'), JSON.stringify({ imageLayoutVersion: '1.0.0' }));
  const annotations = { 'org.opencontainers.image.ref.name': 'it' };
  const manifests = [{ mediaType, ...manifest, annotations }];
  writeFileSync(join(folder, 'index.json'), JSON.stringify({ schemaVersion: 2, manifests }));
  return { folder, digest: manifest.digest };
}

function tarOf(folder: string, files: Readonly<Record<string, string>>): Buffer {
  const root = mkdtempSync(join(folder, 'root-'));
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(join(root, name, '..'), { recursive: true });
    writeFileSync(join(root, name), text);
  }
  const tar = execFileSync(
    'tar',
    ['--sort=name', '--mtime=@0', '--owner=0', '--group=0', '-C', root, '-cf', '-', ...Object.keys(files)],
    { maxBuffer: 64 * 1024 * 1024 },
  );
  rmSync(root, { recursive: true });
  return tar;
}

/** An auth file for skopeo: keys to `user:password`. */
export function authFile(path: string, entries: Readonly<Record<string, string>>): string {
  const auths = Object.fromEntries(
    Object.entries(entries).map(([key, value]) => [key, { auth: Buffer.from(value).toString('base64') }]),
  );
  writeFileSync(path, JSON.stringify({ auths }), { mode: 0o600 });
  return path;
}

/** Pushes a layout to `host/repository:tag`. */
export function push(layout: Layout, registry: Registry, repository: string, folder: string): void {
  const auth = authFile(join(folder, `push-${createHash('sha256').update(repository).digest('hex')}.json`), {
    [registry.host]: `${USER}:${registry.password}`,
  });
  const args = ['copy', '-q', '--all', '--authfile', auth, '--dest-tls-verify=false'];
  execFileSync('skopeo', [...args, `oci:${layout.folder}:it`, `docker://${registry.host}/${repository}`], {
    stdio: 'pipe',
  });
}
