/** What the reconciler of this system may do. Secrets cannot be narrowed by RBAC here; the guard policy does it instead. */
import { WEBHOOK_NAME } from '../../runtime/rules/injection/profile-plan.ts';
import { INJECTION_POLICY_NAME } from '../../runtime/rules/injection/profile-policy.ts';
import { applyByName, type PolicyRule } from '../shared/objects.ts';

const READ = ['get', 'list', 'watch'] as const;

/** With `secretNames`, copies may be written under these names only. */
export function injectionAccess(input: {
  readonly admission: 'policy' | 'webhook' | 'none';
  readonly secretNames?: readonly string[];
  readonly audit: boolean;
  readonly evict: boolean;
  /** @default {false} */
  readonly serviceAccounts?: boolean;
  /** Whether policies bind the account. @default {false} */
  readonly isGuarded?: boolean;
}): readonly PolicyRule[] {
  const named = input.secretNames === undefined ? {} : { resourceNames: input.secretNames };
  const admission = 'admissionregistration.k8s.io';
  return [
    { apiGroups: [''], resources: ['namespaces', 'secrets'], verbs: READ },
    { apiGroups: [''], resources: ['secrets'], verbs: ['create', 'patch', 'delete'], ...named },
    {
      apiGroups: ['pullwright.dev'],
      resources: ['pullsecretprofiles', 'pullsecretgrants', 'pullsecretclaims', 'pullstatuses'],
      verbs: READ,
    },
    { apiGroups: ['pullwright.dev'], resources: ['pullstatuses'], verbs: ['create', 'patch', 'delete'] },
    {
      apiGroups: ['pullwright.dev'],
      resources: [
        'pullsecretprofiles/status',
        'pullsecretgrants/status',
        'pullsecretclaims/status',
        'pullstatuses/status',
      ],
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
    ...(input.audit ? [{ apiGroups: [''], resources: ['pods'], verbs: READ }] : []),
    // Which of them enforce mountable secrets. A policy holds the account to their lists of pull secrets.
    { apiGroups: [''], resources: ['serviceaccounts'], verbs: READ },
    // Also to take names off again when the option has gone. Never without that policy.
    ...(input.serviceAccounts === true || input.isGuarded === true
      ? [{ apiGroups: [''], resources: ['serviceaccounts'], verbs: ['patch'] as const }]
      : []),
    // Pods only in dry runs: the API server is asked what admission makes of one. A policy holds the account to that.
    ...(triesPods(input) ? [{ apiGroups: [''], resources: ['pods'], verbs: ['create'] as const }] : []),
    ...(input.evict ? [{ apiGroups: [''], resources: ['pods/eviction'], verbs: ['create'] as const }] : []),
  ];
}

/** Whether the account asks for pods in dry runs: to try what admission gives them, and what would become of an evicted one. */
export function triesPods(input: {
  readonly admission: 'policy' | 'webhook' | 'none';
  readonly evict: boolean;
}): boolean {
  return input.admission !== 'none' || input.evict;
}
