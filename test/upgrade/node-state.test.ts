/**
 * What an agent of 0.1.0 left on a node, under the agent of today; and what an agent of tomorrow leaves. The files in `fixtures`
 * were written by 0.1.0 and are never changed.
 */
import assert from 'node:assert/strict';
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { agentTask } from '../../runtime/global-pull-secret/agent/task.ts';
import type { Clock } from '../../runtime/node/clock.ts';
import { NodeEngine } from '../../runtime/node/engine.ts';
import { StateFolder } from '../../runtime/node/state.ts';
import type { Systemd, UnitState } from '../../runtime/node/systemd.ts';
import { type Case, suite, table } from '../support/suite.ts';

const test = suite('state of other versions on a node');
const fixtures = new URL('./fixtures/0.1.0/node', import.meta.url).pathname;
const work = mkdtempSync(join(tmpdir(), 'pullwright-upgrade-'));
/** Long after the fixtures were written, so that a wait that they hold is over. */
const NOW = Date.UTC(2026, 5, 1);

interface Outcome {
  readonly events: readonly string[];
  readonly reason: string;
  readonly config: string;
}

class Node {
  readonly folder: string;
  constructor(fixture: string) {
    this.folder = mkdtempSync(join(work, `${fixture}-`));
    const from = join(fixtures, fixture);
    mkdirSync(this.state, { mode: 0o700 });
    for (const name of ['config.json', 'original.json']) {
      cpSync(join(from, name), join(this.folder, name));
      chmodSync(join(this.folder, name), 0o600);
    }
    for (const name of ['journal.json', 'saved.json'])
      if (existsSync(join(from, name))) cpSync(join(from, name), join(this.state, name));
    for (const name of ['journal.json', 'saved.json'])
      if (existsSync(join(this.state, name))) chmodSync(join(this.state, name), 0o600);
  }

  get state(): string {
    return join(this.folder, '.pullwright');
  }

  read(name: string): string {
    return readFileSync(join(this.folder, name), 'utf8');
  }

  journal(): Record<string, unknown> {
    return JSON.parse(readFileSync(join(this.state, 'journal.json'), 'utf8')) as Record<string, unknown>;
  }

  rewrite(change: (document: Record<string, unknown>) => unknown, name = 'journal.json'): void {
    const path = join(this.state, name);
    writeFileSync(
      path,
      JSON.stringify(change(JSON.parse(readFileSync(path, 'utf8')) as Record<string, unknown>)),
    );
  }

  async run(): Promise<Outcome> {
    const events: string[] = [];
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
      systemd: workingUnit(),
      policy: { restart: 'on-change', window: { windowMs: 0, delayMs: () => 0 } },
      clock: steadyClock(),
      settleMs: 0,
      report: ({ event }) => events.push(event),
      publish: () => undefined,
    });
    const { state } = await engine.pass(new AbortController().signal);
    return { events, reason: state.reason, config: this.read('config.json') };
  }
}

function workingUnit(): Systemd {
  let starts = 0;
  const state = (): UnitState => ({
    active: 'active',
    sub: 'running',
    load: 'loaded',
    invocation: `invocation-${starts}`,
    busy: false,
  });
  return {
    state: () => Promise.resolve(state()),
    restart: () => {
      starts += 1;
      return Promise.resolve({ result: 'done' } as Awaited<ReturnType<Systemd['restart']>>);
    },
    resetFailed: () => Promise.resolve(),
  };
}

function steadyClock(): Clock {
  let time = NOW;
  return {
    now: () => time,
    monotonic: () => time,
    sleep: (ms) => {
      time += ms;
      return Promise.resolve(true);
    },
  };
}

interface Row extends Case {
  readonly fixture: string;
  readonly prepare?: (node: Node) => void;
  readonly events: readonly string[];
  readonly ends: string;
  /** Which file of the fixture `config.json` equals at the end. */
  readonly file: 'config.json' | 'original.json';
}

const newer = (document: Record<string, unknown>): unknown => ({
  ...document,
  version: 2,
  journal: { version: 2, of: 'tomorrow' },
});

