/** Which rights make an administrator of who has them. */
import type { PolicyBound } from './bounds.ts';
import type { Right } from './right.ts';

/** The name of the right to everything. */
export const CLUSTER_ADMIN = 'become-cluster-admin';
/** The name of the right to be somebody who has it. */
export const ACT_AS_ADMIN = 'act-as-administrators';

/** Accounts of controllers with all rights live there. */
const SYSTEM_NAMESPACE = 'kube-system';

/** The right to everything, where others lead to it. */
export function adminRights(account: string, rights: readonly Right[]): readonly Right[] {
  const ways = rights.filter((right) => isWayUp(right, rights));
  if (ways.length === 0) return [];
  const by = ways.map(
    ({ power, namespace, names }) =>
      `${power}${namespace === undefined ? '' : ` in ${namespace}`}${names === undefined ? '' : ` (${names.join(', ')})`}`,
  );
  return [
    {
      account,
      power: CLUSTER_ADMIN,
      can: 'become administrator of the cluster or of its nodes',
      ...sumOf(ways),
      resources: [],
      verbs: [],
      by: [...new Set(by)],
    },
  ];
}

type WayUp = (right: Right, all: readonly Right[]) => boolean;

const always: WayUp = () => true;
/** Names of groups and users who are administrators wherever Kubernetes or OpenShift runs. */
const ADMINISTRATORS: readonly string[] = [
  'system:masters',
  'system:admin',
  'system:cluster-admins',
  'kubeadm:cluster-admins',
];
/** Users of the control plane with all rights, or who make tokens of all accounts. */
const CONTROL_PLANE: readonly string[] = ['system:kube-controller-manager', 'system:apiserver'];
/** The ConfigMap of kube-system that says on EKS who is administrator. */
const IDENTITIES = 'aws-auth';
const byAccounts: WayUp = ({ namespace }) => namespace === undefined || namespace === SYSTEM_NAMESPACE;
const unnamed: WayUp = ({ namespace, names }) => namespace === undefined && names === undefined;

const WAYS_UP: Readonly<Record<string, WayUp>> = {
  'approve-certificates': always,
  'node-proxy': always,
  'mint-tokens': byAccounts,
  'run-pods': byAccounts,
  exec: byAccounts,
  impersonate: ({ namespace, names, resources }) =>
    (namespace === undefined && (names === undefined || names.some(isAdministrator))) ||
    (namespace === SYSTEM_NAMESPACE && resources.includes('serviceaccounts')),
  [ACT_AS_ADMIN]: always,
  // Operators get the rights that they ask for, wherever they are installed; a catalog alone installs none.
  'install-operators': ({ resources }) => resources.some((one) => one !== 'catalogsources'),
  // A folder of the node as a volume, mounted by a pod of its own.
  'write-volumes': (right, all) => unnamed(right, all) && all.some(runsPods),
  // What keeps its pods from being root of their node, taken away.
  'write-namespaces': (right, all) =>
    right.verbs.some(sets) &&
    all.some(
      (other) =>
        runsPods(other) &&
        meet(right, other) &&
        (right.names === undefined || other.namespace === undefined || right.names.includes(other.namespace)),
    ),
  'loosen-pods': (right, all) => all.some((other) => runsPods(other) && meet(right, other)),
  'write-logins': ({ resources, names }) =>
    !resources.includes('groups') || names === undefined || names.some(isAdministrator),
  // A bootstrap token, by which a node joins.
  'write-secrets': (right, all) =>
    byAccounts(right, all) &&
    right.verbs.includes('create') &&
    (right.names === undefined || right.names.some((one) => one.startsWith('bootstrap-token-'))),
  'write-config': (right, all) =>
    byAccounts(right, all) &&
    right.verbs.some(sets) &&
    (right.names === undefined || right.names.includes(IDENTITIES)),
  // What one policy or webhook makes of the objects of others is anything, and admission is never asked about its own objects.
  'change-admission': (right, all) =>
    unnamed(right, all) || (right.verbs.some(sets) && right.resources.some(isMutating)),
  escalate: (right, all) => byAccounts(right, all) && holds(all, 'write-roles'),
  bind: (right, all) =>
    byAccounts(right, all) &&
    (right.names === undefined || right.names.some(isStrongRole)) &&
    holds(all, 'write-bindings'),
};

/** A name of an administrator, of an account where controllers live, or of the control plane itself. */
function isAdministrator(name: string): boolean {
  return (
    ADMINISTRATORS.includes(name) ||
    CONTROL_PLANE.includes(name) ||
    name.startsWith(`system:serviceaccount:${SYSTEM_NAMESPACE}:`)
  );
}

/** Roles of every cluster that give at least the Secrets and pods of a namespace. */
const STRONG_ROLES: readonly string[] = ['cluster-admin', 'admin', 'edit', 'sudoer'];
/** Of those that begin as the strong ones of the control plane do. */
const WEAK_ROLES: readonly string[] = [
  'system:auth-delegator',
  'system:basic-user',
  'system:discovery',
  'system:image-puller',
  'system:monitoring',
  'system:public-info-viewer',
  'system:service-account-issuer-discovery',
];

/** Whether the role is one of every cluster that leads to the rights of others wherever it is bound. */
export function isStrongRole(name: string): boolean {
  return STRONG_ROLES.includes(name) || (name.startsWith('system:') && !WEAK_ROLES.includes(name));
}

function runsPods({ power, boundBy }: Right): boolean {
  return power === 'run-pods' && !boundBy.some(isClosed);
}

/** Whether both are of one place. */
export function meet(a: Right, b: Right): boolean {
  return a.namespace === undefined || b.namespace === undefined || a.namespace === b.namespace;
}

export function sets(verb: string): boolean {
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
  return rights.some((right) => right.power === power && right.verbs.some(sets));
}

/** Asked for each request, whatever is in it. */
export function isClosed({ unless }: PolicyBound): boolean {
  return unless.length === 0;
}

type Sum = Pick<Right, 'resources' | 'verbs' | 'by' | 'boundBy' | 'reason' | 'wide'>;

/** What several rights say together of the one that follows from them. */
export function sumOf(ways: readonly Right[]): Sum {
  const reasons = unique(ways, ({ reason }) => (reason === undefined ? [] : [reason]));
  return {
    resources: unique(ways, ({ resources }) => resources),
    verbs: unique(ways, ({ verbs }) => verbs),
    by: unique(ways, ({ by }) => by),
    boundBy: [],
    ...(reasons.length === 0 ? {} : { reason: reasons.join('; ') }),
    wide: true,
  };
}

export function unique(
  rights: readonly Right[],
  what: (right: Right) => readonly string[],
): readonly string[] {
  return [...new Set(rights.flatMap(what))];
}
