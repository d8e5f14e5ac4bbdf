/** What `pullwright synth` says of wrong input: where, what is there, what is wanted; and how it exits. */
import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Case, table, test } from '../support/suite.ts';
import { SynthFolder } from './synth-folder.ts';

const folder = new SynthFolder();
const { scratch } = folder;

interface Bad extends Case {
  readonly args: readonly string[];
  readonly code: number;
  readonly says: RegExp;
  readonly before?: () => void;
}

const BAD: readonly Bad[] = [
  {
    name: 'a fleet that is not there',
    reason: 'a typo',
    args: ['--fleet', 'none.yaml'],
    code: 1,
    says: /^Cannot read fleet "none\.yaml": there is no such file\n$/,
  },
  {
    name: 'a fleet that is a folder',
    reason: 'a slip',
    args: ['--fleet', '.'],
    code: 1,
    says: /it is a folder, expected a file/,
  },
  {
    name: 'a fleet in TypeScript that does not load',
    reason: 'a mistake in it',
    args: ['--fleet', 'broken.ts'],
    code: 1,
    says: /^Cannot read fleet "broken\.ts": .*no-such-module/,
    before: () => writeFileSync(join(scratch, 'broken.ts'), "import 'no-such-module';\n"),
  },
  {
    name: 'a fleet in TypeScript without default',
    reason: 'forgotten',
    args: ['--fleet', 'empty.ts'],
    code: 1,
    says: /exports no default, expected a fleet/,
    before: () => writeFileSync(join(scratch, 'empty.ts'), 'export const a = 1;\n'),
  },
  {
    name: 'an output that is a file',
    reason: 'a slip',
    args: ['--to', 'file'],
    code: 1,
    says: /^Cannot write to "file": a file exists where a folder is expected\n$/,
    before: () => writeFileSync(join(scratch, 'file'), ''),
  },
  {
    name: 'an output that cannot be made',
    reason: 'not writable',
    args: ['--to', 'file/below'],
    code: 1,
    says: /^Cannot write to "file\/below": a file exists where a folder is expected\n$/,
  },
  {
    name: 'a foreign file in the way',
    reason: 'it is kept',
    args: ['--to', 'foreign'],
    code: 1,
    says: /1 path holds something that was not rendered there: kustomization\.yaml.*Nothing was written/,
    before: () => {
      mkdirSync(join(scratch, 'foreign'));
      writeFileSync(join(scratch, 'foreign/kustomization.yaml'), 'mine');
    },
  },
  {
    name: 'an unknown flag',
    reason: 'usage',
    args: ['--too', 'x'],
    code: 2,
    says: /Unknown option "--too": did you mean "--to"/,
  },
  {
    name: 'an unknown format',
    reason: 'usage',
    args: ['--output', 'xml'],
    code: 2,
    says: /must be one of text, json/,
  },
  {
    name: 'a check of standard output',
    reason: 'nothing to compare with',
    args: ['--check', '--to', '-'],
    code: 2,
    says: /expected a folder/,
  },
];

table(test, BAD, async ({ args, code, says, before }) => {
  before?.();
  const ran = await folder.synth(args);
  assert.equal(ran.code, code, ran.stdout + ran.stderr);
  assert.match(ran.stderr, says);
  assert.doesNotMatch(ran.stderr, /^ {4}at /m);
});

test.lastly('the scratch folder goes', () => folder.close());
