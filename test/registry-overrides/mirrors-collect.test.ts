import assert from 'node:assert/strict';
import fc from 'fast-check';
import {
  collectMirrors,
  mergeOrders,
  mirrorProblem,
  sourceProblem,
} from '../../runtime/registry-overrides/mirror-sets/collect.ts';
import { forAll } from '../support/for-all.ts';
import { meta } from '../support/meta.ts';
import { table, test } from '../support/suite.ts';

test('mergeOrders() keeps the order of every list that does not contradict another', () => {
  const letters = fc.shuffledSubarray(['a', 'b', 'c', 'd', 'e', 'f', 'g']);
  forAll(
    { numRuns: 500, seed: 8 },
    letters,
    fc.array(fc.array(fc.nat(6), { maxLength: 7 }), { maxLength: 4 }),
    (total, picks) => {
      const lists = picks.map((pick) => total.filter((_, at) => pick.includes(at)));
      const { order, conflict } = mergeOrders('source', lists);
      assert.equal(conflict, undefined);
      for (const list of lists)
        assert.deepEqual(
          order.filter((item) => list.includes(item)),
          list,
        );
    },
  );
});

test('collectMirrors() gives the same for every order of the objects', () => {
  const objects = ['one', 'two', 'three'].flatMap((name, at) => [
    {
      ...meta('config.openshift.io/v1 ImageDigestMirrorSet', { name }),
      spec: {
        imageDigestMirrors: [{ source: 'quay.io/x', mirrors: [`m${at}.example.com`, 'shared.example.com'] }],
      },
    },
    {
      ...meta('operator.openshift.io/v1alpha1 ImageContentSourcePolicy', { name }),
      spec: {
        repositoryDigestMirrors: [
          { source: 'quay.io/x', mirrors: ['shared.example.com', `n${at}.example.com`] },
        ],
      },
    },
  ]);
  const wanted = collectMirrors(objects);
  assert.deepEqual(
    wanted.rules[0]?.mirrors.map((mirror) => mirror.location.split('.')[0]),
    ['m0', 'm1', 'm2', 'shared', 'n0', 'n1', 'n2'],
  );
  forAll(
    { numRuns: 50, seed: 8 },
    fc.shuffledSubarray(objects, { minLength: objects.length }),
    (shuffled) => {
      assert.deepEqual(collectMirrors(shuffled), wanted);
    },
  );
});

test('one entry that never contacts the source blocks it for all of them, in any position', () => {
  const set = (name: string, mirrorSourcePolicy: string): object => ({
    ...meta('config.openshift.io/v1 ImageDigestMirrorSet', { name }),
    spec: {
      imageDigestMirrors: [{ source: 'quay.io/x', mirrors: [`${name}.example.com`], mirrorSourcePolicy }],
    },
  });
  const [never, allow] = ['NeverContactSource', 'AllowContactingSource'];
  for (const [a, b, blocked] of [
    [never, allow, true],
    [allow, never, true],
    [never, never, true],
    [allow, allow, false],
  ] as const) {
    const { rules, problems } = collectMirrors([set('a', a), set('b', b)] as never);
    assert.deepEqual(
      rules.map((rule) => rule.blocked),
      [blocked],
    );
    assert.deepEqual(
      problems.map(({ code }) => code),
      a === b ? [] : ['PolicyConflict'],
    );
  }
});

/** Entries that every reader ignores; see also bad-input.test.ts. */
table(
  test,
  [
    {
      name: 'only itself as mirror',
      reason: 'does nothing',
      item: { source: 'q.io', mirrors: ['q.io'] },
      code: 'NoMirror',
      rules: 0,
    },
    {
      name: 'mirrors is text',
      reason: 'never throws',
      item: { source: 'q.io', mirrors: 'm', mirrorSourcePolicy: 'NeverContactSource' },
      code: 'NoMirror',
      rules: 0,
    },
    {
      name: 'itself as mirror, forbidden',
      reason: 'a contradiction',
      item: { source: 'q.io', mirrors: ['q.io', 'm.example.com'], mirrorSourcePolicy: 'NeverContactSource' },
      code: 'SourceIsMirror',
      rules: 1,
    },
  ],
  (row) => {
    const good = { source: 'good.example.com', mirrors: ['m.example.com'] };
    const { rules, problems } = collectMirrors([
      {
        ...meta('config.openshift.io/v1 ImageTagMirrorSet', { name: 'bad' }),
        spec: { imageTagMirrors: [row.item, good] },
      },
    ]);
    assert.deepEqual(
      problems.map((problem) => problem.code),
      [row.code],
    );
    assert.match(problems[0]?.message ?? '', /^ImageTagMirrorSet\/bad spec\.imageTagMirrors\[0\]/);
    assert.equal(rules.length, row.rules + 1, 'the good entry stays');
  },
);

test('sources and mirrors are judged as the CRDs judge them', () => {
  const label = '(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])';
  const place = new RegExp(
    `^(${label}(?:(?:\\.${label})+)?(?::[0-9]+)?)(?:(?:/[a-z0-9]+(?:(?:(?:[._]|__|[-]*)[a-z0-9]+)+)?)+)?$`,
  );
  const wildcard = new RegExp(`^\\*(?:\\.${label})+$`);
  const text = fc
    .array(fc.constantFrom('a', 'B', '9', '.', '-', '_', '/', ':', '*', '@', ' '), { maxLength: 12 })
    .map((parts) => parts.join(''));
  forAll({ numRuns: 20_000, seed: 8 }, text, (asked) => {
    assert.equal(mirrorProblem(asked) === undefined, place.test(asked), asked);
    assert.equal(sourceProblem(asked) === undefined, place.test(asked) || wildcard.test(asked), asked);
  });
});
