// deadline: 240 s
/** Every parser, with a fixed seed: never anything but a typed error, never a value shown, never a hang. More of it by `npm run fuzz`. */
import assert from 'node:assert/strict';
import { PullwrightError } from '../../runtime/rules/errors.ts';
import { plantedPassword } from '../support/canary.ts';
import { suite } from '../support/suite.ts';
import { fuzz, wrongWith } from './fuzz.ts';
import { PARSERS } from './parsers.ts';

const test = suite('fuzzing');
const CASES = 1500;
const warnings: string[] = [];
process.on('warning', ({ name }) => warnings.push(name));

for (const parser of PARSERS)
  test(`${parser.name}: ${CASES} cases`, () => {
    const findings = fuzz(parser, { seed: 1, cases: CASES });
    // The text may hold a planted secret: its seed makes it again.
    assert.deepEqual(
      findings.map(({ seed, what }) => `${seed}: ${what.slice(0, 300)}`),
      [],
    );
  });

test('nothing is written to standard error on the way: the YAML library would quote the text', () => {
  assert.deepEqual(warnings, []);
});

test('good input is taken: every corpus has a text that does not throw', () => {
  for (const parser of PARSERS)
    assert.ok(
      parser.corpus.some((text) => {
        try {
          parser.run(text);
          return true;
        } catch {
          return false;
        }
      }),
      parser.name,
    );
});

const ENDLESS: Readonly<Record<string, string>> = {
  duration: `${'5050ms'.repeat(30)}5050`,
  'label selector': `${'a'.repeat(20_000)} = ${'b '.repeat(5000)}`,
};

test('texts that once took for ever are answered', () => {
  for (const [name, text] of Object.entries(ENDLESS)) {
    const parser = PARSERS.find((one) => one.name === name);
    assert.ok(parser !== undefined, name);
    assert.equal(wrongWith(parser, text), undefined, name);
  }
});

test('the check itself sees an untyped error, a shown secret and a broken round trip', () => {
  const parser = (run: (text: string) => unknown) => ({ name: 'x', corpus: [''], unit: '', run });
  const fails = (error: Error) =>
    parser(() => {
      throw error;
    });
  assert.match(wrongWith(fails(new TypeError('no')), '') ?? '', /threw TypeError/);
  assert.match(wrongWith(fails(new Error('round trip')), '') ?? '', /round trip/);
  const password = plantedPassword('fuzz-check');
  assert.match(
    wrongWith(
      parser(() => ({ password })),
      '',
    ) ?? '',
    /planted/,
  );
  assert.match(wrongWith(fails(new PullwrightError(password, { code: 'X' })), '') ?? '', /planted/);
  assert.equal(wrongWith(fails(new PullwrightError('Cannot', { code: 'X' })), ''), undefined);
});

test.run();
