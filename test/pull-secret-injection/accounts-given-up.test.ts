/** An account whose list somebody else sets back: what the profile says of it, and that it is tried again. */
import assert from 'node:assert/strict';
import type { Problem, World } from '../../runtime/controller/contract.ts';
import { DEFAULT_OPTIONS } from '../../runtime/pull-secret-injection/options.ts';
import { accountConditions } from '../../runtime/pull-secret-injection/reconciler/account-conditions.ts';
import { reconcileProfile } from '../../runtime/pull-secret-injection/reconciler/profile-status.ts';
import { reconcileAccounts } from '../../runtime/pull-secret-injection/reconciler/service-accounts.ts';
import { readProfile } from '../../runtime/rules/injection/profile.ts';
import type { KubeObject } from '../../runtime/rules/kubernetes/object.ts';
import { suite } from '../support/suite.ts';
import { namespace, profile, type ReportedStatus, scene, source, worldOf } from './scene.ts';

const test = suite('accounts that are left to somebody else');
const options = { ...DEFAULT_OPTIONS, serviceAccounts: true };
const team = profile('team', {
  secrets: [{ name: 'reg', sources: [{ namespace: 'platform', name: 'quay' }] }],
  serviceAccounts: ['default'],
});

function account(...listed: readonly string[]): KubeObject {
  return {
    apiVersion: 'v1',
    kind: 'ServiceAccount',
    metadata: { name: 'default', namespace: 'shop', uid: 'u', resourceVersion: '7' },
    imagePullSecrets: listed.map((name) => ({ name })),
  };
}

const GIVEN_UP: Problem = {
  disposition: 'terminal',
  code: 'ManagedElsewhere',
  message:
    'Cannot keep "ServiceAccount/shop/default" as declared: it is changed back again and again, by "x"',
  hint: 'Let one of both write it',
};

interface Case {
  readonly name: string;
  readonly listed: readonly string[];
  readonly refusal?: Problem;
  readonly says: RegExp;
  readonly ready: RegExp;
}

const cases: readonly Case[] = [
  {
    name: 'on its way',
    listed: ['own'],
    says: /^False Listing 1 ServiceAccount does not list the names yet: "shop\/default"$/,
    ready: /^True Current The one namespace that is selected holds the Secrets$/,
  },
  {
    name: 'given up',
    listed: ['own'],
    refusal: GIVEN_UP,
    says: /^False ManagedElsewhere Cannot keep .*, by "x"\. Let one of both write it \(1 ServiceAccount lacks the names: "shop\/default"\)$/,
    ready: /^True BlockedByTenants The one namespace that is selected holds the Secrets; see AccountsListed$/,
  },
  {
    name: 'refused by the API server',
    listed: ['own'],
    refusal: { ...GIVEN_UP, code: 'Forbidden', message: 'Cannot patch "ServiceAccount/shop/default"' },
    says: /^False Forbidden Cannot patch /,
    ready: /^False Forbidden Cannot patch /,
  },
  {
    name: 'listed by somebody else since',
    listed: ['own', 'reg'],
    refusal: GIVEN_UP,
    says: /^True Listed /,
    ready: /^True Current /,
  },
];

for (const { name, listed, refusal, says, ready } of cases)
  test(`the condition AccountsListed: ${name}`, () => {
    const { store } = scene([
      namespace('platform'),
      namespace('shop', { team: 'a' }),
      source('platform/quay', ['quay.io']),
      team,
      account(...listed),
    ]);
    const world: World = {
      ...worldOf(store, options),
      refusal: ({ kind }) => (kind === 'ServiceAccount' ? refusal : undefined),
    };
    const read = readProfile(team);
    assert.ok(read.ok);
    const [said] = accountConditions(world, read.profile, options);
    assert.match(`${said?.status} ${said?.reason} ${said?.message}`, says);
    const { status: [patch] = [] } = reconcileProfile(world, 'team', options);
    const summary = (patch?.status as unknown as ReportedStatus | undefined)?.conditions.find(
      ({ type }) => type === 'Ready',
    );
    assert.match(`${summary?.status} ${summary?.reason} ${summary?.message}`, ready);
    const { actions = [], requeueAfterMs } = reconcileAccounts(world, 'shop', options);
    const again = listed.includes('reg') ? [0, undefined] : [1, 60_000];
    assert.deepEqual(
      [actions.length, requeueAfterMs],
      again,
      'looked at again as long as something is wanted',
    );
  });

test.run();
