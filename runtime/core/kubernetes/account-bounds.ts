/**
 * What RBAC cannot say about an account of ours: types of Secrets, single labels, fields. Admission policies say it for the
 * account alone, refuse where they cannot be evaluated, and except no namespace.
 */
import { GLOBAL_PULL_SECRET } from './hypershift.ts';
import type { KubeObject } from './object.ts';
import { admissionPolicy, labels, type PolicyRule, type Validation } from './objects.ts';

/** What every write of one kind by an account must hold. */
export interface AccountBound {
  /** End of the policy's name, e.g. `nodes`. */
  readonly name: string;
  readonly apiGroup: string;
  readonly resource: string | readonly string[];
  readonly operations: readonly ('CREATE' | 'UPDATE' | 'DELETE')[];
  readonly variables?: readonly { readonly name: string; readonly expression: string }[];
  readonly validations: readonly Validation[];
}

type Account = { readonly namespace: string; readonly name: string };

/**
 * Name of a ServiceAccount to admission.
 */
export function userOf({ namespace, name }: Account): string {
  return `system:serviceaccount:${namespace}:${name}`;
}

/**
 * The policies and their bindings, one for each name among `bounds`, and one for Secrets where the rules let the account write any:
 * a Secret of another type could ask for the token of whichever service account lives in its namespace.
 */
export function accountBounds(
  account: Account,
  input: {
    readonly component: string;
    readonly rules: readonly PolicyRule[];
    readonly bounds?: readonly AccountBound[];
    /** Of the Secrets that it writes. @default {['kubernetes.io/dockerconfigjson']} */
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
      ...bound,
    });
  });
}

/**
 * The image without tag and digest as a variable of CEL. The API server takes it apart, so that the whole image stands in the text, as
 * whoever renders it with another one expects. A colon before a slash is that of a port.
 */
export function imageVariables(
  image: string,
): readonly { readonly name: string; readonly expression: string }[] {
  const colon = "variables.named.lastIndexOf(':')";
  return [
    { name: 'named', expression: `'${image}'.split('@')[0]` },
    {
      name: 'repository',
      expression: `${colon} > variables.named.lastIndexOf('/') ? variables.named.substring(0, ${colon}) : variables.named`,
    },
  ];
}

/** CEL that holds `image` to the repository of {@link imageVariables}, whatever the tag, so that policy and writer may be updated in either order. */
export function imageIs(image: string): string {
  return `(${image} == variables.repository || ${image}.startsWith(variables.repository + ':') || ${image}.startsWith(variables.repository + '@'))`;
}

const HOLE = '\u0000';

/**
 * In a rendered object, in place of a value: an expression of CEL that gives it. After a `?` it gives an optional, for a field that may be absent.
 */
// The caller's field says of what type the value is.
// oxlint-disable-next-line typescript/no-unnecessary-type-parameters
export function cel<T = string>(expression: string): T {
  return `${HOLE}${expression}` as T;
}

/**
 * What a request may hold is the rendered value and no more: the value as CEL, with what the API server adds by itself.
 *
 * @param field of which this is the value
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

/** By the field they stand in. */
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
    // They pull the image, and reach no container.
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

const WRITES: readonly string[] = ['create', 'update', 'patch', 'delete'];

function writesSecrets({ resources, verbs }: PolicyRule): boolean {
  return resources.includes('secrets') && verbs.some((verb) => WRITES.includes(verb));
}

function onlyTypes(types: readonly string[]): AccountBound {
  return {
    name: 'secrets',
    apiGroup: '',
    resource: 'secrets',
    operations: ['CREATE', 'UPDATE', 'DELETE'],
    validations: [
      {
        expression: `(request.operation == 'DELETE' ? oldObject : object).?type.orValue('Opaque') in ${JSON.stringify(types)}`,
        message: `this account of Pullwright writes and deletes only Secrets of type ${types.join(' or ')}`,
      },
    ],
  };
}

/**
 * An object whose kind the account may patch for the sake of one label: `spec`, annotations and all other labels stay.
 */
export function onlyLabel(input: {
  readonly name: string;
  readonly apiGroup: string;
  readonly resource: string;
  readonly label: string;
}): AccountBound {
  const { label, ...bound } = input;
  const others = (object: string): string => `${object}.metadata.?labels.orValue({})`;
  const kept = (from: string, to: string): string =>
    `${others(from)}.all(key, key == '${label}' || ${others(to)}[?key] == ${others(from)}[?key])`;
  const same = ['spec', 'metadata.?annotations', 'metadata.?finalizers', 'metadata.?ownerReferences'].map(
    (field) => {
      const path = field === 'spec' ? '?spec' : field;
      return `object.${path} == oldObject.${path}`;
    },
  );
  return {
    ...bound,
    operations: ['CREATE', 'UPDATE', 'DELETE'],
    validations: [
      {
        expression: `request.operation == 'UPDATE' && ${[...same, kept('object', 'oldObject'), kept('oldObject', 'object')].join(' && ')}`,
        message: `this account of Pullwright changes nothing of ${input.resource} but the label ${label}`,
      },
    ],
  };
}

// Plain, typed objects of the kinds that we render. Nothing of cdk8s: `charts/<system>/objects.ts` is built from these, and
// imported both by the construct that writes YAML and by the reconciler that applies the same objects at run time.
