/** A command out of its table of flags. */

import { UsageError } from '../core/errors.ts';
import { type Flags, type Given, parseFlags } from './flags.ts';
import type { CommandSpec } from './help.ts';

/** A command's table, with what it touches besides what its flags name. */
export interface CommandTable<F extends Flags> extends CommandSpec<F> {
  readonly permissions: FixedPermissions;
}

/** What is read and written by default: what the flags name. */
type FixedPermissions = Pick<Permissions, 'hosts' | 'api'> & Partial<Permissions>;

/** Makes the command; `run` is given what the arguments say. */
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
        throw new UsageError(`Unexpected argument "${first}": this command takes flags only`);
      return run(given, io);
    },
  };
}

/** What flags name is read or written; an object of their own lists it behind what is fixed. */
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

// What a subcommand is: a name, a help text with an example, what it may touch, and a function.

/** Where a command reads and writes. Given by `main.ts`, so that tests can look. */
export interface CommandIo {
  readonly stdin: NodeJS.ReadableStream;
  readonly stdout: { write(text: string): unknown; readonly isTTY?: boolean; readonly columns?: number };
  readonly stderr: { write(text: string): unknown; readonly isTTY?: boolean };
  /** Writes to the descriptor at once, without the streams, whose making takes longer than a whole provider run. */
  readonly writeNow?: (fd: 1 | 2, text: string) => void;
  /** Ends the process at once: for a command that has written all it has to say with {@link writeNow}. */
  readonly exitNow?: (code: ExitCode) => void;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  /** Where this runs. @default {process.platform} */
  readonly platform?: NodeJS.Platform;
  /** Aborted on SIGINT and SIGTERM. */
  readonly signal: AbortSignal;
}

/** 0 done, 1 failed (or a check that did not hold), 2 wrong usage. */
export type ExitCode = number;

export interface Command {
  readonly name: string;
  readonly permissions: Permissions;
  /** What help, completion and the reference are made of; made on demand, as the kubelet's plugin never needs it. */
  spec(): Promise<CommandSpec>;
  run(args: readonly string[], io: CommandIo): Promise<ExitCode>;
}

/**
 * What a command may touch, as data. The reference in docs/reference/cli.md is made from it, and Node's `--permission` line is held against it.
 */
export interface Permissions {
  /** Paths or flag names in angle brackets, such as `<--from>`. */
  readonly reads: readonly string[];
  readonly writes: readonly string[];
  /** Hosts that are contacted: `none`, or a description. */
  readonly hosts: readonly string[];
  /** API verbs, as `verb resource[/name] (namespace)`. */
  readonly api: readonly string[];
}

/** Touches nothing but its arguments and its output. */
export const NOTHING: Permissions = { reads: [], writes: [], hosts: [], api: [] };
