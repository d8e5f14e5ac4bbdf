/** HttpKubeClient: which requests are sent again, with which credentials, and to which addresses. */
import assert from 'node:assert/strict';
import type { Connection } from '../../runtime/kube/client.ts';
import { HttpKubeClient } from '../../runtime/kube/http-client.ts';
import { Requester } from '../../runtime/kube/requester.ts';
import { type Case, table, test } from '../support/suite.ts';
import { answering, connection, JSON_TYPE, OBJECT, REF, statuses } from './answering-server.ts';

interface Row extends Case {
  /** Statuses in order; the last one goes on. */
  readonly answers: readonly number[];
  readonly act: (client: HttpKubeClient) => Promise<unknown>;
  /** Method and token of each request. */
  readonly arrive: readonly string[];
  /** @default {the request succeeds} */
  readonly status?: number;
}

const get = (client: HttpKubeClient): Promise<unknown> => client.get(REF);
const list = (client: HttpKubeClient): Promise<unknown> => client.list({ apiVersion: 'v1', kind: 'Secret' });
const create = (client: HttpKubeClient): Promise<unknown> => client.create(OBJECT, 'test');
const optionsFor = (port: number) => ({
  connection: connection('127.0.0.1', port),
  userAgent: 'test',
  random: () => 0,
});

const rows: readonly Row[] = [
  {
    name: 'a token that is refused once',
    reason: 'it may have been renewed since it was read',
    answers: [401, 200],
    act: get,
    arrive: ['GET kept', 'GET fresh'],
  },
  {
    name: 'a token that is refused for good',
    reason: 'one other try, and no more',
    answers: [401],
    act: get,
    arrive: ['GET kept', 'GET fresh'],
    status: 401,
  },
  {
    name: 'a create that is refused for its token',
    reason: 'nothing was done, so that it may be sent again',
    answers: [401, 201],
    act: create,
    arrive: ['POST kept', 'POST fresh'],
  },
  { name: 'a look at a server that is ill', answers: [500, 200], act: get, arrive: ['GET kept', 'GET kept'] },
  {
    name: 'a create that may have been done',
    reason: 'a second one would be refused as being there already',
    answers: [500],
    act: create,
    arrive: ['POST kept'],
    status: 500,
  },
  {
    name: 'a create that was too much',
    reason: 'the server says that nothing was done',
    answers: [429, 201],
    act: create,
    arrive: ['POST kept', 'POST kept'],
  },
  {
    name: 'a look without the right',
    reason: 'the same a moment later',
    answers: [403],
    act: get,
    arrive: ['GET kept'],
    status: 403,
  },
];

table(test, rows, async ({ answers, act, arrive, status }) => {
  const server = await answering(statuses(answers));
  const client = new HttpKubeClient(optionsFor(server.port));
  try {
    if (status === undefined) await act(client);
    else await assert.rejects(act(client), { status });
    assert.deepEqual(server.arrived, arrive);
  } finally {
    client.close();
    await server.close();
  }
});

test('a name that leads to an address which its author must not choose is not contacted, nor is it tried again', async () => {
  const server = await answering(statuses([200]));
  const guarded: Connection = {
    ...connection('localhost', server.port),
    addresses: { chosenBy: 'platform' },
  };
  const client = new HttpKubeClient({ connection: guarded, userAgent: 'test' });
  await assert.rejects(client.get(REF), { code: 'KubeconfigRefused' });
  await assert.rejects(client.create(OBJECT, 'test'), { code: 'KubeconfigRefused' });
  assert.deepEqual(server.arrived, []);
  client.close();
  await server.close();
});

test('a server that has been silent for long is tried once by each request, until it answers', async () => {
  let [now, isThere] = [0, false];
  const answered = statuses([200]);
  const server = await answering((response, count) => {
    if (isThere) answered(response, count);
    else response.destroy();
  });
  const requester = new Requester({ ...optionsFor(server.port), now: () => now });
  const call = { verb: 'get', subject: 'a', method: 'GET', path: '/' };
  const tries = async (): Promise<number> => {
    const before = server.arrived.length;
    await requester.json(call).catch(() => undefined);
    return server.arrived.length - before;
  };
  try {
    assert.deepEqual([await tries(), await tries()], [5, 5]);
    now = 10_000;
    assert.deepEqual([await tries(), await tries()], [1, 1]);
    isThere = true;
    assert.equal(await tries(), 1);
    isThere = false;
    // One more for a connection that had been good.
    assert.equal(await tries(), 6);
  } finally {
    requester.close();
    await server.close();
  }
});

for (const [what, status, ask, code] of [
  ['an object', 200, get, 'AnswerTooLarge'],
  ['what was made', 201, create, 'AnswerTooLarge'],
  ['a page of a list', 200, list, 'AnswerTooLarge'],
  ['the words of a refusal', 403, get, 'Forbidden'],
] as const)
  test(`${what} without end is cut off long before it fills the memory`, async () => {
    let sent = 0;
    const piece = `{"kind":"${'x'.repeat(1 << 20)}`;
    const server = await answering((response) => {
      response.writeHead(status, JSON_TYPE);
      const more = (): void => {
        if (response.destroyed || sent > 200 * 2 ** 20) return;
        sent += piece.length;
        if (response.write(piece)) setImmediate(more);
        else response.once('drain', more);
      };
      more();
    });
    const client = new HttpKubeClient(optionsFor(server.port));
    await assert.rejects(ask(client), { code });
    assert.ok(sent < 96 * 2 ** 20, `${sent} bytes were taken`);
    client.close();
    await server.close();
  });
