/** Events: said once, counted when repeated, limited when there are many. */
import assert from 'node:assert/strict';
import type { KubeObject } from '../../runtime/core/kubernetes/object.ts';
import { ApiError } from '../../runtime/kube/api-error.ts';
import type { KubeClient } from '../../runtime/kube/client.ts';
import { type EventInput, EventRecorder } from '../../runtime/kube/events.ts';
import { test } from '../support/suite.ts';

interface Sent {
  readonly created: KubeObject[];
  readonly patches: object[];
}

function recorder(): {
  events: EventRecorder;
  sent: Sent;
  clock: { now: number };
  answer: { status?: number };
} {
  const sent: Sent = { created: [], patches: [] };
  const clock = { now: 1_700_000_000_000 };
  const answer: { status?: number } = {};
  const client = {
    create: (object: KubeObject) => {
      if (answer.status !== undefined)
        return Promise.reject(
          new ApiError('no', { code: 'No', status: answer.status, causes: [], retryPolicy: 'retry' }),
        );
      sent.created.push(object);
      return Promise.resolve(object);
    },
    mergePatch: (_ref: object, patch: object) => {
      sent.patches.push(patch);
      return Promise.resolve({});
    },
  } as unknown as KubeClient;
  const events = new EventRecorder({ client, controller: 'c', instance: 'i', now: () => clock.now });
  return { events, sent, clock, answer };
}

const input = (note = 'one entry is shadowed'): EventInput => ({
  regarding: { apiVersion: 'v1', kind: 'Secret', namespace: 'kube-system', name: 'a', uid: 'u' },
  type: 'Warning',
  reason: 'Shadowed',
  action: 'Merge',
  note,
});

test('a repetition becomes a series, not another event', async () => {
  const { events, sent, clock } = recorder();
  assert.equal(await events.record(input()), 'created');
  clock.now += 1000;
  assert.equal(await events.record(input()), 'repeated');
  assert.equal(sent.created.length, 1);
  assert.deepEqual(sent.patches, [{ series: { count: 2, lastObservedTime: '2023-11-14T22:13:21.000000Z' } }]);
});

test('after a restart, an event that is there already is not sent again', async () => {
  const { events, answer } = recorder();
  answer.status = 409;
  assert.equal(await events.record(input()), 'known');
});

test('what could not be sent is sent the next time', async () => {
  const { events, sent, answer } = recorder();
  answer.status = 403;
  await assert.rejects(events.record(input()));
  delete answer.status;
  assert.equal(await events.record(input()), 'created');
  assert.equal(sent.created.length, 1);
});

test('an object that causes very many different events is limited', async () => {
  const { events, clock } = recorder();
  const results: string[] = [];
  for (let index = 0; index < 30; index++) results.push(await events.record(input(`note ${index}`)));
  assert.equal(results.filter((result) => result === 'created').length, 25);
  assert.equal(results.at(-1), 'dropped');
  clock.now += 300_000;
  assert.equal(await events.record(input('later')), 'created');
});

test('what has no namespace is told in default, where kubectl looks', async () => {
  const { events, sent } = recorder();
  await events.record({ ...input(), regarding: { apiVersion: 'v1', kind: 'Node', name: 'Worker.A' } });
  assert.equal(sent.created[0]?.metadata.namespace, 'default');
  assert.match(sent.created[0]?.metadata.name ?? '', /^worker\.a\.[0-9a-f]{16}$/);
});

test('a note has at most 1024 bytes, and ends with dots if it is cut', async () => {
  const { events, sent } = recorder();
  for (const note of ['x'.repeat(5000), `x${'é'.repeat(600)}`]) await events.record(input(note));
  const notes = sent.created.map(({ note }) => String(note));
  assert.deepEqual(notes, [`${'x'.repeat(1021)}...`, `x${'é'.repeat(510)}...`]);
});
