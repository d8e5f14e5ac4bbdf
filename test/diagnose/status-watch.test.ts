// deadline: 120 s
/** `pullwright status --watch` as a process: on a pseudo terminal, and where there is none. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { eventually } from '../control-plane/eventually.ts';
import { test } from '../support/suite.ts';
import { tempFolder } from '../support/temp-folder.ts';

const main = new URL('../../main.ts', import.meta.url).pathname;
const folder = tempFolder();
const children = new Set<ChildProcess>();
test.lastly('nothing is left', () => {
  for (const child of children) child.kill('SIGKILL');
});

/** util-linux's: runs a command on a pseudo terminal of its own. */
const SCRIPT = '/usr/bin/script';
const REDRAW = '\u001b[H\u001b[2J';
const LONG = { withinMs: 60_000 };

function write(dir: string, reason: string): void {
  const status = {
    apiVersion: 'pullwright.dev/v1alpha1',
    kind: 'PullStatus',
    metadata: { name: 'secret-a', namespace: 'shop' },
    status: {
      reporter: 'pull-secret-injection',
      // A terminal would be cleared and renamed by it.
      conditions: [
        { type: 'Ready', status: 'False', reason, message: 'evil \u001b[2J\u001b]0;owned\u0007\u202e' },
      ],
    },
  };
  writeFileSync(join(dir, 'status.json'), JSON.stringify(status));
}

interface Watched {
  readonly child: ChildProcess;
  readonly said: () => string;
  readonly ended: Promise<number | null>;
}

function watch(command: string, args: readonly string[]): Watched {
  const child = spawn(command, args, {
    stdio: ['pipe', 'pipe', 'pipe'],
    env: { PATH: process.env['PATH'] ?? '', TERM: 'xterm-256color', SHELL: '/bin/sh' },
  });
  children.add(child);
  let text = '';
  for (const stream of [child.stdout, child.stderr])
    stream?.on('data', (chunk: Buffer) => {
      text += chunk.toString();
    });
  const ended = new Promise<number | null>((resolve) =>
    child.once('exit', (code) => {
      children.delete(child);
      resolve(code);
    }),
  );
  return { child, said: () => text, ended };
}

/** Whether the output contains no control characters except those that redraw the screen. */
function isPlain(text: string): boolean {
  return !/[\p{Cc}\p{Cf}]/u.test(
    text
      .replaceAll(REDRAW, '')
      .replace(/[\r\n]/g, '')
      .replaceAll('^C', ''),
  );
}

if (!existsSync(SCRIPT)) test.skip('on a terminal', `${SCRIPT} is not there: apt-get install bsdutils`);
else
  test('on a terminal each look takes the place of the one before, and Ctrl-C ends it with what it saw', async () => {
    const dir = mkdtempSync(join(folder, 'pty-'));
    write(dir, 'FirstReason');
    const { child, said, ended } = watch(SCRIPT, [
      '--quiet',
      '--return',
      '--command',
      `NO_COLOR=1 exec '${process.execPath}' '${main}' status --watch --from '${dir}'`,
      '/dev/null',
    ]);
    await eventually(() => assert.match(said(), /FirstReason/), LONG);
    assert.ok(said().startsWith(REDRAW), JSON.stringify(said().slice(0, 80)));
    write(dir, 'SecondReason');
    await eventually(() => {
      const last = said().split(REDRAW).at(-1) ?? '';
      assert.match(last, /SecondReason/);
      assert.doesNotMatch(last, /FirstReason/);
    }, LONG);
    child.stdin?.write('\u0003');
    assert.equal(await ended, 1, said());
    assert.ok(isPlain(said()), JSON.stringify(said()));
    assert.doesNotMatch(said(), /\bat .*\.ts:\d+/);
  });

test('without a terminal each look follows the one before as plain lines, and an interrupt ends it', async () => {
  const dir = mkdtempSync(join(folder, 'pipe-'));
  write(dir, 'FirstReason');
  const { child, said, ended } = watch(process.execPath, [main, 'status', '--watch', '--from', dir]);
  await eventually(() => assert.match(said(), /FirstReason/), LONG);
  write(dir, 'SecondReason');
  await eventually(() => assert.match(said(), /FirstReason[\s\S]*SecondReason/), LONG);
  child.kill('SIGINT');
  assert.equal(await ended, 1, said());
  assert.equal(said().includes('\u001b'), false, JSON.stringify(said()));
  assert.ok(isPlain(said()), JSON.stringify(said()));
});

test('a file that breaks while it is watched is named, and read again once it is whole', async () => {
  const dir = mkdtempSync(join(folder, 'gone-'));
  write(dir, 'FirstReason');
  const { child, said, ended } = watch(process.execPath, [main, 'status', '--watch', '--from', dir]);
  await eventually(() => assert.match(said(), /FirstReason/), LONG);
  writeFileSync(join(dir, 'status.json'), '{ "apiVersion": ');
  await eventually(() => assert.match(said(), /status\.json:1: /), LONG);
  // Objects that could not be read may be managed.
  assert.doesNotMatch(said(), /Nothing here is managed/);
  write(dir, 'SecondReason');
  await eventually(() => assert.match(said(), /SecondReason/), LONG);
  child.kill('SIGTERM');
  assert.equal(await ended, 1, said());
});
