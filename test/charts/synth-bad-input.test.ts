/** Errors of `pullwright synth` for invalid input: position, present value, expected value, and exit code. */
import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { cases, test } from '../support/suite.ts';
import { SynthFolder } from './synth-folder.ts';

const folder = new SynthFolder();
const { scratch } = folder;

type Bad = [args: readonly string[], code: number, says: RegExp, before?: () => void];
const BAD: readonly (readonly [name: string, reason: string, ...Bad])[] = [
  [
    'a fleet that is not there',
    'a typo',
    ['--fleet', 'none.yaml'],
    1,
    /^Cannot read fleet "none\.yaml": file not found\n$/,
  ],
  ['a fleet that is a folder', 'a slip', ['--fleet', '.'], 1, /it is a folder, expected a file/],
  [
    'a fleet in TypeScript that does not load',
    'a mistake in it',
    ['--fleet', 'broken.ts'],
    1,
    /^Cannot read fleet "broken\.ts": .*no-such-module/,
    () => writeFileSync(join(scratch, 'broken.ts'), "import 'no-such-module';\n"),
  ],
  [
    'a fleet in TypeScript without default',
    'forgotten',
    ['--fleet', 'empty.ts'],
    1,
    /has no default export, expected a fleet/,
    () => writeFileSync(join(scratch, 'empty.ts'), 'export const a = 1;\n'),
  ],
  [
    'an output that is a file',
    'a slip',
    ['--to', 'file'],
    1,
    /^Cannot write to "file": a file exists where a folder is expected\n$/,
    () => writeFileSync(join(scratch, 'file'), ''),
  ],
  [
    'an output that cannot be made',
    'not writable',
    ['--to', 'file/below'],
    1,
    /^Cannot write to "file\/below": a file exists where a folder is expected\n$/,
  ],
  [
    'a foreign file in the way',
    'it is kept',
    ['--to', 'foreign'],
    1,
    /1 path has files that were not rendered: kustomization\.yaml.*Nothing was written/,
    () => {
      mkdirSync(join(scratch, 'foreign'));
      writeFileSync(join(scratch, 'foreign/kustomization.yaml'), 'mine');
    },
  ],
  ['an unknown flag', 'usage', ['--too', 'x'], 2, /Unknown option "--too": did you mean "--to"/],
  ['an unknown format', 'usage', ['--output', 'xml'], 2, /must be one of text, json/],
  ['a check of standard output', 'nothing to compare with', ['--check', '--to', '-'], 2, /expected a folder/],
];

cases<Bad>(test, BAD, async (args, code, says, before) => {
  before?.();
  const ran = await folder.synth(args);
  assert.equal(ran.code, code, ran.stdout + ran.stderr);
  assert.match(ran.stderr, says);
  assert.doesNotMatch(ran.stderr, /^ {4}at /m);
});

test.lastly('the scratch folder goes', () => folder.close());
