/** The operating system of a test machine: a systemd in namespaces of its own, which can be reset and booted again. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { eventually } from '../../control-plane/eventually.ts';

const BOOT = `mount --make-private /proc && mount -t proc proc /proc &&
  exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin container=test SYSTEMD_LOG_TARGET=console \\
    SYSTEMD_UNIT_PATH=/etc/systemd/system:/usr/lib/systemd/system /lib/systemd/systemd --system --unit=boot.target --show-status=0`;

/** In-memory state of a machine: /run, mounts of its programs, and network links of its pods. */
const POWER_LOSS = `
awk '$5 ~ "^/var/lib/(kubelet|containers)/." {print $5}' /proc/self/mountinfo | sort -r | while read -r path; do umount -l "$path"; done
umount -R -l /run
mount -t tmpfs tmpfs /run
mkdir -p /run/dbus /run/lock /run/crio
ip -br link | awk '/^(veth|cni0)/ {sub("@.*", "", $1); print $1}' | while read -r link; do ip link delete "$link" || true; done
`;

export interface SystemOptions {
  /** Arguments of `unshare` besides mounts and processes. @default mounts inside are visible outside */
  readonly namespaces?: readonly string[];
  /** A command that prepares the machine for systemd, inside. @default {'true'} */
  readonly prepare?: string;
}

export class NodeSystem {
  readonly logPath: string;
  readonly #options: SystemOptions;
  #systemd: ChildProcess | undefined;

  constructor(folder: string, options: SystemOptions = {}) {
    this.logPath = join(folder, 'systemd.log');
    this.#options = options;
  }

  boot(): void {
    const { namespaces = ['--propagation', 'shared'], prepare = 'true' } = this.#options;
    const log = openSync(this.logPath, 'a');
    this.#systemd = spawn(
      'unshare',
      ['--mount', '--pid', '--fork', '--kill-child', ...namespaces, 'bash', '-c', `${prepare} && ${BOOT}`],
      { stdio: ['ignore', log, log], detached: true },
    );
  }

  /** Process id of its first process outside, once started. */
  async pid(): Promise<string> {
    return eventually(() => {
      const pid = this.#init();
      if (!(pid > 0)) throw new Error('nothing is started yet');
      return String(pid);
    });
  }

  /** Kills every process at once, as a loss of power; files stay, in-memory state does not. */
  async lose(): Promise<void> {
    const systemd = this.#systemd;
    if (systemd === undefined) return;
    const init = this.#init();
    const gone = once(systemd, 'exit');
    systemd.kill('SIGKILL');
    await gone;
    while (lives(init)) await delay(20);
    // What the command prepares inside is removed with it.
    if (this.#options.prepare !== undefined) return;
    execFileSync('/bin/bash', ['-euo', 'pipefail', '-c', POWER_LOSS], { stdio: ['ignore', 'pipe', 'pipe'] });
  }

  /** Stops it without a clean-up, because the namespaces around it are removed. */
  end(): void {
    this.#systemd?.kill('SIGKILL');
  }

  /** Runs a program in its namespaces. Throws with its output. */
  run(program: string, ...args: readonly string[]): string {
    const inside = ['-t', String(this.#init()), '-m', '-p', '-n', '-u', '--', program, ...args];
    return execFileSync('/usr/bin/nsenter', inside, {
      encoding: 'utf8',
      maxBuffer: 64 << 20,
      stdio: ['ignore', 'pipe', 'pipe'],
    }).trim();
  }

  /** Ids inside the node of the processes whose command line matches. */
  processes(command: RegExp): readonly string[] {
    return this.run('/bin/ps', '-eo', 'pid=,args=')
      .split('\n')
      .flatMap((line) => {
        const [, pid = '', args = ''] = /^\s*(\d+)\s+(.*)$/.exec(line) ?? [];
        return command.test(args) ? [pid] : [];
      });
  }

  /** Sends SIGKILL to each of them; returns their number. */
  kill(command: RegExp): number {
    const found = this.processes(command);
    if (found.length > 0) this.run('/bin/kill', '-9', ...found);
    return found.length;
  }

  /** Process id outside of the node's PID 1: the child of unshare. */
  #init(): number {
    const pid = this.#systemd?.pid ?? 0;
    return Number(readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ')[0]);
  }
}

/** Whether the process runs; a zombie, whose parent exited first, does not. */
function lives(pid: number): boolean {
  const stat = `/proc/${pid}/stat`;
  return existsSync(stat) && !readFileSync(stat, 'utf8').includes(') Z ');
}
