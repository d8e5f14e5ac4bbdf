/**
 * The Role by which the ServiceAccounts of a namespace read their own pull secrets, reconciled with the Secrets in use: no names
 * in the fleet file, and no permission to list Secrets.
 */

import { type KubeObject, listedPullSecrets } from '../../core/kubernetes/object.ts';
import { textOf, valueAt } from '../../core/record.ts';
import type { Reader, Reconciler, Watch } from '../../engine/contract.ts';
import { namespaceRole } from '../access.ts';
import type { FollowedNamespace } from '../options.ts';
import { SECRETS_ANNOTATION } from '../plugin/secrets.ts';

const NAME = 'credential-provider-roles';
const kindsOf = (namespace: string): readonly Watch[] => [
  { role: 'hosted', apiVersion: 'v1', kind: 'ServiceAccount', namespace },
  { role: 'hosted', apiVersion: 'v1', kind: 'Pod', namespace },
  {
    role: 'hosted',
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'Role',
    namespace,
    labelSelector: `pullwright.dev/owner=${NAME}`,
  },
];

/** One request per namespace. `followed`: by namespace. */
export function namespaceRolesReconciler(followed: ReadonlyMap<string, FollowedNamespace>): Reconciler {
  return {
    name: NAME,
    watches: [...followed.keys()].flatMap(kindsOf),
    requestsFor: ({ namespace = '' }, reader) =>
      followed.has(namespace) ? [{ scope: reader.scope.name, name: namespace }] : [],
    reconcile: (reader, { name: namespace }) => {
      const one = followed.get(namespace);
      if (one === undefined) return {};
      const secrets = namesInUse(reader, namespace, one);
      const object = namespaceRole({ namespace, ...one, secrets });
      return { apply: [{ role: 'hosted', object, forceOwnership: true }] };
    },
  };
}

/** Secrets that the ServiceAccounts and their running pods reference. */
function namesInUse(reader: Reader, namespace: string, { serviceAccounts }: FollowedNamespace) {
  const core = { role: 'hosted', apiVersion: 'v1', namespace } as const;
  const accounts = reader
    .list({ ...core, kind: 'ServiceAccount' })
    .filter(({ metadata }) => serviceAccounts.includes(metadata.name));
  const pods = reader.list({ ...core, kind: 'Pod' }).filter((pod) => isPulling(pod, serviceAccounts));
  const annotated = accounts.flatMap(({ metadata }) => {
    const listed = metadata.annotations?.[SECRETS_ANNOTATION];
    return typeof listed === 'string' ? listed.split(/[\s,]+/) : [];
  });
  const named = [
    ...accounts.flatMap(listedPullSecrets),
    ...pods.flatMap(({ spec }) => listedPullSecrets(spec)),
    ...annotated,
  ];
  return [...new Set(named.filter((name) => name !== ''))].sort();
}

function isPulling({ spec, status }: KubeObject, serviceAccounts: readonly string[]): boolean {
  const account = textOf(valueAt(spec, 'serviceAccountName')) || 'default';
  const isOver = ['Succeeded', 'Failed'].includes(textOf(valueAt(status, 'phase')));
  return serviceAccounts.includes(account) && !isOver;
}
