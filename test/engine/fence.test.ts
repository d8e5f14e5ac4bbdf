/**
 * openCluster(): whether this process leads is asked anew when a write is sent. Between the pass that asks and the sending lie a
 * queue, a token, other tries; a process may be frozen in any of them, and its Lease be another's when it wakes up.
 */
import assert from 'node:assert/strict';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { CommandIo } from '../../runtime/cli/command.ts';
import { openCluster } from '../../runtime/commands/reconcile/live.ts';
import type { Cluster } from '../../runtime/engine/cluster.ts';
import { createMetrics } from '../../runtime/engine/metrics.ts';
import { Authority } from '../control-plane/x509.ts';
import { meta } from '../support/meta.ts';
import { type Case, table, test } from '../support/suite.ts';

const authority = new Authority('fence');
const { certificate: cert, key } = authority.issue({ commonName: 'api', hosts: ['127.0.0.1'] });

const OBJECT = { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'a', namespace: 'web' } };
const LEASE = meta('coordination.k8s.io/v1 Lease', { name: 'a', namespace: 'web', resourceVersion: '1' });

interface Row extends Case {
  /** When it stops leading: before all, while the credentials are read, or when the first try has arrived. */
  readonly loses: 'at once' | 'with the credentials' | 'after the first try' | 'never';
  readonly act: (cluster: Cluster) => Promise<unknown>;
  readonly code?: string;
  /** Requests that arrive. */
  readonly arrive: readonly string[];
}

const apply = ({ client }: Cluster): Promise<unknown> => client.apply(OBJECT, { manager: 'test' });
const event = ({ events }: Cluster): Promise<unknown> =>
  events.record({
    regarding: { apiVersion: 'v1', kind: 'Secret', namespace: 'web', name: 'a' },
    type: 'Warning',
    reason: 'NodesBehind',
    action: 'Testing',
    note: 'a note',
  });

const rows: readonly Row[] = [
  {
    name: 'an apply whose first try fails',
    reason: 'the next one is a write of its own',
    loses: 'after the first try',
    act: apply,
    code: 'NotLeader',
    arrive: ['PATCH'],
  },
  {
    name: 'an apply that waits for its token',
    reason: 'a plugin may take seconds',
    loses: 'with the credentials',
    act: apply,
    code: 'NotLeader',
    arrive: [],
  },
  {
    name: 'an event',
    reason: 'a courtesy, and a write',
    loses: 'at once',
    act: event,
    code: 'NotLeader',
    arrive: [],
  },
  {
    name: 'a removal',
    reason: 'of all writes the last one to be sent late',
    loses: 'with the credentials',
    act: ({ client }) => client.remove({ apiVersion: 'v1', kind: 'Secret', namespace: 'web', name: 'a' }),
    code: 'NotLeader',
    arrive: [],
  },
  {
    name: 'a look',
    reason: 'everybody may look',
    loses: 'at once',
    act: ({ client }) => client.get({ apiVersion: 'v1', kind: 'Secret', namespace: 'web', name: 'a' }),
    arrive: ['GET', 'GET'],
  },
  {
    name: 'a Lease',
    reason: 'who does not lead comes to lead by it',
    loses: 'at once',
    act: ({ client }) => client.replace(LEASE, 'test'),
    arrive: ['PUT', 'PUT'],
  },
  {
    name: 'an apply of who leads',
    reason: 'the second try is sent, too',
    loses: 'never',
    act: apply,
    arrive: ['PATCH', 'PATCH'],
  },
];

/** An API server that answers the first, second and further requests with these statuses, and the methods that arrived. */
async function serving(
  statusOf: (count: number) => number,
): Promise<{ server: Server; arrived: readonly string[]; port: number }> {
  const arrived: string[] = [];
  const server = createServer({ cert, key }, (request, response) => {
    request.resume();
    arrived.push(request.method ?? '');
    const status = statusOf(arrived.length);
    response.writeHead(status, { 'content-type': 'application/json' });
    response.end(JSON.stringify(status === 200 ? OBJECT : {}));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { server, arrived, port: (server.address() as AddressInfo).port };
}

table(test, rows, async ({ loses, act, code, arrive }) => {
  let leads = loses !== 'at once';
  const { server, arrived, port } = await serving((count) => {
    if (loses === 'after the first try') leads = false;
    return count === 1 ? 503 : 200;
  });
  const metrics = createMetrics();
  const cluster = await openCluster(
    {
      server: `https://127.0.0.1:${port}`,
      ca: authority.certificate,
      credentials: () => {
        if (loses === 'with the credentials') leads = false;
        return Promise.resolve({});
      },
    },
    { io: { env: {} } as CommandIo, metrics, instance: 'a', mayWrite: () => leads },
  );
  try {
    if (code === undefined) await act(cluster);
    else await assert.rejects(act(cluster), { code });
    assert.deepEqual(arrived, arrive);
    const counted = /^rest_client_requests_total\{.*\} (\d+)$/gm;
    const sent = [...(await metrics.render()).text.matchAll(counted)].reduce(
      (sum, [, count]) => sum + Number(count),
      0,
    );
    assert.equal(sent, arrive.length, 'what was not sent is not counted');
  } finally {
    cluster.close();
    server.close();
  }
});
