/** Nothing that somebody else chose begins a line of ours, and nothing is a command to the CI system that keeps the log. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { parseAllDocuments } from 'yaml';
import { forPeople } from '../../runtime/cli/terminal.ts';
import { runMain } from '../../runtime/commands/main.ts';
import { createLogger } from '../../runtime/core/logger.ts';
import { toYaml } from '../../runtime/kube/yaml.ts';
import { test } from '../support/suite.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { commandsOn } from './evil-commands.ts';
import { CI_COMMAND, dump } from './evil-words.ts';

/** GitHub trims a line first, and finds the second form anywhere in it; so does Azure. */
const OBEYED = /^\s*::|##\w*\[/mu;

/** A line that our own text does not begin: `x` is planted behind both. */
const BEGUN = /^[^\S\n]*(?:\\u003a|:|\\u0023|#)(?::error|#\[error)/mu;

const from = tempFolder();
writeFileSync(join(from, 'all.json'), dump(CI_COMMAND));

function intoPipe(): { readonly io: Parameters<typeof forPeople>[0]; readonly said: () => string } {
  let said = '';
  const stream = { write: (text: string) => (said += text) };
  const io = {
    stdin: Readable.from([]),
    stdout: stream,
    stderr: stream,
    env: { NO_COLOR: '1' },
    cwd: from,
    signal: new AbortController().signal,
  };
  return { io, said: () => said };
}

const SAME = ['--all-in-use', '--from', from];

for (const args of [
  ...commandsOn(from, CI_COMMAND),
  ['verify', ...SAME],
  ['reconcile', '--from', from, '--dry-run', '--verbose'],
])
  test(`${JSON.stringify(args.map((arg) => arg.replace(from, ''))).slice(0, 90)} gives a CI system no command`, async () => {
    const { io, said } = intoPipe();
    await runMain(args, io);
    assert.doesNotMatch(said(), OBEYED);
    assert.doesNotMatch(said(), BEGUN);
  });

test('forPeople escapes a name at the left edge, blanks before it, and what stands inside a line', () => {
  const { io, said } = intoPipe();
  forPeople(io).stdout.write('::add-mask::a\n \t::b\n##[group]c d ##vso[task.x]e\n::1 [::]:80 ## d\n');
  assert.equal(
    said(),
    '\\u003a:add-mask::a\n \t\\u003a:b\n\\u0023#[group]c d \\u0023#vso[task.x]e\n\\u003a:1 [::]:80 ## d\n',
  );
});

for (const text of [
  CI_COMMAND,
  '::error::x',
  `${'long '.repeat(30)}::error::x`,
  'a ##vso[x]y',
  `${'x'.repeat(60)}${CI_COMMAND}`,
])
  test(`YAML with ${JSON.stringify(text).slice(-40)} is the same value behind forPeople`, () => {
    const { io, said } = intoPipe();
    const value = { [text]: [text, { key: text }], plain: text };
    forPeople(io).stdout.write(toYaml(value));
    assert.doesNotMatch(said(), OBEYED);
    assert.deepEqual(
      parseAllDocuments(said()).map((document) => document.toJS()),
      [value],
    );
  });

for (const format of ['json', 'logfmt'] as const)
  test(`createLogger, ${format}: no character in a field is obeyed by a terminal`, () => {
    for (const sign of ['\u001b', '\u009b', '\u0007', '\u2028', '\u2029', '\u202e', '\u0085']) {
      let said = '';
      createLogger({ write: (line) => (said += line), format }).info('object', { name: `a${sign}b` });
      const code = sign.charCodeAt(0).toString(16).padStart(4, '0');
      assert.ok(said.endsWith('\n') && !said.includes(sign), JSON.stringify(said));
      assert.ok(said.includes(`"a\\u${code}b"`), said);
    }
  });
