/**
 * `npm run fuzz [-- --only NAME] [-- --cases N]`: 100,000 cases for every parser, and how their time grows. Prints the seed;
 * `SEED=` makes the same run again. Exit code 1 when a parser did something wrong.
 */
import { parseArgs } from 'node:util';
import { findPlanted } from '../support/canary.ts';
import { fuzz, growth } from './fuzz.ts';
import { PARSERS } from './parsers.ts';

/** Four times the input may take so many times as long. Quadratic would be 16. */
const MAX_GROWTH = 9;

const { values } = parseArgs({
  options: { only: { type: 'string' }, cases: { type: 'string', default: '100000' } },
});
const seed = Number(process.env['SEED'] ?? Date.now() % 0x7fff_ffff);
process.stdout.write(`seed ${seed}\n`);
let wrong = 0;
for (const parser of PARSERS.filter(({ name }) => values.only === undefined || name === values.only)) {
  const from = performance.now();
  const findings = await fuzz(parser, { seed, cases: Number(values.cases) });
  const { ratio, ms } = await growth(parser);
  // Below a few milliseconds the clock says more than the parser.
  const isSlow = ratio > MAX_GROWTH && ms > 20;
  wrong += findings.length + (isSlow ? 1 : 0);
  process.stdout.write(
    `${findings.length === 0 && !isSlow ? 'ok  ' : 'FAIL'} ${parser.name}: ${values.cases} cases in ${((performance.now() - from) / 1000).toFixed(1)} s; four times the input takes ${ratio.toFixed(1)} times as long (${ms.toFixed(1)} ms)\n`,
  );
  for (const { seed: own, what, text } of findings)
    process.stdout.write(
      `  SEED=${own} --cases 1: ${findPlanted(what) === undefined ? what.slice(0, 600) : '(withheld)'}\n    ${findPlanted(text) === undefined ? JSON.stringify(text.slice(0, 300)) : '(the text holds a planted secret)'}\n`,
    );
}
process.exitCode = wrong === 0 ? 0 : 1;
