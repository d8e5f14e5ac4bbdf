/** Sentinel's CEL messages: invalid ones are rejected at start, sizes are bounded for any tenant input, missing values are counted. */
import assert from 'node:assert/strict';
import { clusterDocument, type HyperfleetCluster } from '../../runtime/pull-secret-adapter/cluster.ts';
import { celCompiler } from '../../runtime/pull-secret-adapter/sentinel/cel.ts';
import type { Messages } from '../../runtime/pull-secret-adapter/sentinel/messages.ts';
import { sentinelSettings } from '../../runtime/pull-secret-adapter/sentinel/options.ts';
import { type Case, table, test } from '../support/suite.ts';

const NOW = new Date('2026-01-02T00:00:00Z');

function resource(
  fields: Readonly<Record<string, unknown>> = {},
  ...conditions: HyperfleetCluster['conditions'][number][]
): HyperfleetCluster {
  return clusterDocument.parse({ id: 'cls-1', generation: 3, ...fields, status: { conditions } });
}

/** Reads a file in the same way as `--messages`. */
function readMessages(file: object): Messages {
  return sentinelSettings({}, file).messages;
}

interface Bad extends Case {
  readonly file: object;
  readonly says: RegExp;
}

const decision = (result: unknown, params?: unknown): object => ({
  message_decision: { result, ...(params === undefined ? {} : { params }) },
});

const BAD: readonly Bad[] = (
  [
    ['a whole configuration', { resource_type: 'clusters' }, /unknown field "resource_type"/],
    ['a result that is missing', decision(undefined), /result: required value/],
    ['a result that is empty', decision(' '), /result: it is empty/],
    ['a result that is no truth value', decision('resource.id + "x"'), /is of type string: expected bool/],
    ['a result that is a text', decision('"true"'), /is of type string: expected bool/],
    ['a syntax error', decision('resource.generation >'), /result: Unexpected token/],
    ['a variable that nobody knows', decision('resourse.generation > 1'), /Unknown variable: resourse/],
    ['types that do not fit', decision('now > 1'), /no such overload/],
    [
      'a function of a later CEL',
      decision('resource.id.split("-").size() > 1'),
      /unsupported function "split"/,
    ],
    ['a regular expression', decision('resource.id.matches("(a+)+$")'), /unsupported function "matches"/],
    [
      'a comprehension nested in another',
      decision('resource.labels.all(a, resource.labels.all(b, a == b))'),
      /nested in another comprehension/,
    ],
    ['parameters in a circle', decision('a', { a: 'b', b: 'a' }), /in a cycle: a, b/],
    ['a parameter that names itself', decision('a', { a: 'a' }), /in a cycle: a/],
    [
      'a parameter with a name of ours',
      decision('true', { now: 'true' }),
      /params: expected names .* none of resource, now/,
    ],
    ['a parameter that CEL keeps', decision('true', { in: 'true' }), /reserves/],
    ['a parameter with the name of a type', decision('true', { int: 'true' }), /reserves/],
    ['a parameter that is no expression', decision('true', { a: 1 }), /params\["a"\]: .*must be a string/],
    [
      'too many parameters',
      decision('true', Object.fromEntries(Array.from({ length: 51 }, (_, at) => [`a${at}`, 'true']))),
      /expected at most 50/,
    ],
    ['a long expression', decision(`"${'x'.repeat(5000)}" == ""`), /at most 4096/],
    ['a deep expression', decision(`${'('.repeat(200)}true${')'.repeat(200)}`), /depth|deep/i],
    ['a wide expression', decision(Array.from({ length: 600 }, () => 'true').join('||')), /nodes/i],
    ['data without an id', { message_data: { name: 'resource.name' } }, /"id" is required/],
    ['data that is empty', { message_data: { id: '' } }, /message_data\.id: it is empty/],
    [
      'data that is null',
      { message_data: { id: 'resource.id', a: { b: null } } },
      /message_data\.a: expected a CEL expression/,
    ],
    [
      'data that is a list',
      { message_data: { id: ['resource.id'] } },
      /message_data\.id: expected a CEL expression/,
    ],
    ['a template of Go, as the first release had it', { message_data: { id: '.id' } }, /message_data\.id: /],
    [
      'a condition in the data',
      { message_data: { id: 'condition("Ready").status' } },
      /"condition"|condition/,
    ],
  ] as const
).map(([name, file, says]) => ({ name, reason: 'Sentinel would start, and never say anything', file, says }));

table(test, BAD, ({ file, says }) => {
  assert.throws(() => readMessages(file), { name: 'UsageError', message: says });
});

