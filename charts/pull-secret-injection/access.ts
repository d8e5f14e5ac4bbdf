/**
 * RBAC of this system's reconciler. If the fleet lists namespaces, each gets a Role for Secrets, pods and ServiceAccounts.
 * Otherwise a ClusterRole covers all namespaces, and only the guard policy restricts writes.
 */

import type { KubeObject } from '../../runtime/core/kubernetes/object.ts';
import {
  applyByName,
  EVENTS,
  kubernetesObject,
  labels,
  may,
  type PolicyRule,
  READ,
} from '../../runtime/core/kubernetes/objects.ts';
import type { PullSecretInjectionInput } from '../../runtime/pull-secret-injection/options.ts';
import { INJECTION_POLICY_NAME, WEBHOOK_NAME } from '../../runtime/pull-secret-injection/plan/plan.ts';
import { type Access } from '../shared/system.ts';

export interface InjectionAccessInput extends Pick<PullSecretInjectionInput, 'namespaces' | 'secretNames'> {
  readonly admission: 'policy' | 'webhook' | 'none';
  /** Source Secrets of the fleet's profiles, in addition to `secretNames`. @default {[]} */
  readonly sources?: readonly { readonly namespace: string; readonly name: string }[];
  readonly audit: boolean;
}

/** Returns the rules of a ClusterRole, and with `namespaces` those of a Role in each. */
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

/** @param namespace of a Role; with `secretNames`, a Role restricts reads by name */
function secretRules(
  { secretNames, sources = [] }: InjectionAccessInput,
  namespace?: string,
): readonly PolicyRule[] {
  const names = secretNames && [...new Set(secretNames)];
  const here = sources.filter((source) => source.namespace === namespace).map(({ name }) => name);
  const read = namespace === undefined ? undefined : names && [...new Set([...names, ...here])];
  return [may(READ, '', ['secrets'], read), may(['create', 'patch', 'delete'], '', ['secrets'], names)];
}

function podRules(input: InjectionAccessInput): readonly PolicyRule[] {
  return [
    ...(input.audit ? [may(READ, '', ['pods'])] : []),
    // To find ServiceAccounts that enforce mountable secrets.
    may(READ, '', ['serviceaccounts']),
    // Pods only in dry runs, to observe the result of admission. A policy enforces the dry run.
    ...(input.admission === 'none' ? [] : [may(['create'], '', ['pods'])]),
  ];
}

function clusterRules(input: InjectionAccessInput): readonly PolicyRule[] {
  const [group, admission] = ['pullwright.dev', 'admissionregistration.k8s.io'];
  const kinds = ['pullsecretprofiles', 'pullsecretgrants', 'pullstatuses'];
  const statuses = kinds.map((kind) => `${kind}/status`);
  return [
    may(READ, '', ['namespaces']),
    may(READ, group, kinds),
    may(['create', 'patch', 'delete'], group, ['pullstatuses']),
    may(['get', 'patch'], group, statuses),
    may(READ, 'apps.kruise.io', ['sidecarsets']),
    may(['get', 'patch'], 'apps.kruise.io', ['sidecarsets/status']),
    may(READ, 'apps', ['controllerrevisions']),
    may(READ, admission, ['mutatingwebhookconfigurations']),
    EVENTS,
    ...['mutatingadmissionpolicies', 'mutatingadmissionpolicybindings'].flatMap((resource) => [
      may(READ, admission, [resource]),
      // Other admission modes only delete the policy of an earlier configuration.
      input.admission === 'policy'
        ? applyByName(admission, resource, [INJECTION_POLICY_NAME])
        : may(['delete'], admission, [resource], [INJECTION_POLICY_NAME]),
    ]),
    ...(input.admission === 'webhook'
      ? [
          may(READ, 'discovery.k8s.io', ['endpointslices']),
          // The reconciler updates the webhook's selectors when profiles change.
          may(['patch'], admission, ['mutatingwebhookconfigurations'], [WEBHOOK_NAME]),
        ]
      : []),
  ];
}

// Rights for our kinds, aggregated to the namespace roles admin, edit and view of Kubernetes.

/** Namespace owners must be able to read PullStatuses. Writers of Secrets in a namespace may grant consent there. */
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
  return kubernetesObject(
    'ClusterRole',
    {
      name,
      labels: { ...labels({ name, component: 'pull-secret-injection' }), ...Object.fromEntries(aggregate) },
    },
    { rules: [may(verbs, 'pullwright.dev', resources)] },
  );
}
