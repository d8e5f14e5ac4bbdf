/** Items of lists and lines of watches, in pieces of every size, and what is left out of them. */
import assert from 'node:assert/strict';
import { hash } from 'node:crypto';
import { JsonItems } from '../../runtime/kube/json-items.ts';
import { jsonLines } from '../../runtime/kube/lines.ts';
import { suite } from '../support/suite.ts';

const test = suite('items of an answer');

interface Read {
  readonly items: readonly unknown[];
  readonly around: unknown;
  readonly leftOut: readonly number[];
}

function read(text: string, pieceBytes: number, mostText?: number): Read {
  const [items, leftOut]: [unknown[], number[]] = [[], []];
  const take = (item: unknown, bytes: number): void => {
    items.push(item);
    leftOut.push(bytes);
  };
  const reader = new JsonItems({ of: 'items', take, mostText });
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; at += pieceBytes) reader.push(bytes.subarray(at, at + pieceBytes));
  return { items, around: reader.end(), leftOut };
}

/** Whatever a parser of the whole text gives. */
const LISTS = {
  'a typed list':
    '{"kind":"SecretList","apiVersion":"v1","metadata":{"continue":"ä😀"},"items":[{"a":[1,{"b":"]},"}]},{}]}',
  'items first': '{"apiVersion":"v1", "items" : [ {"a":1} , {"b":"\\"],"} ],"kind":"List","metadata":{}}',
  'no item': '{"items":[ ],"metadata":{}}',
  null: '{"items":null,"metadata":{}}',
  'no list at all': '{"kind":"Status","items":{"items":[1,2]}}',
  'items within items': '{"metadata":{"items":["x"]},"items":[{"items":[{"items":[]}]}]}',
  'of other kinds': '{"items":[1,null,"x",[2,[3]],true]}',
  'escapes and letters beyond ASCII': '{"items":["\\\\","\\u0022,]}","äöü€😀"]}',
} as const;

for (const [name, text] of Object.entries(LISTS))
  test(`in pieces of every size: ${name}`, () => {
    const wanted = JSON.parse(text) as { readonly items: unknown };
    const isList = Array.isArray(wanted.items);
    for (let size = 1; size <= text.length + 9; size += 1) {
      const { items, around } = read(text, size);
      assert.deepEqual(items, isList ? wanted.items : []);
      assert.deepEqual(around, isList ? { ...wanted, items: [] } : wanted);
    }
  });

const DAMAGED = {
  'breaks off among the items': '{"items":[{"a":1},{"b"',
  'breaks off after them': '{"items":[{"a":1}]',
  'an item is missing': '{"items":[1,,2]}',
  'a comma at the end': '{"items":[1,]}',
  'an item is no JSON': '{"items":[{a}]}',
  'no JSON': '<html>',
  nothing: '',
} as const;

for (const [name, text] of Object.entries(DAMAGED))
  test(`refused: ${name}`, () => {
    for (const size of [1, 2, 1000]) assert.throws(() => read(text, size), SyntaxError);
  });

test('a long text is left out, and its digest known, however it comes', () => {
  const value = 'QUJD'.repeat(300);
  const text = JSON.stringify({ items: [{ long: value, short: 'x'.repeat(100) }, { after: 1 }] });
  for (const size of [1, 7, 64, 257, 600, 5000]) {
    const { items, leftOut } = read(text, size, 1000);
    assert.deepEqual(items, [
      { long: `sha256:${hash('sha256', value)}`, short: 'x'.repeat(100) },
      { after: 1 },
    ]);
    assert.deepEqual(leftOut, [1200, 0]);
  }
});

test("of a text with escapes the digest is nobody's", () => {
  const text = JSON.stringify({ items: [`${'x'.repeat(900)}"${'y'.repeat(900)}`] });
  for (const size of [1, 500, 5000]) assert.deepEqual(read(text, size, 1000).items, ['sha256:']);
});

test('bytes that are left out count as read: a line without end is given up', () => {
  const reader = new JsonItems({ of: 'lines', take: () => undefined, mostText: 1000 });
  reader.push(Buffer.from('{"a":"'));
  for (let at = 0; at < 1000; at += 1) reader.push(Buffer.alloc(500, 'x'));
  assert.equal(reader.read, 6 + 500 * 1000);
});

test('a damaged line takes nothing of the next with it', async () => {
  const chunks = (async function* () {
    yield Buffer.from('{"a":1}\n\n{"b":["x\n{"c":3}\n');
  })();
  const seen: unknown[] = [];
  await assert.rejects(
    async () => {
      for await (const { value } of jsonLines(chunks)) seen.push(value);
    },
    { code: 'WatchDamaged' },
  );
  assert.deepEqual(seen, [{ a: 1 }]);
});

test.run();
