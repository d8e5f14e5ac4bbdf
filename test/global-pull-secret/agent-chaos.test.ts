// deadline: 240 s
/**
 * The compiled agent, killed at random instants of a change. After each kill another one finishes, and then: the file is
 * whole and is the wanted content (or, where the kubelet does not come up with it, the last good one), the kubelet runs and
 * its last start read exactly that.
 *
 * `PULLWRIGHT_CHAOS=1000` sets the number of kills, `PULLWRIGHT_SEED` repeats a run.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { OLD, scene, secret } from '../support/agent-scene.ts';
import type { TestNode } from '../support/node-agent.ts';
import { runProcess } from '../support/process.ts';
import { suite } from '../support/suite.ts';
import { digestOf, entriesOf } from '../support/systemd.ts';

const test = suite('node agent, killed at random instants');

const KILLS = Number(process.env['PULLWRIGHT_CHAOS'] ?? 20);
const SEED = Number(process.env['PULLWRIGHT_SEED'] ?? Math.floor(Math.random() * 2 ** 31));

/** Numbers from 0 to 1 that a seed decides (mulberry32). */
function random(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

const FLAGS = ['--settle=50ms', '--once'];

async function finish(node: TestNode): Promise<void> {
  const ran = await runProcess(node.command(FLAGS), { deadlineMs: 30_000 });
  assert.ok(!ran.timedOut, ran.stderr);
}

scene(test, `${KILLS} kills, seed ${SEED}`, async (node) => {
  const roll = random(SEED);
  process.stdout.write(`kills: ${KILLS}, seed: ${SEED}\n`);
  node.machine.behave('picky');
  let good = OLD;
  let startedTwice = 0;
  let reached = 0;
  for (let at = 0; at < KILLS; at += 1) {
    const poison = roll() < 0.15;
    const content = secret(poison ? `POISON-${at}.example.com` : `registry-${at}.example.com`);
    node.original.swap(content);
    const agent = node.agent(FLAGS);
    await delay(roll() * (poison ? 4500 : 130));
    await agent.kill();
    if (agent.events('written').length > 0) reached += 1;
    const before = node.machine.starts().length;
    await finish(node);
    if (!poison) good = content;
    const context = `kill ${at} of seed ${SEED}:\n${agent.text()}`;
    assert.equal(readFileSync(node.machine.config, 'utf8'), good, context);
    assert.equal(node.machine.starts().at(-1), digestOf(good), context);
    assert.equal(node.machine.activeState(), 'active', context);
    const reads = node.machine.starts().slice(before - 1);
    if (!poison && reads.length > 1 && reads.every((one) => one === digestOf(content))) startedTwice += 1;
    const left = entriesOf(node.machine.state).filter((name) => name.startsWith('.config.json'));
    assert.deepEqual(left, [], context);
    const state = entriesOf(join(node.machine.state, '.pullwright'));
    assert.ok(
      !state.some((name) => name.startsWith('saved') || name.includes('.tmp-')),
      `${context}${state.join()}`,
    );
  }
  process.stdout.write(`killed after the write: ${reached}; restarted once too often: ${startedTwice}\n`);
  if (KILLS >= 20) assert.ok(reached > 0, 'no kill came after a write: the test shows nothing');
});

test.run();
