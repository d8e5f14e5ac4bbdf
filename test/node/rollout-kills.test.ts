/** The rollout machine on a model of a node, killed between any two steps and wanted bad content for a month. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { ABSENT } from '../../runtime/node/checkpoint.ts';
import { test } from '../support/suite.ts';
import { agentStep, restingNode } from './rollout-model.ts';

const content = fc.constantFrom('good-1', 'good-2', 'good-3', 'bad-1', 'bad-2', undefined);

test('whatever the order of contents and kills: the kubelet runs, with the wanted content or the last good one', () => {
  fc.assert(
    fc.property(
      fc.array(fc.tuple(content, fc.array(fc.nat({ max: 3 }), { maxLength: 6 })), {
        minLength: 1,
        maxLength: 8,
      }),
      (story) => {
        const node = restingNode(ABSENT);
        for (const [wanted, kills] of story) for (const dies of kills) agentStep(node, wanted, dies);
        const last = story.at(-1)?.[0];
        let rounds = 0;
        while (agentStep(node, last, 3) === 'on') assert.ok((rounds += 1) < 200, 'it never comes to rest');
        assert.notEqual(node.runsWith, undefined, 'the kubelet is down');
        assert.ok(!node.file.startsWith('bad'), 'bad content is left in the file');
        assert.equal(node.runsWith, node.file, 'the kubelet runs with other content than the file');
        if (last !== undefined && !last.startsWith('bad')) assert.equal(node.file, last);
        assert.equal(node.stored.change, undefined);
      },
    ),
    { numRuns: 5000 },
  );
});

test('bad content restarts the kubelet a bounded number of times, however long it is wanted', () => {
  const node = restingNode('good-1');
  for (let hour = 0; hour < 24 * 30; hour += 1) {
    while (agentStep(node, 'bad-1', 3) === 'on');
    node.now += 3_600_000;
  }
  assert.equal(node.restarts, 3 * (3 + 1), 'three rounds of three attempts and one recovery');
  assert.equal(node.runsWith, 'good-1');
});
