/**
 * Admission policies that bind an account where RBAC cannot. What an expression means is for people to judge: here is decided
 * whether the policy is asked at all for a request of the account, and whether it refuses where it cannot be evaluated.
 */
import type { KubeObject } from '../kubernetes/object.ts';
import { isRecord, recordOf, scalarText } from '../record.ts';

/** A policy that stands between an account and a resource. */
export interface PolicyBound {
  /** Name of the ValidatingAdmissionPolicy. */
  readonly policy: string;
  /** What its validations say to whoever is refused. */
  readonly only: readonly string[];
  /** Why some requests pass it by, as its own text says: match conditions besides the account's, selectors. */
  readonly unless: readonly string[];
}

/** What a bound is looked for. */
export interface AskedWrite {
  readonly account: string;
  readonly namespace: string | undefined;
  readonly apiGroup: string;
  readonly resource: string;
  readonly verbs: readonly string[];
}

/** Which operations admission sees; a patch may create, by server-side apply. */
const OPERATIONS: Readonly<Record<string, readonly string[]>> = {
  create: ['CREATE'],
  update: ['UPDATE'],
  patch: ['UPDATE'],
  delete: ['DELETE'],
  deletecollection: ['DELETE'],
};

const ADMISSION_GROUP = 'admissionregistration.k8s.io';
/** Requests for these are connections, whatever the verb. */
const CONNECTIONS: readonly string[] = [
  'pods/exec',
  'pods/attach',
  'pods/portforward',
  'pods/proxy',
  'services/proxy',
  'nodes/proxy',
];

function operationsOf({ resource, verbs }: AskedWrite): readonly string[] {
  if (CONNECTIONS.includes(resource)) return ['CONNECT'];
  return [...new Set(verbs.flatMap((verb) => OPERATIONS[verb] ?? []))];
}

/**
 * The policies that bind nobody who may change what `reaches` says: who may change or delete the policy, or each of its bindings.
 *
 * @example
 * ```ts
 * import { liftedBy } from './bounds.ts';
 * import assert from 'node:assert/strict';
 *
 * const binding = { apiVersion: 'admissionregistration.k8s.io/v1', kind: 'ValidatingAdmissionPolicyBinding', metadata: { name: 'b' },
 *   spec: { policyName: 'p', validationActions: ['Deny'] } };
 * assert.deepEqual([...liftedBy([binding], (resource) => resource === 'validatingadmissionpolicybindings')], ['p']);
 * assert.deepEqual([...liftedBy([binding], (_, name) => name === 'other')], []);
 * ```
 */
export function liftedBy(
  objects: readonly KubeObject[],
  reaches: (resource: string, name: string) => boolean,
): ReadonlySet<string> {
  const policies = objects
    .filter(({ kind }) => kind === 'ValidatingAdmissionPolicy')
    .map(({ metadata }) => metadata.name)
    .filter((name) => reaches('validatingadmissionpolicies', name));
  const byPolicy = Map.groupBy(objects.filter(isDenying), (binding) =>
    scalarText(specOf(binding)['policyName']),
  );
  // While one of several bindings is left, it refuses.
  const unbound = [...byPolicy].filter(([, own]) =>
    own.every(({ metadata }) => reaches('validatingadmissionpolicybindings', metadata.name)),
  );
  return new Set([...policies, ...unbound.map(([policy]) => policy)]);
}

/**
 * The policies that are asked for every such request of the account. Reads are never held against admission.
 *
 * @example
 * ```ts
 * import { boundsOf } from './bounds.ts';
 * import assert from 'node:assert/strict';
 *
 * const write = { account: 'ServiceAccount a/x', namespace: undefined, apiGroup: '', resource: 'secrets', verbs: ['create'] };
 * assert.deepEqual(boundsOf([], write), []);
 * ```
 */
export function boundsOf(objects: readonly KubeObject[], write: AskedWrite): readonly PolicyBound[] {
  const operations = operationsOf(write);
  // Nobody is asked about the objects of admission itself.
  if (operations.length === 0 || write.apiGroup === ADMISSION_GROUP) return [];
  const denying = new Set(objects.filter(isDenying).map((binding) => specOf(binding)['policyName']));
  return objects.flatMap((policy) => {
    if (policy.kind !== 'ValidatingAdmissionPolicy' || !denying.has(policy.metadata.name)) return [];
    const spec = specOf(policy);
    if (listOf(spec['validations']).length === 0) return [];
    // The default is Fail, too.
    if (spec['failurePolicy'] === 'Ignore' || spec['paramKind'] !== undefined) return [];
    const conditions = listOf(spec['matchConditions']).map((one) => scalarText(one['expression']));
    const others = conditions.filter((expression) => !namesAccount(expression, write.account));
    const isAsked = conditions.length === 0 || others.length < conditions.length || others.every(isOfObject);
    if (!isAsked || !covers(spec, write, operations)) return [];
    return [
      {
        policy: policy.metadata.name,
        only: listOf(spec['validations']).map((one) => scalarText(one['message'] ?? one['expression'])),
        unless: [...others, ...selectorsOf(spec, write)],
      },
    ];
  });
}

