/** A change that takes many copies away is held; what its owner means is not. */
import assert from 'node:assert/strict';
import type { KubeObject } from '../../runtime/core/kubernetes/object.ts';
import {
  pullSecretInjection,
  reconcilers,
} from '../../runtime/pull-secret-injection/reconciler/reconcile.ts';
import { type Case, table, test } from '../support/suite.ts';
import {
  changedTo,
  conditionOf,
  grant,
  namespace,
  profile,
  type ReportedStatus,
  readerOf,
  ready,
  readyMessage,
  type Scene,
  scene,
  source,
  teams,
  teamsWith,
} from './scene.ts';

const secrets = [{ name: 'reg', sources: [{ namespace: 'platform', name: 'quay' }] }];
const team = profile('team', { secrets });
const quay = source('platform/quay', ['quay.io']);
const copies = (seen: Scene, count: number): number => teamsWith(seen, 'reg', count);
const statusOf = (seen: Scene): (ReportedStatus & { heldRemoval?: string }) | undefined =>
  seen.status('PullSecretProfile', 'team');
const changed = (seen: Scene, spec: Record<string, unknown>, annotations = {}): KubeObject => {
  const next = profile('team', { secrets, ...spec });
  return changedTo(seen, { ...next, metadata: { ...next.metadata, annotations } });
};

interface LimitCase extends Case {
  readonly gone: number;
  readonly all: number;
  readonly held: boolean;
}

table<LimitCase>(
  test,
  [
    { name: '10 of 10', reason: 'ten are never many', gone: 10, all: 10, held: false },
    { name: '11 of 11', reason: 'more than ten and more than a fifth', gone: 11, all: 11, held: true },
    { name: '11 of 55', reason: 'a fifth is not more than a fifth', gone: 11, all: 55, held: false },
    { name: '11 of 54', reason: 'more than a fifth', gone: 11, all: 54, held: true },
  ],
  ({ gone, all, held }) => {
    const after = scene([...teams(all), team, quay]).after(teams(gone, { team: 'b' }));
    assert.equal(copies(after, all), held ? all : all - gone);
  },
);

interface ChangeCase extends Case {
  readonly change: (seen: Scene) => readonly (KubeObject | { readonly gone: KubeObject })[];
  /** Copies under the old name that are left of 12. */
  readonly left: number;
}

const held = 12;
const byName = grant({ namespaces: teams(held).map((one) => one.metadata.name) }, 'all');
const granted = source('platform/quay', ['quay.io'], '');

table<ChangeCase>(
  test,
  [
    {
      name: 'a selector that selects nothing',
      reason: 'a typo must not cost every namespace its Secret',
      change: (seen) => [changed(seen, { namespaceSelector: { matchLabels: { team: 'x' } } })],
      left: held,
    },
    {
      name: 'a profile that only injects from now on',
      reason: 'the same by another field',
      change: (seen) => [changed(seen, { mode: 'Inject' })],
      left: held,
    },
    {
      name: 'a Secret that is renamed',
      reason: 'pods name the old one',
      change: (seen) => [changed(seen, { secrets: [{ ...secrets[0], name: 'other' }] })],
      left: held,
    },
    {
      name: 'a source that is not granted',
      reason: 'a slip in the name of the source',
      change: (seen) => [
        changed(seen, { secrets: [{ name: 'reg', sources: [{ namespace: 'platform', name: 'qauy' }] }] }),
      ],
      left: held,
    },
    {
      name: 'labels of all namespaces, in one go',
      reason: 'a GitOps commit may change them all',
      change: () => teams(12, { team: 'b' }),
      left: held,
    },
    {
      name: 'ten namespaces are relabelled',
      reason: 'ten are never many',
      change: () => teams(10, { team: 'b' }),
      left: 2,
    },
    {
      name: 'the profile is deleted',
      reason: 'an explicit deletion confirms itself',
      change: () => [{ gone: team }],
      left: 0,
    },
    {
      name: 'the grant is deleted',
      reason: 'a revocation is never held',
      change: () => [{ gone: byName }],
      left: 0,
    },
    {
      name: 'the grant is narrowed',
      reason: 'a revocation is never held',
      change: () => [{ ...byName, spec: { ...(byName.spec as object), namespaces: ['team-0'] } }],
      left: 1,
    },
    {
      name: 'every namespace opts out',
      reason: 'that is the consent of the target',
      change: () => teams(12, { team: 'a', 'pullwright.dev/distribute': 'false' }),
      left: 0,
    },
    {
      name: 'the profile is deleted while the removal of its copies is held',
      reason: 'what was held goes with it',
      change: (seen) => {
        const after = seen.after([changed(seen, { mode: 'Inject' })]);
        assert.equal(copies(after, 12), held);
        return [{ gone: team }];
      },
      left: 0,
    },
  ],
  ({ change, left }) => {
    const before = scene([...teams(12), team, granted, byName]);
    assert.equal(copies(before, 12), 12);
    assert.equal(copies(before.after(change(before)), 12), left);
  },
);

