// deadline: 300 s
/**
 * Every parser does work in proportion to its text, whatever is repeated wherever in a good one. Counted, not timed. `npm run fuzz` tries
 * more places and pieces.
 */
import assert from 'node:assert/strict';
import { PARSERS } from '../fuzz/parsers.ts';
import { PLANTED } from '../fuzz/planted.ts';
import { BRIEF, MOST_WORK, WorkCounter } from '../fuzz/work.ts';
import { test } from '../support/suite.ts';

const counter = new WorkCounter([
  new URL('../../runtime/', import.meta.url).href,
  new URL('../../charts/', import.meta.url).href,
  new URL('../fuzz/planted.ts', import.meta.url).href,
]);
await counter.start();

for (const parser of PLANTED)
  test(`the count tells: ${parser.name}`, async () => {
    const { ratio } = await counter.worst(parser, BRIEF);
    assert.equal(ratio > MOST_WORK, parser.grows === 'quadratic', `${ratio.toFixed(1)} times`);
  });

for (const parser of PARSERS)
  test(parser.name, async () => {
    const { ratio, blocks, piece, at, text } = await counter.worst(parser, BRIEF);
    assert.ok(
      ratio <= MOST_WORK,
      `four times a run of ${JSON.stringify(piece)} at ${at} of text ${text} takes ${ratio.toFixed(1)} times the work (${blocks} blocks)`,
    );
  });

test.lastly('counting ends', () => counter.stop());
