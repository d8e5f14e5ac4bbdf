/** The reader of profiles refuses what strict field validation refuses, and agrees with the definition of the kind. */
import assert from 'node:assert/strict';
import type { KubeObject } from '../../runtime/core/kubernetes/object.ts';
import { readPullSecretGrant } from '../../runtime/pull-secret-injection/kinds/grant.ts';
import { readProfile } from '../../runtime/pull-secret-injection/kinds/profile.ts';
import { type Case, suite, table } from '../support/suite.ts';

const test = suite('strict reading of profiles and grants');

interface StrictCase extends Case {
  readonly spec: Readonly<Record<string, unknown>>;
  readonly problem: RegExp;
}

const GOOD = { namespaceSelector: {}, selector: {}, secrets: [{ name: 'reg' }] };

table<StrictCase>(
  test,
  [
    {
      name: 'a misspelt field of a selector',
      reason: 'it would select every namespace',
      spec: { ...GOOD, namespaceSelector: { matchlabels: { team: 'a' } } },
      problem:
        /^spec\.namespaceSelector\.matchlabels: unknown field; must be one of "matchLabels", "matchExpressions"$/,
    },
    {
      name: 'another name for the selector of pods',
      reason: 'it would select every pod',
      spec: { ...GOOD, podSelector: {} },
      problem: /^spec\.podSelector: unknown field/,
    },
    {
      name: 'one source',
      reason: 'nothing would be brought',
      spec: { ...GOOD, secrets: [{ name: 'reg', source: { namespace: 'a', name: 'b' } }] },
      problem: /^spec\.secrets\[0\]\.source: unknown field/,
    },
    {
      name: 'a text for a switch',
      reason: 'it would not be switched',
      spec: { ...GOOD, suspend: 'true' },
      problem: /^spec\.suspend: invalid value "true": must be a boolean$/,
    },
    {
      name: 'distribution without sources',
      reason: 'nothing would be brought',
      spec: { ...GOOD, mode: 'Distribute' },
      problem: /^spec\.secrets: mode Distribute needs sources for every secret$/,
    },
    {
      name: 'no selector of namespaces',
      reason: 'absent is no way to say all',
      spec: { selector: {}, secrets: GOOD.secrets },
      problem:
        /^spec\.namespaceSelector: required value: must be a label selector; \{\} selects all namespaces$/,
    },
    {
      name: 'an empty line for a selector',
      reason: 'null is no way to say all',
      spec: { ...GOOD, selector: null },
      problem: /^spec\.selector: spec\.selector is required: \{\} selects all pods of these namespaces$/,
    },
    {
      name: 'no selector of pods',
      reason: 'a line that was forgotten would select every pod',
      spec: { namespaceSelector: {}, secrets: GOOD.secrets },
      problem: /^spec\.selector: spec\.selector is required/,
    },
    {
      name: 'a label without its value',
      reason: 'the API server would drop it, and what is left selects more',
      spec: { ...GOOD, namespaceSelector: { matchLabels: { tier: null, team: 'a' } } },
      problem: /^spec\.namespaceSelector\.matchLabels\["tier"\]: must not be null$/,
    },
    {
      name: 'a value of a label that is a number',
      reason: 'YAML reads it so',
      spec: { ...GOOD, namespaceSelector: { matchLabels: { tier: 1 } } },
      problem: /^spec\.namespaceSelector\.matchLabels\["tier"\]: invalid value 1: must be a string$/,
    },
  ],
  ({ spec, problem }) => {
    const read = readProfile({ apiVersion: '', kind: '', metadata: { name: 'x' }, spec });
    assert.ok(!read.ok);
    assert.match(read.problems[0] ?? '', problem);
  },
);

test('a profile that only distributes concerns no pod and needs no selector of pods', () => {
  const secrets = [{ name: 'reg', sources: [{ namespace: 'platform', name: 'quay' }] }];
  const spec = { namespaceSelector: {}, mode: 'Distribute', secrets };
  assert.ok(readProfile({ apiVersion: '', kind: '', metadata: { name: 'x' }, spec }).ok);
});

/** Paths of everything in a value. */
function pathsIn(value: unknown, at: readonly string[] = []): readonly (readonly string[])[] {
  if (typeof value !== 'object' || value === null) return [at];
  return [at, ...Object.entries(value).flatMap(([key, inner]) => pathsIn(inner, [...at, key]))];
}

function withAt(value: unknown, [key, ...rest]: readonly string[], put: unknown): unknown {
  if (key === undefined) return put;
  const copy = (Array.isArray(value) ? [...(value as unknown[])] : { ...(value as object) }) as Record<
    string,
    unknown
  >;
  copy[key] = withAt(copy[key], rest, put);
  return copy;
}

const WHOLE = {
  PullSecretProfile: {
    ...GOOD,
    namespaceSelector: {
      matchLabels: { team: 'a' },
      matchExpressions: [{ key: 'b', operator: 'In', values: ['c'] }],
    },
    secrets: [{ name: 'reg', sources: [{ namespace: 'a', name: 'b' }], onCollision: 'Fail' }],
    copies: { labels: { l: 'v' }, annotations: { a: 'v' }, onSourceDeleted: 'Remove', removeAfter: '1h' },
  },
  PullSecretGrant: {
    secrets: [{ name: 'quay' }],
    profiles: [{ name: 'team' }],
    namespaces: ['a'],
    namespaceSelector: { matchLabels: { tier: 'gold' } },
  },
};

for (const [kind, whole] of Object.entries(WHOLE))
  test(`${kind}: the reader has an answer to any value at any place`, () => {
    for (const put of [null, '', 0, false, [], {}, [null], [{}], { a: null }])
      for (const at of pathsIn(whole)) {
        const spec = withAt(whole, at, put);
        const object = { apiVersion: '', kind, metadata: { name: 'x', namespace: 'y' }, spec } as KubeObject;
        readProfile(object);
        readPullSecretGrant(object);
      }
  });

test.run();
