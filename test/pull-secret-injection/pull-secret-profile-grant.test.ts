import assert from 'node:assert/strict';
import fc from 'fast-check';
import {
  grantsTo,
  type PullSecretGrant,
  readPullSecretGrant,
} from '../../runtime/pull-secret-injection/kinds/grant.ts';
import { forAll } from '../support/for-all.ts';
import { table, test } from '../support/suite.ts';
import { grant } from './scene.ts';

function targets(spec: Record<string, unknown>, trustedKeys?: readonly string[]): PullSecretGrant {
  return readPullSecretGrant(grant(spec), trustedKeys);
}

function grants(grant: PullSecretGrant, namespace: string, labels: Record<string, string>): boolean {
  return grantsTo(grant, { secret: 'quay', profile: 'team', namespace, labels });
}

const byLabel = (matchLabels: Record<string, string>): object => ({ namespaceSelector: { matchLabels } });

table(
  test,
  [
    { name: 'names', spec: { namespaces: ['a', 'b', 'c'] }, yes: ['a', 'b', 'c'], no: ['d', 'ab'] },
    {
      name: 'globs',
      reason: 'teams share a prefix',
      spec: { namespaces: ['dev-*', 't?'] },
      yes: ['dev-1', 'dev-', 't1'],
      no: ['dev', 't', 'xdev-1'],
    },
    {
      name: 'everything',
      reason: 'an owner may say so',
      spec: { namespaces: ['*'] },
      yes: ['a', 'kube-system'],
      no: [],
    },
    {
      name: 'a selector over the name',
      reason: 'the API server owns that label',
      spec: byLabel({ 'kubernetes.io/metadata.name': 'a' }),
      yes: ['a'],
      no: ['c'],
    },
  ],
  ({ spec, yes, no }) => {
    const grant = targets(spec as Record<string, unknown>);
    assert.deepEqual(grant.problems, []);
    for (const name of yes) assert.equal(grants(grant, name, {}), true, name);
    for (const name of no) assert.equal(grants(grant, name, {}), false, name);
  },
);

test('a namespace that claims another name in its labels gets nothing', () => {
  const grant = targets({ ...byLabel({ 'kubernetes.io/metadata.name': 'a' }) });
  assert.equal(grants(grant, 'evil', { 'kubernetes.io/metadata.name': 'a' }), false);
});

test('a selector over a label that is not trusted grants nothing and says so', () => {
  const grant = targets({ ...byLabel({ team: 'a' }) });
  assert.equal(grants(grant, 'x', { team: 'a' }), false);
  assert.match(grant.problems.join(), /label "team", which is not trusted/);
});

test('a selector over a trusted label grants', () => {
  assert.equal(grants(targets({ ...byLabel({ team: 'a' }) }, ['team']), 'x', { team: 'a' }), true);
});

for (const text of ['UPPER', 'a/b', 'a.b', 'x'.repeat(64)]) {
  test(`"${text.slice(0, 20)}" is reported and grants nothing`, () => {
    const grant = targets({ namespaces: [text] });
    assert.equal(grant.problems.length, 1);
    assert.equal(grants(grant, text.toLowerCase(), {}), false);
  });
}

test('a pattern of many stars is quick', () => {
  assert.equal(grants(targets({ namespaces: ['*a'.repeat(31)] }), 'a'.repeat(62) + 'b', {}), false);
});

test('globs agree with regular expressions', () => {
  const text = fc.string({ unit: fc.constantFrom('a', 'b', '*', '?'), maxLength: 6, minLength: 1 });
  const name = fc.string({ unit: fc.constantFrom('a', 'b'), maxLength: 6 });
  forAll({}, text, name, (glob, namespace) => {
    const wanted = new RegExp(`^${glob.replaceAll('*', '.*').replaceAll('?', '.')}$`).test(namespace);
    assert.equal(grants(targets({ namespaces: [glob] }), namespace, {}), wanted);
  });
});
