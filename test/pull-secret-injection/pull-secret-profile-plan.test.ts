import assert from 'node:assert/strict';
import { readProfile } from '../../runtime/pull-secret-injection/kinds/profile.ts';
import { readSidecarSet } from '../../runtime/pull-secret-injection/kinds/sidecar-set.ts';
import { injectionPlan, isExempt, planInjection } from '../../runtime/pull-secret-injection/plan/plan.ts';
import { meta } from '../support/meta.ts';
import { type Case, table, test } from '../support/suite.ts';

const POD = { namespace: 'shop', labels: { app: 'web' }, annotations: {}, namespaceLabels: { team: 'a' } };

/** A profile that adds the secret of its name. */
function profile(
  name: string,
  spec: Readonly<Record<string, unknown>> = {},
): Extract<ReturnType<typeof readProfile>, { ok: true }>['profile'] {
  const read = readProfile({
    ...meta('pullwright.dev/v1alpha1 PullSecretProfile', { name }),
    spec: { namespaceSelector: {}, selector: {}, secrets: [{ name }], ...spec },
  });
  assert.ok(read.ok, JSON.stringify(read));
  return read.profile;
}

/** A SidecarSet that adds the secret of its name beside one container. */
function sidecarSet(
  name: string,
  spec: Readonly<Record<string, unknown>> = {},
  annotations: Readonly<Record<string, string>> = {},
): ReturnType<typeof readSidecarSet> {
  return readSidecarSet({
    metadata: { name, annotations },
    spec: {
      selector: { matchLabels: { app: 'web' } },
      containers: [{ name: 'side' }],
      imagePullSecrets: [{ name }],
      ...spec,
    },
  });
}

interface Row extends Case {
  readonly profiles?: Parameters<typeof injectionPlan>[0];
  readonly sets?: Parameters<typeof injectionPlan>[1];
  readonly withoutContainers?: boolean;
  readonly names: readonly string[];
}

const NONE = { containers: [] };
const CANARY_OF_A = { 'apps.kruise.io/sidecarset-canary': 'true', 'apps.kruise.io/sidecarset-base': 'a' };
const ROWS: readonly Row[] = [
  { name: 'a profile for all', reason: 'empty selectors', profiles: [profile('a')], names: ['a'] },
  {
    name: 'a profile for other pods of the namespace',
    profiles: [profile('a', { selector: { matchLabels: { app: 'db' } } })],
    names: [],
  },
  {
    name: 'a profile for such pods of other namespaces',
    profiles: [
      profile('a', {
        selector: { matchLabels: { app: 'web' } },
        namespaceSelector: { matchLabels: { team: 'b' } },
      }),
    ],
    names: [],
  },
  { name: 'a suspended profile', profiles: [profile('a', { suspend: true }), profile('b')], names: ['b'] },
  {
    name: 'a profile that only distributes',
    profiles: [
      profile('a', {
        mode: 'Distribute',
        secrets: [{ name: 'a', sources: [{ namespace: 'platform', name: 'a' }] }],
      }),
      profile('b'),
    ],
    names: ['b'],
  },
  {
    name: 'a profile and a set that add the same',
    reason: 'each name once, profiles first',
    profiles: [profile('z'), profile('same')],
    sets: [sidecarSet('same'), sidecarSet('b')],
    names: ['same', 'z', 'b'],
  },
  {
    name: 'a paused set',
    sets: [sidecarSet('a', { injectionStrategy: { paused: true } }), sidecarSet('b')],
    names: ['b'],
  },
  {
    name: 'a set whose selector cannot be read',
    reason: 'it adds nothing, and the others go on',
    sets: [
      sidecarSet('a', { selector: { matchExpressions: [{ key: 'x', operator: 'No' }] } }),
      sidecarSet('b'),
    ],
    names: ['b'],
  },
  {
    name: 'a set for other pods',
    sets: [sidecarSet('a', { selector: { matchLabels: { app: 'db' } } })],
    names: [],
  },
  {
    name: 'sets without a container among them',
    reason: 'upstream adds secrets beside a container only',
    sets: [sidecarSet('a', NONE), sidecarSet('b', NONE)],
    names: [],
  },
  {
    name: 'sets of which one has a container',
    reason: 'then all of them add',
    sets: [sidecarSet('a', NONE), sidecarSet('b')],
    names: ['a', 'b'],
  },
  {
    name: 'sets without a container, where that is allowed',
    sets: [sidecarSet('a', NONE)],
    withoutContainers: true,
    names: ['a'],
  },
  {
    name: 'a canary',
    reason: 'it stands in for its set',
    sets: [sidecarSet('a'), sidecarSet('a-canary', {}, CANARY_OF_A)],
    names: ['a-canary'],
  },
  {
    name: 'a canary for other pods',
    reason: 'its set stays for these',
    sets: [
      sidecarSet('a'),
      sidecarSet('a-canary', { selector: { matchLabels: { app: 'db' } } }, CANARY_OF_A),
    ],
    names: ['a'],
  },
];

table(test, ROWS, ({ profiles = [], sets = [], withoutContainers = false, names }) => {
  assert.deepEqual(planInjection(injectionPlan(profiles, sets, { withoutContainers }), POD).names, names);
});

test('pods are left alone where they, or their namespace, or the kubelet say so', () => {
  const off = { 'pullwright.dev/inject': 'false' };
  assert.equal(isExempt(POD, []), false);
  assert.equal(isExempt(POD, ['shop']), true);
  assert.equal(isExempt({ ...POD, labels: off }, []), true);
  assert.equal(isExempt({ ...POD, namespaceLabels: off }, []), true);
  assert.equal(isExempt({ ...POD, labels: { 'pullwright.dev/inject': 'true' } }, []), false);
  assert.equal(isExempt({ ...POD, annotations: { 'kubernetes.io/config.mirror': 'x' } }, []), true);
});
