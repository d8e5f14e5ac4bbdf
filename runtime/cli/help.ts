/** Renders `--help` from the table of flags. */
import { wrapped } from '../core/text.ts';
import type { Completion, Flag, Flags } from './flags.ts';

/** Description of a command. */
export interface CommandSpec<F extends Flags = Flags> {
  readonly name: string;
  /** The program to run. @default {'pullwright <name>'} */
  readonly program?: string;
  /** Description: paragraphs, one line each. */
  readonly about: readonly string[];
  /** Arguments that are not flags, in their order. */
  readonly args?: readonly Argument[];
  readonly flags: F;
  /** Environment variables. */
  readonly environment?: readonly Argument[];
  /** Notes below the flags: paragraphs, one line each. */
  readonly notes?: readonly string[];
  /** Meaning of the exit codes, when there are more than done, failed and wrong usage. */
  readonly exitCodes?: string;
  /** Command lines. */
  readonly examples: readonly string[];
}

export interface Argument {
  /** `POD`, `[DIR...]`, `GCP_PROJECT_ID` */
  readonly name: string;
  readonly help: string;
  /** What the shell completes it with. @default {files} */
  readonly completes?: Completion;
}

const WIDTH = 120;
/** Column of the help texts; after longer flags they get their own line. */
const MOST_LEFT = 34;

/** The whole text, without a line break at its end. */
export function helpText(spec: CommandSpec): string {
  const { args = [], environment = [] } = spec;
  const entries = [...args.map(entry), ...flagEntries(spec.flags)];
  return [
    ...spec.about.flatMap((paragraph) => [...lines(paragraph, WIDTH), '']),
    `Usage: ${usage(spec)}`,
    '',
    ...aligned(entries),
    ...(entries.length > 0 ? [''] : []),
    ...(environment.length === 0 ? [] : ['Environment:', ...aligned(environment.map(entry)), '']),
    ...(spec.notes ?? []).flatMap((note) => [...lines(note, WIDTH), '']),
    ...lines(`Exit codes: ${spec.exitCodes ?? '0 done, 1 failed, 2 wrong usage'}`, WIDTH),
    '',
    ...spec.examples.map((line) => `Example: ${line}`),
  ].join('\n');
}

/** The usage line: program, arguments, and `[flags]` if there are any. */
function usage({ name, program = `pullwright ${name}`, args = [], flags }: CommandSpec): string {
  const more = Object.keys(flags).length === 0 ? [] : ['[flags]'];
  return [program, ...args.map((arg) => arg.name), ...more].join(' ');
}

function entry({ name, help }: Argument): Entry {
  return [`  ${name}`, help];
}

type Entry = readonly [left: string, right: string];

/** `-f, --from DIR`, with the help of the flag. */
function flagEntries(flags: Flags): readonly Entry[] {
  return Object.entries(flags).map(([name, flag]) => {
    const short = flag.short === undefined ? '' : `-${flag.short}, `;
    return [`  ${short}--${name} ${flag.value}`.trimEnd(), flagHelp(flag)];
  });
}

/** Help of a flag, with its default, and whether it may be repeated. */
function flagHelp({ help, many, default: fallback }: Flag<unknown>): string {
  const more = many ? '; can be repeated' : '';
  return `${help}${fallback === undefined || fallback === '' ? '' : ` (default ${fallback})`}${more}`;
}

function aligned(entries: readonly Entry[]): readonly string[] {
  const left = Math.min(MOST_LEFT, Math.max(0, ...entries.map(([name]) => name.length)) + 2);
  return entries.flatMap(([name, help]) => {
    const rest = lines(help, WIDTH - left);
    const isShort = name.length + 2 <= left;
    const first = isShort ? [name.padEnd(left) + (rest[0] ?? '')] : [name];
    return [...first, ...rest.slice(isShort ? 1 : 0).map((line) => ' '.repeat(left) + line)];
  });
}

function lines(text: string, width: number): readonly string[] {
  return wrapped(text, width).map((line) => line.trim());
}
