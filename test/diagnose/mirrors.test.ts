/** `mirrors` as a person types it: what is shown, in a narrow terminal too, and the exit codes. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type MirrorReport, mirrorText } from '../../runtime/diagnose/model/mirrors.ts';
import { type InProcessRun, runInProcess } from '../support/in-process.ts';
import { table, test } from '../support/suite.ts';

const root = new URL('../..', import.meta.url).pathname;
const IMAGE = 'registry.example.com/team/app:1';

function cli(...args: readonly string[]): Promise<InProcessRun> {
  return runInProcess(['mirrors', ...args]);
}

test('prints what the documentation shows', async () => {
  const ran = await cli(IMAGE, '--from', 'examples/fleet', '--cluster', 'management');
  assert.equal(ran.code, 0, ran.stderr);
  assert.equal(ran.stderr, '');
  const shown = /^\$ pullwright mirrors .*\n([\s\S]*?)^```$/m.exec(
    readFileSync(join(root, 'docs/registry-overrides.md'), 'utf8'),
  )?.[1];
  assert.equal(ran.stdout, shown);
});

test('prints one report per image as JSON', async () => {
  const args = ['--from', 'examples/fleet', '--cluster', 'management', '--for', 'node', '--output', 'json'];
  const ran = await cli(IMAGE, 'quay.io/other/app:2', ...args);
  const { reports } = JSON.parse(ran.stdout) as { readonly reports: readonly MirrorReport[] };
  assert.deepEqual(
    reports.map(({ candidates }) => candidates.map(({ reference, skipped }) => [reference, skipped?.reason])),
    [
      [
        ['mirror.example.com:5000/team/app:1', undefined],
        ['registry.example.com/team/app:1', 'Blocked'],
      ],
      [['quay.io/other/app:2', undefined]],
    ],
  );
});

table(
  test,
  [
    { name: 'no image', reason: 'wrong usage', args: [], code: 2, says: /an image is required/ },
    { name: 'no reference', reason: 'wrong usage', args: ['a b'], code: 2, says: /Cannot read image "a b"/ },
    {
      name: 'another output',
      reason: 'wrong usage',
      args: [IMAGE, '--output', 'xml'],
      code: 2,
      says: /must be one of text, wide, name, json, yaml/,
    },
    {
      name: 'no such folder',
      reason: 'failed',
      args: [IMAGE, '--from', '/nowhere'],
      code: 1,
      says: /"\/nowhere": not found/,
    },
    {
      name: 'no such file of nodes',
      reason: 'wrong usage',
      args: [IMAGE, '--registries-conf', '/nowhere'],
      code: 2,
      says: /expected a readable registries\.conf/,
    },
    {
      name: 'a place without address',
      reason: 'nothing answers',
      args: ['nowhere.invalid/app:1', '--probe'],
      code: 1,
      says: /^$/,
    },
  ],
  async (row) => {
    const ran = await cli(...row.args);
    assert.equal(ran.code, row.code, ran.stderr);
    assert.match(ran.stderr, row.says);
    assert.doesNotMatch(ran.stderr, /^\s+at /m);
  },
);

const REPORT: MirrorReport = {
  image: IMAGE,
  for: ['node'],
  given: true,
  candidates: [
    {
      reference: 'mirror.example.com/team/app:1',
      kind: 'mirror',
      from: 'ImageTagMirrorSet/team spec.imageTagMirrors[0].mirrors',
      probe: { verdict: 'NotFound', message: 'it is not there' },
    },
    { reference: IMAGE, kind: 'source' },
  ],
  findings: [],
  problems: [],
};

test('what a registry says stands below its place', () => {
  assert.deepEqual(mirrorText(REPORT).split('\n').slice(2), [
    '  1  mirror.example.com/team/app:1    mirror  ImageTagMirrorSet/team spec.imageTagMirrors[0].mirrors',
    '     NotFound: it is not there',
    '  2  registry.example.com/team/app:1  source',
    '',
  ]);
});

test('in a narrow terminal nothing stands beside a place', () => {
  assert.deepEqual(mirrorText(REPORT, 40).split('\n').slice(2), [
    '  1  mirror.example.com/team/app:1',
    '     mirror  ImageTagMirrorSet/team spec.imageTagMirrors[0].mirrors',
    '     NotFound: it is not there',
    '  2  registry.example.com/team/app:1',
    '     source',
    '',
  ]);
});
