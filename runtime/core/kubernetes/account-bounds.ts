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

/**
 * CEL that holds the image of the container `one` to the repository of {@link imageVariables}, whatever the tag, so that policy and writer
 * may be updated in either order.
 */
export const IMAGE_IS =
  "(one.image == variables.repository || one.image.startsWith(variables.repository + ':') || one.image.startsWith(variables.repository + '@'))";

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
