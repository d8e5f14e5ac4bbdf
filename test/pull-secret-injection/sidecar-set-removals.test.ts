/** A SidecarSet that removes many Secrets by mistake: held like a profile's removal, for either writer of the set's status. */
import assert from 'node:assert/strict';
import type { KubeObject } from '../../runtime/core/kubernetes/object.ts';
import { pullSecretInjection } from '../../runtime/pull-secret-injection/reconciler/reconcile.ts';
import { meta, refOf } from '../support/meta.ts';
import { type Case, table, test } from '../support/suite.ts';
import {
  changedTo,
  conditionOf,
  KRUISE,
  namespace,
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

const COUNT = 12;
const FROM = 'pullwright.dev/source-namespace';
const CONFIRM = 'pullwright.dev/confirm-removal';
const quay = source('platform/quay', ['quay.io']);

function set(spec: object = {}, annotations: Record<string, string> = { [FROM]: 'platform' }): KubeObject {
  return {
    ...meta('apps.kruise.io/v1beta1 SidecarSet', { name: 'side', annotations }),
    spec: {
      selector: { matchLabels: { app: 'web' } },
      namespaceSelector: { matchLabels: { team: 'a' } },
      imagePullSecrets: [{ name: 'quay' }],
      containers: [{ name: 'c', image: 'registry.example.com/side:1' }],
      ...spec,
    },
  };
}

const copies = (seen: Scene): number => teamsWith(seen, 'quay', COUNT);

/** Status of the set: its own, or, where Kruise injects, the PullStatus of the same name. */
function saidOf(seen: Scene, by: 'own' | 'kruise'): ReportedStatus | undefined {
  return by === 'own'
    ? seen.status('SidecarSet', 'side')
    : seen.status('PullStatus', 'sidecarset-side', 'pullwright-system');
}

const hashIn = (status: ReportedStatus | undefined): string =>
  /confirm-removal: "([0-9a-f]{12})" on SidecarSet "side"/.exec(readyMessage(status))?.[1] ?? 'none';

interface Slip extends Case {
  readonly change: (seen: Scene) => readonly (KubeObject | { readonly gone: KubeObject })[];
  readonly left: number;
}

const mistake = { namespaceSelector: { matchLabels: { team: 'x' } } };

table<Slip>(
  test,
  [
    { name: 'a slip in namespaceSelector', change: (seen) => [changedTo(seen, set(mistake))], left: COUNT },
    {
      name: 'a namespaceSelector that cannot be read',
      reason: 'what it brought stays until it can',
      change: (seen) => [
        changedTo(
          seen,
          set({ namespaceSelector: { matchExpressions: [{ key: 'team', operator: 'Inn', values: ['a'] }] } }),
        ),
      ],
      left: COUNT,
    },
    {
      name: 'a Secret that is named otherwise',
      change: (seen) => [changedTo(seen, set({ imagePullSecrets: [{ name: 'other' }] }))],
      left: COUNT,
    },
    { name: 'the annotation is gone', change: (seen) => [changedTo(seen, set({}, {}))], left: COUNT },
    {
      name: 'paused',
      change: (seen) => [changedTo(seen, set({ injectionStrategy: { paused: true } }))],
      left: COUNT,
    },
    { name: 'the set is deleted', reason: 'that is meant', change: () => [{ gone: set() }], left: 0 },
  ],
  ({ change, left }) => {
    const before = scene([...teams(COUNT), set(), quay]);
    assert.equal(copies(before), COUNT);
    assert.equal(copies(before.after(change(before))), left);
  },
);

for (const by of ['own', 'kruise'] as const) {
  const start = (): Scene =>
    scene([
      ...teams(COUNT),
      set(),
      quay,
      ...(by === 'kruise' ? [KRUISE, namespace('pullwright-system')] : []),
    ]);

  test(`it is said by ${by === 'own' ? 'its own status' : 'a PullStatus, where Kruise injects'}, with what confirms it`, () => {
    const before = start();
    const held = before.after([changedTo(before, set(mistake))]);
    const status = saidOf(held, by);
    assert.equal(ready(status), 'False RemovalHeld');
    assert.equal(conditionOf(status, 'RemovalHeld'), 'True Share');
    assert.match(
      readyMessage(status),
      /^removes 12 of 12 copies: "team-0\/quay", .* and 7 more stay until the annotation .*: "[0-9a-f]{12}" on SidecarSet "side" confirms it$/,
    );
    const { events = [] } = pullSecretInjection().reconcile(readerOf(held.store), {
      scope: 'local',
      name: 'sidecarset/side',
    });
    assert.deepEqual(
      events
        .filter(({ reason }) => reason === 'RemovalHeld')
        .map(({ type, regarding }) => [type, regarding.kind, regarding.name]),
      [['Warning', 'SidecarSet', 'side']],
    );
    const back = held.after([changedTo(held, set())]);
    assert.equal(conditionOf(saidOf(back, by), 'RemovalHeld'), undefined);
    assert.equal(ready(saidOf(back, by))?.startsWith('True'), true);
  });

  test(`only its own annotation confirms it (${by})`, () => {
    const before = start();
    const held = before.after([changedTo(before, set(mistake))]);
    const hash = hashIn(saidOf(held, by));
    const annotated = (value: string): KubeObject =>
      changedTo(held, set(mistake, { [FROM]: 'platform', [CONFIRM]: value }));
    assert.equal(copies(held.later(60, [annotated('0123456789ab')])), COUNT);
    const confirmed = held.later(120, [annotated(hash)]);
    assert.equal(copies(confirmed), 0);
    assert.equal(conditionOf(saidOf(confirmed, by), 'RemovalHeld'), undefined);
    // The next slip is another one, with the annotation still there.
    const again = confirmed.later(180, [
      changedTo(confirmed, set({}, { [FROM]: 'platform', [CONFIRM]: hash })),
    ]);
    assert.equal(copies(again), COUNT);
    const second = again.later(240, [
      changedTo(again, set(mistake, { [FROM]: 'platform', [CONFIRM]: hash })),
    ]);
    assert.equal(copies(second), COUNT);
  });

  test(`without the annotation that says from where, it is still said (${by})`, () => {
    const before = start();
    const held = before.after([changedTo(before, set({}, {}))]);
    assert.equal(ready(saidOf(held, by)), 'False RemovalHeld');
    const hash = hashIn(saidOf(held, by));
    assert.equal(copies(held.later(60, [changedTo(held, set({}, { [CONFIRM]: hash }))])), 0);
  });
}

test('deleting a PullStatus deletes the old confirmation, and no copy', () => {
  const before = scene([...teams(COUNT), set(), quay, KRUISE, namespace('pullwright-system')]);
  const held = before.after([changedTo(before, set(mistake))]);
  const hash = hashIn(saidOf(held, 'kruise'));
  const status = held.store.get(
    refOf('pullwright.dev/v1alpha1 PullStatus', 'sidecarset-side', 'pullwright-system'),
  );
  assert.ok(status !== undefined);
  const later = held.later(60, [{ gone: status }]);
  assert.equal(copies(later), COUNT);
  assert.equal(ready(saidOf(later, 'kruise')), 'False RemovalHeld');
  assert.notEqual(hashIn(saidOf(later, 'kruise')), hash);
});

test('a restart in the middle of a confirmed removal lets the rest go', () => {
  const before = scene([...teams(COUNT), set(), quay]);
  const held = before.after([changedTo(before, set(mistake))]);
  const hash = hashIn(saidOf(held, 'own'));
  held.store.set(changedTo(held, set(mistake, { [FROM]: 'platform', [CONFIRM]: hash })));
  // The key of the set comes first, that of the copies only after a restart.
  const confirmed = pullSecretInjection().reconcile(readerOf(held.store), {
    scope: 'local',
    name: 'sidecarset/side',
  });
  const [patch] = confirmed.status ?? [];
  const conditions = (patch?.status as ReportedStatus | undefined)?.conditions ?? [];
  assert.equal(conditions.find(({ type }) => type === 'RemovalHeld')?.reason, 'Confirmed');
  assert.equal(copies(held.after([])), 0);
});
