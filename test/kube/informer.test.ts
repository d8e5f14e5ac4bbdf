/** The informer against a scripted server: what the real one does only rarely. The real one is in test/reconcile. */
import assert from 'node:assert/strict';
import { mock } from 'node:test';
import { PullwrightError } from '../../runtime/core/errors.ts';
import type { WatchEvent } from '../../runtime/kube/client.ts';
import { eventually } from '../control-plane/eventually.ts';
import { test } from '../support/suite.ts';
import { events, expired, FAST, object, page, quiet, run } from './scripted-server.ts';

/** A list or a watch that fails so. */
function failing(code: string): () => never {
  return () => {
    throw new PullwrightError('Cannot read "ConfigMap"', { code, retryPolicy: 'waiting' });
  };
}

test('lists in pages and watches from where the list was taken', async () => {
  const { sink, informer, watchedFrom, limits } = run({
    lists: [() => ({ ...page('7', 'a'), next: 'more' }), () => page('7', 'b')],
    watches: [quiet],
  });
  await eventually(() => assert.deepEqual(watchedFrom, ['7']));
  informer.stop();
  assert.deepEqual([...sink.names.keys()], ['a', 'b']);
  assert.deepEqual(limits, [
    [500, undefined],
    [500, 'more'],
  ]);
});

test('a page that is too large is requested again with half its limit, from the same place', async () => {
  const tooLarge = failing('AnswerTooLarge');
  const { sink, informer, limits } = run({
    lists: [
      () => ({ ...page('7', 'a'), next: 'more' }),
      tooLarge,
      tooLarge,
      () => ({ ...page('7', 'b'), next: 'last' }),
      () => page('7', 'c'),
    ],
    watches: [quiet],
  });
  await eventually(() => assert.deepEqual([...sink.names.keys()], ['a', 'b', 'c']));
  informer.stop();
  assert.deepEqual(limits, [
    [500, undefined],
    [500, 'more'],
    [250, 'more'],
    [125, 'more'],
    [125, 'last'],
  ]);
  assert.deepEqual(sink.said(), ['synced'], 'nobody is told of a failure');
});

test('one object that is too large by itself is said', async () => {
  const { sink, informer } = run({
    lists: [failing('AnswerTooLarge')],
    watches: [quiet],
  });
  await eventually(() => assert.deepEqual(sink.said(), ['failing']));
  informer.stop();
});

test('takes what came in one piece in turns, between which others are served', async () => {
  const many = Array.from({ length: 100 }, (_, at) => ({
    type: 'ADDED' as const,
    object: object(`a${at}`, String(at + 5)),
  }));
  const { sink, informer } = run(
    { lists: [() => page('1')], watches: [() => events(...many), quiet] },
    // A busy machine must not take it for a silent watch.
    { ...FAST, silenceMs: 60_000 },
  );
  const set = sink.set.bind(sink);
  let turns = 0;
  let seen = 0;
  sink.set = (one) => {
    // Simulates the cost of handling a change.
    for (const began = performance.now(); performance.now() - began < 1; );
    seen += 1;
    set(one);
  };
  while (seen < many.length) {
    await new Promise(setImmediate);
    if (seen > 0) turns += 1;
  }
  informer.stop();
  assert.ok(turns >= 10, `${turns} turns for ${seen} changes of a millisecond`);
});

test('resumes from the last bookmark', async () => {
  const { informer, watchedFrom } = run({
    lists: [() => page('1')],
    watches: [
      () => events({ type: 'ADDED', object: object('a', '5') }, { type: 'BOOKMARK', resourceVersion: '90' }),
      quiet,
    ],
  });
  await eventually(() => assert.deepEqual(watchedFrom, ['1', '90']));
  informer.stop();
});

test('lists again after 410, and what is gone meanwhile goes', async () => {
  const { sink, informer } = run({
    lists: [() => page('1', 'a', 'b'), () => page('9', 'b')],
    watches: [expired, quiet],
  });
  await eventually(() => assert.deepEqual([...sink.names], [['b', '9']]));
  informer.stop();
  assert.equal(sink.replaced, 2);
});

test('gives up a watch on which nothing comes, and opens it again from the same place', async () => {
  const { informer, watchedFrom } = run({ lists: [() => page('3')], watches: [quiet] });
  await eventually(() => assert.ok(watchedFrom.length >= 3));
  informer.stop();
  assert.deepEqual([...new Set(watchedFrom)], ['3']);
});

test('a watch on which something comes now and then is kept, however long it lives', async () => {
  mock.timers.enable({ apis: ['setTimeout'] });
  try {
    async function* slow(): AsyncGenerator<WatchEvent> {
      for (let version = 4; version < 40; version++) {
        mock.timers.tick(FAST.silenceMs - 1);
        yield { type: 'BOOKMARK', resourceVersion: String(version) };
      }
      yield { type: 'ADDED', object: object('last', '41') };
      await new Promise(() => undefined);
    }
    const { sink, informer, watchedFrom } = run({ lists: [() => page('3')], watches: [slow] });
    for (let turn = 0; turn < 1000 && !sink.names.has('last'); turn++) await new Promise(setImmediate);
    informer.stop();
    assert.equal(sink.names.get('last'), '41');
    assert.deepEqual(watchedFrom, ['3']);
  } finally {
    mock.timers.reset();
  }
});

for (const [what, watch] of [
  ['ends every watch at once', () => events()],
  ['forgets at once what it listed', expired],
] as const)
  test(`a server that ${what} is left alone for longer and longer`, async () => {
    const started = performance.now();
    const script = { lists: [() => page('7', 'a')], watches: [watch] };
    const { informer, watchedFrom } = run(script, { ...FAST, backOff: { firstMs: 2, maxMs: 10_000 } });
    await eventually(() => assert.ok(watchedFrom.length >= 9));
    // The pauses between the first nine, each the shorter half of its time: 1, 2, 4 ... 128.
    assert.ok(performance.now() - started >= 240);
    informer.stop();
  });

test('says once that it cannot read, and once that it can again', async () => {
  const down = failing('ConnectionRefused');
  const { sink, informer } = run({ lists: [down, down, down, () => page('1')], watches: [quiet] });
  await eventually(() => assert.equal(sink.replaced, 1));
  informer.stop();
  assert.deepEqual(sink.said(), ['failing', 'synced']);
});

test('a watch that is refused is said once, asked for more and more rarely, and goes on from where it was', async () => {
  const refused = failing('Forbidden');
  const { sink, informer, watchedFrom } = run({
    lists: [() => page('5', 'a')],
    watches: [refused, refused, refused, quiet],
  });
  await eventually(() => assert.equal(watchedFrom.length, 4));
  await eventually(() => assert.equal(sink.states.at(-1)?.is, 'synced'));
  informer.stop();
  assert.deepEqual(watchedFrom.slice(0, 4), ['5', '5', '5', '5']);
  assert.deepEqual(sink.said(), ['synced', 'failing', 'synced']);
  assert.equal(sink.replaced, 1);
});

test('a kind that is not served is named once and looked for again', async () => {
  const unknown = failing('KindNotServed');
  const { sink, informer, limits } = run({
    lists: [unknown, unknown, () => page('1', 'a')],
    watches: [quiet],
  });
  await eventually(() => assert.equal(sink.names.size, 1));
  informer.stop();
  assert.equal(limits.length, 3);
  assert.deepEqual(sink.said(), ['missing', 'synced']);
});
