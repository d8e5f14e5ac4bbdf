/**
 * Limits of a Pullwright account that RBAC cannot express: types of Secrets, single labels, fields. Admission policies enforce
 * them for that account only, in every namespace, and deny requests that they cannot evaluate.
 */
import { GLOBAL_PULL_SECRET } from './hypershift.ts';
import type { KubeObject } from './object.ts';
import { type AdmissionPolicyInput, admissionPolicy, labels, type PolicyRule } from './objects.ts';

/** Validations of all writes of one kind by an account: by default create, update and delete. */
export interface AccountBound
  extends Pick<
      AdmissionPolicyInput,
      'apiGroup' | 'resource' | 'resourceNames' | 'against' | 'variables' | 'validations'
    >,
    Partial<Pick<AdmissionPolicyInput, 'operations'>> {
  /** Suffix of the policy's name, such as `nodes`. */
  readonly name: string;
}

type Account = { readonly namespace: string; readonly name: string };

/** User name of a ServiceAccount in admission requests. */
export function userOf({ namespace, name }: Account): string {
  return `system:serviceaccount:${namespace}:${name}`;
}

/**
 * The policies with their bindings: one per name in `bounds`, and one for Secrets if the rules let the account write them. A
 * Secret of another type could request the token of any ServiceAccount in its namespace.
 */
export function accountBounds(
  account: Account,
  input: {
    readonly component: string;
    readonly rules: readonly PolicyRule[];
    readonly bounds?: readonly AccountBound[];
    /** Types of the Secrets that it writes. @default {['kubernetes.io/dockerconfigjson']} */
    readonly secretTypes?: readonly string[];
  },
): readonly KubeObject[] {
  const { component, rules, bounds = [], secretTypes = [GLOBAL_PULL_SECRET.secretType] } = input;
  const all = [...(rules.some(writesSecrets) ? [onlyTypes(secretTypes)] : []), ...bounds];
  const byName = new Map(all.map((bound) => [bound.name, bound]));
  return [...byName.values()].flatMap(({ name: kind, ...bound }) => {
    const name = `${account.name}-${kind}`;
    return admissionPolicy({
      metadata: { name, labels: labels({ name, component }) },
      apiVersion: '*',
      failurePolicy: 'Fail',
      matchConditions: [{ name: 'account', expression: `request.userInfo.username == '${userOf(account)}'` }],
      actions: ['Deny'],
      operations: ['CREATE', 'UPDATE', 'DELETE'],
      ...bound,
    });
  });
}

const HOLE = '\u0000';

/**
 * Placeholder for a value in a rendered object: a CEL expression. After a `?`, an optional, for a field that may be absent.
 */
// The field decides the type of the value.
// oxlint-disable-next-line typescript/no-unnecessary-type-parameters
export function cel<T = string>(expression: string): T {
  return `${HOLE}${expression}` as T;
}

/**
 * CEL for a value that a request must equal: the rendered value, with the defaults that the API server adds.
 *
 * @param field name of the field that has this value, which selects the defaults
 *
 * @example
 * ```ts
 * import { cel, celOf } from './account-bounds.ts';
 * import assert from 'node:assert/strict';
 *
 * assert.equal(celOf({ a: 1, b: cel('object.b') }), 'dyn({"a": dyn(1), "b": dyn(object.b)})');
 * ```
 */
export function celOf(value: unknown, field = ''): string {
  if (typeof value === 'string' && value.startsWith(HOLE)) return `dyn(${value.slice(1)})`;
  if (Array.isArray(value)) return `dyn([${value.map((one) => celOf(one, field)).join(', ')}])`;
  if (typeof value !== 'object' || value === null) return `dyn(${JSON.stringify(value)})`;
  const entries = Object.entries({ ...DEFAULTS[field], ...value }).map(([key, one]) =>
    typeof one === 'string' && one.startsWith(`${HOLE}?`)
      ? `?${JSON.stringify(key)}: ${one.slice(2)}`
      : `${JSON.stringify(key)}: ${celOf(one, key)}`,
  );
  return `dyn({${entries.join(', ')}})`;
}

const POD = 'object.spec.template.spec';

/** Defaults of the API server, by the field that contains them. */
const DEFAULTS: Readonly<Record<string, object>> = {
  job: {
    completions: 1,
    parallelism: 1,
    completionMode: 'NonIndexed',
    suspend: false,
    selector: cel('?object.spec.?selector'),
    manualSelector: cel('?object.spec.?manualSelector'),
  },
  daemonSet: { revisionHistoryLimit: 10, updateStrategy: { type: 'RollingUpdate', rollingUpdate: {} } },
  rollingUpdate: { maxSurge: 0, maxUnavailable: 1 },
  metadata: { creationTimestamp: cel('?object.spec.template.metadata.?creationTimestamp') },
  spec: {
    dnsPolicy: 'ClusterFirst',
    // Only for pulling the image: no container sees them.
    imagePullSecrets: cel(`?${POD}.?imagePullSecrets`),
    restartPolicy: 'Always',
    schedulerName: 'default-scheduler',
    serviceAccount: cel(`${POD}.serviceAccountName`),
    terminationGracePeriodSeconds: 30,
  },
  containers: {
    imagePullPolicy: cel(`${POD}.containers[0].imagePullPolicy`),
    terminationMessagePath: '/dev/termination-log',
  },
  fieldRef: { apiVersion: 'v1' },
  httpGet: { scheme: 'HTTP' },
  readinessProbe: { successThreshold: 1, timeoutSeconds: 1 },
  configMap: { defaultMode: 0o644 },
  projected: { defaultMode: 0o644 },
  secret: { defaultMode: 0o644 },
};

