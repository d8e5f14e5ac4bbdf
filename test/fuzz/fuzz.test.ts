// deadline: 600 s
/** Every parser, with a fixed seed: never anything but a typed error, never a value shown, never a hang. More of it by `npm run fuzz`. */
import assert from 'node:assert/strict';
import { PullwrightError } from '../../runtime/core/errors.ts';
import { plantedPassword } from '../support/canary.ts';
import { counted } from '../support/counted.ts';
import { test } from '../support/suite.ts';
import { fuzz, wrongWith } from './fuzz.ts';
import { PARSERS } from './parsers.ts';

const CASES = 1000;
const warnings: string[] = [];
process.on('warning', ({ name }) => warnings.push(name));

/** Parsers that took texts, and that took some and refused others. */
const seen = { taken: 0, parsers: 0 };

for (const parser of PARSERS) {
  const cases = parser.slow === true ? CASES / 10 : CASES;
  test(`${parser.name}: ${cases} cases`, async () => {
    const { findings, taken } = await fuzz(parser, { seed: 1, cases });
    seen.parsers += Number(taken > 0 && taken < cases);
    seen.taken += Number(taken > 0);
    // The text may hold a planted secret: its seed makes it again.
    assert.deepEqual(
      findings.map(({ seed, what }) => `${seed}: ${what.slice(0, 300)}`),
      [],
    );
  });
}

test('every parser took some of its texts, and most refused others', () => {
  counted(
    { 'parsers that took some': seen.taken, 'and refused others': seen.parsers },
    { 'parsers that took some': PARSERS.length, 'and refused others': Math.ceil(PARSERS.length / 3) },
  );
});

test('nothing is written to standard error on the way: the YAML library would quote the text', () => {
  assert.deepEqual(warnings, []);
});

test('good input is taken: every corpus has a text that does not throw', async () => {
  for (const parser of PARSERS) {
    const taken = await Promise.allSettled(parser.corpus.map(async (text) => parser.run(text)));
    assert.ok(
      taken.some(({ status }) => status === 'fulfilled'),
      parser.name,
    );
  }
});

const ENDLESS: Readonly<Record<string, string>> = {
  duration: `${'5050ms'.repeat(30)}5050`,
};

test('texts that once took for ever are answered', async () => {
  for (const [name, text] of Object.entries(ENDLESS)) {
    const parser = PARSERS.find((one) => one.name === name);
    assert.ok(parser !== undefined, name);
    assert.equal(await wrongWith(parser, text), undefined, name);
  }
});

test('the check itself sees an untyped error, a shown secret and a broken round trip', async () => {
  const parser = (run: (text: string) => unknown) => ({ name: 'x', corpus: [''], run });
  const fails = (error: Error) =>
    parser(() => {
      throw error;
    });
  assert.match((await wrongWith(fails(new TypeError('no')), '')) ?? '', /threw TypeError/);
  assert.match((await wrongWith(fails(new Error('round trip')), '')) ?? '', /round trip/);
  const password = plantedPassword('fuzz-check');
  assert.match(
    (await wrongWith(
      parser(() => ({ password })),
      '',
    )) ?? '',
    /planted/,
  );
  assert.match((await wrongWith(fails(new PullwrightError(password, { code: 'X' })), '')) ?? '', /planted/);
  assert.equal(await wrongWith(fails(new PullwrightError('Cannot', { code: 'X' })), ''), undefined);
});
