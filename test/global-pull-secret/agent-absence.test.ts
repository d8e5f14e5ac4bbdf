/** A cluster need not have a platform secret, nor a tenant's: what the node agent wants of its file then. */
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { agentTask } from '../../runtime/global-pull-secret/agent/task.ts';
import { readWhole } from '../../runtime/host/atomic-file.ts';
import type { Ledger, Look } from '../../runtime/node/task.ts';
import { reveal } from '../../runtime/rules/redacted.ts';
import { plantedAuth } from '../support/canary.ts';
import { suite } from '../support/suite.ts';

const test = suite('node agent without secrets');
const root = mkdtempSync(join(tmpdir(), 'pullwright-absence-'));
const config = (...names: readonly string[]): string =>
  JSON.stringify({ auths: Object.fromEntries(names.map((name) => [name, { auth: plantedAuth(name) }])) });

/** A node with both mounts, which are empty. */
class Node {
  readonly folder: string;
  readonly file: string;
  now = 0;
  readonly #task;
  #ledger: Ledger = {};

  constructor(name: string, foreign: 'drop' | 'keep' = 'drop') {
    this.folder = join(root, name);
    this.file = join(this.folder, 'config.json');
    for (const mount of ['global', 'original']) mkdirSync(join(this.folder, mount), { recursive: true });
    this.#task = agentTask({
      globalFile: join(this.folder, 'global', 'secret'),
      originalFile: join(this.folder, 'original', 'secret'),
      file: this.file,
      unit: 'kubelet.service',
      foreign,
      monotonic: () => this.now,
    });
  }

  set(mount: 'global' | 'original', text: string | undefined): void {
    const path = join(this.folder, mount, 'secret');
    if (text === undefined) rmSync(path, { force: true });
    else writeFileSync(path, text);
  }

  look(): Look {
    return this.#task.look(readWhole(this.file), this.#ledger);
  }

  /** Does what is wanted. */
  settle(): void {
    const { wanted } = this.look();
    assert.ok(wanted !== undefined, 'something is wanted');
    writeFileSync(this.file, reveal(wanted.bytes));
    this.#ledger = wanted.ledgerAfter;
  }

  keys(): readonly string[] {
    const { wanted } = this.look();
    const text = wanted === undefined ? '{}' : Buffer.from(reveal(wanted.bytes)).toString();
    return Object.keys((JSON.parse(text) as { auths?: object }).auths ?? {});
  }
}

test('neither secret: nothing is wanted, all is well, and the file of others stays', () => {
  const node = new Node('neither');
  writeFileSync(node.file, config('theirs.example.com'));
  const { wanted, idle, problem } = node.look();
  assert.deepEqual([wanted, problem], [undefined, undefined]);
  assert.match(idle ?? '', /neither a global nor an original pull secret/);
});

test('only the part of the tenant: it is used', () => {
  const node = new Node('tenant');
  node.set('global', config('team.example.com'));
  assert.deepEqual([node.look().from, node.keys()], ['global', ['team.example.com']]);
});

test('both gone: what we brought is removed after a minute in which they did not come back, the rest stays', () => {
  const node = new Node('gone', 'keep');
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
  assert.match(node.look().idle ?? '', /nothing to bring/);
});

test('a secret that comes back within the minute starts the minute anew', () => {
  const node = new Node('back');
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
  const node = new Node('mount');
  node.set('original', config('platform.example.com'));
  node.settle();
  rmSync(join(node.folder, 'original'), { recursive: true });
  node.look();
  node.now = 600_000;
  assert.equal(node.look().wanted, undefined);
  assert.equal(node.look().problem?.code, 'SourceMissing');
});

test('clean up', () => rmSync(root, { recursive: true }));

test.run();
