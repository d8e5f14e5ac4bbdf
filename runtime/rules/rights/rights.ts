/** The rights of each account, and what they amount to together. */
import type { KubeObject } from '../kubernetes/object.ts';
import { boundsOf, type PolicyBound } from './bounds.ts';
import { type AccountGrant, grantsOf } from './grants.ts';
import { powersOf } from './powers.ts';

/** Something that an account can do. */
export interface Right {
  /** e.g. `ServiceAccount pullwright-system/pullwright-reconciler` */
  readonly account: string;
  /** e.g. `read-secrets` */
  readonly power: string;
  /** The same in words. */
  readonly can: string;
  /** Absent: everywhere. */
  readonly namespace?: string;
  /** Absent: whatever the name. */
  readonly names?: readonly string[];
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
  /** Roles, the place of the rule in each, and bindings; for what follows from other rights, these. */
  readonly by: readonly string[];
  readonly boundBy: readonly PolicyBound[];
  /** Why it is that wide, where it is. */
  readonly reason?: string;
  /** It reaches into every namespace, or to objects without one whatever their name; or it leads to other rights. */
  readonly wide: boolean;
}

/** The name of the right to everything. */
export const CLUSTER_ADMIN = 'become-cluster-admin';

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
  const grants = grantsOf(objects).filter(({ account }) => isAsked(account));
  const byAccount = Map.groupBy(grants, ({ account }) => account);
  return [...byAccount]
    .toSorted(([a], [b]) => order(a, b))
    .flatMap(([account, own]) => accountRights(account, own, objects));
}

function accountRights(
  account: string,
  grants: readonly AccountGrant[],
  objects: readonly KubeObject[],
): readonly Right[] {
  const direct = joined(grants.flatMap((grant) => directRights(grant, objects)));
  const tokens = tokenRights(account, direct);
  const all = [...tokens, ...direct];
  return [...adminRights(account, all), ...hostedRights(account, all), ...all];
}

/** HyperShift's kubeconfig of `system:admin`, in the namespace of each control plane. */
const HOSTED_ADMIN = 'admin-kubeconfig';

/** Whoever reads it is the administrator of that hosted cluster. Who reads all Secrets of a place is named for that. */
function hostedRights(account: string, rights: readonly Right[]): readonly Right[] {
  return rights
    .filter(({ power, names }) => power === 'read-secrets' && names?.includes(HOSTED_ADMIN))
    .map(({ namespace, verbs, by, reason }) => ({
      account,
      power: 'administer-hosted-clusters',
      can: 'become administrator of hosted clusters',
      ...(namespace === undefined ? {} : { namespace }),
      names: [HOSTED_ADMIN],
      resources: ['secrets'],
      verbs,
      by,
      boundBy: [],
      ...(reason === undefined ? {} : { reason }),
      wide: true,
    }));
}

function directRights(grant: AccountGrant, objects: readonly KubeObject[]): readonly Right[] {
  const { account, namespace, rule, by, reasons } = grant;
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
  return powersOf(rule, namespace === undefined).map(({ power, resources, verbs }) => {
    const reason = reasons[power.name];
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
      boundBy: boundOfAll(writes.map((write) => boundsOf(objects, write))),
      ...(reason === undefined ? {} : { reason }),
      wide: namespace === undefined && !(isNamed && (power.clusterScoped || resources.every(isClusterWide))),
    };
  });
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

/**
 * A Secret of the type `kubernetes.io/service-account-token` gets the token of whichever service account of its namespace it
 * names: who may both make and read one has every account there, unless a policy refuses that.
 */
function tokenRights(account: string, rights: readonly Right[]): readonly Right[] {
  const makes = rights.filter(
    ({ power, verbs, boundBy }) =>
      power === 'write-secrets' && verbs.includes('create') && !boundBy.some(isClosed),
  );
  const reads = rights.filter(({ power }) => power === 'read-secrets');
  return makes.flatMap((make) => {
    const read = reads.find((one) => meet(make, one));
    if (read === undefined) return [];
    const namespace = make.namespace ?? read.namespace;
    return [
      {
        account,
        power: 'mint-tokens',
        can: 'make a token Secret of a service account and read it',
        ...(namespace === undefined ? {} : { namespace }),
        resources: ['secrets'],
        verbs: ['create', 'get'],
        by: [...new Set([...make.by, ...read.by])],
        boundBy: [],
        wide: true,
      },
    ];
  });
}

/** Asked for each request, whatever is in it. */
function isClosed({ unless }: PolicyBound): boolean {
  return unless.length === 0;
}

function meet(a: Right, b: Right): boolean {
  const inOnePlace = a.namespace === undefined || b.namespace === undefined || a.namespace === b.namespace;
  const names = new Set(b.names);
  return (
    inOnePlace && (a.names === undefined || b.names === undefined || a.names.some((one) => names.has(one)))
  );
}

/** Accounts of controllers with all rights live there. */
const SYSTEM_NAMESPACE = 'kube-system';

function adminRights(account: string, rights: readonly Right[]): readonly Right[] {
  const ways = rights.filter((right) => isWayUp(right, rights));
  const [first] = ways;
  if (first === undefined) return [];
  const by = ways.map(
    ({ power, namespace, names }) =>
      `${power}${namespace === undefined ? '' : ` in ${namespace}`}${names === undefined ? '' : ` (${names.join(', ')})`}`,
  );
  const reasons = [...new Set(ways.flatMap(({ reason }) => reason ?? []))];
  return [
    {
      account,
      power: CLUSTER_ADMIN,
      can: 'become administrator of the cluster or of its nodes',
      resources: [],
      verbs: [],
      by: [...new Set(by)],
      boundBy: [],
      ...(reasons.length === 0 ? {} : { reason: reasons.join('; ') }),
      wide: true,
    },
  ];
}

type WayUp = (right: Right, all: readonly Right[]) => boolean;

const always: WayUp = () => true;
const byAccounts: WayUp = ({ namespace }) => namespace === undefined || namespace === SYSTEM_NAMESPACE;
const unnamed: WayUp = ({ namespace, names }) => namespace === undefined && names === undefined;

const WAYS_UP: Readonly<Record<string, WayUp>> = {
  'approve-certificates': always,
  'node-proxy': always,
  'mint-tokens': byAccounts,
  'run-pods': byAccounts,
  exec: byAccounts,
  impersonate: unnamed,
  // What one policy or webhook makes of the objects of others is anything, and admission is never asked about its own objects.
  'change-admission': (right, all) =>
    unnamed(right, all) || (right.verbs.some(sets) && right.resources.some(isMutating)),
  escalate: ({ namespace }, all) => namespace === undefined && holds(all, 'write-roles'),
  bind: (right, all) => unnamed(right, all) && holds(all, 'write-bindings'),
};

function sets(verb: string): boolean {
  return verb === 'create' || verb === 'update' || verb === 'patch';
}

function isMutating(resource: string): boolean {
  return resource.startsWith('mutating');
}

function isWayUp(right: Right, all: readonly Right[]): boolean {
  // Whatever its name and paths, what it brings is read by root.
  if (right.power === 'write-machine-configs') return true;
  return !right.boundBy.some(isClosed) && WAYS_UP[right.power]?.(right, all) === true;
}

function holds(rights: readonly Right[], power: string): boolean {
  return rights.some((right) => right.power === power);
}

function order(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
