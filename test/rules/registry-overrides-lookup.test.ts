import assert from 'node:assert/strict';
import { metadataCandidates, releaseCandidates } from '../../runtime/rules/registry-overrides/lookup.ts';
import { type Case, suite, table } from '../support/suite.ts';

const test = suite('overrides in look-ups');

interface Row extends Case {
  readonly image: string;
  readonly overrides: Readonly<Record<string, readonly string[]>>;
  readonly wanted: readonly string[];
  readonly problems?: readonly RegExp[];
}

const ROWS: readonly Row[] = [
  {
    name: 'tags and digests of the rule are passed over',
    reason: 'a rule is for repositories',
    image: 'quay.io/o/r:1',
    overrides: { 'quay.io/o/r:7': [`m.example.com/o/r@sha256:${'a'.repeat(64)}`] },
    wanted: ['m.example.com/o/r:1'],
  },
  {
    name: 'an image of Docker Hub without a namespace',
    reason: 'it is in the namespace library, as it is pulled',
    image: 'docker.io/nginx:1',
    overrides: { 'docker.io/library': ['m.example.com/hub'] },
    wanted: ['m.example.com/hub/nginx:1'],
  },
  {
    name: 'an image of Docker Hub in a namespace',
    reason: 'nothing is added',
    image: 'docker.io/team/app:1',
    overrides: { 'docker.io/library': ['wrong.example.com'], 'docker.io/team': ['m.example.com/team'] },
    wanted: ['m.example.com/team/app:1'],
  },
  {
    name: 'an image at the top of another registry',
    reason: 'library is of Docker Hub alone',
    image: 'quay.io/app:1',
    overrides: { 'quay.io/library': ['wrong.example.com'], 'quay.io': ['m.example.com'] },
    wanted: ['m.example.com/app:1'],
  },
  {
    name: 'a source and a mirror that are no references',
    reason: 'they are named and the others go on',
    image: 'quay.io/o/r:1',
    overrides: { 'Not A/Reference': ['n.example.com'], 'quay.io/o/r': ['NO WAY', 'm.example.com/o/r'] },
    wanted: ['m.example.com/o/r:1'],
    problems: [/source image reference "Not A\/Reference"/, /mirror image reference "NO WAY"/],
  },
  {
    name: 'a wildcard as source',
    reason: 'it is judged without its star',
    image: 'a.example.org/o/r:1',
    overrides: { '*.example.org': ['m.example.com'] },
    wanted: ['m.example.com/o/r:1'],
  },
];

table(test, ROWS, ({ image, overrides, wanted, problems = [] }) => {
  const found = metadataCandidates(image, new Map(Object.entries(overrides)));
  assert.ok(!('error' in found), JSON.stringify(found));
  assert.deepEqual(found.candidates, wanted);
  assert.equal(found.problems.length, problems.length, found.problems.join());
  for (const [at, text] of problems.entries()) assert.match(found.problems[at] ?? '', text);
});

test('an image that is no reference is an error', () => {
  assert.ok('error' in metadataCandidates('Not An Image', new Map()));
});

test('an empty mirror is none', () => {
  assert.deepEqual(
    releaseCandidates('quay.io/o/r:1', new Map([['quay.io/o/r', ['', 'm.example.com/o/r']]])),
    ['m.example.com/o/r:1'],
  );
});

test.run();
