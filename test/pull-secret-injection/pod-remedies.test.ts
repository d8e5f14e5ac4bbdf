/** What somebody is told to do about a pod that was admitted without its pull secrets: who makes another decides. */
import assert from 'node:assert/strict';
import { suite } from '../support/suite.ts';
import { namespace, profile, scene } from './scene.ts';

const test = suite('remedies for pods without pull secrets');
const shop = namespace('shop', { team: 'a' });
const team = profile('team', { secrets: [{ name: 'reg' }] });
const owned = (apiVersion: string, kind: string): object => ({
  ownerReferences: [{ apiVersion, kind, name: 'o', uid: 'u-o', controller: true }],
});

for (const [who, metadata, remedy] of [
  ['nobody makes it again', {}, 'create it again'],
  ['its controller ends with it', owned('tekton.dev/v1', 'TaskRun'), 'create it again'],
  [
    'its controller makes another',
    owned('apps/v1', 'ReplicaSet'),
    'delete it, and its ReplicaSet makes another',
  ],
  [
    'its Job counts it',
    owned('batch/v1', 'Job'),
    'create its Job again: a pod that is deleted is one of the tries that it has',
  ],
] as const)
  test(who, () => {
    const created = { creationTimestamp: '2026-11-20T00:00:00Z' };
    const old = {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'old', namespace: 'shop', ...created, ...metadata },
      spec: { containers: [{ name: 'c', image: 'quay.io/a/b' }] },
    };
    const status = scene([shop, team, old]).status('PullStatus', 'podlist-shop', 'shop');
    const message = status?.verdicts?.[0]?.message ?? '';
    assert.equal(message.slice(message.lastIndexOf('; ') + 2), remedy);
  });

test.run();
