import assert from 'node:assert/strict';
import {
  pinVariants,
  readSidecarSet,
  type SidecarSet,
  type SidecarSetRevision,
} from '../../runtime/pull-secret-injection/kinds/sidecar-set.ts';
import { injectionPlan, planInjection } from '../../runtime/pull-secret-injection/plan/plan.ts';
import { compileInjectionPolicy } from '../../runtime/pull-secret-injection/plan/policy.ts';
import { type Case, table, test } from '../support/suite.ts';

function setWith(revision: object, update: object = {}): SidecarSet {
  return readSidecarSet({
    metadata: { name: 'set' },
    spec: {
      imagePullSecrets: [{ name: 'current' }],
      containers: [{}],
      injectionStrategy: { revision },
      updateStrategy: update,
    },
  });
}

function revisionOf(
  name: string,
  revision: number,
  more: Partial<SidecarSetRevision> = {},
): SidecarSetRevision {
  return { name, sidecarSet: 'set', revision, imagePullSecrets: [name], containers: 1, ...more };
}

const REVISIONS: readonly SidecarSetRevision[] = [
  revisionOf('first', 1, { customVersion: 'v1' }),
  revisionOf('third', 3, { customVersion: 'v1' }),
  revisionOf('second', 2, { customVersion: 'v1' }),
  revisionOf('newest', 9, { customVersion: 'v2' }),
  revisionOf('theirs', 8, { customVersion: 'v1', sidecarSet: 'other' }),
];

interface Row extends Case {
  readonly set: SidecarSet;
  /** What it injects; undefined when the revision is missing. */
  readonly injects: readonly string[] | undefined;
}

const ROWS: readonly Row[] = [
  {
    name: 'by version',
    reason: 'the newest of the version, of this set, whatever the order',
    set: setWith({ customVersion: 'v1' }),
    injects: ['third'],
  },
  {
    name: 'by both',
    reason: 'the name is more exact',
    set: setWith({ revisionName: 'first', customVersion: 'v2' }),
    injects: ['first'],
  },
  {
    name: 'a version that is not there',
    reason: 'said',
    set: setWith({ customVersion: 'x' }),
    injects: undefined,
  },
  {
    name: 'for a part of the pods',
    reason: 'it cannot be drawn here: the current content',
    set: setWith({ revisionName: 'second', policy: 'Partial' }),
    injects: ['current'],
  },
  {
    name: 'for a part of the pods, and the update stands still',
    reason: 'then no pod gets the current content',
    set: setWith({ revisionName: 'second', policy: 'Partial' }, { paused: true }),
    injects: ['second'],
  },
];

table(test, ROWS, ({ set, injects }) => {
  for (const revisions of [REVISIONS, REVISIONS.toReversed()])
    assert.deepEqual(
      pinVariants(set, revisions).find(({ only }) => only === undefined || only.meeting)?.imagePullSecrets,
      injects,
    );
});

const current = readSidecarSet({
  metadata: { name: 'log' },
  spec: {
    selector: { matchLabels: { app: 'web' } },
    imagePullSecrets: [{ name: 'new' }],
    containers: [{}],
    injectionStrategy: { revision: { revisionName: 'log-1', policy: 'Partial' } },
    updateStrategy: { selector: { matchLabels: { ring: 'canary' } } },
  },
});
const old = { name: 'log-1', sidecarSet: 'log', revision: 1, imagePullSecrets: ['old'], containers: 1 };

test('Partial with a selector: pods outside of it get the pinned content, by plan and by policy', () => {
  const plan = injectionPlan([], pinVariants(current, [old]));
  const names = (labels: Record<string, string>) =>
    planInjection(plan, { labels: { app: 'web', ...labels }, namespaceLabels: {} }).names;
  assert.deepEqual(names({ ring: 'canary' }), ['new']);
  assert.deepEqual(names({}), ['old']);
  const compiled = compileInjectionPolicy(plan, {
    apiVersion: 'admissionregistration.k8s.io/v1',
    excludedNamespaces: [],
  });
  assert.ok(compiled.ok);
  assert.match(JSON.stringify(compiled.policy.spec), /!\(\(\\"ring\\" in variables\.l/);
});
