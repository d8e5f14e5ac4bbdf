import assert from 'node:assert/strict';
import { mkdirSync, readdirSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { removeStaleAuthFiles } from '../../runtime/node/watch.ts';
import { test } from '../support/suite.ts';
import { tempFolder } from '../support/temp-folder.ts';

const root = tempFolder();
const sha = 'a'.repeat(64);
const NOW = 2_000_000_000_000;

function file(path: string, ageMs: number): void {
  writeFileSync(path, '{}');
  utimesSync(path, (NOW - ageMs) / 1000, (NOW - ageMs) / 1000);
}

test('old files of the provider and of CRI-O go, young ones and everything else stays', () => {
  const folder = join(root, 'auth');
  mkdirSync(join(folder, 'in-use'), { recursive: true });
  const old = [
    `team-a-${sha}.json`,
    `in-use/team-a-${sha}-0b9ffb7c-6f0e-4a1c-9d7e-1c2d3e4f5a6b.json`,
    `.team-a-${sha}.json.tmp-0123abcd`,
    // A name as the provider writes it.
    `.team-a-${sha}.json.tmp-0b9ffb7c-6f0e-4a1c-9d7e-1c2d3e4f5a6b`,
  ];
  for (const name of old) file(join(folder, name), name.startsWith('in-use/') ? 10_800_000 : 3_600_000);
  file(join(folder, `team-b-${sha}.json`), 3_599_000);
  file(join(folder, `in-use/team-b-${sha}-0b9ffb7c-6f0e-4a1c-9d7e-1c2d3e4f5a6b.json`), 10_799_000);
  for (const name of ['config.json', `Team-${sha}.json`, `team-a-${sha}.json.bak`, 'notes'])
    file(join(folder, name), 9e9);
  mkdirSync(join(folder, `folder-${sha}.json`));
  symlinkSync('/etc/hostname', join(folder, `link-${sha}.json`));
  assert.equal(removeStaleAuthFiles(folder, 3_600_000, NOW), old.length);
  assert.deepEqual(readdirSync(folder).sort(), [
    `Team-${sha}.json`,
    'config.json',
    `folder-${sha}.json`,
    'in-use',
    `link-${sha}.json`,
    'notes',
    `team-a-${sha}.json.bak`,
    `team-b-${sha}.json`,
  ]);
  assert.equal(readdirSync(join(folder, 'in-use')).length, 1);
});

test('a folder that is not there is fine', () => {
  assert.equal(removeStaleAuthFiles(join(root, 'none'), 0, NOW), 0);
});
