/** Answers that begin and do not end are bounded together, whoever sends them, and it is the largest that goes. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { Arriving } from '../../runtime/kube/arriving.ts';
import { HttpKubeClient } from '../../runtime/kube/http-client.ts';
import { redact } from '../../runtime/rules/redacted.ts';
import { Authority } from '../control-plane/x509.ts';
import { suite } from '../support/suite.ts';

const test = suite('answers that are not whole yet');
const MIB = 1024 * 1024;
const MANY = 40;
const authority = new Authority('arriving');
const { certificate: cert, key } = authority.issue({ commonName: 'api', hosts: ['127.0.0.1'] });

interface Server {
  readonly client: HttpKubeClient;
  /** Bytes that it got rid of. */
  readonly sent: () => number;
  close(): void;
}

async function serving(
  answer: (response: ServerResponse, sent: (bytes: number) => void) => void,
): Promise<Server> {
  let sent = 0;
  const server = createServer({ cert, key }, (_, response) => {
    response.writeHead(200, { 'content-type': 'application/json' });
    answer(response, (bytes) => (sent += bytes));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const client = new HttpKubeClient({
    connection: {
      server: `https://127.0.0.1:${port}`,
      ca: authority.certificate,
      credentials: () => Promise.resolve({ token: redact('t') }),
    },
    userAgent: 'test',
  });
  const close = (): void => {
    client.close();
    server.close();
    server.closeAllConnections();
  };
  return { client, sent: () => sent, close };
}

/** As much as is taken, for ever. */
function endless(response: ServerResponse, sent: (bytes: number) => void): void {
  response.write('{"items":[{"type":"ADDED","object":{"data":"');
  const piece = Buffer.alloc(64 * 1024, 'x');
  const more = (): void => {
    if (response.destroyed) return;
    sent(piece.length);
    if (response.write(piece)) setImmediate(more);
    else response.once('drain', more);
  };
  more();
}

async function failure(work: Promise<unknown>): Promise<string> {
  return work.then(
    () => 'none',
    (error: { readonly code?: string }) => error.code ?? 'no code',
  );
}

const asked: Readonly<Record<string, (client: HttpKubeClient, at: number) => Promise<unknown>>> = {
  watches: async (client) => {
    const signal = new AbortController().signal;
    const events = await client.watch(
      { apiVersion: 'v1', kind: 'Secret' },
      { resourceVersion: '1', seconds: 60, signal },
    );
    for await (const _event of events) throw new Error('an event');
  },
  objects: (client, at) =>
    client.get({ apiVersion: 'v1', kind: 'Secret', namespace: 'web', name: `s-${at}` }),
  'objects that are written': (client, at) =>
    client.create(
      { apiVersion: 'v1', kind: 'Secret', metadata: { name: `s-${at}`, namespace: 'web' } },
      'test',
    ),
  lists: (client) => client.list({ apiVersion: 'v1', kind: 'Secret' }),
};

for (const [what, ask] of Object.entries(asked))
  test(`${MANY} ${what} of one cluster that never end, and one of another cluster that does`, async () => {
    const hostile = await serving(endless);
    const item = { metadata: { name: 'a', namespace: 'web' }, data: { a: 'y'.repeat(2 * MIB) } };
    const good = await serving((response) => response.end(JSON.stringify({ metadata: {}, items: [item] })));
    try {
      const failures = Promise.all(Array.from({ length: MANY }, (_, at) => failure(ask(hostile.client, at))));
      const over = new Set<string>();
      void failures.then(() => over.add('all'));
      do {
        const page = await good.client.list({ apiVersion: 'v1', kind: 'Secret' });
        assert.equal(page.items.length, 1);
      } while (over.size === 0);
      assert.deepEqual(new Set(await failures), new Set(['AnswerTooLarge']));
      // What lies in buffers on the way, of each; without a bound it is sixteen megabytes of each and more.
      assert.ok(hostile.sent() < (64 + 4 * MANY) * MIB + 256 * MIB, `${hostile.sent() / MIB} MiB were sent`);
    } finally {
      hostile.close();
      good.close();
    }
  });

test('the largest of the cluster that has the most goes, though another cluster has a larger one', () => {
  const arriving = new Arriving(10 * MIB);
  const ended: string[] = [];
  const [crowd, other] = [{}, {}];
  const begin = (cluster: object, name: string): ReturnType<Arriving['begin']> =>
    arriving.begin(cluster, () => ended.push(name));
  begin(other, 'other').hold(4 * MIB);
  for (let at = 0; at < 5; at += 1) begin(crowd, `crowd-${at}`).hold((1 + at / 10) * MIB);
  assert.deepEqual(ended, []);
  begin(crowd, 'last').hold(MIB / 2);
  assert.deepEqual(ended, ['crowd-4']);
});

test('what was let go counts no more', () => {
  const arriving = new Arriving(MIB);
  const sender = {};
  for (let at = 0; at < 100; at += 1) {
    const one = arriving.begin(sender, () => undefined);
    assert.equal(one.hold(900_000), true);
    one.release();
  }
  const last = arriving.begin(sender, () => undefined);
  assert.deepEqual([last.hold(2 * MIB), last.hold(1)], [false, false]);
});

test.run();
