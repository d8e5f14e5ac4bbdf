/**
 * What an account may give itself: rules of the roles that it may bind, and whatever it likes where it may escalate.
 *
 * Source of the rule: pkg/registry/rbac of Kubernetes: a binding is made by who has `bind` of its role or has all rights of the role, a
 * role is changed by who has `escalate` or has all that is added. Both are asked in the namespace of the object that is written.
 */
import type { KubeObject } from '../kubernetes/object.ts';
import { type AccountGrant, EVERYTHING, rulesOfRole } from './grants.ts';
import type { Right } from './right.ts';
import { isClosed, isStrongRole, meet, sets } from './ways-up.ts';

/**
 * The grants that `rights` let the account make for itself. Where a policy is asked about each binding, none.
 *
 * @example
 * ```ts
 * import { takenGrants } from './taken.ts';
 * import assert from 'node:assert/strict';
 *
 * const apiGroup = 'rbac.authorization.k8s.io';
 * const common = { account: 'ServiceAccount a/x', can: '', by: ['Role/r'], boundBy: [], wide: false, namespace: 'shop' };
 * const bind = { ...common, power: 'bind', resources: ['clusterroles'], names: ['edit'], verbs: ['bind'] };
 * const write = { ...common, power: 'write-bindings', resources: ['rolebindings'], verbs: ['create'] };
 * const [grant] = takenGrants([bind, write], []);
 * assert.deepEqual([grant?.namespace, grant?.rule?.resources], ['shop', ['*']]);
 * assert.deepEqual(takenGrants([bind], []), []);
 * ```
 */
export function takenGrants(
  rights: readonly Right[],
  objects: readonly KubeObject[],
): readonly AccountGrant[] {
  return rights.flatMap((right) => {
    if (right.power !== 'bind' && right.power !== 'escalate') return [];
    const written = right.power === 'bind' ? 'write-bindings' : 'write-roles';
    const writes = rights.filter(
      (one) =>
        one.power === written && one.verbs.some(sets) && !one.boundBy.some(isClosed) && meet(right, one),
    );
    return writes.flatMap((write) => grantsBy(right, write, objects));
  });
}

function grantsBy(right: Right, write: Right, objects: readonly KubeObject[]): readonly AccountGrant[] {
  const namespace = right.namespace ?? write.namespace;
  const clusterWide = namespace === undefined && write.resources.some((one) => one.startsWith('cluster'));
  const common = {
    account: right.account,
    namespace,
    ...(clusterWide ? {} : { byNamespace: true as const }),
    reasons: right.reason === undefined ? {} : { '*': right.reason },
  };
  const by = (what: string): string => `${what}, by ${right.power} of ${right.by.join(', ')}`;
  // Which role, the binding says.
  if (right.names === undefined || right.power === 'escalate')
    return [{ ...common, rule: EVERYTHING, by: by('any role') }];
  return right.names.flatMap((name) =>
    right.resources.flatMap((resource) => {
      const kind = resource === 'roles' ? 'Role' : 'ClusterRole';
      const rules = rulesOfRole({ kind, name, namespace }, objects);
      const role = `${kind}/${name}`;
      if (rules !== undefined)
        return rules.map((rule, index) => ({ ...common, rule, by: by(`${role} rules[${index}]`) }));
      const rule = kind === 'ClusterRole' && isStrongRole(name) ? EVERYTHING : undefined;
      return [{ ...common, rule, by: by(role) }];
    }),
  );
}