function isDenying(object: KubeObject): boolean {
  const { kind } = object;
  const spec = specOf(object);
  return (
    kind === 'ValidatingAdmissionPolicyBinding' &&
    spec['matchResources'] === undefined &&
    Array.isArray(spec['validationActions']) &&
    spec['validationActions'].includes('Deny')
  );
}

/** `request.userInfo.username == '...'`, or the name in a list. Of others nothing is known. */
function namesAccount(expression: string, account: string): boolean {
  const [kind, name = ''] = account.split(' ');
  if (kind !== 'ServiceAccount') return false;
  const user = `system:serviceaccount:${name.replace('/', ':')}`;
  const text = expression.replaceAll('"', "'").trim();
  if (text === `request.userInfo.username == '${user}'`) return true;
  const list = /^request\.userInfo\.username in \[([^\]]*)\]$/.exec(text)?.[1] ?? '';
  return list.split(',').some((one) => one.trim() === `'${user}'`);
}

/** Conditions that speak of somebody else's requests keep the policy from ours. */
function isOfObject(expression: string): boolean {
  return !expression.includes('userInfo');
}

function covers(
  spec: Readonly<Record<string, unknown>>,
  { apiGroup, resource }: AskedWrite,
  operations: readonly string[],
): boolean {
  const { resourceRules, matchPolicy } = recordOf(spec['matchConstraints']);
  const rules = listOf(resourceRules).filter(
    (rule) =>
      rule['resourceNames'] === undefined &&
      has(rule['apiGroups'], apiGroup) &&
      hasResource(rule['resources'], resource) &&
      // Of which scope a resource is nobody says here.
      (rule['scope'] === undefined || rule['scope'] === '*') &&
      // By another version of the API it would go unasked.
      (matchPolicy !== 'Exact' || has(rule['apiVersions'], '*')),
  );
  return operations.every((operation) => rules.some((rule) => has(rule['operations'], operation)));
}

const NAMESPACE_NAME = 'kubernetes.io/metadata.name';

/** A selector that says just the namespace of the right leaves none of its requests out. */
function selectorsOf(spec: Readonly<Record<string, unknown>>, { namespace }: AskedWrite): readonly string[] {
  const constraints = recordOf(spec['matchConstraints']);
  return ['namespaceSelector', 'objectSelector', 'excludeResourceRules'].flatMap((field) => {
    const value = constraints[field];
    if (value === undefined || isEmpty(value)) return [];
    const isHere = field === 'namespaceSelector' && namespace !== undefined && isNamed(value, namespace);
    return isHere ? [] : [`${field} ${JSON.stringify(value)}`];
  });
}

/** By the one label that every namespace has of the API server, and by nothing besides. */
function isNamed(selector: unknown, namespace: string): boolean {
  const { matchLabels, ...others } = recordOf(selector);
  const { [NAMESPACE_NAME]: name, ...labels } = recordOf(matchLabels);
  return name === namespace && isEmpty(labels) && Object.values(others).every(isEmpty);
}

function isEmpty(value: unknown): boolean {
  return Object.keys(Object(value)).length === 0;
}

function specOf(object: KubeObject): Readonly<Record<string, unknown>> {
  return recordOf(object.spec);
}

function has(list: unknown, one: string): boolean {
  return Array.isArray(list) && (list.includes(one) || list.includes('*'));
}

/** Unlike in RBAC, a star alone speaks of no subresource; after a slash it speaks of the resource too. */
function hasResource(list: unknown, resource: string): boolean {
  const [kind, sub = ''] = resource.split('/');
  return (
    Array.isArray(list) &&
    list.some((one) => {
      const [saidKind, saidSub = ''] = String(one).split('/');
      return (saidKind === '*' || saidKind === kind) && (saidSub === '*' || saidSub === sub);
    })
  );
}

function listOf(value: unknown): readonly Readonly<Record<string, unknown>>[] {
  return Array.isArray(value) ? value.filter(isRecord) : [];
}
