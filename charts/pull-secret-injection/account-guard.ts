/** What the reconciler's account may change of a ServiceAccount, where names are added to those: its own entries, and the note of them. */
import { ADDED_ANNOTATION } from '../../runtime/rules/injection/service-account-pull-secrets.ts';
import type { KubeObject } from '../../runtime/rules/kubernetes/object.ts';
import { admissionPolicy, labels } from '../shared/objects.ts';
import type { GuardInput } from './consent.ts';

const NAME = 'pullwright-service-account-lists';

/**
 * RBAC cannot say "only the list": whatever goes wrong in the reconciler, it gives nobody a token or a label, and takes out of the list
 * only what it noted as its own before.
 */
export function accountGuardPolicy({
  serviceAccount,
  adds,
}: Pick<GuardInput, 'serviceAccount'> & {
  /** Whether it may add names; otherwise it only takes off what it added before. */
  readonly adds: boolean;
}): readonly KubeObject[] {
  const username = `system:serviceaccount:${serviceAccount.namespace}:${serviceAccount.name}`;
  const same = (path: string): string => `object.${path} == oldObject.${path}`;
  const annotations = (object: string): string => `${object}.metadata.?annotations.orValue({})`;
  const added = (object: string): string =>
    `${annotations(object)}[?'${ADDED_ANNOTATION}'].orValue('').split(', ')`;
  const covered = (a: string, b: string): string =>
    `${annotations(a)}.all(k, k == '${ADDED_ANNOTATION}' || (k in ${annotations(b)} && ${annotations(a)}[k] == ${annotations(b)}[k]))`;
  return admissionPolicy({
    metadata: { name: NAME, labels: labels({ name: NAME, component: 'pull-secret-injection' }) },
    apiGroup: '',
    apiVersion: 'v1',
    resource: 'serviceaccounts',
    operations: ['UPDATE'],
    failurePolicy: 'Fail',
    matchConditions: [
      { name: 'reconciler', expression: `request.userInfo.username == '${username}'` },
      // Accounts that it made itself, for other systems, are its own.
      {
        name: 'of-others',
        expression: "oldObject.metadata.?labels[?'pullwright.dev/owner'].orValue('') == ''",
      },
    ],
    validations: [
      {
        expression: [
          same('metadata.?labels'),
          same('metadata.?finalizers'),
          same('metadata.?ownerReferences'),
          same('?secrets'),
          same('?automountServiceAccountToken'),
          covered('object', 'oldObject'),
          covered('oldObject', 'object'),
        ].join(' && '),
        message:
          'the reconciler of Pullwright changes of a ServiceAccount only imagePullSecrets and its own annotation',
      },
      {
        expression: `oldObject.?imagePullSecrets.orValue([]).all(s, s in object.?imagePullSecrets.orValue([]) || s.?name.orValue('') in ${added('oldObject')})`,
        message: 'the reconciler of Pullwright takes off a ServiceAccount only the names that it added',
      },
      ...(adds ? [] : [noneAdded(added)]),
    ],
    actions: ['Deny'],
  });
}

function noneAdded(added: (object: string) => string): {
  readonly expression: string;
  readonly message: string;
} {
  return {
    expression: `object.?imagePullSecrets.orValue([]).all(s, s in oldObject.?imagePullSecrets.orValue([])) && ${added('object')}.all(n, n == '' || n in ${added('oldObject')})`,
    message:
      'the reconciler of Pullwright adds no names to ServiceAccounts here: the fleet does not say serviceAccounts: true',
  };
}
