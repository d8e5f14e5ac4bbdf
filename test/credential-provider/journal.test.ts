// deadline: 180 s
/** Journal entries of the compiled executable, which never waits for the journal. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { baseRuntime } from '../../build/base.ts';
import { test } from '../support/suite.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { call, IMAGE, leave, MEMBER, place } from './support/compiled-run.ts';
import { pullSecret, requestFor, tokenFor } from './support/node-double.ts';

const bun = baseRuntime();

interface JournalDouble {
  readonly flag: string;
  /** The next `count` entries, each as its fields. */
  entries(count: number): Promise<readonly Readonly<Record<string, string>>[]>;
  stop(): Promise<void>;
}

async function journal(mode: 'reads' | 'stands'): Promise<JournalDouble> {
  const folder = tempFolder();
  const socket = join(folder, 'socket');
  const script = join(import.meta.dirname, 'support/journal-double-process.ts');
  const child: ChildProcess = spawn(bun, [script, socket, mode], { stdio: ['ignore', 'pipe', 'inherit'] });
  assert.ok(child.stdout);
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
  const next = async (): Promise<string> => String((await lines.next()).value);
  assert.equal(await next(), 'ready');
  return {
    flag: `--journal-socket=${socket}`,
    entries: async (count) => {
      const found = [];
      while (found.length < count) found.push(fieldsOf(String(JSON.parse(await next()))));
      return found;
    },
    stop: async () => {
      child.kill('SIGKILL');
      await new Promise((resolve) => child.once('close', resolve));
    },
  };
}

function fieldsOf(entry: string): Readonly<Record<string, string>> {
  assert.ok(entry.endsWith('\n'));
  const lines = entry.slice(0, -1).split('\n');
  return Object.fromEntries(
    lines.map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]),
  );
}

test('one entry a line, with namespace and image, and no credential', async () => {
  const here = await place();
  const there = await journal('reads');
  const ran = await call(here.node, 'team-a', { flags: [there.flag, '--verbose'] });
  assert.equal(ran.code, 0, ran.stderr);
  const said = ran.stderr.split('\n').slice(0, -1);
  const entries = await there.entries(said.length);
  assert.deepEqual(
    entries.map((entry) => entry['MESSAGE']),
    said,
  );
  for (const entry of entries) {
    assert.equal(entry['NAMESPACE'], 'team-a');
    assert.equal(entry['IMAGE'], IMAGE);
    assert.equal(entry['SYSLOG_IDENTIFIER'], 'crio-credential-provider');
    assert.match(entry['SYSLOG_PID'] ?? '', /^[0-9]+$/);
    const text = JSON.stringify(entry);
    assert.ok(
      !text.includes(MEMBER.auth) && !text.includes('password') && !text.includes(tokenFor('team-a')),
    );
  }
  await there.stop();
  await leave(here);
});

test('priority 3 for what fails, 4 for what is odd, 7 for detail', async () => {
  const here = await place({ mode: 403 });
  const there = await journal('reads');
  const failed = await call(here.node, 'team-a', { flags: [there.flag] });
  assert.equal(failed.code, 1);
  const entries = await there.entries(failed.stderr.split('\n').length - 1);
  const last = entries.at(-1);
  assert.equal(last?.['PRIORITY'], '3');
  assert.match(last?.['MESSAGE'] ?? '', /kubectl apply/);
  assert.equal(entries[0]?.['PRIORITY'], '6');
  await leave(here);
  const odd = await place({
    secrets: ['a', 'b'].map((name) =>
      pullSecret(name, { 'mirror.example.com': { auth: Buffer.from(`${name}:${name}`).toString('base64') } }),
    ),
  });
  const ran = await call(odd.node, 'team-a', { flags: [there.flag, '--verbose'] });
  const priorities = (await there.entries(ran.stderr.split('\n').length - 1)).map(
    (entry) => entry['PRIORITY'],
  );
  assert.ok(priorities.includes('4') && priorities.includes('7'), priorities.join(' '));
  await there.stop();
  await leave(odd);
});

test('nothing that a request says begins a field of its own', async () => {
  const here = await place();
  const there = await journal('reads');
  const image = 'docker.io/library/nginx\nPRIORITY=0\nMESSAGE=forged';
  const ran = await call(here.node, 'team-a', {
    flags: [there.flag],
    stdin: requestFor(image, tokenFor('team-a')),
  });
  const entries = await there.entries(ran.stderr.split('\n').length - 1);
  for (const entry of entries) {
    assert.notEqual(entry['PRIORITY'], '0');
    assert.equal(entry['IMAGE'], image.replaceAll('\n', ' '));
  }
  await there.stop();
  await leave(here);
});

test('a journal that is full, gone, or no socket does not hold the pull up', async () => {
  const mirrors = Array.from(
    { length: 3000 },
    (_, index) => `[[registry.mirror]]\nlocation = "mirror-${index}.example.com"\n`,
  );
  const registriesConf = `[[registry]]\nlocation = "docker.io"\n\n[[registry.mirror]]\nlocation = "mirror.example.com"\n\n${mirrors.join('\n')}`;
  const here = await place({}, { files: { registriesConf } });
  const there = await journal('stands');
  const run = (flag: string) => call(here.node, 'team-a', { flags: [flag, '--verbose'], deadlineMs: 30_000 });
  const full = await run(there.flag);
  assert.equal(full.timedOut, false);
  assert.equal(full.code, 0, full.stderr.slice(-400));
  // Far more than any queue of datagrams holds.
  assert.ok(full.stderr.split('\n').length > 3000);
  const socket = there.flag.slice('--journal-socket='.length);
  const file = join(here.node.folder, 'no-socket');
  writeFileSync(file, '');
  for (const path of [file, here.node.folder, `${here.node.folder}/absent`, `/${'long/'.repeat(30)}socket`]) {
    const ran = await run(`--journal-socket=${path}`);
    assert.equal(ran.code, 0, path);
  }
  await there.stop();
  assert.equal((await run(`--journal-socket=${socket}`)).code, 0);
  assert.equal(readdirSync(here.node.options.authDir).length, 1);
  await leave(here);
});
