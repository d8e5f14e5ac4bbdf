/** `canary`: one node of each pool gets a changed pull secret first, from the reconciler to the file of each node. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { stateOf } from '../../runtime/node/events.ts';
import type { KubeObject } from '../../runtime/rules/kubernetes/object.ts';
import type { ImageProbe } from '../../runtime/rules/rollout/image-probe.ts';
import { suite } from '../support/suite.ts';
import { additional, auth, config, NOW, platform } from './fleet.ts';
import { eligible, ReportingNodes } from './support/reporting-nodes.ts';

const test = suite('canary of the global pull secret');
const root = mkdtempSync(join(tmpdir(), 'pullwright-canary-'));

const POOL = 'example.com/pool';
const of = (label: string): string => config({ 'new.example': auth(label) });

/** All nodes have the state of before, and the tenant has changed its secret. */
function changed(folder: string, names: readonly string[], canary: object = {}): ReportingNodes {
  const one = new ReportingNodes(names, join(root, folder), { canary });
  one.hosted.set(additional(of('old')));
  // From one first node to the next, until all have it.
  for (const _pass of names) {
    one.reconcile();
    for (const name of names) {
      one.mount(name);
      if (one.agent(name).look().wanted !== undefined) one.bring(name);
    }
  }
  one.reconcile();
  assert.equal(one.condition('additional'), 'True Merged');
  one.hosted.set(additional(of('new')));
  one.reconcile();
  return one;
}

/** What the agent of a node does with what is there now, and says of it. */
function act(one: ReportingNodes, name: string): 'brings' | 'waits' | 'rests' {
  one.mount(name);
  const { wanted, present, problem } = one.agent(name).look();
  if (problem?.code === 'CanaryFirst') {
    one.report(name, stateOf({ do: 'rest', ready: false, reason: 'NoSource' }, one.agent(name).look()));
    return 'waits';
  }
  const what = wanted?.digest === present ? 'rests' : 'brings';
  one.bring(name);
  return what;
}

const acts = (one: ReportingNodes, ...names: string[]): readonly string[] =>
  names.map((name) => act(one, name));

test('the first node brings it, and the others when it has', () => {
  const one = changed('order', ['a', 'b', 'c']);
  assert.deepEqual(acts(one, 'b', 'c'), ['waits', 'waits'], 'before the first has begun');
  one.reconcile();
  assert.equal(one.condition('additional'), 'False NodesBehind');
  assert.match(one.message(), /b \(The file stays as it is: this node waits for node "a"\)/);
  assert.deepEqual(one.verdicts('original').slice(0, 1), ['nodes Pending']);
  assert.deepEqual(acts(one, 'a', 'b'), ['brings', 'waits'], 'it has, and nobody has said so');
  one.reconcile();
  assert.deepEqual(acts(one, 'a', 'b', 'c'), ['rests', 'brings', 'brings']);
  one.reconcile();
  assert.equal(one.condition('additional'), 'True Merged');
  const { objects } = one.reconcile();
  assert.ok(
    objects.every(({ verb }) => verb === 'unchanged'),
    'a second pass writes nothing',
  );
});

test('when it fails there, the others keep what they have, and a person is told what to do', () => {
  const one = changed('failed', ['a', 'b']);
  one.mount('a');
  one.report('a', stateOf({ do: 'rest', ready: false, reason: 'BreakerOpen' }, one.agent('a').look()));
  const { reports } = one.reconcile();
  assert.equal(act(one, 'b'), 'waits');
  assert.equal(one.condition('original'), 'False CanaryHeld');
  assert.equal(one.condition('original', 'CanaryHeld'), 'True FirstNodeFailed');
  const said = one.message('original');
  assert.match(
    said,
    /failed on node a, which gets it first \(The unit did not come up.*\); the other nodes keep/,
  );
  assert.match(JSON.stringify(reports), /"reason":"CanaryHeld"/, 'an event');
  assert.match(JSON.stringify(reports), /pullwright_canary_held_pools/);
  const hash = /release-canary: "([0-9a-f]{12})"/.exec(said)?.[1] ?? '';
  const release = (value: string): void => {
    const object = one.management.get({
      apiVersion: 'v1',
      kind: 'Secret',
      namespace: 'clusters-a',
      name: 'pull-secret',
    }) as KubeObject;
    const annotations = { 'pullwright.dev/release-canary': value };
    one.management.set({ ...object, metadata: { ...object.metadata, annotations } });
    one.reconcile();
  };
  release('0123456789ab');
  assert.equal(act(one, 'b'), 'waits', 'that is another content');
  release(hash);
  assert.equal(one.condition('original', 'CanaryHeld'), undefined);
  assert.equal(act(one, 'b'), 'brings');
});

test('what was right before is right again at once', () => {
  const one = changed('back', ['a', 'b']);
  one.mount('a');
  one.report('a', stateOf({ do: 'rest', ready: false, reason: 'BreakerOpen' }, one.agent('a').look()));
  one.reconcile();
  act(one, 'b');
  one.hosted.set(additional(of('old')));
  one.reconcile();
  assert.deepEqual(acts(one, 'a', 'b'), ['rests', 'rests']);
  one.reconcile();
  assert.equal(one.condition('additional'), 'True Merged');
});

test('a first node that has it and is not Ready holds the others', () => {
  const one = changed('ready', ['a', 'b']);
  one.hosted.set({ ...eligible('a'), status: { conditions: [{ type: 'Ready', status: 'Unknown' }] } });
  assert.equal(act(one, 'a'), 'brings');
  one.reconcile();
  assert.equal(act(one, 'b'), 'waits');
  one.hosted.set(eligible('a'));
  one.reconcile();
  assert.equal(act(one, 'b'), 'brings');
});

