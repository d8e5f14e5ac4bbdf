/**
 * Flags as data: name, value, meaning, and the files that each reads or writes. Parsing, `--help`, completion, the man page and
 * the reference in `docs/reference/cli.md` are generated from it.
 */

import { hostname } from 'node:os';
import { parseArgs } from 'node:util';
import { UsageError } from '../core/errors.ts';
import { parseGoDuration } from '../core/go/duration.ts';
import { defined } from '../core/record.ts';
import { nearWord } from '../core/text.ts';
import { isNetwork } from '../http/addresses.ts';

// One grammar for each unit, as Kubernetes writes them.

/** Bounds in the unit of the value, such as milliseconds. */
interface Bounds {
  readonly least?: number | undefined;
  readonly most?: number | undefined;
}

/** An invalid value of a flag. */
export class FlagFault extends Error {
  readonly value: string;

  /** @param wanted the expected value, such as `a duration such as 30s` */
  constructor(value: string, wanted: string) {
    super(`must be ${wanted}`);
    this.name = 'FlagFault';
    this.value = value;
  }
}

/**
 * Milliseconds of a duration. A bare number is seconds, as kubectl reads its `--request-timeout`.
 *
 * @throws FlagFault
 */
function durationMs(text: string, bounds: Bounds): number {
  const nanoseconds = /^\d{1,9}$/.test(text) ? Number(text) * 1e9 : parseGoDuration(text);
  const ms = nanoseconds === undefined ? Number.NaN : nanoseconds / 1e6;
  if (within(ms, bounds)) return ms;
  throw new FlagFault(text, `a duration such as 30s or 5m${bounded(bounds, shortDuration)}`);
}

function within(value: number, { least = 0, most = Number.POSITIVE_INFINITY }: Bounds): boolean {
  return value >= least && value <= most;
}

function bounded({ least, most }: Bounds, show: (value: number) => string): string {
  if (least !== undefined && most !== undefined) return ` from ${show(least)} to ${show(most)}`;
  if (most !== undefined) return ` of at most ${show(most)}`;
  return least === undefined ? '' : ` of at least ${show(least)}`;
}

/** `90_000` as `90s`, `7_200_000` as `2h`. */
function shortDuration(ms: number): string {
  const [size, unit] = UNITS.find(([most]) => ms % most === 0) ?? [1, 'ms'];
  return `${ms / size}${unit}`;
}

const UNITS = [
  [3_600_000, 'h'],
  [60_000, 'm'],
  [1000, 's'],
] as const;

/** What the shell completes a value with, from a cluster or a kubeconfig. */
export type Completion = 'namespaces' | 'contexts' | 'pods' | 'nodes' | 'accounts';

/** A flag whose value is a `T`. */
export interface Flag<T> {
  /** Placeholder of the value in help, such as `FILE`; empty for a switch, which takes none. */
  readonly value: string;
  /** Description without a final period and without the default, which {@link default} holds. */
  readonly help: string;
  /** One letter. */
  readonly short?: string;
  /** Whether the flag may be repeated. @default {false} */
  readonly many?: boolean;
  /** Default value, as on the command line. */
  readonly default?: string;
  readonly choices?: readonly string[];
  /** @default {the choices, or files} */
  readonly completes?: Completion;
  /** Whether the file or folder is read or written. */
  readonly touches?: 'reads' | 'writes';
  /** Parses the values, which are empty when the flag is absent. @throws FlagFault */
  readonly read: (given: readonly string[]) => T;
}

/** Flags by name, without dashes, in the order of the help. */
export type Flags = Readonly<Record<string, Flag<unknown>>>;

/** The values of flags. */
export type ValuesOf<F extends Flags> = {
  readonly [Name in keyof F]: F[Name] extends Flag<infer T> ? T : never;
};

/** A switch. */
export function toggle(about: Pick<Flag<boolean>, 'help' | 'short'>): Flag<boolean> {
  return { ...about, value: '', read: (given) => given.at(-1) === 'true' };
}

/** The type of a flag's value: with a default, never undefined. */
type Read<T, Default> = Default extends string ? T : T | undefined;

interface Defaulted<Default>
  extends Pick<Flag<unknown>, 'help' | 'short' | 'touches' | 'completes'>,
    Partial<Pick<Flag<unknown>, 'value'>> {
  readonly default?: Default;
}

/** Any text. The last one of several wins. */
export const text = measured({ value: 'TEXT' }, (one) => one);

