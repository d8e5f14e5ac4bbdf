/** The one reading of arguments: flags by their table, and what is left. */
import { parseArgs } from 'node:util';
import { UsageError } from '../../rules/errors.ts';
import { nearWord } from '../../rules/text/near-word.ts';
import type { Flags, ValuesOf } from './flag.ts';
import { FlagFault } from './units.ts';

/** What a command was given. */
export interface Given<F extends Flags> {
  readonly flags: ValuesOf<F>;
  /** What is no flag, in its order. */
  readonly args: readonly string[];
}

/**
 * Reads `args`. As for kubectl, `--name value`, `--name=value`, `-n value`, `-n=value`, `--switch` and `--switch=false` count, and
 * what stands behind `--` is no flag.
 *
 * @throws UsageError
 * @example
 * ```ts
 * import { choice, toggle } from './flag.ts';
 * import { parseFlags } from './parse.ts';
 * import assert from 'node:assert/strict';
 *
 * const flags = { output: choice(['text', 'json'], { default: 'text', help: 'form', short: 'o' }), watch: toggle({ help: 'again' }) };
 * assert.deepEqual(parseFlags(flags, ['a', '-o', 'json']), { flags: { output: 'json', watch: false }, args: ['a'] });
 * assert.throws(() => parseFlags(flags, ['--outptu=json']), /did you mean "--output"/);
 * assert.throws(() => parseFlags(flags, ['-o', 'xml']), /^UsageError: invalid value "xml" for --output: must be one of text, json$/);
 * ```
 */
export function parseFlags<F extends Flags>(flags: F, args: readonly string[]): Given<F> {
  const { tokens } = parseArgs({
    args: withoutShortEquals(args),
    options: Object.fromEntries(
      Object.entries(flags).map(([name, { value, short }]) => [
        name,
        {
          type: value === '' ? ('boolean' as const) : ('string' as const),
          ...(short === undefined ? {} : { short }),
        },
      ]),
    ),
    strict: false,
    allowPositionals: true,
    tokens: true,
  });
  const given = new Map<string, string[]>();
  const rest: string[] = [];
  for (const token of tokens) {
    if (token.kind === 'positional') rest.push(token.value);
    if (token.kind !== 'option') continue;
    const texts = given.get(token.name) ?? [];
    given.set(token.name, [...texts, textOf(token, flags)]);
  }
  const values = Object.entries(flags).map(([name, flag]) => [
    name,
    read(name, () => flag.read(given.get(name) ?? [])),
  ]);
  return { flags: Object.fromEntries(values) as ValuesOf<F>, args: rest };
}

interface OptionToken {
  readonly name: string;
  readonly rawName: string;
  readonly value: string | undefined;
  readonly inlineValue: boolean | undefined;
}

function textOf({ name, rawName, value, inlineValue }: OptionToken, flags: Flags): string {
  const flag = Object.hasOwn(flags, name) ? flags[name] : undefined;
  if (flag === undefined) throw unknownFlag(rawName, flags);
  if (flag.value !== '') {
    // The next flag is no value.
    if (value !== undefined && (inlineValue === true || !/^-./.test(value))) return value;
    throw new UsageError(`Option "${rawName}" needs a value: ${flag.value}`);
  }
  if (value === undefined || value === 'true' || value === 'false') return value ?? 'true';
  throw new UsageError(`invalid value "${value}" for --${name}: must be true or false`);
}

function unknownFlag(rawName: string, flags: Flags): UsageError {
  const near = rawName.startsWith('--')
    ? nearWord(
        rawName,
        Object.keys(flags).map((name) => `--${name}`),
      )
    : undefined;
  return new UsageError(
    `Unknown option "${rawName}"${near === undefined ? '' : `: did you mean "${near}"?`}`,
  );
}

function read<T>(name: string, value: () => T): T {
  try {
    return value();
  } catch (error) {
    if (!(error instanceof FlagFault)) throw error;
    throw new UsageError(`invalid value "${error.value}" for --${name}: ${error.message}`);
  }
}

/** `-o=json` is `-o json`: Node's parser takes the `=` for a part of the value. */
function withoutShortEquals(args: readonly string[]): string[] {
  const end = args.indexOf('--');
  return args.flatMap((arg, index) => {
    const [, short, value] = /^(-[a-zA-Z])=(.*)$/s.exec(arg) ?? [];
    return short === undefined || value === undefined || (end !== -1 && index > end) ? [arg] : [short, value];
  });
}
