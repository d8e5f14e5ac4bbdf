/** A copy of a Secret takes a grant in the namespace of that Secret: neither an annotation nor a grant elsewhere is one. */
import assert from 'node:assert/strict';
import type { KubeObject } from '../../runtime/core/kubernetes/object.ts';
import {
  namespace,
  profile,
  ready,
  scene,
  source,
  teams,
  teamsWith,
} from '../pull-secret-injection/scene.ts';
import { type Case, suite, table } from '../support/suite.ts';

const test = suite('consent to a copy');

const quay = source('platform/quay', ['quay.io'], '');
const grant = (place: string): KubeObject => ({
  apiVersion: 'pullwright.dev/v1alpha1',
  kind: 'PullSecretGrant',
  metadata: { name: 'all', namespace: place },
  spec: { secrets: [{ name: 'quay' }], profiles: [{ name: '*' }], namespaces: ['*'] },
});
const annotated = (name: string): KubeObject => ({
  ...quay,
  metadata: { ...quay.metadata, annotations: { [`pullwright.dev/${name}`]: '*' } },
});

interface Row extends Case {
  readonly objects: readonly KubeObject[];
  readonly given: boolean;
}

const rows: readonly Row[] = [
  { name: 'a grant beside it', reason: 'so is it meant', objects: [quay, grant('platform')], given: true },
  { name: 'no grant', reason: 'a profile asks for it, no more', objects: [quay], given: false },
  ...['grant-namespaces', 'granted-by'].map((name) => ({
    name: `the annotation ${name}`,
    reason: 'who may annotate a Secret may not give it away',
    objects: [annotated(name)],
    given: false,
  })),
  {
    name: 'a grant in the namespace that wants it',
    reason: 'it is the owner of the source who grants',
    objects: [quay, grant('team-0')],
    given: false,
  },
];

table(test, rows, ({ objects, given }) => {
  const secrets = [{ name: 'reg', sources: [{ namespace: 'platform', name: 'quay' }] }];
  const seen = scene([namespace('platform'), ...teams(1), profile('team', { secrets }), ...objects]);
  assert.equal(teamsWith(seen, 'reg', 1), given ? 1 : 0);
  assert.equal(ready(seen.status('PullSecretProfile', 'team'))?.startsWith('True'), given);
});

test.run();
