/**
 * openCluster(): whether this process leads is asked anew when a write is sent. Between the pass that asks and the sending lie a
 * queue, a token, other tries; a process may be frozen in any of them, and its Lease be another's when it wakes up.
 */
import assert from 'node:assert/strict';
import type { CommandIo } from '../../runtime/cli/command.ts';
import { openCluster } from '../../runtime/commands/reconcile/live.ts';
import type { Cluster } from '../../runtime/engine/cluster.ts';
import { createMetrics } from '../../runtime/engine/metrics.ts';
import { answering, connection, OBJECT, REF, statuses } from '../kube/answering-server.ts';
import { meta } from '../support/meta.ts';
import { type Case, table, test } from '../support/suite.ts';

const LEASE = meta('coordination.k8s.io/v1 Lease', { name: 'a', namespace: 'web', resourceVersion: '1' });

interface Row extends Case {
  /** When it stops leading: before all, while the credentials are read, or when the first try has arrived. */
  readonly loses: 'at once' | 'with the credentials' | 'after the first try' | 'never';
  readonly act: (cluster: Cluster) => Promise<unknown>;
  /** Requests that arrive; with less than the two that it takes it is refused. */
  readonly arrive: readonly string[];
}

const apply = ({ client }: Cluster): Promise<unknown> => client.apply(OBJECT, { manager: 'test' });
const event = ({ events }: Cluster): Promise<unknown> =>
  events.record({
    regarding: REF,
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
    arrive: ['PATCH'],
  },
  {
    name: 'an apply that waits for its token',
    reason: 'a plugin may take seconds',
    loses: 'with the credentials',
    act: apply,
    arrive: [],
  },
  { name: 'an event', reason: 'a courtesy, and a write', loses: 'at once', act: event, arrive: [] },
  {
    name: 'a removal',
    reason: 'of all writes the last one to be sent late',
    loses: 'with the credentials',
    act: ({ client }) => client.remove(REF),
    arrive: [],
  },
  {
    name: 'a look',
    reason: 'everybody may look',
    loses: 'at once',
    act: ({ client }) => client.get(REF),
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

table(test, rows, async ({ loses, act, arrive }) => {
  let leads = loses !== 'at once';
  const { arrived, port, close } = await answering((response, count) => {
    if (loses === 'after the first try') leads = false;
    statuses([503, 200])(response, count);
  });
  const metrics = createMetrics();
  const cluster = await openCluster(
    {
      ...connection('127.0.0.1', port),
      credentials: () => {
        if (loses === 'with the credentials') leads = false;
        return Promise.resolve({});
      },
    },
    { io: { env: {} } as CommandIo, metrics, instance: 'a', mayWrite: () => leads },
  );
  try {
    if (arrive.length === 2) await act(cluster);
    else await assert.rejects(act(cluster), { code: 'NotLeader' });
    assert.deepEqual(
      arrived.map((request) => request.split(' ')[0]),
      arrive,
    );
    const counted = /^rest_client_requests_total\{.*\} (\d+)$/gm;
    const sent = [...(await metrics.render()).text.matchAll(counted)].reduce(
      (sum, [, count]) => sum + Number(count),
      0,
    );
    assert.equal(sent, arrive.length, 'what was not sent is not counted');
  } finally {
    cluster.close();
    await close();
  }
});
