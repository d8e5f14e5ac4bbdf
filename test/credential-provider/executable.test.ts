// deadline: 240 s
/** The compiled executable under its kubelet name, started as a kubelet starts it. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { findPlanted, plantedPassword } from '../support/canary.ts';
import { runProcess } from '../support/process.ts';
import { test } from '../support/suite.ts';
import { call, IMAGE, leave, place, program } from './support/compiled-run.ts';
import { kubeletTakes } from './support/kubelet-response.ts';
import { authFiles, flagsOf, pullSecret, requestFor, tokenFor } from './support/node-double.ts';

const root = join(import.meta.dirname, '../..');

test('answers, with the environment of a service', async () => {
  const here = await place();
  const ran = await call(here.node, 'team-a');
  assert.equal(ran.code, 0, ran.stderr);
  assert.equal(kubeletTakes(ran.stdout)?.keys, 1);
  assert.equal(Object.keys(authFiles(here.node)).length, 1);
  await leave(here);
});

test('closed descriptors end it with a code, not a hang', async () => {
  const here = await place();
  for (const closed of ['<&-', '2>&-', '<&- >&- 2>&-']) {
    const line = `exec "$0" ${flagsOf(here.node).join(' ')} ${closed}`;
    const ran = await runProcess(['/bin/sh', '-c', line, program], {
      stdin: requestFor(IMAGE, tokenFor('team-a')),
      env: {},
      deadlineMs: 60_000,
    });
    assert.equal(ran.timedOut, false, closed);
    assert.equal(ran.code, closed === '2>&-' ? 0 : 1, `${closed}: ${ran.stderr}`);
  }
  await leave(here);
});

/** Runs a program whose stdout is a pipe that holds one page. */
const TO_A_SMALL_PIPE = `perl -e 'fcntl(STDOUT, 1031, 4096) or die; exec @ARGV' -- "$@" | cat`;
const whole = 'an answer that is longer than the pipe is written whole before the process exits';
if (!existsSync('/usr/bin/perl')) test.skip(whole, 'perl sets the size of the pipe');
else
  test(whole, async () => {
    const here = await place();
    // JSON takes six bytes for the character.
    const image = `${IMAGE}:${'\u0001'.repeat(4000)}`;
    for (const command of [[program], [process.execPath, join(root, 'main.ts'), 'provider']]) {
      const words = ['/bin/sh', '-c', TO_A_SMALL_PIPE, 'sh', ...command, ...flagsOf(here.node)];
      const ran = await runProcess(words, {
        stdin: requestFor(image, tokenFor('team-a')),
        env: { PATH: process.env['PATH'] },
      });
      assert.deepEqual(Object.keys(JSON.parse(ran.stdout).auth), [image], ran.stderr);
    }
    await leave(here);
  });

test('what never ends on stdin is refused after four megabytes', async () => {
  const here = await place();
  for (const dry of ['', ' --dry-run']) {
    const line = `yes "$1" | "$0" ${flagsOf(here.node).join(' ')}${dry}`;
    const ran = await runProcess(['/bin/sh', '-c', line, program, plantedPassword('stdin')], {
      env: {},
      deadlineMs: 60_000,
    });
    assert.equal(ran.timedOut, false, ran.stderr);
    assert.equal(ran.code, 1, ran.stderr);
    assert.match(
      ran.stderr,
      /unable to parse credential provider request from stdin: it has more than 4 MiB/,
    );
    assert.equal(findPlanted(ran.stdout + ran.stderr), undefined);
  }
  await leave(here);
});

test('version, and flags that do not exist', async () => {
  const version = await runProcess([program, '--version'], { env: {} });
  assert.match(version.stdout, /^Version: \d+\.\d+\.\d+\n$/);
  const json = await runProcess([program, '--version-json'], { env: {} });
  assert.equal(typeof JSON.parse(json.stdout).version, 'string');
  const wrong = await runProcess([program, '--no-such-flag=1'], { env: {}, stdin: '' });
  assert.equal(wrong.code, 2);
  assert.match(wrong.stderr, /Unknown flag "--no-such-flag"/);
});

const NAMESPACES = ['team-a', 'team-b'] as const;

function authOf(namespace: string): string {
  return Buffer.from(`${namespace}:${namespace}`).toString('base64');
}

/** The namespace's own credential, for the same mirror as the other's. */
function secretOf(namespace: string) {
  const secret = pullSecret('mirror', { 'mirror.example.com': { auth: authOf(namespace) } });
  return { ...secret, metadata: { name: 'mirror', namespace } };
}

test('fifty at once for one image in two namespaces: each file holds its own credential', async () => {
  const here = await place({ secrets: NAMESPACES.map(secretOf) });
  const runs = Array.from({ length: 50 }, (_, index) => call(here.node, NAMESPACES[index % 2] ?? 'team-a'));
  for (const { code, stderr } of await Promise.all(runs)) assert.equal(code, 0, stderr);
  const files = Object.entries(authFiles(here.node));
  assert.equal(files.length, 2);
  for (const [index, namespace] of NAMESPACES.entries()) {
    const [name, file] = files.toSorted(([a], [b]) => (a < b ? -1 : 1))[index] ?? [];
    assert.ok(name?.startsWith(`${namespace}-`), name);
    assert.equal(file?.mode, 0o600);
    assert.deepEqual(JSON.parse(file?.text ?? '').auths, {
      'mirror.example.com': { auth: authOf(namespace) },
    });
  }
  await leave(here);
});

test('killed at any instant: no partial file, and nothing of another namespace', async () => {
  const here = await place({ secrets: NAMESPACES.map(secretOf) });
  const lines = new Set<number>();
  for (let round = 0; round < 40; round += 1) {
    const namespace = round % 2 === 0 ? 'team-a' : 'team-b';
    const child = spawn(program, flagsOf(here.node), { env: {}, stdio: ['pipe', 'ignore', 'pipe'] });
    child.stdin.on('error', () => undefined);
    child.stdin.end(requestFor(IMAGE, tokenFor(namespace)));
    // Kill after this many lines: the auth file is written between the fourth and the fifth.
    const after = round % 6;
    let said = '';
    child.stderr.on('data', (chunk: Buffer) => {
      said += chunk.toString();
      if (said.split('\n').length > after) child.kill('SIGKILL');
    });
    if (after === 0) child.kill('SIGKILL');
    await new Promise((resolve) => child.once('close', resolve));
    lines.add(said.split('\n').length - 1);
    for (const name of readdirSync(here.node.options.authDir).filter((one) => !one.startsWith('.'))) {
      const text = readFileSync(join(here.node.options.authDir, name), 'utf8');
      const owner = name.startsWith('team-a') ? 'team-a' : 'team-b';
      const auth = Buffer.from(`${owner}:${owner}`).toString('base64');
      assert.deepEqual(JSON.parse(text).auths, { 'mirror.example.com': { auth } });
    }
  }
  assert.ok(lines.size > 2, `all runs were killed at the same place: ${[...lines].join(' ')}`);
  await leave(here);
});
