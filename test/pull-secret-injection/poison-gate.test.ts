/**
 * The gate of distribution with random bodies: for any source content, each written document is one that a kubelet
 * accepts. A document that it rejects stops every pull of a pod, including those of public images.
 */

import assert from 'node:assert/strict';
import fc from 'fast-check';
import { parseDockerConfig } from '../../runtime/core/docker-config/pull-secret.ts';
import { type Redacted, redact, reveal } from '../../runtime/core/redacted.ts';
import {
  compose,
  SECRET_TYPE,
  type SourceSecret,
} from '../../runtime/pull-secret-injection/reconciler/sources.ts';
import { plantedAuth } from '../support/canary.ts';
import { forAll } from '../support/for-all.ts';
import { test } from '../support/suite.ts';

const RUNS = 3000;

const good = (host: string): object => ({ [host]: { auth: plantedAuth(host) } });
const GOOD = JSON.stringify({ auths: { ...good('quay.io'), ...good('ghcr.io') } });

/** Values that a person, a script or a broken tool puts where a text belongs. */
const anyValue = fc.oneof(
  fc.constantFrom<unknown>(null, true, 0, 1.5, '', ' ', 'x', [], {}, ['a'], { auth: 'x' }),
  fc.constantFrom(
    '!!',
    'dXNlcg==',
    'dXNlcjpwYXNz',
    'dXNlcjpwYXNz=',
    'OnA=',
    'dTo=',
    '=',
    'YTpi\n',
    'YTpi\u0000',
  ),
  fc.json({ maxDepth: 2 }).map((text) => JSON.parse(text) as unknown),
);
const field = fc.constantFrom('auth', 'Auth', 'username', 'password', 'email', 'identitytoken', 'x');
const entry = fc.oneof(
  { weight: 2, arbitrary: fc.constant<unknown>({ auth: plantedAuth('any') }) },
  { weight: 3, arbitrary: fc.dictionary(field, anyValue, { maxKeys: 3 }) as fc.Arbitrary<unknown> },
  { weight: 1, arbitrary: anyValue },
);
const host = fc.constantFrom(
  'quay.io',
  'ghcr.io/team',
  'https://index.docker.io/v1/',
  '',
  '*.io',
  'a b',
  '__proto__',
);
const structured = fc
  .record({
    auths: fc.oneof(
      { weight: 5, arbitrary: fc.dictionary(host, entry, { maxKeys: 4 }) as fc.Arbitrary<unknown> },
      { weight: 1, arbitrary: anyValue },
    ),
    rest: fc.dictionary(
      fc.constantFrom('HttpHeaders', 'credHelpers', 'credsStore', 'Auths', 'AUTHS', 'x'),
      anyValue,
      { maxKeys: 2 },
    ),
  })
  .map(({ auths, rest }) => JSON.stringify({ auths, ...rest }));
/** A valid document with removed, doubled or changed bytes. */
const damaged = fc
  .record({
    text: fc.oneof(fc.constant(GOOD), structured),
    at: fc.nat(400),
    cut: fc.nat(6),
    put: fc.oneof(fc.string({ maxLength: 4 }), fc.constantFrom('"', '{', '}', ',', '\\', '\uFEFF', '\u0000')),
  })
  .map(({ text, at, cut, put }) => {
    const where = text.length === 0 ? 0 : at % text.length;
    return text.slice(0, where) + put + text.slice(where + cut);
  });
const body = fc.oneof(
  { weight: 4, arbitrary: structured },
  { weight: 4, arbitrary: damaged },
  { weight: 1, arbitrary: fc.constant(GOOD) },
  { weight: 1, arbitrary: fc.string() },
);

function sourceOf(text: string, at: number): SourceSecret {
  const name = `source-${at}`;
  const data = { '.dockerconfigjson': redact(Buffer.from(text, 'utf8').toString('base64')) };
  const metadata = { name, namespace: 'platform' };
  const object = { apiVersion: 'v1', kind: 'Secret', metadata, type: SECRET_TYPE, data } as const;
  return { source: { namespace: 'platform', name }, object };
}

function kubeletFault(written: Redacted<string>): string | undefined {
  const parsed = parseDockerConfig(redact(Buffer.from(reveal(written), 'base64').toString('utf8')));
  if (!parsed.ok) return parsed.problem.kubeletFault ?? parsed.problem.message;
  return parsed.config.kubeletFault;
}

let written = 0;
let held = 0;
for (const count of [1, 2, 3])
  test(`of ${count} random sources nothing is written that a kubelet could not take`, () => {
    forAll(
      { numRuns: RUNS },
      fc.array(body, { minLength: count, maxLength: count }),
      fc.constantFrom('FirstWins', 'Fail'),
      (texts, onCollision) => {
        const composed = compose(texts.map(sourceOf), onCollision);
        // Every source is in the body, or is said to be bad, or is one of two that collide.
        const named = new Set([...composed.good, ...composed.bad.map(({ source }) => source)]);
        if (composed.body !== undefined) assert.equal(named.size, count);
        else assert.ok(composed.bad.length > 0);
        if (composed.body === undefined) held += 1;
        else {
          written += 1;
          assert.equal(kubeletFault(composed.body), undefined);
        }
      },
    );
  });

test('the random sources were of both sorts', () => {
  assert.ok(written > RUNS / 5 && held > RUNS / 5, `${written} written, ${held} held`);
});