test('a first node that stays on its way for too long is held, with what to do, and goes on when it is done', () => {
  const one = changed('late', ['a', 'b'], { within: '5m' });
  one.mount('a');
  one.hosted.set({ ...eligible('a'), status: { conditions: [{ type: 'Ready', status: 'False' }] } });
  assert.equal(act(one, 'a'), 'brings');
  const minutes = (count: number): Date => new Date(NOW.getTime() + count * 60_000);
  one.reconcile(minutes(4));
  assert.equal(one.condition('original', 'CanaryHeld'), undefined);
  const { reports } = one.reconcile(minutes(5));
  assert.equal(one.condition('original'), 'False CanaryHeld');
  assert.equal(one.condition('original', 'CanaryHeld'), 'True FirstNodeLate');
  assert.match(
    one.message('original'),
    /taken too long on node a, which gets it first \(it has it, and its Node is not Ready\).*release-canary: "[0-9a-f]{12}"/,
  );
  assert.match(JSON.stringify(reports), /"reason":"CanaryHeld"/, 'an event');
  assert.equal(act(one, 'b'), 'waits');
  one.hosted.set(eligible('a'));
  one.reconcile(minutes(60));
  assert.equal(one.condition('original', 'CanaryHeld'), undefined);
  assert.equal(act(one, 'b'), 'brings');
});

test('the others wait until registries give the first node the images that it asks for', () => {
  const image = 'new.example/acme/web:1';
  const probing = new ReportingNodes(['a', 'b'], join(root, 'probing'), { canary: { probe: [image] } });
  let outcome: ImageProbe | undefined;
  const asked: string[] = [];
  for (const name of ['a', 'b'])
    probing.agent(name).restart({
      probed: (_digest, images) => {
        asked.push(`${name} ${images.join(' ')}`);
        return outcome;
      },
    });
  // Nothing lies in these files yet that could be lost; then the tenant changes its secret.
  probing.hosted.set(additional(of('old')));
  outcome = { state: 'Passed', says: 'can pull' };
  for (let pass = 0; pass < 3; pass += 1) {
    probing.reconcile();
    for (const name of ['a', 'b']) act(probing, name);
  }
  probing.reconcile();
  assert.equal(probing.condition('additional'), 'True Merged');
  assert.deepEqual([...new Set(asked)], [`a ${image}`], 'the other node asks nobody');
  outcome = undefined;
  probing.hosted.set(additional(of('new')));
  probing.reconcile();
  assert.deepEqual(acts(probing, 'a', 'b'), ['brings', 'waits']);
  probing.reconcile();
  assert.equal(act(probing, 'b'), 'waits', 'nobody has answered yet');
  outcome = { state: 'Failed', says: `cannot pull ${image}: 401` };
  act(probing, 'a');
  probing.reconcile();
  assert.equal(act(probing, 'b'), 'waits');
  assert.equal(probing.condition('original', 'CanaryHeld'), 'True FirstNodeFailed');
  assert.match(probing.message('original'), /it has it, and cannot pull new\.example\/acme\/web:1: 401/);
  outcome = { state: 'Unanswered', says: 'nobody knows' };
  act(probing, 'a');
  probing.reconcile();
  assert.equal(probing.condition('original', 'CanaryHeld'), undefined);
  assert.equal(act(probing, 'b'), 'waits', 'that shows nothing');
  outcome = { state: 'Passed', says: 'can pull' };
  act(probing, 'a');
  probing.reconcile();
  assert.equal(act(probing, 'b'), 'brings');
});

test('each pool has a first node of its own, by the label of its nodes', () => {
  const names = ['a', 'b', 'c', 'd'];
  const one = new ReportingNodes(names, join(root, 'pools'), { canary: { poolLabel: POOL } });
  const pools: Readonly<Record<string, string>> = { a: 'x', b: 'x', c: 'y', d: 'y' };
  for (const name of names) {
    one.hosted.set(eligible(name, { [POOL]: pools[name] ?? '' }));
    one.agent(name).restart({ poolOf: (label) => (label === POOL ? pools[name] : undefined) });
  }
  one.reconcile();
  for (const name of names) act(one, name);
  one.management.set(platform(of('rotated')));
  one.reconcile();
  // Nothing lies in these files yet that could be lost.
  const first = names.map((name) => act(one, name));
  assert.deepEqual(first, ['brings', 'waits', 'brings', 'waits']);
  one.agent('d').restart({ poolOf: () => undefined });
  one.reconcile();
  assert.deepEqual(acts(one, 'b', 'd'), ['brings', 'waits'], 'a node that does not know its pool waits');
});

test('a node without a file that can be used has nothing to lose, and waits for nobody', () => {
  const one = changed('empty', ['a', 'b']);
  rmSync(one.agent('b').file);
  assert.equal(act(one, 'b'), 'brings');
});

test('without the option, nothing stands beside the pull secret', () => {
  const one = new ReportingNodes(['a'], join(root, 'off'));
  one.hosted.set(additional(of('old')));
  one.reconcile();
  assert.deepEqual(Object.keys(one.secret('global-pull-secret')?.data ?? {}), [
    '.dockerconfigjson',
    'pullwright-judged',
  ]);
});

test.lastly('the folder is removed', () => rmSync(root, { recursive: true }));
test.run();
