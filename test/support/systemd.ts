/**
 * A real systemd as PID 1 of a PID namespace of its own, with its own system bus and a `kubelet.service` whose behaviour a
 * test chooses. Nothing of the machine's own systemd is read or touched. Needs root, systemd, dbus-daemon and util-linux.
 *
 * The kubelet here is a shell script that logs each start with the digest of the bytes of `config.json` that it read: what
 * tests assert on is that log, not what the agent says.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  accessSync,
  chmodSync,
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { killIfThere } from './process.ts';

/** Behaviour of the fake kubelet at start. */
export type Behaviour =
  /** Reads the file, says that it is ready, runs. */
  | 'works'
  /** Ends with an error before it is ready. */
  | 'fails'
  /** Never says that it is ready. */
  | 'hangs'
  /** Says that it is ready, and ends a moment later. */
  | 'flaps'
  /** Works, but fails when its file holds the word POISON. */
  | 'picky'
  /** Takes as many seconds to be ready. */
  | { readonly slow: number };

/** Why there can be no private systemd here; undefined when there can. */
export function missingSystemd(): string | undefined {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) return 'needs root on Linux';
  for (const tool of [
    '/lib/systemd/systemd',
    '/usr/bin/dbus-daemon',
    '/usr/bin/unshare',
    '/usr/bin/nsenter',
  ]) {
    if (!existsSync(tool)) return `needs ${tool} (packages systemd, dbus-daemon, util-linux)`;
  }
  try {
    execFileSync('/usr/bin/unshare', ['--mount', '--pid', '--fork', 'true'], { stdio: 'ignore' });
    accessSync(cgroupRoot());
    return undefined;
  } catch {
    return 'needs the right to make namespaces (CAP_SYS_ADMIN)';
  }
}

function cgroupRoot(): string {
  const hybrid = '/sys/fs/cgroup/unified';
  return existsSync(hybrid) ? hybrid : '/sys/fs/cgroup';
}

const KUBELET = `#!/bin/bash
S=STATE
trap 'echo stop >> $S/log; exit 0' TERM
MODE=$(cat $S/behaviour)
SEEN=$(sha256sum < $S/config.json 2>/dev/null | cut -c1-64)
[ -e $S/config.json ] || SEEN=absent
echo "start $SEEN" >> $S/log
case $MODE in
  fails) exit 1;;
  hangs) sleep 1000 & wait $!;;
  picky) grep -q POISON $S/config.json && exit 1;;
  slow*) sleep \${MODE#slow } & wait $!;;
esac
systemd-notify --ready
if [ "$MODE" = flaps ]; then sleep 0.15; exit 3; fi
while :; do sleep 1000 & wait $!; done
`;

const BOOT = '[Unit]\nDefaultDependencies=no\nRequires=dbus.service\nAfter=dbus.service\n';
const SOCKET = '[Unit]\nDefaultDependencies=no\n[Socket]\nListenStream=/run/dbus/system_bus_socket\n';
const DAEMON =
  '[Unit]\nDefaultDependencies=no\nRequires=dbus.socket\n[Service]\nType=notify\n' +
  'ExecStart=/usr/bin/dbus-daemon --system --address=systemd: --nofork --nopidfile --systemd-activation\n';

/** The unit as it is installed; tests replace it to mask or remove it. */
export const kubeletUnit = (state: string, extra = ''): string =>
  '[Unit]\nDefaultDependencies=no\nStartLimitIntervalSec=0\n' +
  `[Service]\nType=notify\nNotifyAccess=all\nTimeoutStartSec=2\nTimeoutStopSec=2\n${extra}ExecStart=${state}/kubelet $KUBELET_EXTRA_ARGS\n`;

/** Processes that must not outlive the test. */
const running = new Set<ChildProcess>();
process.once('exit', () => {
  for (const child of running) child.kill('SIGKILL');
});

export class PrivateSystemd {
  /** Holds `config.json`, the kubelet's script, behaviour and log. */
  readonly state: string;
  readonly #root: string;
  readonly #cgroup: string;
  readonly #child: ChildProcess;

  private constructor(root: string, cgroup: string, child: ChildProcess) {
    this.#root = root;
    this.#cgroup = cgroup;
    this.#child = child;
    this.state = join(root, 'state');
    running.add(child);
  }

  /** Boots, in about a quarter of a second, and starts the kubelet when `kubelet` says so. */
  static async start(options: { readonly kubelet?: boolean } = {}): Promise<PrivateSystemd> {
    const root = mkdtempSync(join(tmpdir(), 'pullwright-systemd-'));
    const cgroup = join(cgroupRoot(), basename(root));
    for (const folder of ['run', 'units', 'state']) mkdirSync(join(root, folder));
    mkdirSync(cgroup);
    const units = { 'boot.target': BOOT, 'dbus.socket': SOCKET, 'dbus.service': DAEMON };
    for (const [name, text] of Object.entries(units)) writeFileSync(join(root, 'units', name), text);
    writeFileSync(join(root, 'units/kubelet.service'), kubeletUnit(join(root, 'state')));
    writeFileSync(join(root, 'state/kubelet'), KUBELET.replace('STATE', join(root, 'state')));
    chmodSync(join(root, 'state/kubelet'), 0o755);
    writeFileSync(join(root, 'state/behaviour'), 'works');
    const child = spawn(
      'setpriv',
      ['--pdeathsig', 'KILL', '--', '/bin/bash', '-c', BOOT_SCRIPT, 'boot', root, cgroup],
      { stdio: 'ignore', detached: true },
    );
    const machine = new PrivateSystemd(root, cgroup, child);
    await machine.#answering();
    if (options.kubelet !== false) machine.systemctl('start', 'kubelet.service');
    return machine;
  }

