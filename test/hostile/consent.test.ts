/** A copy of a Secret takes a grant in the namespace of that Secret: neither an annotation nor a grant elsewhere is one. */
import assert from 'node:assert/strict';
import type { KubeObject } from '../../runtime/core/kubernetes/object.ts';
import { namespace, profile, scene, source, teams, teamsWith } from '../pull-secret-injection/scene.ts';
import { test } from '../support/suite.ts';

const quay = source('platform/quay', ['quay.io'], '');
const grant = (place: string): KubeObject => ({
  apiVersion: 'pullwright.dev/v1alpha1',
  kind: 'PullSecretGrant',
  metadata: { name: 'all', namespace: place },
  spec: { secrets: [{ name: 'quay' }], profiles: [{ name: '*' }], namespaces: ['*'] },
});
const annotations = { 'pullwright.dev/grant-namespaces': '*' };
const annotated = { ...quay, metadata: { ...quay.metadata, annotations } };

const CASES: readonly (readonly [name: string, objects: readonly KubeObject[], copies: number])[] = [
  ['a grant beside it is one', [quay, grant('platform')], 1],
  ['a profile alone is none', [quay], 0],
  ['an annotation of the Secret is none', [annotated], 0],
  ['a grant in the namespace that wants it is none', [quay, grant('team-0')], 0],
];
for (const [name, objects, copies] of CASES)
  test(name, () => {
    const secrets = [{ name: 'reg', sources: [{ namespace: 'platform', name: 'quay' }] }];
    const seen = scene([namespace('platform'), ...teams(1), profile('team', { secrets }), ...objects]);
    assert.equal(teamsWith(seen, 'reg', 1), copies);
  });
