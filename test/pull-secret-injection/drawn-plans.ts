/** Random injection plans, the same in every run, for tests that compare an implementation with the rule. */
import assert from 'node:assert/strict';
import { type PullSecretProfile, readProfile } from '../../runtime/pull-secret-injection/kinds/profile.ts';
import { readSidecarSet, type SidecarSet } from '../../runtime/pull-secret-injection/kinds/sidecar-set.ts';

/** A number from 0 up to, not including, what is given. */
export type Draw = (below: number) => number;

/** @throws AssertionError when the profile cannot be read */
export function profileOf(name: string, spec: Record<string, unknown>): PullSecretProfile {
  const read = readProfile({ apiVersion: '', kind: '', metadata: { name }, spec });
  assert.ok(read.ok, read.ok ? '' : read.problems.join());
  return read.profile;
}

/** The same numbers in every run. */
export function draws(seed: number): Draw {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff;
    return (state >>> 8) % below;
  };
}

/** One of the list. */
export function pickFrom<T>(draw: Draw, list: readonly T[]): T {
  return list[draw(list.length)] as T;
}

function selector(draw: Draw, keys: readonly string[]): Record<string, unknown> {
  const key = pickFrom(draw, keys);
  return pickFrom(draw, [
    {},
    { matchLabels: { [key]: pickFrom(draw, ['prod', 'a', 'web']) } },
    { matchExpressions: [{ key, operator: 'In', values: ['prod', 'web', 'a'] }] },
    { matchExpressions: [{ key, operator: 'NotIn', values: ['prod', 'web'] }] },
    { matchExpressions: [{ key, operator: 'Exists' }] },
    { matchExpressions: [{ key, operator: 'DoesNotExist' }] },
  ]);
}

/** Five profiles, some of which select the same pods and bring the same names. */
export function drawnProfiles(draw: Draw): readonly PullSecretProfile[] {
  return Array.from({ length: 5 }, (_, at) =>
    profileOf(`p${at}`, {
      order: draw(3),
      namespaceSelector: selector(draw, ['env', 'team', 'kubernetes.io/metadata.name']),
      selector: selector(draw, ['app', 'tier']),
      secrets: [...new Set([pickFrom(draw, 'abcd'.split('')), pickFrom(draw, 'abcd'.split(''))])].map(
        (name) => ({ name }),
      ),
    }),
  );
}

/** Four SidecarSets, a canary of one another among them. */
export function drawnSets(draw: Draw): readonly SidecarSet[] {
  return Array.from({ length: 4 }, (_, at) =>
    readSidecarSet({
      metadata: {
        name: `s${at}`,
        ...(draw(4) === 0
          ? {
              annotations: {
                'apps.kruise.io/sidecarset-canary': 'true',
                'apps.kruise.io/sidecarset-base': `s${draw(4)}`,
              },
            }
          : {}),
      },
      spec: {
        selector: selector(draw, ['app', 'tier']),
        ...(draw(2) === 0 ? { namespaceSelector: selector(draw, ['env', 'team']) } : {}),
        ...(draw(3) === 0 ? {} : { containers: [{}] }),
        imagePullSecrets: [{ name: pickFrom(draw, ['x', 'y', 'a']) }],
      },
    }),
  );
}
