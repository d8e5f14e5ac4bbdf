/** Entries that others add to the kubelet's file. */

import assert from 'node:assert/strict';
import fc from 'fast-check';
import {
  EMPTY_DOCUMENT,
  mergeThreeWays,
  wantedDocument,
} from '../../runtime/global-pull-secret/agent/document.ts';
import { forAll } from '../support/for-all.ts';
import { test } from '../support/suite.ts';
import { readDocument as read, documentText as text } from './support/document.ts';

test('keep: what others put there stays, what we put there goes, and the bytes are the same each time', () => {
  const first = wantedDocument(read('{"auths":{"ours":{"auth":"MTo="},"gone":{"auth":"Mjo="}}}'), undefined, {
    foreign: 'keep',
    owned: {},
  });
  const there = read(
    '{"auths":{"theirs":{"auth":"Mzo="},"gone":{"auth":"Mjo="},"ours":{"auth":"MTo="}},"credsStore":"theirs"}',
  );
  const source = read('{"auths":{"ours":{"auth":"NDo="}}}');
  const next = wantedDocument(source, there, { foreign: 'keep', owned: first.ownedAfter });
  assert.equal(
    text(next.document),
    '{"auths":{"ours":{"auth":"NDo="},"theirs":{"auth":"Mzo="}},"credsStore":"theirs"}',
  );
  assert.deepEqual(next.foreign, ['auths/theirs', 'field/credsStore']);
  assert.equal(next.removes, true);
  // After the write, the file has the desired content.
  const again = wantedDocument(source, next.document, { foreign: 'keep', owned: next.ownedAfter });
  assert.equal(again.document.digest, next.document.digest);
  const owned = next.ownedDuring;
  assert.deepEqual(wantedDocument(source, there, { foreign: 'keep', owned }).ownedDuring, owned);
  // A rollback restores the old entries: the record still lists them as ours.
  const rolledBack = wantedDocument(source, there, { foreign: 'keep', owned: next.ownedDuring });
  assert.equal(text(rolledBack.document), text(next.document));
});

test('keep: with the end of ours the file has the bytes of before, replaced entries included', () => {
  const bytes = '{ "credsStore": "x",\n  "auths": {"theirs":{"auth":"Mzo="}, "both":{"auth":"NTo="}} }';
  const options = { foreign: 'keep', owned: {} } as const;
  const first = wantedDocument(
    read('{"auths":{"both":{"auth":"MTo="},"new":{"auth":"Mjo="}}}'),
    read(bytes),
    options,
  );
  const less = wantedDocument(read('{"auths":{"new":{"auth":"Mjo="}}}'), first.document, {
    ...options,
    owned: first.ownedAfter,
  });
  assert.match(text(less.document), /"both":\{"auth":"NTo="\}/);
  for (const { document, ownedAfter } of [first, less]) {
    const end = wantedDocument(EMPTY_DOCUMENT, document, { ...options, owned: ownedAfter });
    assert.equal(text(end.document), bytes);
    assert.deepEqual(end.ownedAfter, {});
  }
  const more = read('{"auths":{"both":{"auth":"MTo="},"later":{"auth":"Nzo="},"theirs":{"auth":"Mzo="}}}');
  const end = wantedDocument(EMPTY_DOCUMENT, more, { ...options, owned: first.ownedAfter });
  assert.equal(
    text(end.document),
    '{"auths":{"both":{"auth":"NTo="},"later":{"auth":"Nzo="},"theirs":{"auth":"Mzo="}}}',
  );
});

test('keep: a lost record brings no revoked entry back', () => {
  const source = read('{"auths":{"ours":{"auth":"MTo="}}}');
  const next = wantedDocument(source, source, { foreign: 'keep', owned: {} });
  const end = wantedDocument(EMPTY_DOCUMENT, next.document, { foreign: 'keep', owned: next.ownedAfter });
  assert.equal(text(end.document), '{"auths":{}}');
});

test('drop: what others put there goes', () => {
  const there = read('{"auths":{"theirs":{"auth":"Mzo="}}}');
  const next = wantedDocument(read('{"auths":{"ours":{}}}'), there, { foreign: 'drop', owned: {} });
  assert.equal(text(next.document), '{"auths":{"ours":{}}}');
  assert.equal(next.removes, true);
});

const map = fc.dictionary(
  fc.constantFrom('a', 'b', 'c', 'd', '__proto__', 'constructor'),
  fc.constantFrom('1', '2', '3'),
);

test('three ways: ours win, theirs stay, and merging twice changes nothing', () => {
  const digest = (value: string): string => value;
  forAll({}, map, map, map, (p, w, o) => {
    const [present, wanted] = [new Map(Object.entries(p)), new Map(Object.entries(w))];
    const owned = Object.fromEntries(Object.entries(o).map(([key, value]) => [key, ['0', value]]));
    const { entries } = mergeThreeWays(present, wanted, owned, digest);
    for (const [key, value] of wanted) assert.equal(entries.get(key), value);
    for (const [key, value] of present) {
      const ours = Object.hasOwn(o, key) && o[key] === value;
      if (!wanted.has(key)) assert.equal(entries.get(key), ours ? undefined : value);
    }
    const twice = mergeThreeWays(entries, wanted, owned, digest);
    assert.deepEqual([...twice.entries], [...entries]);
  });
});
