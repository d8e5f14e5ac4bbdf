import assert from 'node:assert/strict';
import {
  chmodSync,
  chownSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { giveToRoot } from '../../runtime/node/state.ts';
import { suite } from '../support/suite.ts';

const test = suite('ownership on the node');
const root = mkdtempSync(join(tmpdir(), 'pullwright-ownership-'));

const owner = (path: string): readonly number[] => [statSync(path).uid, statSync(path).gid];

test.asRoot('files and folders of another user or group become those of root, with their mode', () => {
  const folder = join(root, 'folder');
  mkdirSync(folder, { mode: 0o700 });
  const file = join(folder, 'plugin');
  writeFileSync(file, 'x');
  chmodSync(file, 0o755);
  for (const path of [folder, file])
    for (const [uid, gid] of [
      [65532, 65532],
      [0, 65532],
      [65532, 0],
    ] as const) {
      chownSync(path, uid, gid);
      assert.equal(giveToRoot(path), true);
      assert.deepEqual(owner(path), [0, 0]);
      assert.equal(giveToRoot(path), false);
    }
  assert.equal(statSync(file).mode & 0o7777, 0o755);
});

test.asRoot('what a link leads to is not touched', () => {
  const target = join(root, 'target');
  writeFileSync(target, 'x');
  chownSync(target, 123, 456);
  symlinkSync(target, join(root, 'link'));
  assert.equal(giveToRoot(join(root, 'link')), false);
  assert.deepEqual(owner(target), [123, 456]);
});

test('nothing there is nothing to do', () => {
  assert.equal(giveToRoot(join(root, 'none')), false);
  assert.equal(giveToRoot(join(root, 'none', 'deeper')), false);
});

test('clean up', () => rmSync(root, { recursive: true }));

test.run();