test('parameters may name each other in any order, and are judged like everything else', () => {
  const { decide } = readMessages({
    message_decision: {
      params: {
        is_old: 'age > duration("1h")',
        age: 'now - timestamp(seen)',
        seen: 'condition("Reconciled").last_updated_time',
      },
      result: 'is_old && resource.labels.exists(key, key == "tier")',
    },
  });
  const seen = { type: 'Reconciled', status: 'True', last_updated_time: '2026-01-01T22:00:00.123456789Z' };
  const labels = { tier: 'gold' };
  assert.deepEqual(decide?.(resource({ labels }, seen), NOW), {
    publish: true,
    reason: 'message decision matched',
  });
  assert.equal(decide?.(resource({ labels: { team: 'a' } }, seen), NOW).publish, false);
  const never = readMessages({
    message_decision: {
      params: { said: 'condition("Reconciled")', named: 'said.reason == "" || said.message == ""' },
      result: 'said.last_updated_time == "" && said.observed_generation == 0 && !named',
    },
  });
  const unsaid = {
    ...seen,
    last_updated_time: null,
    observed_generation: 1.5,
    reason: null,
    message: 5,
  } as unknown as typeof seen;
  assert.equal(never.decide?.(resource({}, unsaid), NOW).publish, true);
});

interface Unanswered extends Case {
  readonly result: string;
  readonly fields: Readonly<Record<string, unknown>>;
  readonly says: RegExp;
}

const UNANSWERED: readonly Unanswered[] = [
  {
    name: 'a field that is not there',
    result: 'resource.owner.id == ""',
    fields: {},
    says: /No such key: owner/,
  },
  {
    name: 'a label that is no time',
    result: 'timestamp(resource.labels.at) < now',
    fields: { labels: { at: 'x' } },
    says: /ISO 8601/,
  },
  {
    name: 'a value of another type',
    result: 'resource.labels.flag',
    fields: { labels: { flag: 'yes' } },
    says: /did not return bool/,
  },
  { name: "a prototype's field", result: 'resource.constructor.name == ""', fields: {}, says: /No such key/ },
  {
    name: 'control characters in what a tenant wrote',
    result: 'duration(resource.labels.pause) > duration("1s")',
    fields: { labels: { pause: '\u001b[2J\nforged' } },
    says: /^result evaluation failed: \P{Cc}*$/u,
  },
].map((one) => ({ ...one, reason: 'no event is sent, and the count says so' }));

table(test, UNANSWERED, ({ result, fields, says }) => {
  const { decide } = readMessages(decision(result));
  const { publish, failed, reason } = decide?.(resource(fields), NOW) ?? {};
  assert.deepEqual([publish, failed], [false, true]);
  assert.match(reason ?? '', says);
});

test('values do not grow from parameter to parameter', () => {
  const params = Object.fromEntries([
    ['p0', '"0123456789abcdef"'],
    ...Array.from({ length: 30 }, (_, at) => [`p${at + 1}`, `p${at} + p${at}`]),
  ]);
  const { decide } = readMessages(decision('size(p30) > 0', params));
  assert.match(
    decide?.(resource(), NOW).reason ?? '',
    /param "p13" evaluation failed: its value is too large/,
  );
});

test('work grows with the document, never with its square: one comprehension at a time', () => {
  const compile = celCompiler({ resource: 'map' });
  for (const outer of ['all', 'exists', 'exists_one', 'map', 'filter'])
    for (const inner of ['all', 'exists', 'exists_one', 'map', 'filter'])
      assert.throws(
        () => compile(`resource.l.${outer}(a, size(resource.l.${inner}(b, true)) > 0)`),
        /nested in another|overload/,
      );
  assert.equal(
    compile('resource.l.all(a, a > 0) && resource.l.exists(a, a == 2)').evaluate({
      resource: { l: [1n, 2n] },
    }),
    true,
  );
});

test('data: expressions, numbers and truth values, maps; what has no value is left out', () => {
  const { decide, data } = readMessages({
    message_data: {
      id: 'resource.id',
      generation: 'resource.generation',
      why: 'reason',
      ready: 'resource.status.conditions.filter(c, c.type == "Reconciled")[0].status',
      owner_references: { id: 'resource.owner_references.id' },
      labels: 'resource.labels',
      at: 'timestamp(resource.created_time)',
      sizes: '[1, 2]',
      nothing: 'null',
      version: 2,
      test: true,
    },
  });
  assert.equal(decide, undefined);
  const fields = {
    labels: { tier: 'gold' },
    created_time: '2026-01-01T00:00:00.120Z',
    owner_references: { id: 'ch-1', kind: 'Channel' },
  };
  const reconciled = { type: 'Reconciled', status: 'False', observed_generation: 2 };
  assert.deepEqual(data(resource(fields, reconciled), 'message decision matched'), {
    at: '2026-01-01T00:00:00.12Z',
    generation: 3,
    id: 'cls-1',
    labels: { tier: 'gold' },
    owner_references: { id: 'ch-1' },
    ready: 'False',
    sizes: [1, 2],
    test: true,
    version: 2,
    why: 'message decision matched',
  });
});

test('the pull secret of a cluster is nothing that an expression can reach', () => {
  const { data } = readMessages({
    message_data: { id: 'resource.id', secret: 'resource.spec.pullSecret.data' },
  });
  assert.deepEqual(data(resource(), ''), { id: 'cls-1' });
});
