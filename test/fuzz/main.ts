/**
 * `npm run fuzz [-- --only NAME] [-- --cases N]`: 100,000 cases for every parser, and how its work grows. Prints the seed;
 * `SEED=` makes the same run again. Exit code 1 when a parser did something wrong.
 */
import { parseArgs } from 'node:util';
import { findPlanted } from '../support/canary.ts';
import { counted } from '../support/counted.ts';
import { WHOLE } from './adversarial.ts';
import { fuzz } from './fuzz.ts';
import { PARSERS } from './parsers.ts';
import { MOST_WORK, WorkCounter } from './work.ts';

const { values } = parseArgs({
  options: { only: { type: 'string' }, cases: { type: 'string', default: '100000' } },
});
const seed = Number(process.env['SEED'] ?? Date.now() % 0x7fff_ffff);
process.stdout.write(`seed ${seed}\n`);
let [wrong, parsers, took] = [0, 0, 0];
// Counts the work of libraries, too.
const counter = new WorkCounter(['file:']);
await counter.start();

for (const parser of PARSERS.filter(({ name }) => values.only === undefined || name === values.only)) {
  const from = performance.now();
  const { findings, taken } = await fuzz(parser, { seed, cases: Number(values.cases) });
  parsers += 1;
  took += Number(taken > 0);
  const { ratio, piece, at, text: grown } = await counter.worst(parser, WHOLE);
  const isSlow = ratio > MOST_WORK;
  wrong += findings.length + Number(isSlow);
  process.stdout.write(
    `${findings.length === 0 && !isSlow ? 'ok  ' : 'FAIL'} ${parser.name}: ${values.cases} cases in ${((performance.now() - from) / 1000).toFixed(1)} s; four times a run of ${JSON.stringify(piece)} at ${at} of text ${grown}: ${ratio.toFixed(1)} times the work\n`,
  );
  for (const { seed: own, what, text } of findings)
    process.stdout.write(
      `  SEED=${own} --cases 1: ${findPlanted(what) === undefined ? what.slice(0, 600) : '(withheld)'}\n    ${findPlanted(text) === undefined ? JSON.stringify(text.slice(0, 300)) : '(the text holds a planted secret)'}\n`,
    );
}
// One text alone may be refused by right.
if (Number(values.cases) >= 1000)
  counted(
    { parsers, 'that took some of their texts': took },
    { parsers: 1, 'that took some of their texts': parsers },
  );
process.exitCode = wrong === 0 ? 0 : 1;
await counter.stop();
