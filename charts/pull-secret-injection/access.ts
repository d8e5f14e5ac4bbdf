/**
 * What the reconciler of this system may do. Where the fleet names the namespaces, Secrets, pods and ServiceAccounts are a Role in each
 * of them; else RBAC cannot narrow them, and the guard policy does it instead.
 */

import type { KubeObject } from '../../runtime/core/kubernetes/object.ts';
import { applyByName, clusterRole, labels, type PolicyRule } from '../../runtime/core/kubernetes/objects.ts';
import { WEBHOOK_NAME } from '../../runtime/pull-secret-injection/plan/plan.ts';
import { INJECTION_POLICY_NAME } from '../../runtime/pull-secret-injection/plan/policy.ts';
import type { Access } from '../shared/system.ts';

const READ = ['get', 'list', 'watch'] as const;

export interface InjectionAccessInput {
  readonly admission: 'policy' | 'webhook' | 'none';
  /** The only namespaces that the system works in. @default all */
  readonly namespaces?: readonly string[];
  /** Copies may be written under these names only. @default any */
  readonly secretNames?: readonly string[];
  /** Of the profiles of the fleet, which are read beside `secretNames`. @default {[]} */
  readonly sources?: readonly { readonly namespace: string; readonly name: string }[];
  readonly audit: boolean;
}

/** A ClusterRole, and with `namespaces` a Role in each of them. */
export function injectionAccess(input: InjectionAccessInput): readonly Access[] {
  const { namespaces } = input;
  const wide = clusterRules(input);
  if (namespaces === undefined) return [{ rules: [...secretRules(input), ...wide, ...podRules(input)] }];
  return [
    { rules: wide },
    ...namespaces.map((namespace) => ({
      namespace,
      rules: [...secretRules(input, namespace), ...podRules(input)],
    })),
  ];
}

/** @param namespace of a Role: what is read there can be named, where all names are known */
function secretRules(
  { secretNames, sources = [] }: InjectionAccessInput,
  namespace?: string,
): readonly PolicyRule[] {
  const secrets = { apiGroups: [''], resources: ['secrets'] };
  const named = (names: readonly string[] | undefined) =>
    names === undefined ? {} : { resourceNames: [...new Set(names)] };
  const here = sources.filter((source) => source.namespace === namespace).map(({ name }) => name);
  const read = namespace === undefined || secretNames === undefined ? undefined : [...secretNames, ...here];
  return [
    { ...secrets, verbs: READ, ...named(read) },
    { ...secrets, verbs: ['create', 'patch', 'delete'], ...named(secretNames) },
  ];
}

function podRules(input: InjectionAccessInput): readonly PolicyRule[] {
  return [
    ...(input.audit ? [{ apiGroups: [''], resources: ['pods'], verbs: READ }] : []),
    // Which of them enforce mountable secrets.
    { apiGroups: [''], resources: ['serviceaccounts'], verbs: READ },
    // Pods only in dry runs, to see what admission changes. A policy limits the account to that.
    ...(triesPods(input.admission)
      ? [{ apiGroups: [''], resources: ['pods'], verbs: ['create'] as const }]
      : []),
  ];
}

function clusterRules(input: InjectionAccessInput): readonly PolicyRule[] {
  const admission = 'admissionregistration.k8s.io';
  return [
    { apiGroups: [''], resources: ['namespaces'], verbs: READ },
    {
      apiGroups: ['pullwright.dev'],
      resources: ['pullsecretprofiles', 'pullsecretgrants', 'pullstatuses'],
      verbs: READ,
    },
    { apiGroups: ['pullwright.dev'], resources: ['pullstatuses'], verbs: ['create', 'patch', 'delete'] },
    {
      apiGroups: ['pullwright.dev'],
      resources: ['pullsecretprofiles/status', 'pullsecretgrants/status', 'pullstatuses/status'],
      verbs: ['get', 'patch'],
    },
    { apiGroups: ['apps.kruise.io'], resources: ['sidecarsets'], verbs: READ },
    { apiGroups: ['apps.kruise.io'], resources: ['sidecarsets/status'], verbs: ['get', 'patch'] },
    { apiGroups: ['apps'], resources: ['controllerrevisions'], verbs: READ },
    { apiGroups: [admission], resources: ['mutatingwebhookconfigurations'], verbs: READ },
    { apiGroups: ['events.k8s.io'], resources: ['events'], verbs: ['create', 'patch'] },
    ...['mutatingadmissionpolicies', 'mutatingadmissionpolicybindings'].flatMap((resource) => [
      { apiGroups: [admission], resources: [resource], verbs: READ },
      // What such a policy says nothing can bind: without it, one of before is only taken away.
      input.admission === 'policy'
        ? applyByName(admission, resource, [INJECTION_POLICY_NAME])
        : {
            apiGroups: [admission],
            resources: [resource],
            resourceNames: [INJECTION_POLICY_NAME],
            verbs: ['delete'] as const,
          },
    ]),
    ...(input.admission === 'webhook'
      ? [
          { apiGroups: ['discovery.k8s.io'], resources: ['endpointslices'], verbs: READ },
          // Which pods are sent to the webhook follows the profiles.
          {
            apiGroups: [admission],
            resources: ['mutatingwebhookconfigurations'],
            verbs: ['patch'] as const,
            resourceNames: [WEBHOOK_NAME],
          },
        ]
      : []),
  ];
}

/** Whether the account asks for pods in dry runs, to try what admission gives them. */
export function triesPods(admission: InjectionAccessInput['admission']): boolean {
  return admission !== 'none';
}

// What the administrators, editors and viewers of a namespace may do with our kinds there, added to the roles of Kubernetes.

/**
 * A PullStatus is addressed to the owner of its namespace, who has to be able to read it; consent is given by those who may write
 * Secrets there.
 */
export function aggregatedRoles(): readonly KubeObject[] {
  const write = ['create', 'delete', 'patch', 'update'] as const;
  return [
    aggregated('view', ['view', 'edit', 'admin'], ['pullsecretgrants', 'pullstatuses'], READ),
    aggregated('edit', ['edit', 'admin'], ['pullsecretgrants'], write),
  ];
}

function aggregated(
  role: string,
  to: readonly string[],
  resources: readonly string[],
  verbs: PolicyRule['verbs'],
): KubeObject {
  const name = `pullwright-${role}`;
  const aggregate = to.map((one) => [`rbac.authorization.k8s.io/aggregate-to-${one}`, 'true']);
  return clusterRole(
    {
      name,
      labels: { ...labels({ name, component: 'pull-secret-injection' }), ...Object.fromEntries(aggregate) },
    },
    [{ apiGroups: ['pullwright.dev'], resources, verbs }],
  );
}