test('what is held is said, and how to confirm it', () => {
  const before = scene([...teams(12), team, quay]);
  const after = before.after([changed(before, { namespaceSelector: { matchLabels: { team: 'x' } } })]);
  assert.equal(ready(statusOf(after)), 'False RemovalHeld');
  assert.equal(conditionOf(statusOf(after), 'RemovalHeld'), 'True Share');
  assert.equal(
    readyMessage(statusOf(after)),
    `removes 12 of 12 copies: "team-0/reg", "team-1/reg", "team-10/reg", "team-11/reg", "team-2/reg" and 7 more stay until the annotation pullwright.dev/confirm-removal: "${statusOf(after)?.heldRemoval}" on PullSecretProfile "team" confirms it`,
  );
  const { events = [] } = pullSecretInjection().reconcile(readerOf(after.store), {
    scope: 'local',
    name: 'profile/team',
  });
  assert.deepEqual(
    events.map(({ type, reason, regarding }) => [type, reason, regarding.name]),
    [['Warning', 'RemovalHeld', 'team']],
  );
  const back = after.after([changed(after, {})]);
  assert.equal(ready(statusOf(back)), 'True Current');
  assert.equal(conditionOf(statusOf(back), 'RemovalHeld'), undefined);
  assert.equal(statusOf(back)?.heldRemoval, '');
});

test('the annotation lets the removal go on, and no later one', () => {
  const before = scene([...teams(12), team, quay]);
  const mistake = { namespaceSelector: { matchLabels: { team: 'x' } } };
  const after = before.after([changed(before, mistake)]);
  const hash = statusOf(after)?.heldRemoval;
  const wrong = after.after([changed(after, mistake, { 'pullwright.dev/confirm-removal': 'yes' })]);
  assert.equal(copies(wrong, 12), 12);
  const confirmed = wrong.after([changed(wrong, mistake, { 'pullwright.dev/confirm-removal': hash })]);
  assert.equal(copies(confirmed, 12), 0);
  assert.equal(conditionOf(statusOf(confirmed), 'RemovalHeld'), undefined);
  assert.equal(statusOf(confirmed)?.heldRemoval, '');
  const annotation = { 'pullwright.dev/confirm-removal': hash };
  const again = confirmed.later(60, [changed(confirmed, {}, annotation)]);
  assert.equal(copies(again, 12), 12);
  const later = again.later(60, [changed(again, mistake, annotation)]);
  assert.equal(copies(later, 12), 12, 'a later removal is another one');
});

test('the confirmation of one removal is none of another in its place', () => {
  const before = scene([...teams(12), team, quay]);
  const after = before.after([changed(before, { namespaceSelector: { matchLabels: { team: 'x' } } })]);
  const hash = statusOf(after)?.heldRemoval;
  const other = after.after([changed(after, { mode: 'Inject' }, { 'pullwright.dev/confirm-removal': hash })]);
  assert.equal(copies(other, 12), 12);
  assert.notEqual(statusOf(other)?.heldRemoval, hash);
});

