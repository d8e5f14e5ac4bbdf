import assert from 'node:assert/strict';
import { clusterHint, parseCloudEvent } from '../../runtime/pull-secret-adapter/cloud-event.ts';
import { type Case, table, test } from '../support/suite.ts';

interface Row extends Case {
  readonly body: string | Uint8Array;
  readonly attributes?: Readonly<Record<string, string>>;
  readonly is: string;
}

const ROWS: readonly Row[] = [
  {
    name: 'structured',
    reason: 'as Sentinel sends it',
    body: '{"specversion":"1.0","id":"1","source":"s","type":"a.cluster.b","data":{"id":"cls-1"}}',
    is: 'cls-1',
  },
  {
    name: 'binary',
    reason: 'attributes carry the context',
    body: '{"id":"cls-1"}',
    attributes: { 'ce-specversion': '1.0', 'CE-Type': 'cluster.create', 'ce-id': '1', 'ce-source': 's' },
    is: 'cls-1',
  },
  {
    name: 'binary over AMQP',
    reason: 'its own prefix',
    body: '{"id":"cls-1"}',
    attributes: { 'cloudEvents:specversion': '1.0', 'cloudEvents:type': 'cluster.create' },
    is: 'cls-1',
  },
  {
    name: 'node pool',
    reason: 'somebody else',
    body: '{"specversion":"1.0","type":"com.redhat.hyperfleet.nodepool.reconcile","data":{"id":"np"}}',
    is: 'other',
  },
  {
    name: 'no data.id',
    reason: 'nothing to look at',
    body: '{"specversion":"1.0","type":"cluster.create","data":{}}',
    is: 'invalid',
  },
  {
    name: 'a path as identifier',
    reason: 'never into a URL',
    body: '{"specversion":"1.0","type":"cluster.create","data":{"id":"../x"}}',
    is: 'invalid',
  },
  {
    name: 'no specversion',
    reason: 'no CloudEvent',
    body: '{"type":"cluster.create","data":{"id":"cls-1"}}',
    is: 'garbage',
  },
  { name: 'bytes', reason: 'no text', body: new Uint8Array([0xff, 0xfe, 0]), is: 'garbage' },
  { name: 'ten megabytes', reason: 'not even parsed', body: new Uint8Array(10 * 1024 * 1024), is: 'garbage' },
  { name: 'nothing', reason: 'no JSON', body: '', is: 'garbage' },
  { name: 'a list', reason: 'no object', body: '[]', is: 'garbage' },
];

table(test, ROWS, ({ body, attributes = {}, is }) => {
  const read = parseCloudEvent({
    body: typeof body === 'string' ? new TextEncoder().encode(body) : body,
    attributes,
  });
  if (!read.ok) return assert.equal('garbage', is);
  const hint = clusterHint(read.event);
  assert.equal(hint.kind === 'cluster' ? hint.id : hint.kind, is);
});
