/** What asking a pod to go costs, and what it leaves behind: who waits for whom, and who is told. */
import assert from 'node:assert/strict';
import { ActionRunner, type Ran } from '../../runtime/controller/actions.ts';
import type { Cluster } from '../../runtime/controller/cluster.ts';
import type { Action } from '../../runtime/controller/contract.ts';
import { apiErrorOf } from '../../runtime/kube/api-error.ts';
import type { KubeObject } from '../../runtime/rules/kubernetes/object.ts';
import { suite } from '../support/suite.ts';

const test = suite('evictions');

type Eviction = Extract<Action, { action: 'evict' }>;

interface Scene {
  now: number;
  /** Names that admission gives to a new pod. */
  gives: string;
  job: object | undefined;
  budget: boolean;
  readonly asked: string[];
  readonly evicted: string[];
  run(...actions: readonly Action[]): Promise<Ran>;
}

function eviction(name: string, owner: Partial<Eviction['owner']> = {}): Eviction {
  const pod: KubeObject = { apiVersion: 'v1', kind: 'Pod', metadata: { name, namespace: 'shop' } };
  return {
    action: 'evict',
    role: 'hosted',
    namespace: 'shop',
    name,
    uid: `uid-${name}`,
    reason: 'lacks reg',
    createdAt: '1970-01-01T00:00:00Z',
    owner: { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'web', uid: `owner-of-${name}`, ...owner },
    successor: { pod, wants: ['reg'] },
  };
}

function scene(): Scene {
  const one: Scene = {
    now: 0,
    gives: 'reg',
    job: undefined,
    budget: false,
    asked: [],
    evicted: [],
    run: (...actions) => runner.run(actions, 'pull-secret-injection'),
  };
  const cluster = {
    assertMayWrite: () => undefined,
    client: {
      create: (pod: KubeObject) => {
        one.asked.push(pod.metadata.name);
        return Promise.resolve({ ...pod, spec: { imagePullSecrets: [{ name: one.gives }] } });
      },
      get: () => Promise.resolve(one.job),
      evict: ({ name }: { name: string }) => {
        if (one.budget) return Promise.reject(budgetError(name));
        one.evicted.push(name);
        return Promise.resolve();
      },
    },
  } as unknown as Cluster;
  const clock = (): number => one.now;
  const runner = new ActionRunner({ hosted: cluster, management: cluster }, clock, () => 3_600_000 + one.now);
  return one;
}

function budgetError(name: string): Error {
  const details = { causes: [{ reason: 'DisruptionBudget', message: 'The disruption budget web needs 1' }] };
  const body = {
    kind: 'Status',
    reason: 'TooManyRequests',
    message: 'Cannot evict',
    details,
  };
  return apiErrorOf({ status: 429, verb: 'evict', subject: `Pod/shop/${name}`, body });
}

const codes = ({ problems }: Ran): readonly string[] => problems.map(({ code }) => code);

test('ActionRunner tells of a pod that it evicted, in an event and as something that was done', async () => {
  const seen = scene();
  const ran = await seen.run(eviction('a'));
  assert.deepEqual(seen.evicted, ['a']);
  assert.deepEqual(ran.problems, []);
  assert.deepEqual(
    ran.evicted.map(({ verb, ref }) => [verb, ref.name]),
    [['evicted', 'a']],
  );
  assert.deepEqual(
    ran.events.map(({ reason, note }) => [reason, note]),
    [['PodEvicted', 'Evicted because it lacks reg; ReplicaSet "web" makes another one']],
  );
});

test('ActionRunner asks about a pod that it cannot help less and less, and others do not wait for it', async () => {
  const seen = scene();
  seen.gives = 'other';
  const hopeless = Array.from({ length: 10 }, (_, index) => eviction(`h${index}`));
  await seen.run(...hopeless);
  assert.equal(seen.asked.length, 10, 'as many as may be asked at once');
  seen.now = 1000;
  seen.asked.length = 0;
  seen.gives = 'reg';
  await seen.run(...hopeless, eviction('of-another'));
  assert.deepEqual([seen.asked, seen.evicted], [['of-another'], ['of-another']]);
  seen.now = 5000;
  await seen.run(eviction('h0'));
  assert.deepEqual(seen.evicted, ['of-another', 'h0'], 'what helps now is found within seconds');
});

test('ActionRunner waits longer each time the answer is the same', async () => {
  const seen = scene();
  seen.gives = 'other';
  const waits: (number | undefined)[] = [];
  for (let round = 0; round < 5; round += 1) {
    const [problem] = (await seen.run(eviction('a'))).problems;
    waits.push(problem?.afterMs);
    seen.now += problem?.afterMs ?? 0;
  }
  assert.deepEqual(waits, [2000, 10_000, 60_000, 300_000, 300_000]);
});

test('ActionRunner names the PodDisruptionBudget that holds a pod', async () => {
  const seen = scene();
  seen.budget = true;
  const { problems, evicted } = await seen.run(eviction('a'));
  assert.deepEqual(evicted, []);
  assert.deepEqual(
    problems.map(({ code, afterMs, regarding }) => [code, afterMs, regarding?.name]),
    [['DisruptionBudget', 30_000, 'a']],
  );
  assert.match(problems[0]?.message ?? '', /PodDisruptionBudget allows no disruption/);
  seen.asked.length = 0;
  await seen.run(eviction('a'));
  assert.deepEqual(seen.asked, [], 'nobody is asked meanwhile');
});

test('ActionRunner tells nobody of what comes right by itself, as where a policy was stored a moment ago', async () => {
  const seen = scene();
  seen.gives = 'other';
  const told = async (): Promise<readonly unknown[]> =>
    (await seen.run(eviction('a'))).problems.map(({ code, regarding }) => [code, regarding?.name]);
  assert.deepEqual(await told(), [['WouldNotHelp', undefined]]);
  seen.now += 1999;
  assert.deepEqual(await told(), [['WouldNotHelp', undefined]], 'the answer is held');
  seen.now += 1;
  assert.deepEqual(await told(), [['WouldNotHelp', 'a']], 'asked again, with the same answer');
});

const OWNER = { apiVersion: 'batch/v1', kind: 'Job', name: 'once', uid: 'owner' };

for (const [reason, job, evicted] of [
  ['a Job that must not fail', { spec: { backoffLimit: 0 } }, []],
  ['a Job that is gone', undefined, []],
  ['a Job with one try left, of two pods', { spec: { backoffLimit: 1 } }, ['a']],
  ['a Job with tries', { spec: {} }, ['a', 'b']],
] as const)
  test(`ActionRunner evicts no more than its Job outlives: ${reason}`, async () => {
    const seen = scene();
    seen.job = job;
    const ran = await seen.run(eviction('a', OWNER), eviction('b', OWNER));
    assert.deepEqual(seen.evicted, evicted);
    assert.ok(codes(ran).every((code) => code === 'WouldNotHelp'));
    assert.equal(codes(ran).length, 2 - evicted.length);
  });

test.run();
