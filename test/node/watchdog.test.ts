/** An agent whose loop stands still ends, and one that waits for a reason does not. */
import assert from 'node:assert/strict';
import { systemClock } from '../../runtime/node/clock.ts';
import { type NodeProgram, runDaemon, watchHeart } from '../../runtime/node/daemon.ts';
import { fakeClock } from '../support/fake-clock.ts';
import { test } from '../support/suite.ts';

test('a heart that stands still is found within five seconds of its patience', async () => {
  const clock = fakeClock();
  const heart = { at: clock.monotonic(), patienceMs: 90_000 };
  await assert.rejects(watchHeart(heart, clock, new AbortController().signal), {
    code: 'Hung',
    message: /stood still for 95 s, expected at most 90 s/,
  });
});

test('a heart that beats is left alone until the end', async () => {
  const clock = fakeClock();
  const heart = { at: 0, patienceMs: 90_000 };
  const end = new AbortController();
  const sleep: typeof clock.sleep = async (ms, signal) => {
    heart.at = clock.monotonic();
    if (clock.monotonic() > 3_600_000) end.abort();
    return clock.sleep(ms, signal);
  };
  await watchHeart(heart, { ...clock, sleep }, end.signal);
  assert.ok(clock.monotonic() > 3_600_000);
});
test('a program whose work stands still exits at once, and says why', async () => {
  const clock = { ...systemClock };
  Object.assign(systemClock, fakeClock());
  const [codes, lines]: [number[], string[]] = [[], []];
  const io = {
    stdout: { write: () => true },
    stderr: { write: (line: string) => lines.push(line) },
    env: {},
    signal: new AbortController().signal,
    exitNow: (code: number) => codes.push(code),
  };
  const program = { title: 'test', metrics: 'pullwright_test', gauges: () => [], authFiles: undefined };
  const settings = { pollMs: 30_000, logFormat: 'json', logLevel: 'info', healthPort: undefined };
  try {
    const hanging = { ...program, work: () => new Promise(() => undefined) } as unknown as NodeProgram;
    await assert.rejects(runDaemon(hanging, settings as never, io), { code: 'Hung' });
  } finally {
    Object.assign(systemClock, clock);
  }
  assert.deepEqual(codes, [1]);
  assert.match(lines.join(''), /The loop hangs.*stood still for 125 s/);
});
