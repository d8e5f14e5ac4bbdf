/** One container without a container runtime: mounts of its own, a root of its own, an unprivileged user. Needs root and util-linux. */
import { missingControlPlane } from '../control-plane/build.ts';

/** Content of the image. */
export interface Program {
  /** Stands for the image's entry point. */
  readonly command: readonly string[];
  /** Folders and files that it needs beside the system's libraries; seen at the same paths. */
  readonly folders: readonly string[];
}

const ROOT = new URL('../..', import.meta.url).pathname;
/** The sources, run by Node. */
export const NODE: readonly string[] = [process.execPath, `${ROOT}main.ts`];

/** The image that holds a command: the sources for Node, else one file. */
export function programOf(command: readonly string[]): Program {
  return { command, folders: command === NODE ? [ROOT] : command };
}

/** Undefined when pods can run here. */
export function missingPods(): string | undefined {
  if (process.getuid?.() !== 0) return 'pods run in mounts of their own, which only root can make';
  return missingControlPlane();
}

export interface ContainerInput {
  /** An empty folder for the root. */
  readonly root: string;
  readonly program: Program;
  /** Replaces the entry point. */
  readonly command: readonly string[] | undefined;
  readonly args: readonly string[];
  /** The file behind `/dev/termination-log`. */
  readonly log: string;
  readonly readOnlyRoot: boolean;
  readonly mounts: readonly {
    readonly source: string;
    readonly mountPath: string;
    readonly readOnly?: boolean;
  }[];
}

/** The user of the image. */
const USER = '65532';

/** Arguments: ROOT LOG RO, then the program's folders up to `--`, then SOURCE PATH ro|rw of each mount up to `--`, then the command. */
const SCRIPT = `set -e
root=$1 log=$2 ro=$3; shift 3
mount -t tmpfs -o mode=755 tmpfs "$root"
mkdir -p "$root/dev" "$root/proc" "$root/tmp" "$root/etc"
# As every kubelet does.
echo '127.0.0.1 localhost' > "$root/etc/hosts"
bind() { if [ -d "$1" ]; then mkdir -p "$root$2"; else mkdir -p "$(dirname "$root$2")"; touch "$root$2"; fi; mount --bind "$1" "$root$2"; }
for path in /usr /bin /sbin /lib /lib64; do
  if [ -L "$path" ]; then cp -P "$path" "$root$path"; elif [ -e "$path" ]; then bind "$path" "$path"; fi
done
for device in null zero random urandom; do bind "/dev/$device" "/dev/$device"; done
mount --rbind /proc "$root/proc"
while [ "$1" != -- ]; do bind "$1" "$1"; shift; done; shift
bind "$log" /dev/termination-log
while [ "$1" != -- ]; do
  bind "$1" "$2"; [ "$3" = rw ] || mount -o remount,bind,ro "$root$2"; shift 3
done; shift
[ "$ro" = no ] || mount -o remount,ro "$root"
exec chroot "$root" /usr/bin/setpriv --reuid=${USER} --regid=${USER} --clear-groups --no-new-privs --bounding-set=-all -- "$@"
`;

/** The command that runs it. The environment is that of who starts it. */
export function containerCommand(input: ContainerInput): readonly string[] {
  const { command, args, program } = input;
  return [
    '/usr/bin/unshare',
    '--mount',
    '--propagation=private',
    '/bin/sh',
    '-c',
    SCRIPT,
    'container',
    input.root,
    input.log,
    input.readOnlyRoot ? 'yes' : 'no',
    ...program.folders,
    '--',
    // Parent folders are mounted first.
    ...[...input.mounts]
      .sort((a, b) => a.mountPath.length - b.mountPath.length)
      .flatMap(({ source, mountPath, readOnly }) => [source, mountPath, readOnly === true ? 'ro' : 'rw']),
    '--',
    ...(command ?? program.command),
    ...args,
  ];
}
