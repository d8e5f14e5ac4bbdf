/** What the first node of a pool asks registries: its own mirrors, its own credentials, and no address that is not for it. */
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { askForImages } from '../../runtime/global-pull-secret/agent/ask-registries.ts';
import { ImageProber } from '../../runtime/global-pull-secret/agent/image-prober.ts';
import type { ImageProbe } from '../../runtime/rules/rollout/image-probe.ts';
import { plantedAuth } from '../support/canary.ts';
import { suite } from '../support/suite.ts';

const test = suite('images that the first node asks for');
const root = mkdtempSync(join(tmpdir(), 'pullwright-ask-'));
const file = join(root, 'config.json');
const etc = join(root, 'etc');
mkdirSync(join(etc, 'containers/registries.conf.d'), { recursive: true });
writeFileSync(file, JSON.stringify({ auths: { 'quay.io': { auth: plantedAuth('asked') } } }));

const IMAGE = 'quay.io/acme/web:1';
const conf = (text: string): void => writeFileSync(join(etc, 'containers/registries.conf'), text);
const mirrorTo = (location: string): string =>
  `[[registry]]\nlocation = "quay.io"\nblocked = true\n[[registry.mirror]]\nlocation = "${location}"\n`;

test('the mirrors of the node are asked, and no address of the node itself', async () => {
  conf(mirrorTo('127.0.0.1:1/quay'));
  const outcome = await askForImages([IMAGE], { file, etc });
  assert.equal(outcome.state, 'Unanswered');
  assert.match(outcome.says, /nobody knows whether quay\.io\/acme\/web:1 can be pulled: .*127\.0\.0\.1/);
});

test('mirrors that the runtime would refuse are said, and nothing is asked', async () => {
  conf('[[registry]');
  const { state, says } = await askForImages([IMAGE], { file, etc });
  assert.equal(state, 'Unanswered');
  assert.match(says, /cannot ask registries as this node would: unable to match mirrors: .*registries\.conf/);
});

test('a node without a file says so', async () => {
  conf('');
  const { state, says } = await askForImages([IMAGE], { file: join(root, 'none'), etc });
  assert.equal(state, 'Unanswered');
  assert.match(says, /cannot ask registries as this node would: .*none/);
});

test('it is asked again until it is good, at its own pace, and an answer about older content is left', async () => {
  let now = 0;
  const open: ((outcome: ImageProbe) => void)[] = [];
  let told = 0;
  const prober = new ImageProber({
    ask: () => new Promise((resolve) => void open.push(resolve)),
    clock: { monotonic: () => now },
    changed: () => void (told += 1),
  });
  const answer = async (outcome: ImageProbe): Promise<void> => {
    open.pop()?.(outcome);
    await new Promise((resolve) => setImmediate(resolve));
  };
  const passed: ImageProbe = { state: 'Passed', says: 'can' };
  const failed: ImageProbe = { state: 'Failed', says: 'cannot' };
  assert.equal(prober.outcome('x', [IMAGE]), undefined);
  assert.equal(prober.outcome('x', [IMAGE]), undefined);
  assert.equal(open.length, 1, 'one question at a time');
  await answer(failed);
  assert.deepEqual([prober.outcome('x', [IMAGE]), open.length, told], [failed, 0, 1], 'not at once again');
  now += 30_000;
  assert.deepEqual([prober.outcome('x', [IMAGE]), open.length], [failed, 1]);
  assert.equal(prober.outcome('y', [IMAGE]), undefined, 'other content: nothing is known');
  await answer(passed);
  assert.equal(prober.outcome('y', [IMAGE]), undefined, 'that was about the content before');
  assert.equal(open.length, 1);
  await answer(passed);
  assert.deepEqual(prober.outcome('y', [IMAGE]), passed);
  now += 600_000;
  prober.outcome('y', [IMAGE]);
  assert.equal(open.length, 0, 'what is good is not asked again');
});

test.lastly('the folder is removed', () => rmSync(root, { recursive: true }));
test.run();