test('a rotation and a new namespace go on while a removal is held', () => {
  const before = scene([...teams(12), team, quay]);
  const after = before.after([changed(before, { namespaceSelector: { matchLabels: { team: 'x' } } })]);
  const next = after.after([source('platform/quay', ['new.example']), namespace('late', { team: 'x' })]);
  assert.deepEqual(next.registries('late', 'reg'), ['new.example']);
  assert.equal(copies(next, 12), 12);
});

test('another share, and another number', () => {
  const options = { removals: { share: 0.5, copies: 1 } };
  const before = scene([...teams(4), team, quay], options);
  assert.equal(copies(before.after(teams(2, { team: 'b' })), 4), 2);
  const again = scene([...teams(4), team, quay], options);
  assert.equal(copies(again.after(teams(3, { team: 'b' })), 4), 4);
});

interface OptionCase extends Case {
  readonly removals: unknown;
  readonly text: RegExp;
}

table<OptionCase>(
  test,
  [
    { name: 'no map', removals: 5, text: /removals: invalid value 5: must be an object$/ },
    { name: 'a list', removals: [], text: /removals: invalid value of type list: must be an object$/ },
    { name: 'a share above one', removals: { share: 2 }, text: /removals\.share: must be at most 1$/ },
    {
      name: 'a share that is a text',
      removals: { share: '0.5' },
      text: /removals\.share: invalid value "0\.5": must be a number$/,
    },
    {
      name: 'half a copy',
      removals: { copies: 0.5 },
      text: /removals\.copies: invalid value 0\.5: must be an integer$/,
    },
    {
      name: 'a slip',
      removals: { shares: 0.5 },
      text: /removals\.shares: unknown field; must be one of "share", "copies"$/,
    },
  ],
  ({ removals, text }) => assert.throws(() => reconcilers({ removals }), text),
);

test('namespaces that change within a minute are one change, and what is left of it waits until it is confirmed', () => {
  const steps = (seconds: number): Scene => {
    let seen = scene([...teams(12), team, quay]);
    for (const one of teams(12, { team: 'b' })) seen = seen.later(seconds, [one]);
    return seen;
  };
  assert.equal(copies(steps(7), 12), 0, 'no ten within a minute');
  const quick = steps(1);
  assert.equal(copies(quick, 12), 2, 'ten are never many, the eleventh is');
  assert.equal(ready(statusOf(quick)), 'False RemovalHeld');
  assert.match(readyMessage(statusOf(quick)), /removes 2 of 2 copies, the rest of a larger change: "team-10/);
  const old = quick.later(3600, []);
  assert.equal(copies(old, 12), 2, 'they wait, however long');
  assert.equal(copies(old.after([]), 12), 2, 'and a restart forgets nothing');
  const hash = statusOf(old)?.heldRemoval;
  const stored = old.store.get({ ...team, name: 'team' });
  assert.ok(stored !== undefined && hash !== undefined);
  const annotations = { 'pullwright.dev/confirm-removal': hash };
  const confirmed = old.later(1, [{ ...stored, metadata: { ...stored.metadata, annotations } }]);
  assert.equal(copies(confirmed, 12), 0);
  assert.equal(conditionOf(statusOf(confirmed), 'RemovalHeld'), undefined);
});

test('a namespace that gets its copy back is none of those that lost it', () => {
  let seen = scene([...teams(12), team, quay]);
  for (let round = 0; round < 20; round++) {
    seen = seen.later(1, teams(1, { team: 'b' }));
    assert.equal(copies(seen, 12), 11, `round ${round}`);
    seen = seen.later(1, teams(1));
    assert.equal(copies(seen, 12), 12, `round ${round}`);
  }
});
