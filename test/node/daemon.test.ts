/** An agent whose loop hangs exits; one that waits does not. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { readdirSync, renameSync, unlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { systemClock } from '../../runtime/node/clock.ts';
import { type NodeProgram, runDaemon, watchHeart } from '../../runtime/node/daemon.ts';
import { watchNamed } from '../../runtime/node/report.ts';
import { unitHealth } from '../../runtime/node/restart.ts';
import { type Hold, takeSingle } from '../../runtime/node/state.ts';
import { fakeClock } from '../support/fake-clock.ts';
import { close, listen } from '../support/loopback.ts';
import { test } from '../support/suite.ts';
import { tempFolder } from '../support/temp-folder.ts';

test('a missing heartbeat is found within five seconds of its timeout', async () => {
  const clock = fakeClock();
  const heart = { at: clock.monotonic(), timeoutMs: 90_000 };
  await assert.rejects(watchHeart(heart, clock, new AbortController().signal), {
    code: 'Hung',
    message: /hung for 95 s, expected at most 90 s/,
  });
});

test('a heart that beats is left alone until the end', async () => {
  const clock = fakeClock();
  const heart = { at: 0, timeoutMs: 90_000 };
  const end = new AbortController();
  const sleep: typeof clock.sleep = async (ms, signal) => {
    heart.at = clock.monotonic();
    if (clock.monotonic() > 3_600_000) end.abort();
    return clock.sleep(ms, signal);
  };
  await watchHeart(heart, { ...clock, sleep }, end.signal);
  assert.ok(clock.monotonic() > 3_600_000);
});

test('a watch that has no client yet is begun again each minute, until the signal', async () => {
  const [clock, end, said] = [fakeClock(), new AbortController(), [] as unknown[]];
  const failed = (error: unknown): void => {
    if (said.push(error) === 3) end.abort();
  };
  await watchNamed([], () => Promise.reject(new Error('no token')), failed, end.signal, clock);
  assert.equal(said.length, 3);
  assert.deepEqual(clock.slept, [60_000, 60_000]);
});

test('a program whose work hangs exits at once, and says why', async () => {
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
  assert.match(lines.join(''), /The loop hangs.*hung for 125 s/);
});

const never = new AbortController().signal;

async function serving(status: () => number, body: (url: string) => Promise<void>): Promise<void> {
  const server = createServer((_, response) => response.writeHead(status()).end());
  const port = await listen(server);
  try {
    await body(`http://127.0.0.1:${port}/healthz`);
  } finally {
    await close(server);
  }
}

test('good before: must be good after, and is waited for', async () => {
  let asked = 0;
  await serving(
    () => (asked++ === 1 || asked === 3 ? 500 : 200),
    async (url) => {
      const health = unitHealth({ url, required: false, withinMs: 10_000, clock: fakeClock() });
      await health.before();
      await health.after(never);
      assert.equal(asked, 4);
    },
  );
});

test('good before and bad after: an error that names the address', async () => {
  let good = true;
  await serving(
    () => (good ? 200 : 500),
    async (url) => {
      const health = unitHealth({ url, required: false, withinMs: 2000, clock: fakeClock() });
      await health.before();
      good = false;
      await assert.rejects(health.after(never), {
        code: 'UnitUnhealthy',
        message: /did not return 200 within 2000 ms/,
      });
    },
  );
});

test('not reachable before: nothing is expected after, unless it is required', async () => {
  const url = 'http://127.0.0.1:9/healthz';
  const clock = fakeClock();
  const optional = unitHealth({ url, required: false, withinMs: 1000, clock });
  await optional.before();
  await optional.after(never);
  const required = unitHealth({ url, required: true, withinMs: 1000, clock });
  await assert.rejects(required.after(never), { code: 'UnitUnhealthy' });
});

test('the wait ends when the program is told to stop', async () => {
  const health = unitHealth({
    url: 'http://127.0.0.1:9/',
    required: true,
    withinMs: 1e9,
    clock: fakeClock(),
  });
  await assert.rejects(health.after(AbortSignal.abort()), { code: 'Stopped' });
});

const root = tempFolder();
const source = new URL('../../runtime/node/state.ts', import.meta.url).pathname;

async function take(): Promise<Hold> {
  const taken = await takeSingle(root);
  assert.ok('held' in taken, 'it is taken');
  return taken;
}

/** Retries while a socket still accepts: the kernel closes the sockets of a killed process one by one. */
async function takeFromDead(): Promise<Hold> {
  for (;;) {
    const taken = await takeSingle(root);
    if ('held' in taken) return taken;
    await taken.busy;
  }
}

test('one holds it; the next waits and gets it when it is released; nothing is left', async () => {
  const first = await take();
  const second = await takeSingle(root);
  assert.ok('busy' in second);
  first.release();
  await second.busy;
  const third = await take();
  assert.ok(third.held());
  third.release();
  assert.deepEqual(readdirSync(root), []);
});

test('the lock of a killed process is free without anybody cleaning up, and its leftovers are swept', async () => {
  const program = join(root, '..', `${root.split('/').at(-1)}.ts`);
  writeFileSync(
    program,
    `import { takeSingle } from ${JSON.stringify(source)};
    await takeSingle(process.argv[2] ?? ''); process.stdout.write('held'); setInterval(() => undefined, 1000);`,
  );
  const child = spawn(process.execPath, [program, root], { stdio: ['ignore', 'pipe', 'inherit'] });
  await new Promise((resolve) => child.stdout.once('data', resolve));
  const busy = await takeSingle(root);
  assert.ok('busy' in busy);
  child.kill('SIGKILL');
  await busy.busy;
  writeFileSync(join(root, 'lock.new-0123'), '');
  const hold = await takeFromDead();
  assert.deepEqual(readdirSync(root), ['lock']);
  hold.release();
  unlinkSync(program);
});

test('a holder whose lock is taken away knows it, and does not remove the lock of the next', async () => {
  const first = await take();
  renameSync(join(root, 'lock'), join(root, 'gone'));
  assert.equal(first.held(), false);
  const second = await take();
  first.release();
  assert.ok(second.held());
  second.release();
  unlinkSync(join(root, 'gone'));
});

test('many at once: exactly one gets it', async () => {
  const all = await Promise.all(Array.from({ length: 20 }, () => takeSingle(root)));
  const holds = all.flatMap((one) => ('held' in one ? [one] : []));
  assert.equal(holds.length, 1);
  holds[0]?.release();
});
