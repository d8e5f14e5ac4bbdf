/** Whether new pods of a namespace get the names that its claim asks for: said when it is so, and when that changes. */
import assert from 'node:assert/strict';
import { DEFAULT_OPTIONS } from '../../runtime/pull-secret-injection/options.ts';
import { keysFor } from '../../runtime/pull-secret-injection/reconciler/keys.ts';
import type { KubeObject } from '../../runtime/rules/kubernetes/object.ts';
import { suite } from '../support/suite.ts';
import { conditionOf, namespace, PROFILE, profile, type Scene, scene, source, worldOf } from './scene.ts';

const test = suite('Injecting of a PullSecretClaim');
const red = namespace('red', { team: 'a' });
const quay = source('platform/quay', ['quay.io'], 'red');
const offered = (more: Record<string, unknown> = {}): KubeObject =>
  profile('quay', {
    offer: 'OnRequest',
    selector: {},
    secrets: [{ name: 'reg', sources: [{ namespace: 'platform', name: 'quay' }] }],
    ...more,
  });
const claim: KubeObject = {
  apiVersion: PROFILE,
  kind: 'PullSecretClaim',
  metadata: { name: 'quay', namespace: 'red', generation: 1 },
  spec: { profile: 'quay' },
};
const injecting = (seen: Scene): string | undefined =>
  conditionOf(seen.status('PullSecretClaim', 'quay', 'red'), 'Injecting');

test('a claim does not say that pods get names where none do', () => {
  const brought = scene([red, quay, offered(), claim]);
  assert.equal(injecting(brought), 'True Policy');
  const suspended = brought.after([offered({ suspend: true })]);
  assert.equal(injecting(suspended), 'False Suspended');
  const resumed = suspended.after([offered()]);
  assert.equal(injecting(resumed), 'True Policy');
  const left = resumed.after([namespace('red', { team: 'a', 'pullwright.dev/inject': 'false' })]);
  assert.equal(injecting(left), 'False PodsLeftAlone');
});

test('a claim is looked at again when that changes which injects', () => {
  const { store } = scene([red, quay, offered(), claim]);
  const world = worldOf(store);
  for (const kind of ['MutatingAdmissionPolicy', 'MutatingAdmissionPolicyBinding', 'EndpointSlice']) {
    const changed = { role: 'hosted', apiVersion: 'x/v1', kind, name: 'any' } as const;
    const keys = keysFor(changed, world, DEFAULT_OPTIONS).map(
      ({ namespace: where, name }) => `${where}/${name}`,
    );
    assert.ok(keys.includes('red/claim/quay'), kind);
  }
});

test.run();
