import assert from 'node:assert/strict';
import fc from 'fast-check';
import { grants, readGrant } from '../../runtime/pull-secret-injection/kinds/grant.ts';
import { suite, table } from '../support/suite.ts';

const test = suite('grants of a source Secret');

table(
  test,
  [
    { name: 'names', reason: 'the plain case', text: 'a, b c', yes: ['a', 'b', 'c'], no: ['d', 'ab'] },
    {
      name: 'globs',
      reason: 'teams share a prefix',
      text: 'dev-*,t?',
      yes: ['dev-1', 'dev-', 't1'],
      no: ['dev', 't', 'xdev-1'],
    },
    { name: 'everything', reason: 'an owner may say so', text: '*', yes: ['a', 'kube-system'], no: [] },
    {
      name: 'clauses',
      reason: 'separated by semicolon or line',
      text: 'a; b\nc',
      yes: ['a', 'b', 'c'],
      no: ['d'],
    },
    { name: 'nothing', reason: 'no grant, no copy', text: ' ;\n, ', yes: [], no: ['a', ''] },
    {
      name: 'a selector over the name',
      reason: 'the API server owns that label',
      text: 'selector: kubernetes.io/metadata.name in (a,b)',
      yes: ['a', 'b'],
      no: ['c'],
    },
  ],
  ({ text, yes, no }) => {
    const grant = readGrant(text);
    assert.deepEqual(grant.problems, []);
    for (const name of yes) assert.equal(grants(grant, name, {}), true, name);
    for (const name of no) assert.equal(grants(grant, name, {}), false, name);
  },
);

test('a namespace that claims another name in its labels gets nothing', () => {
  const grant = readGrant('selector: kubernetes.io/metadata.name=a');
  assert.equal(grants(grant, 'evil', { 'kubernetes.io/metadata.name': 'a' }), false);
});

test('a selector over a label that is not trusted grants nothing and says so', () => {
  const grant = readGrant('selector: team=a');
  assert.equal(grants(grant, 'x', { team: 'a' }), false);
  assert.match(grant.problems.join(), /label "team", which is not trusted/);
});

test('a selector over a trusted label grants', () => {
  assert.equal(grants(readGrant('selector: team=a', ['team']), 'x', { team: 'a' }), true);
});

for (const text of ['UPPER', 'a/b', 'selector:', 'selector: (', 'a.b', 'x'.repeat(64)]) {
  test(`"${text.slice(0, 20)}" is reported and grants nothing`, () => {
    const grant = readGrant(text);
    assert.equal(grant.problems.length, 1);
    assert.equal(grants(grant, text.toLowerCase(), {}), false);
  });
}

test('readGrant() is total and quick for any text', () => {
  fc.assert(fc.property(fc.string(), fc.string(), (text, name) => void grants(readGrant(text), name, {})));
  const many = readGrant('*a'.repeat(31));
  assert.equal(grants(many, 'a'.repeat(62) + 'b', {}), false);
});

test('globs agree with regular expressions', () => {
  const text = fc.string({ unit: fc.constantFrom('a', 'b', '*', '?'), maxLength: 6, minLength: 1 });
  const name = fc.string({ unit: fc.constantFrom('a', 'b'), maxLength: 6 });
  fc.assert(
    fc.property(text, name, (glob, namespace) => {
      const wanted = new RegExp(`^${glob.replaceAll('*', '.*').replaceAll('?', '.')}$`).test(namespace);
      assert.equal(grants(readGrant(glob), namespace, {}), wanted);
    }),
  );
});

test.run();
