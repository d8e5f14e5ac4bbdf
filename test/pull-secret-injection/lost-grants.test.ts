/** Withdrawn and unclear grants: a grant that was deleted with its namespace, or that misses a field. */
import assert from 'node:assert/strict';
import { type KubeObject, LAST_APPLIED, type SecretObject } from '../../runtime/core/kubernetes/object.ts';
import { KEY_ANNOTATION } from '../../runtime/engine/contract.ts';
import { pullSecretInjection } from '../../runtime/pull-secret-injection/reconciler/reconcile.ts';
import { type Case, table, test } from '../support/suite.ts';
import {
  conditionOf,
  grant,
  namespace,
  PROFILE,
  profile,
  readerOf,
  ready,
  readyMessage,
  type Scene,
  scene,
  source,
  teams,
  teamsWith,
} from './scene.ts';

const MANY = 12;
const secrets = [{ name: 'reg', sources: [{ namespace: 'platform', name: 'quay' }] }];
const everywhere = profile('team', {
  namespaceSelector: { matchExpressions: [{ key: 'team', operator: 'Exists' }] },
  secrets,
});
const options = { trustedLabelKeys: ['tier'] };
const tiered = (tier?: string): readonly KubeObject[] =>
  teams(MANY, { team: 'a', ...(tier === undefined ? {} : { tier }) });
const home = (uid: string, rest: object = {}): KubeObject => ({
  ...namespace('platform'),
  metadata: { ...namespace('platform').metadata, uid, ...rest },
});
const granted = (spec: Record<string, unknown>): KubeObject =>
  grant({ profiles: [{ name: 'team' }], ...spec });
const byName = granted({ namespaces: ['team-*'] });
const byLabel = granted({ namespaceSelector: { matchLabels: { tier: 'gold' } } });
const quay = source('platform/quay', ['quay.io'], '');
const copies = (seen: Scene): number => teamsWith(seen, 'reg', MANY);
const said = (seen: Scene): string | undefined => ready(seen.status('PullSecretProfile', 'team'));

const NAMED = [home('1'), byName, quay, ...tiered()];
const LABELLED = [home('1'), byLabel, quay, ...tiered('gold')];

interface LossCase extends Case {
  /** @default {NAMED} */
  readonly before?: readonly KubeObject[];
  readonly change: readonly (KubeObject | { readonly gone: KubeObject })[];
  /** @default {0} */
  readonly left?: number;
  /** @default {'False NotGranted'} */
  readonly says?: string;
}

table<LossCase>(
  test,
  [
    {
      name: 'the namespace of the grant is deleted, and the grant with it',
      reason: 'an accident at the source takes nothing away',
      change: [home('1', { deletionTimestamp: '2026-11-21T00:00:00Z' }), { gone: byName }],
      left: MANY,
      says: 'False GrantUnclear',
    },
    {
      name: 'everything in it is gone',
      reason: 'the same a moment later',
      change: [{ gone: home('1') }, { gone: byName }, { gone: quay }],
      left: MANY,
      says: 'False SourceMissing',
    },
    {
      name: 'it is made anew, with the Secret and without the grant',
      reason: 'a namespace that is there says whether it grants',
      change: [home('2'), { gone: byName }],
    },
    {
      name: 'it is made anew, with all that was in it',
      reason: 'nothing is lost any more',
      change: [home('2'), byName, source('platform/quay', ['new.example'], '')],
      left: MANY,
      says: 'True Current',
    },
    {
      name: 'it is made anew, and the grant of that name says less',
      reason: 'that is said by somebody',
      change: [home('2'), granted({ namespaces: ['team-1'] })],
      left: 1,
    },
    { name: 'only the grant is deleted', change: [{ gone: byName }] },
    {
      name: 'all namespaces lose the label that the grant asks for',
      reason: 'the owner does not grant to namespaces without it',
      before: LABELLED,
      change: tiered(),
    },
    {
      name: 'ten of them do',
      reason: 'the others still have it',
      before: LABELLED,
      change: tiered().slice(0, 10),
      left: 2,
    },
    {
      name: 'the selector of the grant asks for another label',
      before: LABELLED,
      change: [granted({ namespaceSelector: { matchLabels: { tier: 'silver' } } })],
    },
    {
      name: 'the grant takes the profile out while labels go',
      before: LABELLED,
      change: [
        ...tiered(),
        { ...byLabel, spec: { ...(byLabel.spec as object), profiles: [{ name: 'other' }] } },
      ],
    },
  ],
  ({ before = NAMED, change, left = 0, says = 'False NotGranted' }) => {
    const first = scene([...before, everywhere], options);
    assert.equal(copies(first), MANY);
    const next = first.after(change);
    assert.equal(copies(next), left);
    assert.equal(said(next), says);
  },
);

