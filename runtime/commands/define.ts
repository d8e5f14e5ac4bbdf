/** A command out of its table of flags. */

import { UsageError } from '../rules/errors.ts';
import type { Command, CommandIo, ExitCode } from './command.ts';
import type { Flags } from './flags/flag.ts';
import type { CommandSpec } from './flags/help.ts';
import { type Given, parseFlags } from './flags/parse.ts';
import type { Permissions } from './permissions.ts';

/** A command's table, with what it touches besides what its flags name. */
export interface CommandTable<F extends Flags> extends CommandSpec<F> {
  readonly permissions: Permissions;
}

/** Makes the command; `run` is given what the arguments say. */
export function defineCommand<F extends Flags>(
  table: CommandTable<F>,
  run: (given: Given<F>, io: CommandIo) => Promise<ExitCode>,
): Command {
  return {
    name: table.name,
    summary: table.summary,
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
function withFlags(fixed: Permissions, flags: Flags): Permissions {
  const named = (touches: 'reads' | 'writes'): string[] =>
    Object.entries(flags)
      .filter(([, flag]) => flag.touches === touches)
      .map(([name]) => `<--${name}>`);
  return {
    ...fixed,
    reads: [...fixed.reads, ...named('reads')],
    writes: [...fixed.writes, ...named('writes')],
  };
}
