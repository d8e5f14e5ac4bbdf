/**
 * Untrusted text never controls a terminal, starts a line of our output, or is a command to the CI system that stores the log:
 * names, keys, images and messages with control characters and with lines of their own.
 */
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { parse, parseAllDocuments } from 'yaml';
import { control, forPeople } from '../../runtime/cli/terminal.ts';
import { createLogger } from '../../runtime/core/logger.ts';
import { toYaml } from '../../runtime/kube/yaml.ts';
import { runInProcess } from '../support/in-process.ts';
import { pullSecretObject } from '../support/meta.ts';
import { test } from '../support/suite.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { commandsOn } from './evil-commands.ts';
import { CI_COMMAND, dump, EVIL } from './evil-words.ts';

const OBEYED = /(?![\n\t])[\p{Cc}\p{Cf}\u2028\u2029]/u;

/** GitHub trims a line first, and finds the second form anywhere in it; so does Azure. */
const CI_OBEYED = /^\s*::|##\w*\[/mu;

/** A line that our own text does not begin: `x` is planted behind both. */
const BEGUN = /^[^\S\n]*(?:\\u003a|:|\\u0023|#)(?::error|#\[error)/mu;

const WORD = `${CI_COMMAND}${EVIL}`;
const folder = tempFolder();

mkdirSync(join(folder, 'dump'));
writeFileSync(join(folder, 'dump', 'all.json'), dump(WORD));
const from = join(folder, 'dump');

const run = (args: readonly string[], isTTY: boolean) =>
  runInProcess(args, { isTTY, env: isTTY ? {} : { NO_COLOR: '1' }, cwd: folder });

/** Control characters that remain after the command's own colours and cursor moves come from untrusted text. */
function obeyed(text: string): string | undefined {
  return OBEYED.exec(text.replace(/\p{Cc}\[[0-9;]*m/gu, ''))?.[0];
}

const COMMANDS = [
  ...commandsOn(from, WORD),
  ['verify', '--all-in-use', '--from', from],
  ['reconcile', '--from', from, '--dry-run', '--verbose'],
];

/** The kubelet's plugin says no word of what it was started with. */
const SILENT: readonly string[] = ['provider'];

for (const args of COMMANDS)
  for (const isTTY of [true, false])
    test(`${args
      .map((arg) => JSON.stringify(arg.replace(folder, '')))
      .join(' ')
      .slice(0, 90)} shows nothing that is obeyed${isTTY ? ' by a terminal' : ''}`, async () => {
      const { stdout, stderr } = await run(args, isTTY);
      assert.notEqual(stdout + stderr, '', 'the command says nothing');
      if (!SILENT.includes(args[0] ?? ''))
        assert.match(stdout + stderr, /(?:u001b|\\e)\[2J/, 'nothing that was planted came this far');
      assert.equal(obeyed(stdout), undefined, JSON.stringify(stdout.slice(0, 3000)));
      assert.equal(obeyed(stderr), undefined, JSON.stringify(stderr.slice(0, 3000)));
      if (!isTTY)
        for (const said of [stdout, stderr])
          for (const command of [CI_OBEYED, BEGUN]) assert.doesNotMatch(said, command);
    });

test('the page of a report shows untrusted names, without control characters', async () => {
  const page = join(folder, 'page.html');
  const { stdout } = await run(['report', '--from', from, '--html', page], true);
  assert.equal(obeyed(stdout), undefined);
  assert.equal(obeyed(readFileSync(page, 'utf8')), undefined);
});

test('JSON and YAML say exactly the value all the same', async () => {
  const asJson = await run(['validate', from, '--output', 'json'], false);
  assert.equal(obeyed(asJson.stdout), undefined);
  JSON.parse(asJson.stdout);
  const wanted = `quay.io/${WORD}`;
  const status = await run(['reconcile', '--from', from, '--dry-run', '--output', 'json'], false);
  assert.ok(JSON.stringify(JSON.parse(status.stdout)).includes(JSON.stringify(wanted).slice(1, -1)));
  const yaml = await run(['reconcile', '--from', from, '--dry-run', '--output', 'yaml'], false);
  assert.equal(obeyed(yaml.stdout), undefined);
  assert.deepEqual(parse(yaml.stdout), JSON.parse(status.stdout));
});

test('a thousand broken entries fill no screen, and are counted', async () => {
  const many = join(folder, 'many');
  mkdirSync(many);
  const auths = Object.fromEntries(
    Array.from({ length: 1000 }, (_, at) => [`r${at}.example.com`, { auth: '?' }]),
  );
  const secret = (namespace: string, name: string, content: object) =>
    pullSecretObject({ namespace, name }, content);
  const items = [
    secret('openshift-config', 'pull-secret', { auths: { 'quay.io': { auth: 'YTpi' } } }),
    secret('kube-system', 'additional-pull-secret', { auths }),
  ];
  writeFileSync(join(many, 'all.json'), JSON.stringify({ apiVersion: 'v1', kind: 'List', items }));
  for (const args of [
    ['reconcile', '--from', many, '--dry-run'],
    ['validate', many],
  ]) {
    const { stdout } = await run(args, true);
    assert.ok(stdout.split('\n').length < 500, `${args[0]}: ${stdout.split('\n').length} lines`);
    // The status holds the first verdicts only and counts the others itself.
    assert.match(stdout, /\b[78]\d\d (?:more|others)\b/);
  }
});

test('a thousand documents that cannot be read fill no screen, and each is said elsewhere', async () => {
  const many = join(folder, 'unread');
  mkdirSync(many);
  for (let at = 0; at < 1000; at++) writeFileSync(join(many, `${at}.yaml`), 'kind: [');
  for (const args of [
    ['reconcile', '--from', many, '--dry-run'],
    ['doctor', 'web', '--namespace', 'web', '--from', many],
    ['doctor', '--all', '--all-namespaces', '--from', many],
    ['explain', 'quay.io/a', '--from', many],
    ['mirrors', 'quay.io/a', '--from', many],
    ['status', '--from', many],
    ['report', '--from', many],
    ['verify', '--all-in-use', '--from', many],
  ]) {
    const shown = await run(args, true);
    const lines = (shown.stdout + shown.stderr).split('\n').length;
    assert.ok(lines < 500, `${args.join(' ')}: ${lines} lines\n${shown.stderr.slice(-500)}`);
    assert.match(shown.stderr, /^\.\.\. and 801 more: use 2>FILE to see all$/m, args.join(' '));
    const written = await run(args, false);
    assert.ok(written.stderr.split('\n').length > 1000, args.join(' '));
  }
});

/** `text` as it is displayed. */
function shown(text: string): string {
  let said = '';
  const stream = { write: (part: string) => (said += part) };
  const signal = AbortSignal.abort();
  const io = { stdin: Readable.from([]), stdout: stream, stderr: stream, env: {}, cwd: '/', signal };
  forPeople(io).stdout.write(text);
  return said;
}

test('our own sequences stay, and those of others do not', () => {
  assert.equal(
    shown(`${control('\u001b[31m')}red \u001b[32m${control('\u001b[39m')}\n`),
    '\u001b[31mred \\u001b[32m\u001b[39m\n',
  );
});

test('forPeople escapes a name at the left edge, blanks before it, and what stands inside a line', () => {
  const said = shown('::add-mask::a\n \t::b\n##[group]c d ##vso[task.x]e\n::1 [::]:80 ## d\n');
  assert.equal(
    said,
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
    const value = { [text]: [text, { key: text }], plain: text };
    const said = shown(toYaml(value));
    assert.doesNotMatch(said, CI_OBEYED);
    assert.deepEqual(
      parseAllDocuments(said).map((document) => document.toJS()),
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
    let said = '';
    createLogger({ write: (line) => (said += line), format }).info('object', {
      size: 2n ** 64n,
      in: { size: 1n },
    });
    assert.match(said, /18446744073709551616/, 'a bigint must not make a line of the log fail');
  });
