/** Admission policies. */
import type { KubeObject, ObjectMeta } from '../../runtime/rules/kubernetes/object.ts';
import { kubernetesObject } from './kubernetes.ts';

/** One check of an admission policy. */
export interface Validation {
  /** CEL; true lets the request pass. */
  readonly expression: string;
  /** What is wrong and what to do; shown to the author of the request. */
  readonly message: string;
  /** CEL that gives the message; wins over `message`. */
  readonly messageExpression?: string;
}

export interface AdmissionPolicyInput {
  readonly metadata: ObjectMeta;
  readonly apiGroup: string | readonly string[];
  readonly apiVersion: string;
  readonly resource: string | readonly string[];
  readonly operations: readonly ('CREATE' | 'UPDATE' | 'DELETE')[];
  readonly resourceNames?: readonly string[];
  /** Only objects of this namespace. */
  readonly namespace?: string;
  readonly variables?: readonly { readonly name: string; readonly expression: string }[];
  readonly matchConditions?: readonly { readonly name: string; readonly expression: string }[];
  readonly validations: readonly Validation[];
  /** What happens to a request that does not hold. `Deny` and `Warn` cannot be combined by the API's rules. */
  readonly actions: readonly ('Deny' | 'Warn' | 'Audit')[];
  /** When the policy itself cannot be evaluated. @default {'Ignore'} */
  readonly failurePolicy?: 'Ignore' | 'Fail';
  /** Every object of this kind is held against the request in turn, as `params`. */
  readonly against?: { readonly apiVersion: string; readonly kind: string };
}

/** A ValidatingAdmissionPolicy and its binding of the same name. */
export function admissionPolicy(input: AdmissionPolicyInput): readonly [KubeObject, KubeObject] {
  const rule = {
    apiGroups: [input.apiGroup].flat(),
    apiVersions: [input.apiVersion],
    resources: [input.resource].flat(),
    operations: input.operations,
    scope: '*',
    ...(input.resourceNames === undefined ? {} : { resourceNames: input.resourceNames }),
  };
  const inNamespace =
    input.namespace === undefined
      ? {}
      : { namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': input.namespace } } };
  return [
    kubernetesObject('ValidatingAdmissionPolicy', input.metadata, {
      spec: {
        failurePolicy: input.failurePolicy ?? 'Ignore',
        ...(input.against === undefined ? {} : { paramKind: input.against }),
        matchConstraints: { matchPolicy: 'Equivalent', resourceRules: [rule], ...inNamespace },
        ...(input.matchConditions === undefined ? {} : { matchConditions: input.matchConditions }),
        ...(input.variables === undefined ? {} : { variables: input.variables }),
        validations: input.validations.map((validation) => ({ reason: 'Invalid', ...validation })),
      },
    }),
    kubernetesObject('ValidatingAdmissionPolicyBinding', input.metadata, {
      spec: {
        policyName: input.metadata.name,
        validationActions: input.actions,
        ...(input.against === undefined
          ? {}
          : { paramRef: { selector: {}, parameterNotFoundAction: 'Allow' } }),
      },
    }),
  ];
}