/** An empty path would mean the current folder, as when a variable of a script is not set. */
function path(text: string): string {
  if (text === '') throw new FlagFault(text, 'a path');
  return text;
}

/** A path of a file. */
export const file = measured({ value: 'FILE', touches: 'reads' }, path);

/** A path of a folder. */
export const folder = measured({ value: 'DIR', touches: 'reads' }, path);

/** The same flag, which may be repeated; undefined when absent. */
export function several<T>(flag: Flag<T | undefined>): Flag<readonly T[] | undefined> {
  return {
    ...flag,
    many: true,
    read: (given) => (given.length === 0 ? undefined : given.map((one) => flag.read([one]) as T)),
  };
}

/** A flag whose value is one of `choices`. */
export function choice<
  const Choices extends readonly string[],
  Default extends Choices[number] | undefined = undefined,
>(choices: Choices, about: Defaulted<Default>): Flag<Read<Choices[number], Default>> {
  const flag = measured<Choices[number]>({ value: choices.join('|') }, (one) => {
    if (choices.includes(one)) return one;
    throw new FlagFault(one, `one of ${choices.join(', ')}`);
  })(about);
  return { ...flag, choices };
}

/** The same flag with a check: `wanted` returns the expected value, or undefined when the value is valid. @throws FlagFault */
export function checked<T>(flag: Flag<T>, wanted: (value: T) => string | undefined): Flag<T> {
  return {
    ...flag,
    read: (given) => {
      const value = flag.read(given);
      const refusal = wanted(value);
      if (refusal === undefined) return value;
      throw new FlagFault(given.at(-1) ?? flag.default ?? '', refusal);
    },
  };
}

/** The same flag, which also accepts `word`. */
export function orWord<const W extends string, T>(word: W, flag: Flag<T>): Flag<T | W> {
  return {
    ...flag,
    value: `${flag.value}|${word}`,
    read: (given) => ((given.at(-1) ?? flag.default) === word ? word : flag.read(given)),
  };
}

/** A flag that names a path: absolute, independent of the working directory. */
export function absolute<T extends string | undefined>(flag: Flag<T>): Flag<T> {
  return checked(flag, (path) =>
    path === undefined || path.startsWith('/') ? undefined : 'an absolute path',
  );
}

/** A flag with one value; undefined when absent, unless it has a default. @param usual fields that each flag may override */
function measured<T, Limits = unknown>(usual: Partial<Flag<T>>, read: (text: string, about: Limits) => T) {
  return <Default extends string | undefined = undefined>(about: Defaulted<Default> & Limits) => {
    const flag = {
      ...usual,
      ...about,
      read: (given: readonly string[]) => {
        const one = given.at(-1) ?? about.default;
        return one === undefined ? undefined : read(one, about);
      },
    };
    return flag as Flag<Read<T, Default>>;
  };
}

/** A time as Kubernetes writes it, `30s` or `5m`; in milliseconds. */
export const duration = measured({ value: 'DURATION' }, durationMs);

/** A time as Kubernetes writes it, of whole seconds; in seconds. */
export const seconds = measured({ value: 'DURATION' }, (text, { least, most }: Bounds) => {
  const found = durationMs(text, { least: least && least * 1000, most: most && most * 1000 }) / 1000;
  if (Number.isInteger(found)) return found;
  throw new FlagFault(text, 'a duration of whole seconds, such as 30s or 5m');
});

/** A whole number. */
export const count = measured({ value: 'N' }, (text, bounds: Bounds) => {
  const number = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
  if (within(number, bounds)) return number;
  throw new FlagFault(text, `a whole number${bounded(bounds, String)}`);
});

/** A port to listen on; undefined for `off`. */
export const port = measured({ value: 'PORT|off' }, (text): number | undefined => {
  if (text === 'off') return undefined;
  if (/^\d{1,5}$/.test(text) && Number(text) <= 65_535) return Number(text);
  throw new FlagFault(text, 'a port from 0 to 65535, or off');
});

// Flags with the same meaning as in kubectl.

/** Flags that select the cluster and the user. */
export const CLUSTER_FLAGS = {
  kubeconfig: file({ help: 'kubeconfig of the cluster; if unset, the one that kubectl uses' }),
  context: text({
    value: 'NAME',
    completes: 'contexts',
    help: 'context of the kubeconfig; if unset, the current context',
  }),
  'request-timeout': duration({
    default: '10s',
    help: 'timeout of a single request to the API server',
  }),
  as: text({ value: 'USER', help: 'user to impersonate, such as system:serviceaccount:shop:web' }),
};

