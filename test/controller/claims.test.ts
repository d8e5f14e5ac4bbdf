/** Claims: a cluster is nobody's twice, whatever the order in which names and kubeconfigs come, change and go. */
import assert from 'node:assert/strict';
import * as fc from 'fast-check';
import { Claims } from '../../runtime/controller/cluster-ownership.ts';
import { suite } from '../support/suite.ts';

const test = suite('Claims');

/** As discovery does: whoever has to leave does so before the other one is opened. */
function lookAt(claims: Claims, name: string, mark: string): boolean {
  const verdict = claims.judge(name, mark);
  if (!verdict.may) return false;
  for (const other of verdict.yields) claims.close(other);
  claims.open(name, mark);
  return true;
}

function withNames(...names: readonly string[]): Claims {
  const claims = new Claims();
  for (const name of names) claims.enter(name);
  return claims;
}

test('judge() keeps the first name, and a refused one its own cluster', () => {
  const claims = withNames('a', 'b');
  assert.ok(lookAt(claims, 'a', '1'));
  assert.ok(lookAt(claims, 'b', '2'));
  assert.deepEqual(claims.judge('b', '1'), { may: false, holder: 'a' });
  assert.equal(claims.markOf('b'), '2');
});

test('judge() waits for a remembered name whose kubeconfig nobody has seen yet', () => {
  const claims = withNames('a', 'b');
  claims.remember({ 1: 'a' });
  assert.deepEqual(claims.judge('b', '1'), { may: false, holder: 'a' });
  assert.ok(lookAt(claims, 'a', '1'));
  assert.deepEqual(claims.judge('b', '1'), { may: false, holder: 'a' });
});

test('judge() gives the cluster of a remembered name that is gone or leads elsewhere', () => {
  const gone = withNames('b');
  gone.remember({ 1: 'a' });
  assert.ok(lookAt(gone, 'b', '1'));
  const moved = withNames('a', 'b');
  moved.remember({ 1: 'a' });
  assert.ok(lookAt(moved, 'a', '2'));
  assert.ok(lookAt(moved, 'b', '1'));
  assert.deepEqual(moved.record(), { 1: 'b', 2: 'a' });
});

test('two names can change places', () => {
  const claims = withNames('a', 'b');
  lookAt(claims, 'a', '1');
  lookAt(claims, 'b', '2');
  assert.equal(lookAt(claims, 'a', '2'), false);
  assert.deepEqual(claims.judge('b', '1'), { may: true, yields: ['a'] });
  claims.close('a');
  claims.open('b', '1');
  assert.ok(lookAt(claims, 'a', '2'));
});

test('overruled() names who took over what another process remembered', () => {
  const claims = withNames('a', 'b');
  lookAt(claims, 'b', '1');
  claims.judge('a', '1');
  claims.remember({ 1: 'a' });
  assert.deepEqual(claims.overruled(), ['b']);
});

test('leave() frees the cluster', () => {
  const claims = withNames('a', 'b');
  lookAt(claims, 'a', '1');
  claims.leave('a');
  assert.ok(lookAt(claims, 'b', '1'));
  assert.deepEqual(claims.record(), { 1: 'b' });
});

const names = ['a', 'b', 'c'];
const step = fc.oneof(
  fc.record({
    do: fc.constant('look' as const),
    name: fc.constantFrom(...names),
    mark: fc.constantFrom('1', '2', '3'),
  }),
  fc.record({ do: fc.constant('leave' as const), name: fc.constantFrom(...names), mark: fc.constant('') }),
  fc.record({ do: fc.constant('restart' as const), name: fc.constant(''), mark: fc.constant('') }),
);

test('no cluster is open under two names, and who has one keeps it while its kubeconfig stays', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
      let claims = withNames(...names);
      const leads = new Map<string, string>();
      for (const one of steps) {
        const before = new Map(names.map((name) => [name, claims.markOf(name)]));
        if (one.do === 'look') {
          leads.set(one.name, one.mark);
          lookAt(claims, one.name, one.mark);
        } else if (one.do === 'leave') {
          claims.leave(one.name);
          claims.enter(one.name);
          leads.delete(one.name);
        } else claims = restarted(claims);
        const open = names.flatMap((name) => claims.markOf(name) ?? []);
        assert.equal(new Set(open).size, open.length);
        for (const name of names)
          if (one.do === 'look' && name !== one.name && before.get(name) === leads.get(name))
            assert.equal(claims.markOf(name), before.get(name));
      }
    }),
  );
});

test('after a restart the first is the first, in whatever order the kubeconfigs are read', () => {
  fc.assert(
    fc.property(
      fc.shuffledSubarray(names, { minLength: 3 }),
      fc.shuffledSubarray(names, { minLength: 3 }),
      (one, two) => {
        const claims = withNames(...names);
        for (const name of one) lookAt(claims, name, '1');
        const next = withNames(...names);
        next.remember(claims.record());
        for (const name of two) lookAt(next, name, '1');
        assert.deepEqual(next.record(), { 1: one[0] });
        assert.equal(next.markOf(one[0] ?? ''), '1');
      },
    ),
  );
});

/** Another process with what this one remembered. */
function restarted(claims: Claims): Claims {
  const next = withNames(...names);
  next.remember(claims.record());
  return next;
}

test.run();
