import assert from 'node:assert/strict';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { unitHealth } from '../../runtime/node/restart.ts';
import { fakeClock } from '../support/fake-clock.ts';
import { test } from '../support/suite.ts';

const never = new AbortController().signal;

async function serving(status: () => number, body: (url: string) => Promise<void>): Promise<void> {
  const server: Server = createServer((_, response) => response.writeHead(status()).end());
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  try {
    await body(`http://127.0.0.1:${(server.address() as AddressInfo).port}/healthz`);
  } finally {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
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
        message: /does not answer 200 within 2000 ms/,
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
