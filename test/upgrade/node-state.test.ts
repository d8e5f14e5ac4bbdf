/** State of another version's agent on a node, under the current agent. */
import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { agentTask } from '../../runtime/global-pull-secret/agent/task.ts';
import { NodeEngine } from '../../runtime/node/engine.ts';
import { StateFolder } from '../../runtime/node/state.ts';
import { NEW, OLD } from '../support/agent-scene.ts';
import { type Case, table, test } from '../support/suite.ts';
import { tempFolder } from '../support/temp-folder.ts';

const work = tempFolder();

type Document = Record<string, unknown>;

/** A node on which the current agent has applied {@link OLD}. */
class Node {
  readonly folder: string = mkdtempSync(join(work, 'node-'));
  /** The journal on disk when the unit was last restarted. */
  atRestart: Document = {};

  static async settled(): Promise<Node> {
    const node = new Node();
    writeFileSync(join(node.folder, 'config.json'), '{"auths":{}}', { mode: 0o600 });
    node.wants(OLD);
    assert.equal((await node.run()).reason, 'InSync');
    return node;
  }

  get state(): string {
    return join(this.folder, '.pullwright');
  }

  read(name: string): string {
    return readFileSync(join(this.folder, name), 'utf8');
  }

  wants(text: string): void {
    writeFileSync(join(this.folder, 'original.json'), text, { mode: 0o600 });
  }

  rewrite(change: (document: Record<string, unknown>) => unknown, name = 'journal.json'): void {
    const path = join(this.state, name);
    writeFileSync(path, JSON.stringify(change(JSON.parse(readFileSync(path, 'utf8')))));
  }

  async run(): Promise<{ readonly events: readonly string[]; readonly reason: string }> {
    const events: string[] = [];
    const unit = { active: 'active', sub: 'running', load: 'loaded', busy: false };
    let starts = 0;
    const engine = new NodeEngine({
      task: agentTask({
        monotonic: () => 0,
        globalFile: join(this.folder, 'none'),
        originalFile: join(this.folder, 'original.json'),
        file: join(this.folder, 'config.json'),
        unit: 'kubelet.service',
        foreign: 'keep',
      }),
      folder: new StateFolder(this.state),
      systemd: {
        state: async () => ({ ...unit, invocation: `invocation-${starts}` }),
        restart: async () => {
          starts += 1;
          this.atRestart = JSON.parse(this.read('.pullwright/journal.json'));
          return 'done';
        },
        resetFailed: async () => undefined,
        reload: async () => undefined,
      },
      policy: { restart: 'on-change', window: { windowMs: 0, delayMs: () => 0 }, maxRestarts: 6 },
      clock: { now: () => 0, monotonic: () => 0, sleep: async () => true },
      settleMs: 0,
      report: ({ event }) => events.push(event),
      publish: () => undefined,
    });
    const { state } = await engine.pass(new AbortController().signal);
    return { events, reason: state.reason };
  }
}

interface Row extends Case {
  readonly wants: string;
  readonly rewrite: (document: Document, atRestart: Document) => unknown;
  readonly events: readonly string[];
}

const newer = (document: Record<string, unknown>): unknown => ({
  ...document,
  version: 2,
  journal: { version: 2, of: 'tomorrow' },
});
const CHANGED = ['written', 'restarting', 'restarted'];

const rows: readonly Row[] = [
  {
    name: 'a settled node of this version',
    reason: 'another build of the same version restarts no kubelet',
    wants: OLD,
    rewrite: (document) => document,
    events: [],
  },
  {
    name: 'a node that was written and not restarted yet',
    reason: 'the kubelet has not read what is on disk',
    wants: OLD,
    rewrite: (_, atRestart) => atRestart,
    events: ['resumed', 'restarting', 'restarted'],
  },
  {
    name: 'a settled node of a later version',
    reason: 'a downgrade writes nothing when there is nothing to do',
    wants: OLD,
    rewrite: newer,
    events: ['journal-damaged'],
  },
  {
    name: 'a node of a later version that is behind its secret',
    reason: 'a downgrade does its work with a journal of its own',
    wants: NEW,
    rewrite: newer,
    events: ['journal-damaged', ...CHANGED],
  },
  {
    name: 'a version that is no number',
    reason: 'this is damage, not a later version',
    wants: OLD,
    rewrite: (document) => ({ ...document, journal: { version: 'two' } }),
    events: ['journal-damaged'],
  },
];

table(test, rows, async ({ wants, rewrite, events }) => {
  const node = await Node.settled();
  node.wants(wants);
  node.rewrite((document) => rewrite(document, node.atRestart));
  const outcome = await node.run();
  assert.deepEqual(outcome, { events, reason: 'InSync' });
  assert.deepEqual(
    Object.keys(JSON.parse(node.read('config.json')).auths),
    Object.keys(JSON.parse(wants).auths),
  );
  assert.equal(existsSync(join(node.state, 'saved.json')), false);
});

for (const [title, retryAt, events, reason] of [
  ['holds until its time', 60_000, [], 'BreakerOpen'],
  ['lets one more round begin after its time', -1, CHANGED, 'InSync'],
] as const)
  test(`a breaker of another version ${title}`, async () => {
    const node = await Node.settled();
    writeFileSync(join(node.folder, 'config.json'), '{"auths":{}}', { mode: 0o600 });
    const { change } = node.atRestart['journal'] as { change: { source: string } };
    const breakers = { [change.source]: { rounds: 1, retryAt, coolMs: 300_000, kind: 'unit' } };
    node.rewrite((document) => ({
      ...document,
      journal: { ...(document['journal'] as Document), breakers },
    }));
    assert.deepEqual(await node.run(), { events, reason });
    assert.equal(node.read('config.json') === '{"auths":{}}', reason === 'BreakerOpen');
  });

test('a saved copy of a later version is not misread', async () => {
  const node = await Node.settled();
  const folder = new StateFolder(node.state);
  folder.saveCopy(undefined);
  assert.equal(folder.loadCopy(), 'absent');
  node.rewrite((document) => ({ ...document, version: 2 }), 'saved.json');
  assert.equal(folder.loadCopy(), 'none');
});
