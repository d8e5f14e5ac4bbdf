/** The README agrees with the program: its outputs, the commands, the version. */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { COMMANDS } from '../../runtime/commands/table.ts';
import { VERSION } from '../../runtime/core/version.ts';
import { runMain, runProcess } from '../support/process.ts';
import { test } from '../support/suite.ts';

const root = new URL('../..', import.meta.url).pathname;

for (const page of ['README.md', 'docs/first-steps.md', 'docs/troubleshooting.md'])
  test(`the output shown in ${page} is the real one`, async () => {
    const place = join(root, page);
    const block = /(<!-- output -->\n```text\n\$ node main\.ts ([^\n]*)\n)([\s\S]*?)(```\n<!-- end -->)/g;
    const text = readFileSync(place, 'utf8');
    const blocks = [...text.matchAll(block)];
    assert.ok(blocks.length > 0);
    let real = text;
    for (const [shown, start = '', command = '', , end = ''] of blocks) {
      const { stdout } = await runMain(command.split(' '), { cwd: root });
      assert.notEqual(stdout, '');
      real = real.replace(shown, () => `${start}${stdout}${end}`);
    }
    if (process.env['UPDATE_GOLDEN'] === '1') writeFileSync(place, real);
    else assert.equal(text, real, 'run the test with UPDATE_GOLDEN=1');
  });

test('npm start ends with a line for each cluster and three commands that run', async () => {
  const ran = await runProcess(
    [
      process.execPath,
      'main.ts',
      'reconcile',
      '--from',
      'examples/fleet/hosted',
      '--management',
      'examples/fleet/management',
      '--dry-run',
    ],
    { cwd: root },
  );
  const [, summary = ''] = ran.stdout.split('\nsummary\n');
  assert.match(summary, /^CLUSTER +ERRORS +WARNINGS +CHANGES\nclusters\/prod +3 /m);
  assert.match(summary, /^rejected\n  clusters\/prod: broken\.example\.com: /m);
  const commands = summary.split('\n').filter((line) => line.startsWith('  node main.ts '));
  assert.equal(commands.length, 3, summary);
  for (const line of commands) {
    const next = await runProcess([process.execPath, ...line.trim().split(' ').slice(1)], { cwd: root });
    assert.ok(next.code === 0 || next.code === 1, `${line}: ${next.stderr}`);
    assert.notEqual(next.stdout, '', line);
  }
});

test('each command is in the table under its own name, with a help text that has an example', async () => {
  for (const [name, entry] of Object.entries(COMMANDS)) {
    const command = await entry.load();
    assert.equal(command.name, name);
    const { examples } = await command.spec();
    assert.ok(
      examples.some((line) => /(pullwright|node main\.ts) /.test(line)),
      `help of ${name}`,
    );
    assert.ok(entry.summary.length <= 90, `summary of ${name}`);
  }
});

test('the version is the one of package.json', () => {
  const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string };
  assert.equal(VERSION, manifest.version);
});