test('a label that the operator no longer trusts grants nothing any more', () => {
  const first = scene([...LABELLED, everywhere], options);
  assert.equal(copies(first), MANY);
  const kinds = [
    ['v1', 'Namespace'],
    ['v1', 'Secret'],
    [PROFILE, 'PullSecretGrant'],
    [PROFILE, 'PullSecretProfile'],
  ];
  const next = scene(kinds.flatMap(([apiVersion = '', kind = '']) => first.store.list({ apiVersion, kind })));
  assert.equal(copies(next), 0);
  assert.equal(said(next), 'False NotGranted');
});

test('a grant that lacks a field is no withdrawal: copies stay, and no other namespace gets one', () => {
  const first = scene([...LABELLED, everywhere], options);
  // kubectl's result when a template renders no value: it removes the label from the existing object.
  const spec = { ...(byLabel.spec as object), namespaceSelector: { matchLabels: {} } };
  const applied = { spec: { ...spec, namespaceSelector: { matchLabels: { tier: null } } } };
  const annotations = { [LAST_APPLIED]: JSON.stringify(applied) };
  const widened = { ...byLabel, metadata: { ...byLabel.metadata, annotations }, spec };
  const next = first.after([widened, namespace('stranger', { team: 'b' })]);
  assert.equal(copies(next), MANY);
  assert.equal(next.secret('stranger', 'reg'), undefined);
  assert.equal(said(next), 'False GrantUnclear');
  assert.match(
    readyMessage(next.status('PullSecretProfile', 'team')),
    /^Cannot tell whether Secret "platform\/quay" is granted: .* was dropped .*; copies stay/,
  );
  assert.equal(ready(next.status('PullSecretGrant', 'teams', 'platform')), 'False GrantInvalid');
});

test('a copy that a tenant deletes and holds back by a finalizer is that tenant’s affair', () => {
  const first = scene([...NAMED, everywhere]);
  const copy = first.secret('team-3', 'reg');
  assert.ok(copy !== undefined);
  const held = { deletionTimestamp: '2026-11-21T00:00:00Z', finalizers: ['team.example/hold'] };
  const stuck = { ...copy, metadata: { ...copy.metadata, ...held } };
  const next = first.after([stuck, source('platform/quay', ['new.example'], '')]);
  assert.equal(said(next), 'True BlockedByTenants');
  assert.equal(conditionOf(next.status('PullSecretProfile', 'team'), 'TargetsFree'), 'False Terminating');
  assert.match(
    next.status('PullStatus', 'namespace-team-3', 'team-3')?.verdicts?.[0]?.message ?? '',
    /waits for finalizers: team\.example\/hold; remove them, then it is recreated/,
  );
});

test('what was taken back leaves a namespace that does not come to its end, too', () => {
  const first = scene([...NAMED, everywhere]);
  const stuck = tiered().map((object) => ({ ...object, status: { phase: 'Terminating' } }));
  const next = first.after(stuck);
  assert.equal(copies(next), MANY);
  assert.equal(copies(next.after([{ gone: byName }])), 0);
});

test('Secrets that a tenant marks as copies make no removal look large', () => {
  const quayForAll = source('platform/quay', ['quay.io']);
  const first = scene([quayForAll, ...tiered(), everywhere]);
  const copy = first.secret('team-0', 'reg');
  assert.ok(copy !== undefined);
  const annotations = { ...copy.metadata.annotations, 'pullwright.dev/sources': 'platform/none' };
  const named = (name: string): SecretObject => ({
    ...copy,
    metadata: { ...copy.metadata, name, uid: name, annotations },
  });
  const marked = Array.from({ length: 60 }, (_, at) => named(`mine-${at}`));
  const next = first.after(marked);
  assert.equal(said(next), 'True Current');
  assert.equal(conditionOf(next.status('PullSecretProfile', 'team'), 'RemovalHeld'), undefined);
  // A Secret that was copied from another namespace, including its marks.
  const other = { ...annotations, [KEY_ANNOTATION]: 'local|team-9|namespace' };
  const carried = marked.map((one) => ({
    ...one,
    metadata: { ...one.metadata, namespace: 'team-1', annotations: other },
  }));
  assert.equal(said(next.after(carried)), 'True Current');
});

test('the grants that name a profile are looked at when it comes or goes', () => {
  const { store } = scene([home('1'), byName, quay, everywhere]);
  const ref = { role: 'hosted', apiVersion: 'pullwright.dev/v1alpha1', kind: 'PullSecretProfile' } as const;
  const keys = pullSecretInjection().requestsFor({ ...ref, name: 'team' }, readerOf(store));
  assert.ok(keys.some(({ name, namespace: where }) => name === 'grant/teams' && where === 'platform'));
});
