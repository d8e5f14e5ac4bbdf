/** Removals that come as many changes: one command that changes the labels of many namespaces. */
import assert from 'node:assert/strict';
import { suite } from '../support/suite.ts';
import {
  conditionOf,
  profile,
  type ReportedStatus,
  ready,
  readyMessage,
  type Scene,
  scene,
  source,
  teams,
  teamsWith,
} from './scene.ts';

const test = suite('a removal in many steps');
const secrets = [{ name: 'reg', sources: [{ namespace: 'platform', name: 'quay' }] }];
const team = profile('team', { secrets });
const quay = source('platform/quay', ['quay.io']);
const copies = (seen: Scene): number => teamsWith(seen, 'reg', 12);
const statusOf = (seen: Scene): (ReportedStatus & { heldRemoval?: string }) | undefined =>
  seen.status('PullSecretProfile', 'team');

test('namespaces that change within a minute are one change, and what is left of it waits until it is confirmed', () => {
  const steps = (seconds: number): Scene => {
    let seen = scene([...teams(12), team, quay]);
    for (const one of teams(12, { team: 'b' })) seen = seen.later(seconds, [one]);
    return seen;
  };
  assert.equal(copies(steps(7)), 0, 'no ten within a minute');
  const quick = steps(1);
  assert.equal(copies(quick), 2, 'ten are never many, the eleventh is');
  assert.equal(ready(statusOf(quick)), 'False RemovalHeld');
  assert.match(readyMessage(statusOf(quick)), /removes 2 of 2 copies, the rest of a larger change: "team-10/);
  const old = quick.later(3600, []);
  assert.equal(copies(old), 2, 'they wait, however long');
  assert.equal(copies(old.after([])), 2, 'and a restart forgets nothing');
  const hash = statusOf(old)?.heldRemoval;
  const stored = old.store.get({ ...team, name: 'team' });
  assert.ok(stored !== undefined && hash !== undefined);
  const annotations = { 'pullwright.dev/confirm-removal': hash };
  const confirmed = old.later(1, [{ ...stored, metadata: { ...stored.metadata, annotations } }]);
  assert.equal(copies(confirmed), 0);
  assert.equal(conditionOf(statusOf(confirmed), 'RemovalHeld'), undefined);
});

test('a namespace that gets its copy back is none of those that lost it', () => {
  let seen = scene([...teams(12), team, quay]);
  for (let round = 0; round < 20; round++) {
    seen = seen.later(1, teams(1, { team: 'b' }));
    assert.equal(copies(seen), 11, `round ${round}`);
    seen = seen.later(1, teams(1));
    assert.equal(copies(seen), 12, `round ${round}`);
  }
});

test.run();
