/**
 * Runs a test file in namespaces and a cgroup of its own, in which a whole machine can be built: what it mounts, starts and
 * writes is gone with it, however it ends.
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

/** The folder of the machine, inside; undefined outside. Its name is that of the cgroup too. */
export function machineFolder(): string | undefined {
  return process.env[VARIABLE];
}

/** Runs `file` again inside, with the arguments and streams of this process; its exit code. */
export async function runInside(file: string): Promise<number> {
  // Inside there is no network to build with.
  await nodeBinaries();
  sweep();
  const folder = mkdtempSync(join(tmpdir(), PREFIX));
  const name = basename(folder);
  writeFileSync(join(folder, 'owner'), String(process.pid));
  for (const controller of controllers()) makeCgroup(controller, name);
  const child = spawn(
    '/bin/bash',
    ['-c', ENTER, 'enter', name, process.execPath, file, ...process.argv.slice(2)],
    {
      stdio: 'inherit',
      env: { ...process.env, [VARIABLE]: folder },
    },
  );
  // The signal reaches the whole group: what is inside ends by it, and this process with that.
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => undefined);
  const code = await new Promise<number>((resolve) => {
    child.once('error', () => resolve(1));
    child.once('close', (exit) => resolve(exit ?? 1));
  });
  for (let tries = 0; tries < 50 && !forget(folder); tries += 1) await delay(100);
  return code;
}

/** Signals are ignored up to the program inside, which decides for itself; when this shell is killed, so is all that is in there. */
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
  // A new cpuset has no processor, and nothing could be started in it.
  for (const file of ['cpuset.cpus', 'cpuset.mems'])
    if (existsSync(join(folder, file)) && existsSync(join(controller, file)))
      writeFileSync(join(folder, file), readFileSync(join(controller, file)));
}

/** Removes what killed runs left: only folders of this kind whose owner is gone. */
function sweep(): void {
  for (const name of readdirSync(tmpdir()).filter((one) => one.startsWith(PREFIX))) {
    const folder = join(tmpdir(), name);
    const owner = join(folder, 'owner');
    const pid = existsSync(owner) ? Number(readFileSync(owner, 'utf8')) : 0;
    if (pid > 0 && !existsSync(`/proc/${pid}`)) forget(folder);
  }
}

/** False while processes are still ending. */
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
