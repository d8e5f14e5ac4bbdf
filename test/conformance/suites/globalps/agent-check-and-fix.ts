/** File and restart together: the engine on real files, with a systemd that answers as the case says. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { describeError, PullwrightError } from '../../../../runtime/core/errors.ts';
import { agentTask } from '../../../../runtime/global-pull-secret/agent/task.ts';
import { runLoop } from '../../../../runtime/node/daemon.ts';
import { NodeEngine } from '../../../../runtime/node/engine.ts';
import { StateFolder } from '../../../../runtime/node/state.ts';
import type { Systemd } from '../../../../runtime/node/systemd.ts';
import type { NodeEvent, NodeState } from '../../../../runtime/node/task.ts';
import { Wake } from '../../../../runtime/node/watch.ts';
import { fakeClock } from '../../../support/fake-clock.ts';
import { tempFolder } from '../../../support/temp-folder.ts';
import type { ConformanceSuite } from '../../suite.ts';

interface Input {
  readonly fileContent: string | null;
  readonly secretContent: string;
  readonly restartResults: readonly string[];
  /** Number of checks of the file. */
  readonly ticks?: number;
}

interface Expected {
  readonly error: boolean;
  /** In an answer: the whole text. */
  readonly errorContains: readonly string[];
  readonly restartCalls: number;
  readonly sleepsMs: readonly number[];
  readonly final: string | null;
}

interface Recorded {
  readonly name: string;
  readonly input: Input;
  readonly expected: Partial<Expected>;
  readonly wanted?: Partial<Expected> & { readonly why?: string };
}

export const suite: ConformanceSuite<Input, Expected> = {
  cases: (document) => (document as { readonly cases: readonly Recorded[] }).cases.map(readCase),
  answer,
  accepts: (actual, expected, input) =>
    actual.error === expected.error &&
    expected.errorContains.every((part) => actual.errorContains.join('\n').includes(part)) &&
    actual.restartCalls === expected.restartCalls &&
    (input.ticks !== undefined || isDeepStrictEqual(actual.sleepsMs, expected.sleepsMs ?? [])) &&
    (actual.final === expected.final || leftAlone(actual, expected, input)),
  mutation: {
    file: 'runtime/node/rollout.ts',
    replace: 'const ATTEMPTS = 3;',
    by: 'const ATTEMPTS = 2;',
  },
};

function readCase({ name, input, expected, wanted }: Recorded) {
  const { why: _, ...better } = wanted ?? {};
  // Only the first of several checks may restart: the content that failed is recorded afterwards.
  const first =
    input.ticks === undefined || wanted === undefined
      ? {}
      : { error: true, restartCalls: (expected.restartCalls ?? Number.NaN) / input.ticks };
  const all: Partial<Expected> = { errorContains: [], ...expected, ...better, ...first };
  if (all.error === undefined || all.restartCalls === undefined || all.final === undefined)
    throw new Error(`case "${name}" lacks error, restartCalls or final`);
  return { name, input, expected: all as Expected };
}

/** When the content is already equivalent, the file keeps its bytes. */
function leftAlone(actual: Expected, expected: Expected, input: Input): boolean {
  if (actual.restartCalls !== 0 || actual.final !== input.fileContent) return false;
  return isDeepStrictEqual(JSON.parse(actual.final ?? 'null'), JSON.parse(expected.final ?? 'null'));
}

async function answer(input: Input): Promise<Expected> {
  const folder = tempFolder();
  const file = join(folder, 'config.json');
  if (input.fileContent !== null) writeFileSync(file, input.fileContent);
  writeFileSync(join(folder, 'secret'), input.secretContent);
  const clock = fakeClock();
  const events: NodeEvent[] = [];
  const state = new StateFolder(join(folder, 'state'));
  const engine = (): NodeEngine =>
    new NodeEngine({
      task: agentTask({
        monotonic: () => 0,
        globalFile: join(folder, 'secret'),
        originalFile: join(folder, 'none'),
        file,
        unit: 'kubelet.service',
        foreign: 'drop',
      }),
      folder: state,
      systemd: systemdOf(input.restartResults),
      policy: { restart: 'on-change', window: { windowMs: 0, delayMs: () => 0 }, maxRestarts: 6 },
      clock,
      settleMs: 0,
      report: (event) => events.push(event),
      publish: () => undefined,
    });
  const look = (): Promise<NodeState> =>
    runLoop(
      {
        folder: state,
        engine,
        wake: new Wake([], clock),
        clock,
        pollMs: 30_000,
        publish: () => undefined,
        once: true,
      },
      new AbortController().signal,
    );
  let last = await look();
  for (let tick = 1; tick < (input.ticks ?? 1); tick += 1) {
    await clock.sleep(30_000);
    last = await look();
  }
  return {
    error: !last.ready,
    errorContains: last.ready ? [] : [inTheirWords(events, last.message)],
    restartCalls: events.filter(({ event }) => event === 'restarting').length,
    sleepsMs: clock.slept,
    final: existsSync(file) ? readFileSync(file, 'utf8') : null,
  };
}

/** `ok` restarts the unit; anything else is an error of the call, and leaves the unit as it was. */
function systemdOf(results: readonly string[]): Systemd {
  const left = [...results];
  let starts = 1;
  return {
    state: () =>
      Promise.resolve({
        active: 'active',
        sub: 'running',
        load: 'loaded',
        invocation: String(starts),
        busy: false,
      }),
    resetFailed: () => Promise.resolve(),
    reload: () => Promise.resolve(),
    restart: async () => {
      const result = left.shift();
      if (result === undefined) throw new Error('restarted more often than the case has results');
      if (result !== 'ok') throw new PullwrightError(result, { code: 'BusLost' });
      starts += 1;
      return 'done';
    },
  };
}

function inTheirWords(events: readonly NodeEvent[], message: string): string {
  if (!events.some(({ event }) => event === 'rolled-back')) return message;
  const failures = events.flatMap((event) => (event.event === 'restart-failed' ? [event.error] : []));
  return `failed to restart kubelet after ${failures.length} attempts, rolled back changes: ${describeError(failures.at(-1))}`;
}
