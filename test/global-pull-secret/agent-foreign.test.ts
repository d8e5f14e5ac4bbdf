/** Entries that others put into the kubelet's file. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { mergeThreeWays, wantedDocument } from '../../runtime/global-pull-secret/agent/document.ts';
import { suite } from '../support/suite.ts';
import { readDocument as read, documentText as text } from './support/document.ts';

const test = suite('node agent and entries of others');

test('keep: what others put there stays, what we put there goes, and the bytes are the same each time', () => {
  const first = wantedDocument(read('{"auths":{"ours":{"auth":"MTo="},"gone":{"auth":"Mjo="}}}'), undefined, {
    foreign: 'keep',
    ledger: {},
  });
  const there = read(
    '{"auths":{"theirs":{"auth":"Mzo="},"gone":{"auth":"Mjo="},"ours":{"auth":"MTo="}},"credsStore":"theirs"}',
  );
  const source = read('{"auths":{"ours":{"auth":"NDo="}}}');
  const next = wantedDocument(source, there, { foreign: 'keep', ledger: first.ledgerAfter });
  assert.equal(
    text(next.document),
    '{"auths":{"ours":{"auth":"NDo="},"theirs":{"auth":"Mzo="}},"credsStore":"theirs"}',
  );
  assert.deepEqual(next.foreign, ['auths/theirs', 'field/credsStore']);
  assert.equal(next.removes, true);
  // Once written, it is what is wanted.
  const again = wantedDocument(source, next.document, { foreign: 'keep', ledger: next.ledgerAfter });
  assert.equal(again.document.digest, next.document.digest);
  // A rollback brings the old entries back: they are still known to be ours.
  const rolledBack = wantedDocument(source, there, { foreign: 'keep', ledger: next.ledgerDuring });
  assert.equal(text(rolledBack.document), text(next.document));
});

test('drop: what others put there goes', () => {
  const there = read('{"auths":{"theirs":{"auth":"Mzo="}}}');
  const next = wantedDocument(read('{"auths":{"ours":{}}}'), there, { foreign: 'drop', ledger: {} });
  assert.equal(text(next.document), '{"auths":{"ours":{}}}');
  assert.equal(next.removes, true);
});

const map = fc.dictionary(
  fc.constantFrom('a', 'b', 'c', 'd', '__proto__', 'constructor'),
  fc.constantFrom('1', '2', '3'),
);

test('three ways: ours win, theirs stay, and merging twice changes nothing', () => {
  const digest = (value: string): string => value;
  fc.assert(
    fc.property(map, map, map, (p, w, o) => {
      const [present, wanted] = [new Map(Object.entries(p)), new Map(Object.entries(w))];
      const owned = Object.fromEntries(Object.entries(o).map(([key, value]) => [key, [value]]));
      const { entries } = mergeThreeWays({ present, wanted, owned, digest });
      for (const [key, value] of wanted) assert.equal(entries.get(key), value);
      for (const [key, value] of present) {
        const ours = Object.hasOwn(o, key) && o[key] === value;
        if (!wanted.has(key)) assert.equal(entries.get(key), ours ? undefined : value);
      }
      const twice = mergeThreeWays({ present: entries, wanted, owned, digest });
      assert.deepEqual([...twice.entries], [...entries]);
    }),
  );
});

test.run();
