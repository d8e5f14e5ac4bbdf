/** Pods that are tried by a dry run: once for each change, until they come back with what they should have. */
import assert from 'node:assert/strict';
import type { KubeObject } from '../../runtime/core/kubernetes/object.ts';
import { RefusedWrites } from '../../runtime/engine/apply.ts';
import type { Cluster } from '../../runtime/engine/cluster.ts';
import type { AdmissionDryRun } from '../../runtime/engine/contract.ts';
import { AdmissionDryRuns } from '../../runtime/engine/lookups.ts';
import { test } from '../support/suite.ts';

const TRIAL: AdmissionDryRun = {
  role: 'hosted',
  pod: { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'trial', namespace: 'shop' } },
  wants: ['reg'],
  change: 'policy 1',
};

/** A cluster whose API server answers as `answers` say, one after the other, and that counts what it was asked. */
interface Scene {
  readonly trials: AdmissionDryRuns;
  readonly asked: { dryRun?: boolean }[];
  readonly waited: number[];
  now: number;
}

function cluster(...answers: readonly (readonly string[] | Error)[]): Scene {
  const asked: { dryRun?: boolean }[] = [];
  const create = (pod: KubeObject, _manager: string, options: { dryRun?: boolean }): Promise<KubeObject> => {
    const answer = answers[Math.min(asked.length, answers.length - 1)] ?? [];
    asked.push(options);
    if (answer instanceof Error) return Promise.reject(answer);
    return Promise.resolve({ ...pod, spec: { imagePullSecrets: answer.map((name) => ({ name })) } });
  };
  const one = { client: { create }, assertMayWrite: () => undefined } as unknown as Cluster;
  const waited: number[] = [];
  const wait = (ms: number): Promise<void> => {
    waited.push(ms);
    return Promise.resolve();
  };
  const scene: Scene = {
    asked,
    waited,
    now: 0,
    trials: new AdmissionDryRuns({ hosted: one, management: one }, () => scene.now, wait),
  };
  return scene;
}

function answered(trials: AdmissionDryRuns, trial: AdmissionDryRun): Promise<void> {
  return new Promise((resolve) => trials.request([trial], 'pull-secret-injection', resolve));
}

test('a pod that comes back with the names is tried once, in a dry run, and again after a change', async () => {
  const scene = cluster(['other', 'reg']);
  assert.equal(scene.trials.get(TRIAL), undefined);
  await answered(scene.trials, TRIAL);
  assert.deepEqual(scene.trials.get(TRIAL), { ok: true, lacks: [] });
  assert.deepEqual(scene.asked, [{ dryRun: true }]);
  scene.now = 1e9;
  scene.trials.request([TRIAL], 'pull-secret-injection', () => assert.fail('asked at rest'));
  await answered(scene.trials, { ...TRIAL, change: 'policy 2' });
  assert.equal(scene.asked.length, 2);
});

test('an answer that can end without a change is asked for again when its time is over', async () => {
  const scene = cluster(['reg'], []);
  const trial = { ...TRIAL, lastsMs: 600_000 };
  await answered(scene.trials, trial);
  scene.now = 599_999;
  scene.trials.request([trial], 'pull-secret-injection', () => assert.fail('asked too early'));
  scene.now = 600_000;
  await answered(scene.trials, trial);
  assert.deepEqual(scene.trials.get(trial), { ok: true, lacks: ['reg'] });
});

test('a policy that was stored a moment ago is given time', async () => {
  const scene = cluster([], [], ['reg']);
  await answered(scene.trials, TRIAL);
  assert.deepEqual(scene.trials.get(TRIAL), { ok: true, lacks: [] });
  assert.deepEqual([scene.asked.length, scene.waited], [3, [250, 500]]);
});

test('who may not ask is told so, is not asked again at once, and the old answer counts until the new one', async () => {
  const scene = cluster(new Error('User "r" cannot create resource "pods"'), ['reg']);
  await answered(scene.trials, TRIAL);
  const refused = scene.trials.get(TRIAL);
  assert.ok(refused?.ok === false && refused.reason.includes('cannot create resource'));
  assert.equal(scene.asked.length, 1);
  scene.now = 700_000;
  const again = answered(scene.trials, TRIAL);
  assert.equal(scene.trials.get(TRIAL), refused);
  await again;
  assert.deepEqual(scene.trials.get(TRIAL), { ok: true, lacks: [] });
});

test('a lasting refusal of a write is known until one goes through; what passes by itself is not', () => {
  const ref = { role: 'hosted', apiVersion: 'v1', kind: 'Secret', namespace: 'shop', name: 'reg' } as const;
  const failed = (code: string, message = '') =>
    [{ verb: 'failed', ref, problem: { retryPolicy: 'retry', code, message } }] as const;
  const refused = new RefusedWrites();
  assert.equal(refused.learn(failed('ConnectionLost')), false);
  assert.equal(refused.get(ref), undefined);
  assert.equal(refused.learn(failed('QuotaExceeded', 'used 5')), true);
  assert.equal(refused.learn(failed('QuotaExceeded', 'used 6')), false, 'the same again is no news');
  assert.equal(refused.learn(failed('Forbidden')), true);
  assert.equal(refused.get({ ...ref })?.code, 'Forbidden');
  assert.equal(refused.get({ ...ref, namespace: 'web' }), undefined);
  assert.equal(refused.learn([{ verb: 'created', ref }]), true);
  assert.equal(refused.get(ref), undefined);
  const fleet = Array.from({ length: 15_000 }, (_, at) => ({
    ...failed('Forbidden')[0],
    ref: { ...ref, name: `reg-${at}` },
  }));
  assert.equal(refused.learn(fleet), true);
  assert.equal(refused.learn(fleet), false, 'else their key would be requeued at once, for ever');
});
