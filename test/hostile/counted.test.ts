/** Tests of chaos, soaks and fuzzing can fail: each says what must have happened for its run to count. */
import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { counted } from '../support/counted.ts';
import { table, test } from '../support/suite.ts';

const root = new URL('../..', import.meta.url).pathname;

/** Whatever draws by chance, or takes how often from outside, is of the kind. */
const OF_THE_KIND = /PULLWRIGHT_CHAOS|PULLWRIGHT_SEED|env\['SEED'\]|\bawait fuzz\(|\/(?:seeded-)?random\.ts'/;

/** Files that draw by chance and do no harm by it, each with the reason. */
const OTHERS: Readonly<Record<string, string>> = {
  'test/fuzz/fuzz.ts': 'counts, and gives its counts to fuzz.test.ts and main.ts',
  'test/node/turns.test.ts': 'does no harm: each draw is a turn, and each turn is judged',
  'test/oracle/kubernetes/oracle.ts':
    'does no harm: each case is compared with the original, and their number is fixed',
};

const files = globSync('test/**/*.ts', { cwd: root })
  .filter((file) => OF_THE_KIND.test(readFileSync(join(root, file), 'utf8')))
  .filter((file) => !['test/hostile/counted.test.ts', 'test/support/suite.ts'].includes(file))
  .sort();

for (const file of files)
  test(`${file} says what it needs to have seen`, () => {
    const text = readFileSync(join(root, file), 'utf8');
    const says = /^import \{ counted \} from .*counted\.ts';$[^]*^\s+(?:\S+ )?counted\(/m.test(text);
    assert.equal(says, OTHERS[file] === undefined);
  });

test('the chaos runs, the soak and the fuzz are among them, and nothing else is listed', () => {
  for (const file of [
    'test/credential-provider/installer-chaos.test.ts',
    'test/fuzz/fuzz.test.ts',
    'test/fuzz/main.ts',
    'test/global-pull-secret/agent-chaos.test.ts',
    'test/pull-secret-adapter/adapter-chaos.test.ts',
    'test/reconcile/failover.test.ts',
    'test/soak/main.ts',
  ])
    assert.ok(files.includes(file) && OTHERS[file] === undefined, file);
  assert.deepEqual(
    Object.keys(OTHERS).filter((file) => !files.includes(file)),
    [],
  );
});

table(
  test,
  [
    {
      name: 'as often as needed',
      reason: 'counts',
      seen: { kills: 3 },
      least: { kills: 3 },
      says: undefined,
    },
    {
      name: 'too seldom',
      reason: 'proves little',
      seen: { kills: 2 },
      least: { kills: 3 },
      says: /does not count/,
    },
    {
      name: 'never',
      reason: 'proves nothing',
      seen: { kills: 0 },
      least: { kills: 1 },
      says: /does not count/,
    },
    {
      name: 'no number',
      reason: 'a division by nothing',
      seen: { kills: Number.NaN },
      least: { kills: 1 },
      says: /does not count/,
    },
    {
      name: 'needed not once',
      reason: 'cannot fail',
      seen: { kills: 5 },
      least: { kills: 0 },
      says: /says nothing/,
    },
    { name: 'nothing needed', reason: 'cannot fail', seen: {}, least: {}, says: /nothing is needed/ },
    { name: 'not counted', reason: 'a slip', seen: {}, least: { kills: 1 }, says: /does not count/ },
  ],
  ({ seen, least, says }) => {
    const run = (): void => counted(seen as Record<string, number>, least as Record<string, number>);
    if (says === undefined) run();
    else assert.throws(run, says);
  },
);
