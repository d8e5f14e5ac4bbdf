/** The readers of profiles and grants are total. What they refuse is held against an API server in strict.test.ts. */
import type { KubeObject } from '../../runtime/core/kubernetes/object.ts';
import { readPullSecretGrant } from '../../runtime/pull-secret-injection/kinds/grant.ts';
import { readProfile } from '../../runtime/pull-secret-injection/kinds/profile.ts';
import { test } from '../support/suite.ts';

const GOOD = { namespaceSelector: {}, selector: {}, secrets: [{ name: 'reg' }] };

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
