/** Flags of a table: what is read, what is refused, and that a word in prose is no flag. */
import assert from 'node:assert/strict';
import {
  choice,
  count,
  duration,
  type Flags,
  file,
  parseFlags,
  port,
  several,
  toggle,
} from '../../runtime/cli/flags.ts';
import { helpText } from '../../runtime/cli/help.ts';
import { COMMANDS } from '../../runtime/commands/table.ts';
import { UsageError } from '../../runtime/core/errors.ts';
import { type Case, table, test } from '../support/suite.ts';

const FLAGS = {
  from: several(file({ help: 'a folder, for kubectl apply --server-side' })),
  output: choice(['text', 'json'], { default: 'text', short: 'o', help: 'the form' }),
  watch: toggle({ short: 'w', help: 'again' }),
  every: duration({ default: '1m', least: 1000, most: 3_600_000, help: 'a pause' }),
  at: count({ default: '20', least: 1, help: 'at once' }),
  'health-port': port({ default: '8080', help: 'a port' }),
} as const satisfies Flags;
const ABSENT = {
  from: undefined,
  output: 'text',
  watch: false,
  every: 60_000,
  at: 20,
  'health-port': 8080,
};

interface Row extends Case {
  readonly args: readonly string[];
  readonly flags?: object;
  readonly rest?: readonly string[];
}

const rows: readonly Row[] = [
  { name: 'nothing', reason: 'defaults count', args: [] },
  { name: 'a blank', reason: 'two words', args: ['--output', 'json'], flags: { output: 'json' } },
  { name: '=', reason: 'one word', args: ['--output=json'], flags: { output: 'json' } },
  { name: 'a letter', reason: 'as -o of kubectl', args: ['-o', 'json'], flags: { output: 'json' } },
  { name: 'a letter with =', reason: 'kubectl takes it', args: ['-o=json'], flags: { output: 'json' } },
  { name: 'a letter and its value', reason: 'kubectl takes it', args: ['-ojson'], flags: { output: 'json' } },
  {
    name: 'twice',
    reason: 'the last one counts',
    args: ['-o', 'json', '-o', 'text'],
    flags: { output: 'text' },
  },
  { name: 'many', reason: 'each counts', args: ['--from', 'a', '--from=b'], flags: { from: ['a', 'b'] } },
  { name: 'a switch', reason: 'no value', args: ['--watch'], flags: { watch: true } },
  {
    name: 'a switch that is off',
    reason: 'kubectl takes it',
    args: ['--watch=false'],
    flags: { watch: false },
  },
  {
    name: 'a duration',
    reason: 'as Kubernetes writes it',
    args: ['--every=1m30s'],
    flags: { every: 90_000 },
  },
  {
    name: 'seconds',
    reason: 'as --request-timeout of kubectl',
    args: ['--every', '15'],
    flags: { every: 15_000 },
  },
  { name: 'off', reason: 'no port', args: ['--health-port', 'off'], flags: { 'health-port': undefined } },
  {
    name: 'arguments',
    reason: 'between flags',
    args: ['a', '-w', 'b'],
    flags: { watch: true },
    rest: ['a', 'b'],
  },
  { name: 'behind --', reason: 'it is no flag', args: ['--', '--watch', '-o=x'], rest: ['--watch', '-o=x'] },
  { name: 'a dash', reason: 'stdin by custom', args: ['--from', '-'], flags: { from: ['-'] } },
];
table(test, rows, ({ args, flags = {}, rest = [] }) => {
  assert.deepEqual(parseFlags(FLAGS, args), { flags: { ...ABSENT, ...flags }, args: rest });
});

interface Refused extends Case {
  readonly args: readonly string[];
  readonly says: string;
}

const refused: readonly Refused[] = [
  {
    name: 'a word of the help',
    reason: 'prose makes no flag',
    args: ['--server-side'],
    says: 'Unknown option "--server-side"',
  },
  {
    name: 'a slip',
    reason: 'one letter',
    args: ['--outptu=json'],
    says: 'Unknown option "--outptu": did you mean "--output"?',
  },
  {
    name: 'a name of every object',
    reason: 'no flag',
    args: ['--constructor'],
    says: 'Unknown option "--constructor"',
  },
  { name: 'another letter', reason: 'nothing is guessed', args: ['-z'], says: 'Unknown option "-z"' },
  {
    name: 'no value',
    reason: 'the end',
    args: ['--output'],
    says: 'Option "--output" needs a value: text|json',
  },
  {
    name: 'a flag as value',
    reason: 'it was forgotten',
    args: ['--from', '--watch'],
    says: 'Option "--from" needs a value: FILE',
  },
  {
    name: 'another word',
    reason: 'the choices are few',
    args: ['-o', 'xml'],
    says: 'invalid value "xml" for --output: must be one of text, json',
  },
  {
    name: 'no duration',
    reason: 'a unit of its own',
    args: ['--every=5min'],
    says: 'invalid value "5min" for --every: must be a duration such as 30s or 5m from 1s to 1h',
  },
  {
    name: 'too short',
    reason: 'bounds',
    args: ['--every=1ms'],
    says: 'invalid value "1ms" for --every: must be a duration such as 30s or 5m from 1s to 1h',
  },
  {
    name: 'none at once',
    reason: 'nothing would happen',
    args: ['--at=0'],
    says: 'invalid value "0" for --at: must be a whole number of at least 1',
  },
  {
    name: 'a switch with a value',
    reason: 'it takes none',
    args: ['--watch=often'],
    says: 'invalid value "often" for --watch: must be true or false',
  },
  {
    name: 'a port beyond',
    reason: 'TCP has fewer',
    args: ['--health-port=70000'],
    says: 'invalid value "70000" for --health-port: must be a port from 0 to 65535, or off',
  },
];
table(test, refused, ({ args, says }) => {
  assert.throws(
    () => parseFlags(FLAGS, args),
    (error) => error instanceof UsageError && error.message === says,
  );
});

test('help has every flag once, with its letter, its value and its default', () => {
  const help = helpText({
    name: 'demo',
    about: ['About.'],
    flags: FLAGS,
    examples: ['pullwright demo'],
  });
  assert.match(help, /^ {2}-o, --output text\|json +the form \(default text\)$/m);
  assert.match(help, /^ {2}-w, --watch +again$/m);
  assert.match(help, /^ {2}--from FILE .*; can be repeated$/m);
  for (const name of Object.keys(FLAGS))
    assert.equal(help.match(new RegExp(`^ {2}(?:-., )?--${name}(?: |$)`, 'gm'))?.length, 1, name);
});

test('every table is sound: short letters are of one flag, and defaults can be read', async () => {
  for (const [name, entry] of Object.entries(COMMANDS)) {
    const spec = await (await entry.load()).spec();
    const letters = Object.values(spec.flags).flatMap(({ short }) => (short === undefined ? [] : [short]));
    assert.equal(new Set(letters).size, letters.length, name);
    for (const [flag, { read, help }] of Object.entries(spec.flags)) {
      read([]);
      assert.doesNotMatch(help, /\.$|default/, `${name} --${flag}`);
    }
  }
});