/** The namespace of a command. */
export const namespaceFlag: Flag<string | undefined> = text({
  value: 'NAME',
  short: 'n',
  completes: 'namespaces',
  help: 'the namespace; if unset, the one of the context',
});

/** A container of the pod, as of `kubectl logs`. */
export const containerFlag: Flag<string | undefined> = text({
  value: 'NAME',
  short: 'c',
  help: 'only the image of this container of the pod',
});

/** Manifests instead of a cluster. */
export const fromFlag: Flag<readonly string[] | undefined> = several(
  folder({
    short: 'f',
    help: 'folder or file of manifests, such as a dump, or - for standard input, instead of a cluster',
  }),
);

/** The output format; the first one is the default. */
export function outputFlag<const C extends readonly [string, ...string[]]>(
  forms: C,
  help = 'output format',
): Flag<C[number]> {
  return choice<C, C[0]>(forms, { default: forms[0], short: 'o', help });
}

/** A table without its first line. */
export const noHeadersFlag: Flag<boolean> = toggle({ help: 'print the table without headers' });

/** Logs, metrics and health of long-running programs. */
export const LOG_FLAGS = {
  'log-level': choice(['debug', 'info', 'warn', 'error'], {
    default: 'info',
    help: 'minimum level of log messages',
  }),
  'log-format': choice(['json', 'logfmt'], { default: 'json', help: 'log format' }),
};

/** Networks that may be contacted even under untrusted host names. */
export const ALLOW_ADDRESS: Flag<readonly string[] | undefined> = several(
  checked(
    text({
      value: 'CIDR',
      help: 'network such as 10.1.0.0/16 that may be contacted even for untrusted host names',
    }),
    (value) =>
      value === undefined || isNetwork(value) ? undefined : 'an address or a network such as 10.1.0.0/16',
  ),
);

// Flags that the node programs share: restarts, health checks, and reports.

export const DAY_MS: number = 24 * 3_600_000;

/** Flags with the same meaning and default in both node programs. */
export const NODE_FLAGS = {
  unit: text({ value: 'NAME', default: 'kubelet.service', help: 'systemd unit to restart' }),
  'bus-socket': text({
    value: 'PATH',
    touches: 'writes',
    default: '/var/run/dbus/system_bus_socket',
    help: 'socket of the D-Bus system bus',
  }),
  'max-restarts': count({
    default: '6',
    most: 32,
    help: 'maximum changes that restart the unit in 10 minutes; 0: no limit',
  }),
  'restart-timeout': duration({ default: '200s', most: DAY_MS, help: 'timeout of a restart' }),
  'restart-window': duration({
    default: '5m',
    most: DAY_MS,
    help: 'each node delays its restart by a share of this time; 0: no delay',
  }),
  'kubelet-healthz': checked(
    text({
      value: 'URL|auto|off',
      default: 'auto',
      help: 'URL that must return 200 after a restart; auto: if it did before',
    }),
    (value) =>
      value === 'off' || value === 'auto' || /^http:\/\/[^/]+/.test(value)
        ? undefined
        : 'off, auto or an http:// address',
  ),
  report: toggle({ help: 'write a PullStatus and Events about the node; the pod needs a token' }),
  'service-account-dir': folder({
    default: '/var/run/secrets/kubernetes.io/serviceaccount',
    help: "folder of the pod's token",
  }),
  'node-name': text({
    value: 'NAME',
    help: 'name of the node; if unset, $NODE_NAME, else the host name',
  }),
  'health-address': text({ value: 'HOST', default: '127.0.0.1', help: 'bind address of --health-port' }),
  poll: duration({
    default: '30s',
    least: 100,
    most: DAY_MS,
    help: 'maximum interval between checks of the node',
  }),
  ...LOG_FLAGS,
};

/** The port of a node program's probes and metrics. */
export function healthPort(number: number): Flag<number | undefined> {
  return port({ default: String(number), help: 'the port of /readyz, /healthz and /metrics' });
}

/** One-shot modes of a node program. */
export const ONCE_FLAGS = {
  once: toggle({ help: 'run until nothing is left to do, then exit: 0 in sync, 1 not' }),
  output: outputFlag(['text', 'json', 'yaml'], 'output format of --once and --dry-run'),
};

