/** `--help` out of the table of flags. */
import { wrapped } from '../core/text.ts';
import type { Completion, Flag, Flags } from './flags.ts';

/** What a command says about itself. */
export interface CommandSpec<F extends Flags = Flags> {
  readonly name: string;
  /** What is called, where it is another name than `pullwright <name>`. */
  readonly program?: string;
  /** What it does: paragraphs, one line each. */
  readonly about: readonly string[];
  /** Arguments that are not flags, in their order. */
  readonly args?: readonly Argument[];
  readonly flags: F;
  /** Variables of the environment that are read. */
  readonly environment?: readonly Argument[];
  /** What is worth knowing besides: paragraphs, below the flags. */
  readonly notes?: readonly string[];
  /** What an exit code says, where it is more than done, failed and wrong usage. */
  readonly exitCodes?: string;
  /** Command lines. */
  readonly examples: readonly string[];
}

export interface Argument {
  /** `POD`, `[DIR...]`, `GCP_PROJECT_ID` */
  readonly name: string;
  readonly help: string;
  /** What a shell offers for it. @default {'files'} */
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
    ...lines(`Exit codes: ${exitCodes(spec)}`, WIDTH),
    '',
    ...spec.examples.map((line) => `Example: ${line}`),
  ].join('\n');
}

/** What is typed: the program, its arguments, and whether there are flags. */
function usage({ name, program = `pullwright ${name}`, args = [], flags }: CommandSpec): string {
  const more = Object.keys(flags).length === 0 ? [] : ['[flags]'];
  return [program, ...args.map((arg) => arg.name), ...more].join(' ');
}

/** What each exit code says. */
function exitCodes(spec: Pick<CommandSpec, 'exitCodes'>): string {
  return spec.exitCodes ?? '0 done, 1 failed, 2 wrong usage';
}

function entry({ name, help }: Argument): Entry {
  return [`  ${name}`, help];
}

type Entry = readonly [left: string, right: string];

function flagEntries(flags: Flags): readonly Entry[] {
  return Object.entries(flags).map(([name, flag]) => [
    `  ${flag.short === undefined ? '' : `-${flag.short}, `}${flagUsage(name, flag)}`,
    flagHelp(flag),
  ]);
}

/** `--from DIR` */
function flagUsage(name: string, { value }: Pick<Flag<unknown>, 'value'>): string {
  return value === '' ? `--${name}` : `--${name} ${value}`;
}

/** What it does, its default, and whether there may be more than one. */
function flagHelp({ help, many, default: fallback }: Flag<unknown>): string {
  const more = many ? '; may be given more than once' : '';
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
