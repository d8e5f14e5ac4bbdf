/** Registries of a test machine, each with a name, an address, TLS and one user, and images whose program waits. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { ImageLayout } from '../../../build/image/layout.ts';
import type { Authority } from '../../control-plane/x509.ts';
import { plantedPassword } from '../../support/canary.ts';

export interface RegistryInput {
  /** Host name, such as `quay.example.com`. */
  readonly host: string;
  readonly address: string;
  readonly user: string;
}

export class TestRegistry {
  readonly host: string;
  readonly user: string;
  readonly password: string;
  readonly #input: RegistryInput;
  readonly #folder: string;
  #child: ChildProcess | undefined;

  constructor(input: RegistryInput, folder: string, authority: Authority) {
    this.#input = input;
    this.host = input.host;
    this.user = input.user;
    this.password = plantedPassword(input.host);
    this.#folder = join(folder, input.host);
    mkdirSync(this.#folder, { recursive: true });
    const { certificate, key } = authority.issue({ commonName: input.host, hosts: [input.host] });
    writeFileSync(join(this.#folder, 'tls.crt'), certificate);
    writeFileSync(join(this.#folder, 'tls.key'), key);
    mkdirSync(`/etc/containers/certs.d/${input.host}`, { recursive: true });
    writeFileSync(`/etc/containers/certs.d/${input.host}/ca.crt`, authority.certificate);
    this.setPassword(this.password);
  }

  /** A docker config with its user for `key`. */
  config(key: string = this.host, password: string = this.password): string {
    return JSON.stringify({ auths: { [key]: { auth: btoa(`${this.user}:${password}`) } } });
  }

  /** Applied at the next start. */
  setPassword(password: string): void {
    const entry = execFileSync('htpasswd', ['-niBC', '4', this.user], { input: password, encoding: 'utf8' });
    writeFileSync(join(this.#folder, 'htpasswd'), entry);
  }

  async start(): Promise<void> {
    const path = (name: string): string => join(this.#folder, name);
    const config = {
      version: 0.1,
      log: { accesslog: { disabled: false }, level: 'info' },
      storage: { filesystem: { rootdirectory: path('data') } },
      auth: { htpasswd: { realm: 'test', path: path('htpasswd') } },
      http: {
        addr: `${this.#input.address}:443`,
        tls: { certificate: path('tls.crt'), key: path('tls.key') },
      },
    };
    writeFileSync(path('config.yml'), JSON.stringify(config));
    this.#child = spawn(
      '/bin/sh',
      ['-c', 'exec docker-registry serve "$1/config.yml" >> "$1/log" 2>&1', 'sh', this.#folder],
      { stdio: 'ignore' },
    );
    for (const end = performance.now() + 60_000; performance.now() < end; await delay(50))
      if (await listens(this.#input.address)) return;
    throw new Error(`The registry ${this.host} does not listen:\n${this.log()}`);
  }

  async stop(): Promise<void> {
    const child = this.#child;
    if (child === undefined || child.exitCode !== null) return;
    const gone = new Promise((resolve) => child.once('close', resolve));
    child.kill('SIGKILL');
    await gone;
  }

  /** Folder of its repositories below a name. */
  repository(name: string): string {
    return join(this.#folder, 'data/docker/registry/v2/repositories', name);
  }

  log(): string {
    return readFileSync(join(this.#folder, 'log'), 'utf8');
  }

  /** Pushes an OCI layout as `repository:tag`. */
  push(layout: string, repository: string): void {
    const credentials = `${this.user}:${this.password}`;
    execFileSync(
      'skopeo',
      [
        'copy',
        '-q',
        '--all',
        '--dest-creds',
        credentials,
        `oci:${layout}`,
        `docker://${this.host}/${repository}`,
      ],
      { encoding: 'utf8', stdio: 'pipe' },
    );
  }
}

function listens(address: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(443, address);
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
}

/** An OCI layout with one image of the program that waits; another `mark` gives another digest. */
export function waiterImage(folder: string, waiter: string, mark: string): string {
  const root = join(folder, `root-${mark}`);
  const layout = join(folder, `image-${mark}`);
  mkdirSync(root, { recursive: true });
  copyFileSync(waiter, join(root, 'waiter'));
  writeFileSync(join(root, 'mark'), mark);
  const tar = execFileSync(
    'tar',
    ['--sort=name', '--mtime=@0', '--owner=0', '--group=0', '-C', root, '-cf', '-', '.'],
    { maxBuffer: 64 << 20 },
  );
  rmSync(root, { recursive: true });
  const image = new ImageLayout(layout);
  const architecture = process.arch === 'arm64' ? 'arm64' : 'amd64';
  image.finish(mark, [image.image(architecture, [tar], { Entrypoint: ['/waiter'] })], {});
  return `${layout}:${mark}`;
}
