/**
 * Which rule reaches which account through which binding.
 *
 * Source of the rule: plugin/pkg/auth/authorizer/rbac and pkg/registry/rbac/validation of Kubernetes (a RoleBinding to a ClusterRole
 * grants inside its namespace; service accounts belong to three groups), and its clusterrole aggregation controller.
 */
import { readSelector, selects } from '../kubernetes/label-selector.ts';
import { describeObject, type KubeObject } from '../kubernetes/object.ts';
import { isRecord, recordOf, scalarText, textOf } from '../record.ts';

/** One rule of a Role, as the API server reads it. */
export interface RbacRule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
  /** Empty: whatever the name. */
  readonly resourceNames: readonly string[];
}

/** A rule that an account has. */
export interface AccountGrant {
  /** e.g. `ServiceAccount pullwright-system/pullwright-reconciler`, `Group system:nodes` */
  readonly account: string;
  /** Undefined: everywhere. */
  readonly namespace: string | undefined;
  /** Undefined: the role is not among the objects, and not one that every cluster has. */
  readonly rule: RbacRule | undefined;
  /** The role, the place of its rule and the binding. */
  readonly by: string;
  /** By power: why the role's author left it wide; by a star for the others. */
  readonly reasons: Readonly<Record<string, string>>;
  /** It comes by bindings of namespaces, in whichever. */
  readonly byNamespace?: true;
}

/** Stands in front of the name of a power, on a role: why it has to be that wide. */
export const REASON_ANNOTATION = 'reason.pullwright.dev/';

/** The rule of `cluster-admin`. */
export const EVERYTHING: RbacRule = { apiGroups: ['*'], resources: ['*'], verbs: ['*'], resourceNames: [] };

/**
 * The grants of every subject of every binding among `objects`; those of groups reach their service accounts as well.
 *
 * @example
 * ```ts
 * import { grantsOf } from './grants.ts';
 * import assert from 'node:assert/strict';
 *
 * const apiVersion = 'rbac.authorization.k8s.io/v1';
 * const [grant] = grantsOf([
 *   { apiVersion, kind: 'ClusterRoleBinding', metadata: { name: 'b' }, roleRef: { kind: 'ClusterRole', name: 'cluster-admin' },
 *     subjects: [{ kind: 'ServiceAccount', namespace: 'a', name: 'x' }] },
 * ]);
 * assert.deepEqual([grant?.account, grant?.rule?.verbs], ['ServiceAccount a/x', ['*']]);
 * ```
 */
export function grantsOf(objects: readonly KubeObject[]): readonly AccountGrant[] {
  const roles = rolesIn(objects);
  const direct = objects.filter(isBinding).flatMap((binding) => {
    const rules = rulesOf(binding, roles);
    return subjectsOf(binding).flatMap((account) => rules.map((rule) => ({ account, ...rule })));
  });
  const accounts = new Set([...direct.map(({ account }) => account), ...objects.flatMap(serviceAccount)]);
  const byGroup = Map.groupBy(direct, ({ account }) => account);
  const inherited = [...accounts].flatMap((account) =>
    groupsOf(account).flatMap((group) =>
      (byGroup.get(group) ?? []).map((grant) => ({ ...grant, account, by: `${grant.by} as ${group}` })),
    ),
  );
  return [...direct, ...inherited];
}

/**
 * The rules of a role among `objects`, those of the roles that it is put together of included; undefined when it is not there.
 *
 * @example
 * ```ts
 * import { rulesOfRole } from './grants.ts';
 * import assert from 'node:assert/strict';
 *
 * assert.equal(rulesOfRole({ kind: 'ClusterRole', name: 'edit' }, []), undefined);
 * ```
 */
export function rulesOfRole(
  {
    kind,
    name,
    namespace,
  }: { readonly kind: string; readonly name: string; readonly namespace?: string | undefined },
  objects: readonly KubeObject[],
): readonly RbacRule[] | undefined {
  const roles = rolesIn(objects);
  const role = roles.get(describeObject({ kind, name, namespace: kind === 'Role' ? namespace : undefined }));
  return role === undefined ? undefined : ownRules(role, roles);
}

function rolesIn(objects: readonly KubeObject[]): ReadonlyMap<string, KubeObject> {
  return new Map(objects.filter(isRole).map((role) => [describeObject(placeOf(role)), role]));
}

function isRole({ apiVersion, kind }: KubeObject): boolean {
  return apiVersion.startsWith(RBAC) && (kind === 'Role' || kind === 'ClusterRole');
}

function isBinding({ apiVersion, kind }: KubeObject): boolean {
  return apiVersion.startsWith(RBAC) && (kind === 'RoleBinding' || kind === 'ClusterRoleBinding');
}

