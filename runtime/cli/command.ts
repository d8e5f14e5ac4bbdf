/** Defines a command by its table of flags. */

import { UsageError } from '../core/errors.ts';
import { type Flags, type Given, parseFlags } from './flags.ts';
import type { CommandSpec } from './help.ts';

/** A command's table, with permissions beyond the paths in its flags. */
export interface CommandTable<F extends Flags> extends CommandSpec<F> {
  readonly permissions: FixedPermissions;
}

/** Without `reads` and `writes`, a command accesses only paths in its flags. */
type FixedPermissions = Pick<Permissions, 'hosts' | 'api'> & Partial<Permissions>;

/** Creates the command; `run` receives the parsed arguments. */
export function defineCommand<F extends Flags>(
  table: CommandTable<F>,
  run: (given: Given<F>, io: CommandIo) => Promise<ExitCode>,
): Command {
  return {
    name: table.name,
    spec: async () => table,
    permissions: withFlags(table.permissions, table.flags),
    run: (args, io) => {
      const given = parseFlags(table.flags, args);
      const [first] = given.args;
      if (table.args === undefined && first !== undefined)
        throw new UsageError(`Unexpected argument "${first}": this command accepts only flags`);
      return run(given, io);
    },
  };
}

/** Adds the paths in flags to the fixed permissions. */
function withFlags({ reads = [], writes = [], ...fixed }: FixedPermissions, flags: Flags): Permissions {
  const named = (touches: 'reads' | 'writes'): string[] =>
    Object.entries(flags)
      .filter(([, flag]) => flag.touches === touches)
      .map(([name]) => `<--${name}>`);
  return {
    ...fixed,
    reads: [...reads, ...named('reads')],
    writes: [...writes, ...named('writes')],
  };
}

/** Input and output of a command; `main.ts` passes the real ones, tests their own. */
export interface CommandIo {
  readonly stdin: NodeJS.ReadableStream;
  readonly stdout: { write(text: string): unknown; readonly isTTY?: boolean; readonly columns?: number };
  readonly stderr: { write(text: string): unknown; readonly isTTY?: boolean };
  /** Writes to the descriptor synchronously. Creating a stream takes longer than a run of the credential provider. */
  readonly writeNow?: (fd: 1 | 2, text: string) => void;
  /** Exits at once, for a command that writes all its output with {@link writeNow}. */
  readonly exitNow?: (code: ExitCode) => void;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  /** @default {process.platform} */
  readonly platform?: NodeJS.Platform;
  /** Aborted on SIGINT and SIGTERM. */
  readonly signal: AbortSignal;
}

/** 0: success, 1: failure or a failed check, 2: wrong usage. */
export type ExitCode = number;

export interface Command {
  readonly name: string;
  readonly permissions: Permissions;
  /** The source of help, completion and reference; created on demand, because the credential provider never needs it. */
  spec(): Promise<CommandSpec>;
  run(args: readonly string[], io: CommandIo): Promise<ExitCode>;
}

/** Permissions of a command: the source of docs/reference/cli.md, and compared with the flags of Node's `--permission`. */
export interface Permissions {
  /** Paths or flag names in angle brackets, such as `<--from>`. */
  readonly reads: readonly string[];
  readonly writes: readonly string[];
  /** Hosts that are contacted: `none`, or a description. */
  readonly hosts: readonly string[];
  /** API verbs, as `verb resource[/name] (namespace)`. */
  readonly api: readonly string[];
}

/** Permissions of a command that only reads its arguments and writes its output. */
export const NOTHING: Permissions = { reads: [], writes: [], hosts: [], api: [] };
