/** Problems of mirror sets in a fleet file. */
import assert from 'node:assert/strict';
import type { MirrorSet } from '../../charts/registry-overrides/chart.ts';
import { lintMirrorSets } from '../../charts/registry-overrides/chart.ts';
import { type Case, table, test } from '../support/suite.ts';
import { mirrorSet } from './mirror-set.ts';

interface LintCase extends Case {
  readonly sets: readonly MirrorSet[];
  readonly codes: readonly string[];
}

const LINT: readonly LintCase[] = [
  {
    name: 'nothing wrong',
    reason: 'silence',
    sets: [mirrorSet('a', [{ source: 'quay.io/x', mirrors: ['m.example.com/x'] }])],
    codes: [],
  },
  {
    name: 'a comma in a mirror',
    reason: 'the text format cannot carry it',
    sets: [mirrorSet('a', [{ source: 'quay.io', mirrors: ['a,b'] }])],
    codes: ['MirrorInvalid', 'NoMirror'],
  },
  {
    name: 'a tag in a source',
    reason: 'rules are for repositories',
    sets: [mirrorSet('a', [{ source: 'quay.io/x:1', mirrors: ['m.example.com'] }])],
    codes: ['SourceInvalid'],
  },
  {
    name: 'the same mirror twice',
    reason: 'the CRD refuses it',
    sets: [mirrorSet('a', [{ source: 'quay.io', mirrors: ['m.example.com', 'm.example.com'] }])],
    codes: ['DuplicateMirror'],
  },
  {
    name: 'the same entry in two sets',
    reason: 'one of them is not needed',
    sets: [
      mirrorSet('a', [{ source: 'quay.io', mirrors: ['m.example.com'] }]),
      mirrorSet('b', [{ source: 'quay.io', mirrors: ['m.example.com'] }]),
    ],
    codes: ['DuplicateEntry'],
  },
  {
    name: 'a source within another',
    reason: 'the wider mirrors are not tried',
    sets: [
      mirrorSet('a', [
        { source: 'quay.io', mirrors: ['m.example.com'] },
        { source: 'quay.io/x', mirrors: ['n.example.com/x'] },
      ]),
    ],
    codes: ['Overlap'],
  },
  {
    name: 'a host within a wildcard',
    reason: 'the wider mirrors are not tried',
    sets: [
      mirrorSet('a', [
        { source: '*.example.org', mirrors: ['m.example.com'] },
        { source: 'long.example.org', mirrors: ['n.example.com'] },
      ]),
    ],
    codes: ['WildcardNodesOnly', 'Overlap'],
  },
  {
    name: 'a host as long as a wildcard',
    reason: 'it is never used',
    sets: [
      mirrorSet('a', [
        { source: '*.example.org', mirrors: ['m.example.com'] },
        { source: 'a.example.org', mirrors: ['n.example.com'] },
      ]),
    ],
    codes: ['WildcardNodesOnly', 'Unreachable'],
  },
  {
    name: 'a loop',
    reason: 'mirrors are not mirrored',
    sets: [
      mirrorSet('a', [
        { source: 'x.example.com', mirrors: ['y.example.com'] },
        { source: 'y.example.com', mirrors: ['x.example.com'] },
      ]),
    ],
    codes: ['Loop', 'Loop'],
  },
  {
    name: 'a chain',
    reason: 'mirrors are not mirrored',
    sets: [
      mirrorSet('a', [
        { source: 'x.example.com', mirrors: ['y.example.com'] },
        { source: 'y.example.com', mirrors: ['z.example.com'] },
      ]),
    ],
    codes: ['MirrorIsSource'],
  },
  {
    name: 'a blocked mirror',
    reason: 'it is never tried',
    sets: [
      mirrorSet('a', [
        { source: 'x.example.com', mirrors: ['y.example.com'] },
        { source: 'y.example.com', mirrors: ['z.example.com'], mirrorSourcePolicy: 'NeverContactSource' },
      ]),
    ],
    codes: ['MirrorBlocked'],
  },
  {
    name: 'a bare host for a repository',
    reason: 'the image has no repository then',
    sets: [mirrorSet('a', [{ source: 'quay.io/x', mirrors: ['m.example.com'] }])],
    codes: ['MirrorWithoutPath'],
  },
  {
    name: 'opposite policies of a digest set and a content source policy',
    reason: 'the operator tells one fault, of which the advice can be followed',
    sets: [
      mirrorSet('a', [
        { source: 'quay.io', mirrors: ['m.example.com'], mirrorSourcePolicy: 'NeverContactSource' },
      ]),
      {
        ...mirrorSet('b', [{ source: 'quay.io', mirrors: ['n.example.com'] }]),
        type: 'content-source-policy',
      },
    ],
    codes: ['PolicyConflict'],
  },
  {
    name: 'two policies for one source',
    reason: 'nodes refuse both',
    sets: [
      mirrorSet('a', [
        { source: 'quay.io', mirrors: ['m.example.com'], mirrorSourcePolicy: 'NeverContactSource' },
      ]),
      mirrorSet('b', [{ source: 'quay.io', mirrors: ['n.example.com'] }]),
    ],
    codes: ['PolicyConflict'],
  },
  {
    name: 'opposite orders',
    reason: 'the order is not specified',
    sets: [
      mirrorSet('a', [{ source: 'quay.io', mirrors: ['m.example.com', 'n.example.com'] }]),
      mirrorSet('b', [{ source: 'quay.io', mirrors: ['n.example.com', 'm.example.com'] }]),
    ],
    codes: ['OrderConflict'],
  },
];

table(test, LINT, (row) => {
  const problems = lintMirrorSets(row.sets);
  assert.deepEqual(
    problems.map((problem) => problem.code),
    row.codes,
  );
  for (const problem of problems) assert.match(problem.message, /^Image\w+\/[ab] spec\./);
});