const RBAC = 'rbac.authorization.k8s.io/';

function placeOf({ kind, metadata }: KubeObject): { kind: string; namespace?: string; name: string } {
  const { namespace, name } = metadata;
  return kind === 'Role' ? { kind, namespace: namespace ?? 'default', name } : { kind, name };
}

function serviceAccount({ kind, metadata }: KubeObject): readonly string[] {
  return kind === 'ServiceAccount'
    ? [`ServiceAccount ${metadata.namespace ?? 'default'}/${metadata.name}`]
    : [];
}

type Granted = Omit<AccountGrant, 'account'>;

function rulesOf(binding: KubeObject, roles: ReadonlyMap<string, KubeObject>): readonly Granted[] {
  const ref = recordOf(binding['roleRef']);
  const kind = ref['kind'] === 'Role' ? 'Role' : 'ClusterRole';
  const namespace = binding.kind === 'RoleBinding' ? (binding.metadata.namespace ?? 'default') : undefined;
  const name = scalarText(ref['name']);
  const key = describeObject({ kind, name, namespace: kind === 'Role' ? namespace : undefined });
  const through = `${binding.kind}/${namespace === undefined ? '' : `${namespace}/`}${binding.metadata.name}`;
  const role = roles.get(key);
  if (role === undefined) {
    const rule = key === 'ClusterRole/cluster-admin' ? EVERYTHING : undefined;
    return [{ namespace, rule, by: `${key} through ${through}`, reasons: {} }];
  }
  const reasons = reasonsOf(role);
  return ownRules(role, roles).map((rule, index) => ({
    namespace,
    rule,
    by: `${key} rules[${index}] through ${through}`,
    reasons,
  }));
}

function reasonsOf({ metadata }: KubeObject): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(metadata.annotations ?? {}).flatMap(([key, value]) =>
      key.startsWith(REASON_ANNOTATION) ? [[key.slice(REASON_ANNOTATION.length), String(value)]] : [],
    ),
  );
}

/** Of an aggregated role in a folder, nobody has filled in the rules yet; what it chooses may be aggregated itself. */
function ownRules(role: KubeObject, roles: ReadonlyMap<string, KubeObject>): readonly RbacRule[] {
  // A set that grows is gone through to its end.
  const all = new Set([role]);
  for (const one of all) for (const other of chosenBy(one, roles)) all.add(other);
  const rules = [...all].flatMap((one) => listOf(one['rules']).map(readRule));
  // In a cluster, the role has these of the others already.
  return [...new Map(rules.map((rule) => [JSON.stringify(rule), rule])).values()];
}

function chosenBy(role: KubeObject, roles: ReadonlyMap<string, KubeObject>): readonly KubeObject[] {
  const selectors = listOf(recordOf(role['aggregationRule'])['clusterRoleSelectors']);
  if (selectors.length === 0) return [];
  return [...roles.values()].filter(
    (other) =>
      other.kind === 'ClusterRole' &&
      selectors.some((selector) => {
        const read = readSelector(selector, { strict: false });
        return read.ok && selects(read.requirements, other.metadata.labels ?? {});
      }),
  );
}

function readRule(rule: unknown): RbacRule {
  const { apiGroups, resources, verbs, resourceNames } = recordOf(rule);
  return {
    apiGroups: textsOf(apiGroups),
    resources: textsOf(resources),
    verbs: textsOf(verbs),
    resourceNames: textsOf(resourceNames),
  };
}

function subjectsOf(binding: KubeObject): readonly string[] {
  return listOf(binding['subjects'])
    .filter(isRecord)
    .map(({ kind, namespace, name }) =>
      kind === 'ServiceAccount'
        ? `ServiceAccount ${typeof namespace === 'string' ? namespace : (binding.metadata.namespace ?? 'default')}/${textOf(name)}`
        : subjectName(kind, textOf(name)),
    );
}

const USER_PREFIX = 'system:serviceaccount:';

/** A service account may also be bound by the name of its user. */
export function subjectName(kind: unknown, name: string): string {
  if (kind === 'User' && name.startsWith(USER_PREFIX))
    return `ServiceAccount ${name.slice(USER_PREFIX.length).replace(':', '/')}`;
  return `${textOf(kind)} ${name}`;
}

function groupsOf(account: string): readonly string[] {
  const [kind, name = ''] = account.split(' ');
  if (kind !== 'ServiceAccount') return [];
  const [namespace] = name.split('/');
  return [
    'Group system:authenticated',
    'Group system:serviceaccounts',
    `Group system:serviceaccounts:${namespace}`,
  ];
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function textsOf(value: unknown): readonly string[] {
  return listOf(value).filter((one) => typeof one === 'string');
}