type NodeGiven = Given<
  Omit<typeof NODE_FLAGS, 'restart-window'> &
    typeof ONCE_FLAGS & {
      settle: Flag<number>;
      'health-port': Flag<number | undefined>;
      uninstall: Flag<boolean>;
    }
>['flags'];

/** Converts the flags of a node program to the settings of its daemon. Times are milliseconds. */
export function nodeSettings(flags: NodeGiven, env: Readonly<Record<string, string | undefined>>) {
  return {
    unit: flags.unit,
    busSocket: flags['bus-socket'],
    maxRestarts: flags['max-restarts'],
    jobMs: flags['restart-timeout'],
    settleMs: flags.settle,
    healthz: flags['kubelet-healthz'],
    report: flags.report,
    serviceAccountDir: flags['service-account-dir'],
    nodeName: flags['node-name'] ?? env['NODE_NAME'] ?? hostname(),
    healthAddress: flags['health-address'],
    healthPort: flags['health-port'],
    pollMs: flags.poll,
    logLevel: flags['log-level'],
    logFormat: flags['log-format'],
    uninstall: flags.uninstall,
    once: flags.once,
    output: flags.output,
  };
}

// The one argument parser: flags by their table, and positional arguments.

/** Parsed arguments of a command. */
export interface Given<F extends Flags> {
  readonly flags: ValuesOf<F>;
  /** Arguments that are not flags, in their order. */
  readonly args: readonly string[];
}

/**
 * Parses `args`. Like kubectl, accepts `--name value`, `--name=value`, `-n value`, `-n=value`, `--switch` and `--switch=false`;
 * arguments after `--` are not flags.
 *
 * @throws UsageError
 */
export function parseFlags<F extends Flags>(flags: F, args: readonly string[]): Given<F> {
  const { tokens, positionals } = parseArgs({
    args: withoutShortEquals(args),
    options: Object.fromEntries(
      Object.entries(flags).map(([name, { value, short }]) => {
        const type = value === '' ? ('boolean' as const) : ('string' as const);
        return [name, { type, ...defined({ short }) }];
      }),
    ),
    strict: false,
    allowPositionals: true,
    tokens: true,
  });
  const options = tokens.filter((token) => token.kind === 'option');
  const texts = options.map((token) => ({ name: token.name, text: textOf(token, flags) }));
  const given = Map.groupBy(texts, ({ name }) => name);
  const values = Object.entries(flags).map(([name, flag]) => [
    name,
    read(name, () => flag.read((given.get(name) ?? []).map(({ text }) => text))),
  ]);
  return { flags: Object.fromEntries(values) as ValuesOf<F>, args: positionals };
}

type OptionToken = Extract<NonNullable<ReturnType<typeof parseArgs>['tokens']>[number], { kind: 'option' }>;

function textOf({ name, rawName, value, inlineValue }: OptionToken, flags: Flags): string {
  const flag = Object.hasOwn(flags, name) ? flags[name] : undefined;
  if (flag === undefined) throw unknownFlag(rawName, flags);
  if (flag.value !== '') {
    // A flag that follows is not the value.
    if (value !== undefined && (inlineValue || !/^-./.test(value))) return value;
    throw new UsageError(`Option "${rawName}" needs a value: ${flag.value}`);
  }
  if (value === undefined || value === 'true' || value === 'false') return value ?? 'true';
  throw new UsageError(`invalid value "${value}" for --${name}: must be true or false`);
}

function unknownFlag(rawName: string, flags: Flags): UsageError {
  const known = rawName.startsWith('--') ? Object.keys(flags).map((name) => `--${name}`) : [];
  const near = nearWord(rawName, known);
  const meant = near === undefined ? '' : `: did you mean "${near}"?`;
  return new UsageError(`Unknown option "${rawName}"${meant}`);
}

function read<T>(name: string, value: () => T): T {
  try {
    return value();
  } catch (error) {
    if (!(error instanceof FlagFault)) throw error;
    throw new UsageError(`invalid value "${error.value}" for --${name}: ${error.message}`);
  }
}

/** Splits `-o=json` into `-o json`: Node's parser would take `=json` as the value. */
function withoutShortEquals(args: readonly string[]): string[] {
  const end = args.indexOf('--');
  return args.flatMap((arg, index) => {
    const [, short, value] = /^(-[a-zA-Z])=(.*)$/s.exec(arg) ?? [];
    return short === undefined || value === undefined || (end !== -1 && index > end) ? [arg] : [short, value];
  });
}