const rows: readonly Row[] = [
  {
    name: 'a settled node of 0.1.0',
    reason: 'an upgrade of the agent restarts no kubelet',
    fixture: 'settled',
    events: [],
    ends: 'InSync',
    file: 'config.json',
  },
  {
    name: 'a node of 0.1.0 that was written and not restarted yet',
    reason: 'the kubelet has not read what is on disk',
    fixture: 'restarting',
    events: ['resumed', 'restarting', 'restarted'],
    ends: 'InSync',
    file: 'original.json',
  },
  {
    name: 'a node of 0.1.0 whose kubelet did not come up, long ago',
    reason: 'the breaker of the old version is known, and its time is over: one more round',
    fixture: 'breaker-open',
    events: ['written', 'restarting', 'restarted'],
    ends: 'InSync',
    file: 'original.json',
  },
  {
    name: 'the same, a moment ago',
    reason: 'the breaker of the old version holds',
    fixture: 'breaker-open',
    prepare: (node) =>
      node.rewrite((document) => {
        const journal = document['journal'] as { breakers: Record<string, object> };
        const [source = ''] = Object.keys(journal.breakers);
        const breakers = { [source]: { ...journal.breakers[source], retryAt: NOW + 60_000 } };
        return { ...document, journal: { ...journal, breakers } };
      }),
    events: [],
    ends: 'BreakerOpen',
    file: 'config.json',
  },
  {
    name: 'a settled node of a later version',
    reason: 'a downgrade writes nothing when there is nothing to do, and throws nothing away',
    fixture: 'settled',
    prepare: (node) => node.rewrite(newer),
    events: ['journal-damaged'],
    ends: 'InSync',
    file: 'config.json',
  },
  {
    name: 'a node of a later version that is behind its secret',
    reason: 'a downgrade does its work with a journal of its own',
    fixture: 'breaker-open',
    prepare: (node) => node.rewrite(newer),
    events: ['journal-damaged', 'written', 'restarting', 'restarted'],
    ends: 'InSync',
    file: 'original.json',
  },
  {
    name: 'a version that is no number',
    reason: 'this is damage, not a later version',
    fixture: 'settled',
    prepare: (node) => node.rewrite((document) => ({ ...document, journal: { version: 'two' } })),
    events: ['journal-damaged'],
    ends: 'InSync',
    file: 'config.json',
  },
];

table(test, rows, async ({ fixture, prepare, events, ends, file }) => {
  const node = new Node(fixture);
  const wanted = readFileSync(join(fixtures, fixture, file), 'utf8');
  prepare?.(node);
  const before = readFileSync(join(node.state, 'journal.json'), 'utf8');
  const outcome = await node.run();
  assert.deepEqual(outcome.events, events);
  assert.equal(outcome.reason, ends);
  assert.equal(outcome.config, wanted);
  assert.equal(existsSync(join(node.state, 'saved.json')), false);
  const aside = join(node.state, 'journal.json.newer');
  if (JSON.parse(before).version === 2) assert.equal(readFileSync(aside, 'utf8'), before);
  else assert.equal(existsSync(aside), false);
});

test('what is written today says its version, and an agent of 0.1.0 can read it', async () => {
  const node = new Node('breaker-open');
  await node.run();
  const { version, journal, ledger } = node.journal() as {
    version: number;
    journal: { version: number; breakers: object; restarts: unknown[] };
    ledger: Record<string, unknown>;
  };
  assert.equal(version, 1);
  // 0.1.0 reads these two members and wants exactly this.
  assert.equal(journal.version, 1);
  assert.ok(Array.isArray(journal.restarts));
  assert.equal(typeof journal.breakers, 'object');
  const old = JSON.parse(readFileSync(join(fixtures, 'settled/journal.json'), 'utf8')) as {
    ledger: Record<string, unknown>;
  };
  assert.deepEqual(ledger, old.ledger, 'the digests of the ledger are those of 0.1.0: entries stay ours');
});

test('the ledger of 0.1.0 still says which entries are ours: one that is no longer wanted goes, others stay', async () => {
  const node = new Node('settled');
  const present = JSON.parse(node.read('config.json')) as { auths: Record<string, unknown> };
  const foreign = { auth: Buffer.from('robot:foreign').toString('base64') };
  writeFileSync(
    join(node.folder, 'config.json'),
    JSON.stringify({ auths: { ...present.auths, 'foreign.example.com': foreign } }),
  );
  const { 'new.example.com': _gone, ...rest } = present.auths;
  writeFileSync(join(node.folder, 'original.json'), JSON.stringify({ auths: rest }));
  const { config } = await node.run();
  const { auths } = JSON.parse(config) as { auths: Record<string, unknown> };
  assert.deepEqual(Object.keys(auths).sort(), ['foreign.example.com', 'old.example.com']);
});

test('a saved copy of a later version is not misread', () => {
  const node = new Node('restarting');
  const folder = new StateFolder(node.state);
  assert.notEqual(folder.loadCopy(), 'none');
  node.rewrite((document) => ({ ...document, version: 2 }), 'saved.json');
  assert.equal(folder.loadCopy(), 'none');
});

test.lastly('the scratch folder goes', () => rmSync(work, { recursive: true }));
test.run();
