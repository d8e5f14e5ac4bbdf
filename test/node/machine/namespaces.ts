/**
 * Runs a test file in namespaces and a cgroup of its own, in which a machine can be built: its mounts, processes and files are
 * always removed with it.
 */
import { spawn } from 'node:child_process';
import {
  existsSync,
  globSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { nodeBinaries } from './build.ts';

const VARIABLE = 'PULLWRIGHT_TEST_MACHINE';
const PREFIX = 'pullwright-node-';
const CGROUPS = '/sys/fs/cgroup';

/** Folder of the machine inside the namespaces; undefined outside. The cgroup has the same name. */
export function machineFolder(): string | undefined {
  return process.env[VARIABLE];
}

/** Runs `file` again inside, with the arguments and streams of this process; returns its exit code. */
export async function runInside(file: string): Promise<number> {
  // Inside there is no network for builds.
  await nodeBinaries();
  sweep();
  const folder = mkdtempSync(join(tmpdir(), PREFIX));
  const name = basename(folder);
  writeFileSync(join(folder, 'owner'), String(process.pid));
  for (const controller of controllers()) makeCgroup(controller, name);
  const child = spawn(
    '/bin/bash',
    ['-c', ENTER, 'enter', name, process.execPath, file, ...process.argv.slice(2)],
    { stdio: 'inherit', env: { ...process.env, [VARIABLE]: folder } },
  );
  // The signal reaches the whole process group: the program inside exits, and this process with it.
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => undefined);
  const code = await new Promise<number>((resolve) => {
    child.once('error', () => resolve(1));
    child.once('close', (exit) => resolve(exit ?? 1));
  });
  for (let tries = 0; tries < 50 && !forget(folder); tries += 1) await delay(100);
  return code;
}

/** Shell that ignores signals, which the program inside handles; a kill of the shell kills everything inside. */
const ENTER = `
trap '' TERM INT
for hierarchy in unified systemd; do echo $BASHPID > ${CGROUPS}/$hierarchy/$1/cgroup.procs; done
shift
exec unshare --mount --pid --fork --kill-child --mount-proc --net --ipc --uts --propagation private -- "$@"
`;

function controllers(): readonly string[] {
  return readdirSync(CGROUPS)
    .map((name) => join(CGROUPS, name))
    .filter((path) => lstatSync(path).isDirectory());
}

function makeCgroup(controller: string, name: string): void {
  const folder = join(controller, name);
  mkdirSync(folder);
  // A new cpuset has no CPU, so no process could start in it.
  for (const file of ['cpuset.cpus', 'cpuset.mems'])
    if (existsSync(join(folder, file)) && existsSync(join(controller, file)))
      writeFileSync(join(folder, file), readFileSync(join(controller, file)));
}

/** Removes folders of killed runs: only those whose owner has exited. */
function sweep(): void {
  for (const name of readdirSync(tmpdir()).filter((one) => one.startsWith(PREFIX))) {
    const folder = join(tmpdir(), name);
    const owner = join(folder, 'owner');
    const pid = existsSync(owner) ? Number(readFileSync(owner, 'utf8')) : 0;
    if (pid > 0 && !existsSync(`/proc/${pid}`)) forget(folder);
  }
}

/** False while processes are still exiting. */
function forget(folder: string): boolean {
  try {
    const groups = controllers().flatMap((controller) =>
      globSync(`${controller}/${basename(folder)}/{,**/}`),
    );
    for (const group of [...new Set(groups)].sort().reverse()) rmdirSync(group);
    rmSync(folder, { recursive: true, force: true });
    return true;
  } catch {
    return false;
  }
}
