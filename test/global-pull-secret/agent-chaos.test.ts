// deadline: 240 s
// needs: systemd
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
import { OLD, secret } from '../support/agent-scene.ts';
import { test } from '../support/agent-test.ts';
import { counted } from '../support/counted.ts';
import type { TestNode } from '../support/node-agent.ts';
import { runProcess } from '../support/process.ts';
import { randomFrom } from '../support/random.ts';
import { digestOf, entriesOf, until } from '../support/systemd.ts';

const KILLS = Number(process.env['PULLWRIGHT_CHAOS'] ?? 20);
const SEED = Number(process.env['PULLWRIGHT_SEED'] ?? Math.floor(Math.random() * 2 ** 31));

const FLAGS = ['--settle=50ms', '--once'];

async function finish(node: TestNode): Promise<void> {
  const ran = await runProcess(node.command(FLAGS), { deadlineMs: 30_000 });
  assert.ok(!ran.timedOut, ran.stderr);
}

interface Kill {
  readonly content: string;
  readonly poison: boolean;
  /** Waits for the write first: between it and the end there is most to lose. */
  readonly aimed: boolean;
  readonly delayMs: number;
}

/** Progress of the killed agent. */
interface Done {
  readonly text: string;
  readonly wrote: boolean;
  readonly restarted: boolean;
}

async function kill(node: TestNode, { content, aimed, delayMs }: Kill): Promise<Done> {
  node.original.swap(content);
  const agent = node.agent(FLAGS);
  if (aimed) await until('the file is written', () => agent.events('written').length > 0);
  await delay(delayMs);
  await agent.kill();
  return {
    text: agent.text(),
    wrote: agent.events('written').length > 0,
    restarted: agent.events('restarted').length > 0,
  };
}

/** No temporary files remain, and the kubelet's last read is the good content. */
function judge(node: TestNode, good: string, context: string): void {
  assert.equal(readFileSync(node.machine.config, 'utf8'), good, context);
  assert.equal(node.machine.starts().at(-1), digestOf(good), context);
  assert.equal(node.machine.activeState(), 'active', context);
  const left = entriesOf(node.machine.state).filter((name) => name.startsWith('.config.json'));
  assert.deepEqual(left, [], context);
  const state = entriesOf(join(node.machine.state, '.pullwright'));
  assert.ok(
    !state.some((name) => name.startsWith('saved') || name.includes('.tmp-')),
    `${context}${state.join()}`,
  );
}

test(`${KILLS} kills, seed ${SEED}`, async (node) => {
  const roll = randomFrom(SEED);
  process.stdout.write(`kills: ${KILLS}, seed: ${SEED}\n`);
  node.machine.behave('picky');
  let good = OLD;
  const count = { aimed: 0, wrote: 0, between: 0, startedTwice: 0 };
  for (let at = 0; at < KILLS; at += 1) {
    // The first of each two kills is aimed, for any seed.
    const poison = at % 2 === 1 && roll() < 0.3;
    const content = secret(poison ? `POISON-${at}.example.com` : `registry-${at}.example.com`);
    const before = node.machine.starts().length;
    // Every second one waits for the write, the first of them not a moment longer; the others come anywhere.
    const aimed = at % 2 === 0;
    const delayMs = at === 0 ? 0 : roll() * (poison ? 4500 : 130);
    const done = await kill(node, { content, poison, aimed, delayMs });
    await finish(node);
    if (!poison) good = content;
    const context = `kill ${at} of seed ${SEED}:\n${done.text}`;
    judge(node, good, context);
    count.aimed += Number(aimed);
    count.wrote += Number(done.wrote);
    count.between += Number(done.wrote && !done.restarted);
    // The agent retries content that the kubelet rejects, on purpose.
    if (poison) continue;
    const starts = node.machine.starts().slice(before);
    const ofContent = starts.filter((one) => one === digestOf(content)).length;
    // A kill costs one restart too many at most, and none where nothing had been written.
    const most = done.wrote ? 2 : 1;
    assert.ok(
      ofContent <= most,
      `${ofContent} starts with one content, expected ${most} at most: ${context}`,
    );
    count.startedTwice += Number(ofContent === 2);
  }
  // The check above allows one extra start for each kill; their number depends on the machine.
  process.stdout.write(`started twice: ${count.startedTwice}\n`);
  counted(
    {
      aimed: count.aimed,
      'after a write': count.wrote,
      'between a write and the end of its restart': count.between,
    },
    {
      aimed: Math.ceil(KILLS / 4),
      'after a write': count.aimed,
      'between a write and the end of its restart': 1,
    },
  );
});
