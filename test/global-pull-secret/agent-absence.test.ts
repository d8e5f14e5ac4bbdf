/** A cluster need not have a platform secret, nor a tenant's: what the node agent wants of its file then. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from '../support/suite.ts';
import { configOf as config, TaskNode } from './support/task-node.ts';

const root = mkdtempSync(join(tmpdir(), 'pullwright-absence-'));

test('neither secret: nothing is wanted, all is well, and the file of others stays', () => {
  const node = new TaskNode(root, 'neither');
  writeFileSync(node.file, config('theirs.example.com'));
  const { wanted, idle, problem } = node.look();
  assert.deepEqual([wanted, problem], [undefined, undefined]);
  assert.match(idle ?? '', /neither a global nor an original pull secret/);
});

test('only the part of the tenant: it is used', () => {
  const node = new TaskNode(root, 'tenant');
  node.set('global', config('team.example.com'));
  assert.deepEqual([node.look().from, node.keys()], ['global', ['team.example.com']]);
});

test('one bad entry takes no other credential: it stays as it was last good, and is named', () => {
  const node = new TaskNode(root, 'partly');
  node.set('original', config('a.example.com', 'b.example.com'));
  node.settle();
  const { auths } = JSON.parse(config('a.example.com')) as { readonly auths: object };
  node.set('original', JSON.stringify({ auths: { ...auths, 'b.example.com': { auth: '-' } } }));
  assert.equal(node.look().problem?.code, 'SourcePartlyInvalid');
  assert.deepEqual(node.keys(), ['a.example.com', 'b.example.com']);
});

test('both gone: what we brought is removed after a minute in which they did not come back, the rest stays', () => {
  const node = new TaskNode(root, 'gone', { foreign: 'keep' });
  writeFileSync(node.file, config('theirs.example.com'));
  node.set('global', config('team.example.com'));
  node.settle();
  node.set('global', undefined);
  assert.equal(node.look().problem?.code, 'SourceMissing');
  node.now = 59_000;
  assert.equal(node.look().wanted, undefined);
  node.now = 60_000;
  assert.deepEqual(node.keys(), ['theirs.example.com']);
  assert.equal(node.look().wanted?.removes, true);
  node.settle();
  assert.match(node.look().idle ?? '', /nothing to sync/);
});

test('both gone by a watch that is open: what we brought is removed at once', () => {
  let live = true;
  const watched = () => ({ live });
  const node = new TaskNode(root, 'revoked');
  node.set('global', config('team.example.com'));
  node.settle();
  node.restart({ watched });
  assert.deepEqual([node.keys(), node.look().wanted?.removes], [[], true]);
  live = false;
  node.set('global', undefined);
  assert.equal(node.look().problem?.code, 'SourceMissing');
});

test('a secret that comes back within the minute starts the minute anew', () => {
  const node = new TaskNode(root, 'back');
  node.set('original', config('platform.example.com'));
  node.settle();
  node.set('original', undefined);
  node.look();
  node.set('original', config('platform.example.com'));
  node.now = 50_000;
  node.look();
  node.set('original', undefined);
  node.look();
  node.now = 100_000;
  assert.equal(node.look().wanted, undefined);
});

test('a mount that is missing is no absence: nothing is taken from the node', () => {
  const node = new TaskNode(root, 'mount');
  node.set('original', config('platform.example.com'));
  node.settle();
  rmSync(join(node.folder, 'original'), { recursive: true });
  node.look();
  node.now = 600_000;
  assert.equal(node.look().wanted, undefined);
  assert.equal(node.look().problem?.code, 'SourceMissing');
});

test('clean up', () => rmSync(root, { recursive: true }));
