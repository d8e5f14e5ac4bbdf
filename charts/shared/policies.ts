/** NetworkPolicies and admission policies. */
import type { KubeObject, ObjectMeta } from '../../runtime/rules/kubernetes/object.ts';
import { kubernetesObject } from './kubernetes.ts';

/** Who may reach the selected pods, on which named or numbered ports. */
export interface Ingress {
  readonly ports: readonly (string | number)[];
  /** Absent: from anywhere (the API server reaches webhooks from addresses that no selector names). */
  readonly fromNamespace?: Readonly<Record<string, string>>;
}

/** Allowed egress: TCP ports anywhere, and DNS. */
export interface NetworkPolicyInput {
  readonly metadata: ObjectMeta & { readonly namespace: string };
  readonly selector: Readonly<Record<string, string>>;
  readonly ingress: readonly Ingress[];
  /** TCP ports that may be reached on any host; DNS is always allowed. */
  readonly egressPorts: readonly number[];
}

/** A NetworkPolicy in both directions: what is not named is refused. */
export function networkPolicy(input: NetworkPolicyInput): KubeObject {
  const dns = [53, 5353].flatMap((port) => [
    { port, protocol: 'UDP' },
    { port, protocol: 'TCP' },
  ]);
  return kubernetesObject('NetworkPolicy', input.metadata, {
    spec: {
      podSelector: { matchLabels: input.selector },
      policyTypes: ['Ingress', 'Egress'],
      // The API server keeps no empty list: with one, every apply would be a change. Without rules nothing may come in.
      ...(input.ingress.length === 0
        ? {}
        : {
            ingress: input.ingress.map((rule) => ({
              ports: rule.ports.map((port) => ({ port, protocol: 'TCP' })),
              ...(rule.fromNamespace === undefined
                ? {}
                : { from: [{ namespaceSelector: { matchLabels: rule.fromNamespace } }] }),
            })),
          }),
      // A rule without ports would allow every port.
      egress: [
        { ports: dns },
        ...(input.egressPorts.length === 0
          ? []
          : [{ ports: input.egressPorts.map((port) => ({ port, protocol: 'TCP' })) }]),
      ],
    },
  });
}

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
  readonly apiGroup: string;
  readonly apiVersion: string;
  readonly resource: string;
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
    apiGroups: [input.apiGroup],
    apiVersions: [input.apiVersion],
    resources: [input.resource],
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
