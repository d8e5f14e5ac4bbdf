/** What a subcommand is: a name, a help text with an example, what it may touch, and a function. */
import type { CommandSpec } from './flags/help.ts';
import type { Permissions } from './permissions.ts';

/** What to type before a subcommand. */
export type ProgramName = 'pullwright' | 'kubectl pullwright';

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
  /** What to type before a subcommand. @default {'pullwright'} */
  readonly program?: ProgramName;
  /** Where this runs. @default {process.platform} */
  readonly platform?: NodeJS.Platform;
  /** Aborted on SIGINT and SIGTERM. */
  readonly signal: AbortSignal;
}

/** 0 done, 1 failed (or a check that did not hold), 2 wrong usage. */
export type ExitCode = number;

export interface Command {
  readonly name: string;
  /** One line for the list of commands. */
  readonly summary: string;
  readonly permissions: Permissions;
  /** What help, completion and the reference are made of; made when it is asked for, as the kubelet's plugin never asks. */
  spec(): Promise<CommandSpec>;
  run(args: readonly string[], io: CommandIo): Promise<ExitCode>;
}
