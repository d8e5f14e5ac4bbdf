/**
 * Flags as data: what each is called, takes, means and touches. Parsing, `--help`, completion, the man page, the reference in
 * `docs/reference/cli.md` are made from it; nothing is read out of prose.
 */
import { type Bounds, durationMs, FlagFault, portNumber, wholeNumber, wholeSeconds } from './units.ts';

/** What a shell offers for a value. */
export type Completion =
  | 'nothing'
  | 'files'
  | 'folders'
  | 'choices'
  | 'namespaces'
  | 'contexts'
  | 'pods'
  | 'nodes'
  | 'accounts';

/** A flag whose value is a `T`. */
export interface Flag<T> {
  /** What stands for the value in help, such as `FILE`; empty for a switch, which takes none. */
  readonly value: string;
  /** What it does, without a final period. Names no default: {@link default} does. */
  readonly help: string;
  /** One letter. */
  readonly short?: string;
  /** It may be given more than once. */
  readonly many: boolean;
  /** As a person would write it. */
  readonly default?: string;
  readonly choices?: readonly string[];
  readonly completes: Completion;
  /** What the file or folder that it names is for. */
  readonly touches?: 'reads' | 'writes';
  /** The value of what was given, which is nothing when the flag is absent. @throws FlagFault */
  readonly read: (given: readonly string[]) => T;
}

/** Flags by name, without dashes, in the order of the help. */
export type Flags = Readonly<Record<string, Flag<unknown>>>;

/** The values of flags. */
export type ValuesOf<F extends Flags> = {
  readonly [Name in keyof F]: F[Name] extends Flag<infer T> ? T : never;
};

interface Common {
  readonly help: string;
  readonly short?: string;
  readonly touches?: 'reads' | 'writes';
}

interface Valued extends Common {
  readonly value?: string;
  readonly completes?: Completion;
}

/** On when given. */
export function toggle(about: Common): Flag<boolean> {
  return { ...about, value: '', many: false, completes: 'nothing', read: (given) => given.at(-1) === 'true' };
}

/** Any text; of several the last counts. */
export function text(about: Valued & { readonly default: string }): Flag<string>;
export function text(about: Valued): Flag<string | undefined>;
export function text(about: Valued & { readonly default?: string }): Flag<string | undefined> {
  return {
    value: 'TEXT',
    completes: 'nothing',
    ...about,
    many: false,
    read: (given) => given.at(-1) ?? about.default,
  };
}

/** A path of a file. */
export function file(about: Valued & { readonly default: string }): Flag<string>;
export function file(about: Valued): Flag<string | undefined>;
export function file(about: Valued & { readonly default?: string }): Flag<string | undefined> {
  return text({ value: 'FILE', completes: 'files', touches: 'reads', ...about });
}

/** A path of a folder. */
export function folder(about: Valued & { readonly default: string }): Flag<string>;
export function folder(about: Valued): Flag<string | undefined>;
export function folder(about: Valued & { readonly default?: string }): Flag<string | undefined> {
  return text({ value: 'DIR', completes: 'folders', touches: 'reads', ...about });
}

/** The same flag, given any number of times; absent it is undefined. */
export function several<T>(flag: Flag<T | undefined>): Flag<readonly T[] | undefined> {
  return {
    ...flag,
    many: true,
    read: (given) => (given.length === 0 ? undefined : given.map((one) => flag.read([one]) as T)),
  };
}

/** One of a few words. */
export function choice<const C extends readonly string[]>(
  choices: C,
  about: Valued & { readonly default: C[number] },
): Flag<C[number]>;
export function choice<const C extends readonly string[]>(
  choices: C,
  about: Valued,
): Flag<C[number] | undefined>;
export function choice(
  choices: readonly string[],
  about: Valued & { readonly default?: string },
): Flag<string | undefined> {
  return {
    value: choices.join('|'),
    ...about,
    many: false,
    choices,
    completes: 'choices',
    read: (given) => {
      const one = given.at(-1) ?? about.default;
      if (one === undefined || choices.includes(one)) return one;
      throw new FlagFault(one, `one of ${choices.join(', ')}`);
    },
  };
}

/** The same flag, whose value must also hold: `wanted` says what it must be, or undefined when it is. @throws FlagFault */
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

/** The same flag, which takes a word instead of such a value too. */
export function orWord<const W extends string, T>(word: W, flag: Flag<T>): Flag<T | W> {
  return {
    ...flag,
    value: `${flag.value}|${word}`,
    read: (given) => ((given.at(-1) ?? flag.default) === word ? word : flag.read(given)),
  };
}

/** A flag that names a path: from the root, whatever the working directory is. */
export function absolute<T extends string | undefined>(flag: Flag<T>): Flag<T> {
  return checked(flag, (path) =>
    path === undefined || path.startsWith('/') ? undefined : 'an absolute path',
  );
}

/** A flag whose value is read from one text; undefined without it, unless it has a default. */
interface Measured<T> {
  (about: Valued & Bounds & { readonly default: string }): Flag<T>;
  (about: Valued & Bounds): Flag<T | undefined>;
}

function measured<T>(value: string, read: (text: string, bounds: Bounds) => T): Measured<T> {
  return ((about: Valued & Bounds & { readonly default?: string }): Flag<T | undefined> => ({
    value,
    completes: 'nothing',
    ...about,
    many: false,
    read: (given) => {
      const one = given.at(-1) ?? about.default;
      return one === undefined ? undefined : read(one, about);
    },
  })) as Measured<T>;
}

/** A time as Kubernetes writes it, `30s` or `5m`; in milliseconds. */
export const duration: Measured<number> = measured('DURATION', durationMs);

/** A time as Kubernetes writes it, of whole seconds; in seconds. */
export const seconds: Measured<number> = measured('DURATION', wholeSeconds);

/** A whole number. */
export const count: Measured<number> = measured('N', wholeNumber);

/** A port to listen on; undefined for `off`. */
export function port(about: Valued & { readonly default: string }): Flag<number | undefined> {
  return measured('PORT|off', portNumber)(about);
}
