/** What rights say more than a list that somebody has looked at. */
import { recordOf } from '../record.ts';
import type { Right } from './right.ts';

/** A right as one line that says all of it but its reason. */
function line({ account, power, namespace, names, resources, verbs, boundBy }: Right): readonly string[] {
  const place = `${account} ${power} ${namespace ?? '*'}`;
  const unbound = boundBy.length === 0 ? ['unbound'] : [];
  const bounds = boundBy.flatMap(({ policy, unless }) => unless.map((one) => `past ${policy} where ${one}`));
  return (names ?? ['*']).flatMap((name) =>
    [
      ...resources.flatMap((resource) => verbs.map((verb) => `${verb} ${resource}`)),
      ...unbound,
      ...bounds,
      'has',
    ].map((what) => `${place} ${name} ${what}`),
  );
}

/**
 * The rights that give something which `accepted` does not: another place, name, resource or verb, or a policy less.
 *
 * @param accepted what `rights --output json` printed once; anything else counts as nothing accepted
 *
 * @example
 * ```ts
 * import { grownRights } from './rights-growth.ts';
 * import assert from 'node:assert/strict';
 *
 * const right = { account: 'ServiceAccount a/x', power: 'read-secrets', can: 'read Secrets', namespace: 'a', names: ['s'],
 *   resources: ['secrets'], verbs: ['get'], by: [], boundBy: [], wide: false };
 * assert.deepEqual(grownRights([right], { rights: [{ ...right, verbs: ['get', 'list'] }] }), []);
 * assert.deepEqual(grownRights([{ ...right, names: ['s', 't'] }], { rights: [right] }).length, 1);
 * ```
 */
export function grownRights(rights: readonly Right[], accepted: unknown): readonly Right[] {
  const list = recordOf(accepted)['rights'];
  const known = new Set(Array.isArray(list) ? list.filter(isRight).flatMap(line) : []);
  return rights.filter((right) => line(right).some((one) => !known.has(one)));
}

function isRight(value: unknown): value is Right {
  const { account, power, namespace = '', resources, verbs, boundBy, names } = recordOf(value);
  return (
    [account, power, namespace].every((one) => typeof one === 'string') &&
    [resources, verbs, names ?? []].every(areTexts) &&
    Array.isArray(boundBy) &&
    boundBy.every((bound) => isBound(recordOf(bound)))
  );
}

function isBound({ policy, unless }: Readonly<Record<string, unknown>>): boolean {
  return typeof policy === 'string' && areTexts(unless);
}

function areTexts(value: unknown): boolean {
  return Array.isArray(value) && value.every((one) => typeof one === 'string');
}