/** Prefix of an expression about the written object: deletes are admitted. */
export const GOES = "request.operation == 'DELETE' || ";

const CLAIM = 'authentication.kubernetes.io/node-name';

/**
 * Restricts what a pod reports to its own node. The API server adds the node of a pod's token to the user info (Kubernetes 1.30
 * and later); requests without it are admitted.
 *
 * @param statusOf name of the PullStatus for a node
 * @param podReason reason of Events on pods, which are not limited to pods of the node: the policy cannot tell
 */
export function nodeReportBounds(
  account: Account,
  metadata: AdmissionPolicyInput['metadata'],
  statusOf: (node: string) => string,
  podReason?: string,
): readonly KubeObject[] {
  const field = (path: string): string => `object.?${path.replaceAll('.', '.?')}.orValue('')`;
  const onPod =
    podReason === undefined
      ? ''
      : ` || (${field('regarding.kind')} == 'Pod' && ${field('reason')} == '${podReason}')`;
  return admissionPolicy({
    metadata,
    apiGroup: ['pullwright.dev', 'events.k8s.io'],
    apiVersion: '*',
    resource: ['pullstatuses', 'pullstatuses/status', 'events'],
    operations: ['CREATE', 'UPDATE'],
    failurePolicy: 'Fail',
    matchConditions: [
      { name: 'account', expression: `request.userInfo.username == '${userOf(account)}'` },
      {
        name: 'node-is-known',
        expression: `has(request.userInfo.extra) && '${CLAIM}' in request.userInfo.extra`,
      },
    ],
    variables: [{ name: 'node', expression: `request.userInfo.extra['${CLAIM}'][0]` }],
    validations: [
      {
        expression: `request.resource.resource == 'events' ? ${field('reportingInstance')} == variables.node && ((${field('regarding.kind')} == 'Node' && ${field('regarding.name')} == variables.node)${onPod}) : object.metadata.name == '${statusOf("' + variables.node + '")}'`,
        message: 'the agent of a node may report only on that node',
      },
    ],
    actions: ['Deny'],
  });
}

const WRITES: readonly string[] = ['create', 'update', 'patch', 'delete'];

function writesSecrets({ resources, verbs }: PolicyRule): boolean {
  return resources.includes('secrets') && verbs.some((verb) => WRITES.includes(verb));
}

function onlyTypes(types: readonly string[]): AccountBound {
  return {
    name: 'secrets',
    apiGroup: '',
    resource: 'secrets',
    validations: [
      {
        expression: `(request.operation == 'DELETE' ? oldObject : object).?type.orValue('Opaque') in ${JSON.stringify(types)}`,
        message: `this account of Pullwright may write and delete only Secrets of type ${types.join(' or ')}`,
      },
    ],
  };
}

/** CEL that requires the map `now` to equal `was`, except for these keys. */
export function sameBut(now: string, was: string, keys: readonly string[] = []): string {
  const kept = (from: string, to: string): string =>
    `${from}.all(key, key in ${JSON.stringify(keys)} || ${to}[?key] == ${from}[?key])`;
  return `${kept(now, was)} && ${kept(was, now)}`;
}

/** CEL that requires unchanged metadata, except for these labels and annotations. */
export function sameMetadata(
  changes: { readonly labels?: readonly string[]; readonly annotations?: readonly string[] } = {},
): string {
  const map = (object: string, field: string): string => `${object}.metadata.?${field}.orValue({})`;
  return [
    ...(['labels', 'annotations'] as const).map((field) =>
      sameBut(map('object', field), map('oldObject', field), changes[field]),
    ),
    ...['finalizers', 'ownerReferences'].map(
      (field) => `object.metadata.?${field} == oldObject.metadata.?${field}`,
    ),
  ].join(' && ');
}

/** Limit for a kind that the account may patch only to change one label. */
export function onlyLabel(input: {
  readonly name: string;
  readonly apiGroup: string;
  readonly resource: string;
  readonly label: string;
}): AccountBound {
  const { label, ...bound } = input;
  return {
    ...bound,
    validations: [
      {
        expression: `request.operation == 'UPDATE' && object.?spec == oldObject.?spec && ${sameMetadata({ labels: [label] })}`,
        message: `this account of Pullwright may change only the label ${label} of ${input.resource}`,
      },
    ],
  };
}