  /** The socket of its system bus, as seen from outside. */
  get bus(): string {
    return join(this.#root, 'run/dbus/system_bus_socket');
  }

  get config(): string {
    return join(this.state, 'config.json');
  }

  behave(behaviour: Behaviour): void {
    writeFileSync(
      join(this.state, 'behaviour'),
      typeof behaviour === 'string' ? behaviour : `slow ${behaviour.slow}`,
    );
  }

  /** Digests of the bytes that the kubelet read, start by start; `absent` where there was no file. */
  starts(): readonly string[] {
    return this.#log()
      .filter((line) => line.startsWith('start '))
      .map((line) => line.slice('start '.length));
  }

  #log(): readonly string[] {
    const path = join(this.state, 'log');
    return existsSync(path) ? readFileSync(path, 'utf8').trim().split('\n') : [];
  }

  /** Runs systemctl inside. Throws with what it said. */
  systemctl(...args: readonly string[]): string {
    const inside = ['-t', String(this.#init()), '-m', '-p', '--', '/usr/bin/systemctl', ...args];
    return execFileSync('/usr/bin/nsenter', inside, {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'pipe'],
    }).trim();
  }

  activeState(): string {
    return this.systemctl('show', '-P', 'ActiveState', 'kubelet.service');
  }

  /** Replaces the unit file (undefined: removes it) and reloads. */
  unit(text: string | undefined): void {
    const path = join(this.#root, 'units/kubelet.service');
    rmSync(path, { force: true });
    if (text !== undefined) writeFileSync(path, text);
    this.systemctl('daemon-reload');
  }

  /** Masks the unit, as `systemctl mask` does. */
  mask(): void {
    const path = join(this.#root, 'units/kubelet.service');
    rmSync(path);
    symlinkSync('/dev/null', path);
    this.systemctl('daemon-reload');
  }

  /** Sends a signal to the bus daemon. */
  signalBus(signal: NodeJS.Signals): void {
    for (const pid of this.#pidsOf('dbus.service')) killIfThere(pid, signal);
  }

  /** Removes the machine and everything that runs in it. */
  async stop(): Promise<void> {
    this.signalBus('SIGCONT');
    running.delete(this.#child);
    if (this.#child.pid !== undefined) killIfThere(-this.#child.pid, 'SIGKILL');
    for (let tries = 0; tries < 200 && this.#populated(); tries += 1) await delay(20);
    for (const folder of globSync(`${this.#cgroup}/**/`).sort().reverse()) rmdirQuietly(folder);
    rmdirQuietly(this.#cgroup);
    rmSync(this.#root, { recursive: true, force: true, maxRetries: 5 });
  }

  /** PID 1 of the namespace, as it is numbered outside: the child of unshare. */
  #init(): number {
    const pid = this.#child.pid ?? 0;
    return Number(readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ')[0]);
  }

  #pidsOf(service: string): readonly number[] {
    return globSync(`${this.#cgroup}/**/${service}/cgroup.procs`)
      .flatMap((path) => readFileSync(path, 'utf8').trim().split('\n'))
      .filter((line) => line !== '')
      .map(Number);
  }

  #populated(): boolean {
    return (
      existsSync(this.#cgroup) &&
      readFileSync(join(this.#cgroup, 'cgroup.events'), 'utf8').includes('populated 1')
    );
  }

  async #answering(): Promise<void> {
    for (let tries = 0; tries < 500; tries += 1) {
      try {
        if (this.systemctl('is-active', 'boot.target') === 'active') return;
      } catch {
        // The service has not started yet.
      }
      await delay(20);
    }
    throw new Error('the private systemd did not come up within 10 s');
  }
}

const BOOT_SCRIPT = `
echo $BASHPID > "$2/cgroup.procs"
exec unshare --mount --pid --fork --uts --ipc --cgroup --propagation private --kill-child bash -c '
  mount -t proc proc /proc && mount --bind "$1/run" /run && mount -t cgroup2 cgroup2 /sys/fs/cgroup &&
  exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin container=test SYSTEMD_UNIT_PATH="$1/units" \\
    /lib/systemd/systemd --system --unit=boot.target --show-status=0' _ "$1"
`;

function rmdirQuietly(folder: string): void {
  try {
    rmdirSync(folder);
  } catch {
    // Removed with its parent, or not empty yet: a folder without processes costs nothing.
  }
}

/** The digest that {@link PrivateSystemd.starts} shows for these bytes. */
export function digestOf(bytes: string | Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}

/** Waits until `holds` gives true; throws with `what` after `ms`. */
export async function until(
  what: string,
  holds: () => boolean | Promise<boolean>,
  ms = 60_000,
): Promise<void> {
  for (const end = performance.now() + ms; performance.now() < end; await delay(10)) {
    if (await holds()) return;
  }
  throw new Error(`waited ${ms} ms in vain until ${what}`);
}

/** Entries of a folder, or none. */
export function entriesOf(folder: string): readonly string[] {
  return existsSync(folder) ? readdirSync(folder).sort() : [];
}
