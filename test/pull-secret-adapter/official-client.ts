/**
 * Google's own client of Secret Manager, for the tests that hold our double against it. The product does not use it (30 MB, gRPC), so
 * it is no dependency: it is installed once, exactly as the lock file in `official-client/` says, into a cache folder outside the tree.
 */
import { createHash } from 'node:crypto';
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { runProcess } from '../support/process.ts';

/** A call of the client: request in, response out. */
export type ClientCall = (request: object) => Promise<readonly [Reply]>;
export type Reply = Readonly<Record<string, unknown>>;

export interface OfficialClient {
  readonly createSecret: ClientCall;
  readonly getSecret: ClientCall;
  readonly updateSecret: ClientCall;
  readonly deleteSecret: ClientCall;
  readonly addSecretVersion: ClientCall;
  readonly accessSecretVersion: ClientCall;
  readonly disableSecretVersion: ClientCall;
  readonly destroySecretVersion: ClientCall;
  readonly testIamPermissions: ClientCall;
  readonly listSecretVersions: (request: object) => Promise<readonly [readonly Reply[]]>;
  readonly close: () => Promise<void>;
}

type Constructor = new (options: object) => OfficialClient;

const source = new URL('./official-client/', import.meta.url).pathname;

/** The client's class, or why it cannot be had, for `test.skip`. */
export async function officialClient(): Promise<Constructor | string> {
  const folder = cacheFolder();
  if (!existsSync(folder)) {
    const problem = await install(folder);
    if (problem !== undefined) return problem;
  }
  const load = createRequire(join(folder, 'package.json'));
  const module = load('@google-cloud/secret-manager') as { readonly SecretManagerServiceClient: Constructor };
  return module.SecretManagerServiceClient;
}

function cacheFolder(): string {
  const hash = createHash('sha256').update(readFileSync(join(source, 'package-lock.json')));
  const base = process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache');
  return join(base, 'pullwright', `secret-manager-client-${hash.digest('hex').slice(0, 16)}`);
}

/** The folder appears with a rename, whole. */
async function install(folder: string): Promise<string | undefined> {
  mkdirSync(dirname(folder), { recursive: true });
  const work = mkdtempSync(`${folder}.`);
  try {
    for (const file of ['package.json', 'package-lock.json'])
      copyFileSync(join(source, file), join(work, file));
    const args = ['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--no-progress', '--loglevel=error'];
    const run = await runProcess(['npm', ...args], { cwd: work, deadlineMs: 300_000 }).catch(() => undefined);
    if (run?.code !== 0) return "the package registry did not give Google's client of Secret Manager";
    moveUnlessThere(work, folder);
    return undefined;
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

/** Another test file may install it at the same time: the first one wins. */
function moveUnlessThere(from: string, to: string): void {
  try {
    renameSync(from, to);
  } catch (error) {
    if (!existsSync(to)) throw error;
  }
}
