/** When the engine books its restart slot: during the write, if a restart follows; cancelled when the write fails. */
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { agentTask } from '../../runtime/global-pull-secret/agent/task.ts';
import { NodeEngine, type Rest } from '../../runtime/node/engine.ts';
import type { Turns } from '../../runtime/node/restart-leases.ts';
import { StateFolder } from '../../runtime/node/state.ts';
import type { Systemd } from '../../runtime/node/systemd.ts';
import { test } from '../support/suite.ts';
import { tempFolder } from '../support/temp-folder.ts';

const root = tempFolder();
const WANTED = '{"auths":{"quay.example.com":{"auth":"YTpi"}}}';

interface Run {
  readonly rest: Rest;
  readonly calls: readonly string[];
  readonly turns: CountedTurns;
  readonly file: string;
}

/** Records calls, and the content of the file at that time. */
class CountedTurns implements Turns {
  readonly #calls: string[];
  readonly #file: string;
  readonly #grants: boolean;
  held = false;

  constructor(calls: string[], file: string, grants: boolean) {
    this.#calls = calls;
    this.#file = file;
    this.#grants = grants;
  }

  granted(): boolean {
    if (!this.held) this.#calls.push(`asked, ${content(this.#file) === WANTED ? 'new' : 'old'} file`);
    this.held = true;
    return this.#grants;
  }

  done(): Promise<void> {
    if (this.held) this.#calls.push('given back');
    this.held = false;
    return Promise.resolve();
  }
}

function content(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return undefined;
  }
}

async function run(
  options: {
    readonly restart?: 'never';
    readonly grants?: boolean;
    readonly lost?: boolean;
    readonly late?: string;
  } = {},
): Promise<Run> {
  const folder = mkdtempSync(join(root, 'node-'));
  const state = join(folder, '.pullwright');
  mkdirSync(state, { mode: 0o700 });
  writeFileSync(join(folder, 'original.json'), WANTED);
  const kubelet = join(folder, 'kubelet');
  mkdirSync(kubelet);
  const file = join(kubelet, 'config.json');
  const calls: string[] = [];
  const turns = new CountedTurns(calls, file, options.grants ?? true);
  const engine = new NodeEngine({
    task: agentTask({
      monotonic: () => 0,
      globalFile: join(folder, 'none'),
      originalFile: join(folder, 'original.json'),
      file,
      unit: 'kubelet.service',
      foreign: 'keep',
    }),
    folder: new StateFolder(state),
    systemd: unit(calls),
    policy: {
      restart: options.restart ?? 'on-change',
      window: { windowMs: 0, delayMs: () => 0 },
      maxRestarts: 6,
    },
    clock: {
      now: () => 0,
      monotonic: () => 0,
      sleep: (_, signal) => Promise.resolve(signal?.aborted !== true),
    },
    settleMs: 0,
    turns,
    report: ({ event }) => calls.push(event),
    publish: ({ reason }) => {
      if (reason === 'Writing' && options.late !== undefined && content(file) === undefined)
        writeFileSync(file, options.late);
      if (options.lost === true) rmSync(kubelet, { recursive: true });
    },
  });
  return { rest: await engine.pass(new AbortController().signal), calls, turns, file };
}

function unit(calls: string[]): Systemd {
  let starts = 0;
  return {
    state: () =>
      Promise.resolve({
        active: 'active',
        sub: 'running',
        invocation: `invocation-${starts}`,
        busy: false,
      }),
    restart: () => {
      starts += 1;
      calls.push('unit restarts');
      return Promise.resolve('done');
    },
    resetFailed: () => Promise.resolve(),
    reload: () => Promise.resolve(),
  };
}

test('what another program writes between the look and the write is kept', async () => {
  const { rest, file } = await run({ late: '{"auths":{"theirs":{"auth":"Mzo="}}}' });
  assert.equal(rest.state.reason, 'InSync');
  assert.match(content(file) ?? '', /"quay\.example\.com".*"theirs"/);
});

test('the turn is asked for before the file is written, and given back after the restart', async () => {
  const { rest, calls } = await run();
  assert.equal(rest.state.reason, 'InSync');
  assert.deepEqual(calls, [
    'asked, old file',
    'written',
    'restarting',
    'unit restarts',
    'given back',
    'restarted',
  ]);
});

test('a waiting turn does not block the file', async () => {
  const { rest, calls, turns } = await run({ grants: false });
  assert.equal(rest.state.reason, 'Spread');
  assert.deepEqual(calls, ['asked, old file', 'written']);
  assert.ok(turns.held);
});

test('no turn is asked for where nothing is restarted', async () => {
  const { rest, calls } = await run({ restart: 'never' });
  assert.equal(rest.state.reason, 'InSync');
  assert.deepEqual(calls, ['written']);
});

test('a write that fails gives the turn back', async () => {
  const { rest, calls, turns } = await run({ lost: true });
  assert.equal(rest.state.ready, false);
  assert.deepEqual(calls, ['asked, old file', 'write-failed', 'given back']);
  assert.equal(turns.held, false);
});
