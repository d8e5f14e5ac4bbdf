/** Programs that are built once for all tests of a machine: a build that was killed holds up no later one. */
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { canBuild, type GoTools, goTools } from './go-tools.ts';
import { test } from './suite.ts';
import { tempFolder } from './temp-folder.ts';

const work = tempFolder();
const module = join(work, 'module');
mkdirSync(module);
writeFileSync(join(module, 'go.mod'), 'module example.com/small\n\ngo 1.24\n');
writeFileSync(join(module, 'go.sum'), '');
writeFileSync(join(module, 'main.go'), 'package main\n\nfunc main() {}\n');
const SMALL: GoTools = {
  name: 'small tool',
  module,
  env: { GOTOOLCHAIN: 'local', CGO_ENABLED: '0' },
  packages: ['.'],
  programs: { small: 'small' },
};
process.env['XDG_CACHE_HOME'] = join(work, 'cache');

if (!canBuild(SMALL)) test.skip('builds', 'no Go tool chain');
else {
  test('builds once, and says so', async () => {
    const said: string[] = [];
    // How far it is, is said by a slow machine alone.
    const say = (line: string): void => {
      if (!line.includes('packages built')) said.push(line);
    };
    const folder = await goTools(SMALL, say);
    assert.ok(existsSync(join(folder, 'small')));
    assert.deepEqual(said, ['small tool: building small (once)', 'small tool: built']);
    assert.equal(await goTools(SMALL, say), folder);
    assert.equal(said.length, 2);
    assert.deepEqual(readdirSync(join(folder, '..')), [folder.split('/').at(-1)], 'no lock is left');
  });

  test('the lock of a build that was killed is broken, whichever namespace it ran in', async () => {
    const folder = await goTools(SMALL, () => undefined);
    rmSync(folder, { recursive: true });
    mkdirSync(`${folder}.lock`);
    const before = new Date(Date.now() - 61_000);
    utimesSync(`${folder}.lock`, before, before);
    await goTools(SMALL, () => undefined);
    assert.ok(existsSync(join(folder, 'small')));
  });
}
