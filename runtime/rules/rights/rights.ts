/** The rights of each account: what its rules give, and what binds it. */
import type { KubeObject } from '../kubernetes/object.ts';
import { boundsOf, type PolicyBound } from './bounds.ts';
import { order, ownRights, withOthers } from './escalation.ts';
import { type AccountGrant, grantsOf } from './grants.ts';
import { powersOf } from './powers.ts';
import type { Right } from './right.ts';
import { takenGrants } from './taken.ts';

/**
 * The rights of every account among `objects`: Roles, bindings, ServiceAccounts and admission policies; others are skipped.
 *
 * @param isAsked which accounts are of interest; what reaches them through groups counts as theirs
 *
 * @example
 * ```ts
 * import { rightsOf } from './rights.ts';
 * import assert from 'node:assert/strict';
 *
 * const apiVersion = 'rbac.authorization.k8s.io/v1';
 * const rights = rightsOf([
 *   { apiVersion, kind: 'ClusterRole', metadata: { name: 'r' }, rules: [{ apiGroups: [''], resources: ['secrets'], verbs: ['get', 'create'] }] },
 *   { apiVersion, kind: 'ClusterRoleBinding', metadata: { name: 'b' }, roleRef: { kind: 'ClusterRole', name: 'r' },
 *     subjects: [{ kind: 'ServiceAccount', namespace: 'a', name: 'x' }] },
 * ]);
 * // Who makes and reads Secrets reads the token of any service account out of one.
 * assert.deepEqual(rights.map(({ power }) => power), ['become-cluster-admin', 'mint-tokens', 'read-secrets', 'write-secrets']);
 * ```
 */
export function rightsOf(
  objects: readonly KubeObject[],
  isAsked: (account: string) => boolean = () => true,
): readonly Right[] {
  const byAccount = Map.groupBy(grantsOf(objects), ({ account }) => account);
  const everyone = new Map(
    [...byAccount].map(([account, grants]) => {
      const { given, policies } = givenRights(grants, objects);
      return [account, ownRights(account, given, policies)] as const;
    }),
  );
  return [...everyone.keys()]
    .filter(isAsked)
    .toSorted(order)
    .flatMap((account) => withOthers(account, everyone));
}

/** What the rules give, those among them that the account may give itself. */
function givenRights(
  grants: readonly AccountGrant[],
  objects: readonly KubeObject[],
): { readonly given: readonly Right[]; readonly policies: readonly KubeObject[] } {
  // A cluster has few of them, and many other objects.
  const policies = objects.filter(({ kind }) => kind.startsWith('ValidatingAdmissionPolicy'));
  const rightsBy = (more: readonly AccountGrant[]): readonly Right[] =>
    more.flatMap((grant) => directRights(grant, policies));
  const known = new Set<string>();
  let all: readonly Right[] = rightsBy(grants);
  for (;;) {
    const given = joined(all);
    // Of what was taken before, something more may follow.
    const taken = takenGrants(given, objects).filter((grant) => isNew(known, grant));
    if (taken.length === 0) return { given, policies };
    all = [...all, ...rightsBy(taken)];
  }
}

function isNew(known: Set<string>, { namespace, rule, byNamespace }: AccountGrant): boolean {
  const before = known.size;
  known.add(JSON.stringify([namespace, rule ?? null, byNamespace]));
  return known.size > before;
}

function directRights(grant: AccountGrant, policies: readonly KubeObject[]): readonly Right[] {
  const { account, namespace, rule, by, reasons, byNamespace } = grant;
  const place = namespace === undefined ? {} : { namespace };
  if (rule === undefined)
    return [
      {
        account,
        power: 'unknown',
        can: 'do whatever a role allows that is not here',
        ...place,
        resources: [],
        verbs: [],
        by: [by],
        boundBy: [],
        wide: true,
      },
    ];
  return powersOf(rule, namespace === undefined && byNamespace === undefined).map(
    ({ power, resources, verbs }) => {
      const reason = reasons[power.name] ?? reasons['*'];
      const isNamed = rule.resourceNames.length > 0;
      const writes = resources.map((resource) => ({
        account,
        namespace,
        apiGroup: power.apiGroups[0] ?? '',
        resource,
        verbs,
      }));
      return {
        account,
        power: power.name,
        can: power.says,
        ...place,
        ...(isNamed ? { names: rule.resourceNames.toSorted(order) } : {}),
        resources,
        verbs,
        by: [by],
        boundBy: boundOfAll(writes.map((write) => boundsOf(policies, write))),
        ...(reason === undefined ? {} : { reason }),
        wide:
          namespace === undefined && !(isNamed && (power.clusterScoped || resources.every(isClusterWide))),
      };
    },
  );
}

/** What has no namespace is one object by its name; a RoleBinding of one name may be in each namespace. */
function isClusterWide(resource: string): boolean {
  return resource.startsWith('cluster');
}

/** A policy binds a right over several resources when it binds each. */
function boundOfAll([first = [], ...others]: readonly (readonly PolicyBound[])[]): readonly PolicyBound[] {
  return first.filter(({ policy }) => others.every((list) => list.some((bound) => bound.policy === policy)));
}

/** Rules that say the same of one place are one right. */
function joined(rights: readonly Right[]): readonly Right[] {
  const groups = Map.groupBy(rights, ({ power, namespace, names, resources, reason }) =>
    JSON.stringify([power, namespace, names, resources, reason]),
  );
  return [...groups.values()]
    .flatMap(([first, ...rest]) => {
      if (first === undefined) return [];
      const all = [first, ...rest];
      const boundBy = boundOfAll(all.map((right) => right.boundBy));
      return [
        {
          ...first,
          verbs: [...new Set(all.flatMap(({ verbs }) => verbs))],
          by: [...new Set(all.flatMap(({ by }) => by))],
          boundBy: all.some(({ verbs }) => verbs.some(isWrite)) ? writeBounds(all) : boundBy,
        },
      ];
    })
    .toSorted((a, b) => order(a.power, b.power) || order(a.namespace ?? '', b.namespace ?? ''));
}

function writeBounds(rights: readonly Right[]): readonly PolicyBound[] {
  return boundOfAll(rights.filter(({ verbs }) => verbs.some(isWrite)).map((right) => right.boundBy));
}

function isWrite(verb: string): boolean {
  return verb !== 'get' && verb !== 'list' && verb !== 'watch';
}
