/** Pods that the API server sends to the webhook: the rules of its configuration, for plans and for existing entries. */
import assert from 'node:assert/strict';
import { type PullSecretProfile, readProfile } from '../../runtime/pull-secret-injection/kinds/profile.ts';
import { readSidecarSet } from '../../runtime/pull-secret-injection/kinds/sidecar-set.ts';
import { injectionPlan } from '../../runtime/pull-secret-injection/plan/plan.ts';
import {
  BASE_HOOK,
  type Hook,
  mirroredHooks,
} from '../../runtime/pull-secret-injection/plan/webhook-entries.ts';
import { test } from '../support/suite.ts';

const notMirror = { name: 'not-mirror', expression: 'true' };
const base: Hook = {
  name: BASE_HOOK,
  namespaceSelector: { matchExpressions: [{ key: 'x', operator: 'NotIn', values: ['y'] }] },
  matchConditions: [notMirror],
};
const foreign: Hook = { name: 'somebody.else.example.com' };

function profileOf(name: string, team: string | undefined, selector: object = {}): PullSecretProfile {
  const spec = {
    namespaceSelector: team === undefined ? {} : { matchLabels: { team } },
    selector,
    secrets: [{ name: `of-${name}` }],
  };
  const read = readProfile({ apiVersion: '', kind: '', metadata: { name }, spec });
  assert.ok(read.ok);
  return read.profile;
}

function profilesIn(hook: Hook | undefined): string | undefined {
  return hook?.matchConditions?.find(({ name }) => name === 'profiles')?.expression;
}

test('an entry for each set of namespaces, whose condition looks at the pod; the rendered one sends nothing', () => {
  const plan = injectionPlan([
    profileOf('a', 'a'),
    profileOf('b', 'a', { matchLabels: { app: 'web' } }),
    profileOf('c', undefined),
  ]);
  const [first, all, team, ...rest] = mirroredHooks(plan, [base, foreign]) ?? [];
  assert.deepEqual([first?.name, profilesIn(first), rest], [BASE_HOOK, 'false', [foreign]]);
  assert.deepEqual(all?.namespaceSelector, base.namespaceSelector);
  assert.deepEqual(team?.namespaceSelector?.matchExpressions, [
    { key: 'x', operator: 'NotIn', values: ['y'] },
    { key: 'team', operator: 'In', values: ['a'] },
  ]);
  assert.deepEqual(team?.matchConditions?.[0], notMirror, 'what is rendered holds for every entry');
  assert.match(profilesIn(team) ?? '', /"of-a".*"app" in l && l\["app"\] in \["web"\].*"of-b"/);
  assert.doesNotMatch(profilesIn(all) ?? '', /of-a/);
});

test('what was brought up to date once is so the second time, and follows the plan', () => {
  const plan = injectionPlan([profileOf('a', 'a'), profileOf('b', 'b')]);
  const once = mirroredHooks(plan, [base, foreign]) ?? [];
  assert.deepEqual(mirroredHooks(plan, once), once);
  assert.deepEqual(mirroredHooks(injectionPlan([profileOf('a', 'a')]), once)?.length, 3);
  const [only, ...rest] = mirroredHooks(injectionPlan([]), once) ?? [];
  assert.deepEqual([profilesIn(only), rest], ['false', [foreign]], 'nothing injects: no pod is sent');
});

test('without the rendered entry nothing is made', () => {
  assert.equal(mirroredHooks(injectionPlan([profileOf('a', 'a')]), [foreign]), undefined);
});

test('beyond 50 sets of namespaces one entry takes all, and its condition goes by the pod', () => {
  const many = Array.from({ length: 51 }, (_, at) => profileOf(`p${at}`, `t${at}`));
  const [, entry, ...rest] = mirroredHooks(injectionPlan(many), [base]) ?? [];
  assert.deepEqual([rest, entry?.namespaceSelector], [[], base.namespaceSelector]);
  assert.match(profilesIn(entry) ?? '', /of-p50/);
});

test('a condition that no API server would accept is omitted: the webhook decides', () => {
  const long = 'x'.repeat(60);
  const many = Array.from({ length: 900 }, (_, at) => profileOf(`${long}${at}`, 'a'));
  const [, entry] = mirroredHooks(injectionPlan(many), [base]) ?? [];
  assert.deepEqual(entry?.matchConditions, [notMirror]);
});

test('SidecarSets count where one of them brings a container', () => {
  const set = (containers: readonly object[]) =>
    readSidecarSet({
      metadata: { name: 'log' },
      spec: {
        selector: { matchLabels: { app: 'web' } },
        namespace: 'shop',
        imagePullSecrets: [{ name: 'log-pull' }],
        containers,
      },
    });
  const [, entry] = mirroredHooks(injectionPlan([], [set([{}])]), [base]) ?? [];
  assert.match(profilesIn(entry) ?? '', /log-pull/);
  assert.match(JSON.stringify(entry?.namespaceSelector), /kubernetes\.io\/metadata\.name.*shop/);
  assert.equal(mirroredHooks(injectionPlan([], [set([])]), [base])?.length, 1);
  const lifted = injectionPlan([], [set([])], { withoutContainers: true });
  assert.equal(mirroredHooks(lifted, [base])?.length, 2);
});
