/**
 * The binaries of a control plane: those of `KUBEBUILDER_ASSETS` when that is set, else built once with Go from `go.mod` and
 * kept outside the tree under a hash of what they are built from. Two processes never build at once.
 */
import { spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  accessSync,
  constants,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

export interface Binaries {
  readonly etcd: string;
  readonly apiServer: string;
  readonly controllerManager: string;
  readonly kubectl: string;
}

/** Why there can be none, for `test.skip`; undefined when there can. Builds nothing. */
export function missingControlPlane(): string | undefined {
  if (process.env['KUBEBUILDER_ASSETS'] !== undefined) {
    const lost = Object.values(assets(process.env['KUBEBUILDER_ASSETS'])).filter((path) => !existsSync(path));
    return lost.length === 0 ? undefined : `KUBEBUILDER_ASSETS has no ${lost.join(', ')}`;
  }
  if (existsSync(join(cacheFolder(), 'done'))) return undefined;
  if (spawnSync('go', ['version']).status === 0) return undefined;
  return 'no Go tool chain to build kube-apiserver and etcd with, and KUBEBUILDER_ASSETS is not set';
}

/** Where the binaries are; builds them when nobody has yet (about six minutes on two cores). */
export async function controlPlaneBinaries(
  progress: (line: string) => void = (line) => process.stderr.write(`${line}\n`),
): Promise<Binaries> {
  const reason = missingControlPlane();
  if (reason !== undefined) throw new Error(`Cannot start a control plane: ${reason}`);
  const given = process.env['KUBEBUILDER_ASSETS'];
  if (given !== undefined) return assets(given);
  const folder = cacheFolder();
  if (!existsSync(join(folder, 'done'))) await withLock(folder, progress, () => build(folder, progress));
  return assets(folder);
}

const here = new URL('.', import.meta.url).pathname;

function assets(folder: string): Binaries {
  const path = (name: string): string => join(folder, name);
  return {
    etcd: path('etcd'),
    apiServer: path('kube-apiserver'),
    controllerManager: path('kube-controller-manager'),
    kubectl: path('kubectl'),
  };
}

function cacheFolder(): string {
  const hash = createHash('sha256').update(`${process.platform}-${process.arch}\n`);
  for (const file of ['go.mod', 'go.sum']) hash.update(readFileSync(join(here, file)));
  const base = process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache');
  return join(base, 'pullwright', 'control-plane', hash.digest('hex').slice(0, 16));
}

async function build(folder: string, progress: (line: string) => void): Promise<void> {
  progress('control plane: building kube-apiserver, etcd, kube-controller-manager and kubectl (once)');
  const target = `${folder}.building`;
  rmSync(target, { recursive: true, force: true });
  mkdirSync(target, { recursive: true });
  await goBuild(target, progress);
  renameSync(join(target, 'server'), join(target, 'etcd'));
  for (const path of Object.values(assets(target))) accessSync(path, constants.X_OK);
  writeFileSync(join(target, 'done'), '');
  rmSync(folder, { recursive: true, force: true });
  renameSync(target, folder);
  progress('control plane: built');
}

async function goBuild(target: string, progress: (line: string) => void): Promise<void> {
  const started = Date.now();
  const child = spawn('go', ['build', '-v', '-o', `${target}/`, 'tool'], {
    cwd: here,
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let packages = 0;
  let tail = '';
  child.stderr.on('data', (chunk: Buffer) => {
    packages += chunk.toString().split('\n').length - 1;
    tail = (tail + chunk.toString()).slice(-2000);
  });
  const timer = setInterval(() => {
    const seconds = Math.round((Date.now() - started) / 1000);
    progress(`control plane: ${packages} packages built, ${seconds} s`);
  }, 10_000);
  const code = await new Promise<number>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (exit) => resolve(exit ?? -1));
  }).finally(() => clearInterval(timer));
  if (code !== 0) throw new Error(`Cannot build the control plane: go ended with ${code}\n${tail}`);
}

/** A folder as lock; one whose holder is gone is broken. */
async function withLock(
  folder: string,
  progress: (line: string) => void,
  work: () => Promise<void>,
): Promise<void> {
  const lock = `${folder}.lock`;
  mkdirSync(join(folder, '..'), { recursive: true });
  for (let round = 0; !tryLock(lock); round++) {
    if (round % 10 === 0) progress('control plane: another process is building it, waiting');
    await delay(1000);
  }
  try {
    if (!existsSync(join(folder, 'done'))) await work();
  } finally {
    rmSync(lock, { recursive: true, force: true });
  }
}

function tryLock(lock: string): boolean {
  try {
    mkdirSync(lock);
    writeFileSync(join(lock, 'pid'), String(process.pid));
    return true;
  } catch {
    if (holderIsGone(lock)) rmSync(lock, { recursive: true, force: true });
    return false;
  }
}

function holderIsGone(lock: string): boolean {
  try {
    const pid = Number(readFileSync(join(lock, 'pid'), 'utf8'));
    // Between making the folder and writing the file there is no pid: that holder is alive.
    return pid > 0 && !existsSync(`/proc/${pid}`);
  } catch {
    return false;
  }
}
