/** Lines of a watch, in pieces of every size. */
import assert from 'node:assert/strict';
import { jsonLines } from '../../runtime/kube/http-client.ts';
import { test } from '../support/suite.ts';

async function* inPieces(text: string, size: number): AsyncGenerator<Uint8Array> {
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

test('the pieces in which lines come make no difference', async () => {
  const text = '{"a":"ä😀"}\n\n{"b":["\\n"]}\n{"c":3}\n{"broken off';
  for (let size = 1; size <= Buffer.byteLength(text); size += 1)
    assert.deepEqual(await Array.fromAsync(jsonLines(inPieces(text, size))), [
      { a: 'ä😀' },
      { b: ['\n'] },
      { c: 3 },
    ]);
});

test('what came before a damaged line is taken, and nothing after it', async () => {
  const seen: unknown[] = [];
  await assert.rejects(
    async () => {
      for await (const value of jsonLines(inPieces('{"a":1}\n{"b":["x\n{"c":3}\n', 100))) seen.push(value);
    },
    { code: 'WatchDamaged' },
  );
  assert.deepEqual(seen, [{ a: 1 }]);
});
