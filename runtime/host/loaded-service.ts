/**
 * A service as systemd has read it: its files in the order in which they apply, its command word by word, its variables, and
 * the command lines of its processes. What the properties of org.freedesktop.systemd1 say, as data.
 */

/** A file of variables that the unit names. */
export interface EnvironmentFile {
  readonly path: string;
  /** Whether it may be missing. */
  readonly optional: boolean;
}

export interface LoadedService {
  /** Unit file, then drop-ins. */
  readonly files: readonly string[];
  /** Words of the command that counts, variables as they are written; empty when there is none. */
  readonly command: readonly string[];
  /** Whether systemd leaves the variables in the command alone. */
  readonly isVerbatim: boolean;
  /** `NAME=value` of each variable that the unit sets itself. */
  readonly environment: readonly string[];
  readonly environmentFiles: readonly EnvironmentFile[];
  /** Whether files have changed since systemd read them. */
  readonly isStale: boolean;
  /** Command line of the main process as one text; empty when it does not run. */
  readonly commandLine: string;
  /** A new value each time the service is started. */
  readonly mainPid: number;
}

type Properties = Readonly<Record<string, { readonly value?: unknown } | undefined>>;

/** Undefined when systemd has no such service. `processes`: what GetUnitProcesses answers. */
export function loadedService(
  ofUnit: unknown,
  ofService: unknown,
  processes: unknown,
): LoadedService | undefined {
  const unit = propertiesOf(ofUnit);
  const service = propertiesOf(ofService);
  const fragment = textOf(unit['FragmentPath']?.value);
  if (unit['LoadState']?.value !== 'loaded' || fragment === '') return undefined;
  const command = commandOf(service);
  const pid = service['MainPID']?.value;
  const mainPid = typeof pid === 'number' ? pid : 0;
  return {
    files: [fragment, ...textsOf(unit['DropInPaths']?.value)],
    command: command.words,
    isVerbatim: command.flags.includes('no-env-expand'),
    environment: textsOf(service['Environment']?.value),
    environmentFiles: listOf(service['EnvironmentFiles']?.value).map((entry) => {
      const [path, optional] = listOf(entry);
      return { path: textOf(path), optional: optional === true };
    }),
    isStale: unit['NeedDaemonReload']?.value === true,
    commandLine: mainPid === 0 ? '' : lineOf(processes, mainPid),
    mainPid,
  };
}

/** `ExecStartEx` has the flags of the command too; systemd before 243 has `ExecStart` alone. */
function commandOf(service: Properties): {
  readonly words: readonly string[];
  readonly flags: readonly string[];
} {
  const extended = listOf(listOf(service['ExecStartEx']?.value).at(-1));
  const [, words, flags] =
    extended.length > 0 ? extended : listOf(listOf(service['ExecStart']?.value).at(-1));
  return { words: textsOf(words), flags: textsOf(flags) };
}

/** Each process is control group, number, and command line. */
function lineOf(processes: unknown, pid: number): string {
  const found = listOf(processes)
    .map(listOf)
    .find(([, number]) => number === pid);
  return textOf(found?.[2]);
}

function propertiesOf(value: unknown): Properties {
  return typeof value === 'object' && value !== null ? (value as Properties) : {};
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function textsOf(value: unknown): readonly string[] {
  return listOf(value).filter((one): one is string => typeof one === 'string');
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}
