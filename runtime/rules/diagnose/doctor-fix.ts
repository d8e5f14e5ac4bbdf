/** The YAML that fixes a link: as few fields as server-side apply needs. No value of a Secret is ever among them. */

import type { KubeObject } from '../kubernetes/object.ts';
import type { DoctorInput, Link } from './doctor-types.ts';

/**
 * Takes `bad` out of the list of Secrets and puts `good` in: in the template when it has a list of its own, which hides that of
 * the ServiceAccount, else in the ServiceAccount.
 */
export function fixAccount(
  input: DoctorInput,
  bad: string | undefined,
  good: string | undefined,
): Pick<Link, 'fix' | 'advice'> {
  const { account, namespace, ownList, isPod, template } = input;
  const listed = input.images[0]?.explanation?.secrets.map(({ name }) => name) ?? [];
  const names = [
    ...listed.filter((name) => name !== bad && name !== good),
    ...(good === undefined ? [] : [good]),
  ];
  const imagePullSecrets = names.map((name) => ({ name }));
  if (ownList && isPod)
    return {
      advice: `Write imagePullSecrets ${names.join(', ') || '(none)'} into the template that the pod is made from, and delete the pod`,
    };
  const { apiVersion, kind, metadata } = template;
  const place = { name: metadata.name, namespace };
  if (ownList)
    return { fix: [{ apiVersion, kind, metadata: place, spec: inTemplate(kind, { imagePullSecrets }) }] };
  return {
    fix: [
      {
        apiVersion: 'v1',
        kind: 'ServiceAccount',
        metadata: { name: account.name, namespace },
        imagePullSecrets,
      },
    ],
    ...(isPod ? { advice: 'Then delete the pod: its list was made when it was made' } : {}),
  };
}

function inTemplate(kind: string, spec: object): object {
  const template = { template: { spec } };
  return kind === 'CronJob' ? { jobTemplate: { spec: template } } : template;
}

/** Lets the credential provider serve the images, and read the Secrets of the namespace. */
export function fixProvider(
  { namespace, images, account }: DoctorInput,
  { matchImages, mayRead }: { readonly matchImages: readonly string[]; readonly mayRead: boolean },
): readonly KubeObject[] {
  const hosts = images.flatMap(({ explanation, mirrors }) =>
    explanation === undefined || mirrors.length === 0 ? [] : (explanation.repository.split('/', 1)[0] ?? []),
  );
  const wanted = [...new Set([...matchImages, ...hosts])];
  const config: KubeObject = {
    apiVersion: 'config.openshift.io/v1',
    kind: 'CRIOCredentialProviderConfig',
    metadata: { name: 'cluster' },
    spec: { matchImages: wanted },
  };
  return [
    ...(wanted.length > matchImages.length ? [config] : []),
    ...(mayRead ? [] : providerAccess(namespace, account.name)),
  ];
}

/** What the provider asks for with the token of the pod's ServiceAccount. */
function providerAccess(namespace: string, account: string): readonly KubeObject[] {
  const name = 'credential-provider-secret-access';
  const group = 'rbac.authorization.k8s.io';
  // So that the way out finds what was applied of these.
  const labels = { 'app.kubernetes.io/part-of': 'pullwright' };
  return [
    {
      apiVersion: `${group}/v1`,
      kind: 'Role',
      metadata: { name, namespace, labels },
      rules: [{ apiGroups: [''], resources: ['secrets'], verbs: ['get', 'list'] }],
    },
    {
      apiVersion: `${group}/v1`,
      kind: 'RoleBinding',
      metadata: { name: `${name}-${account}`.slice(0, 253), namespace, labels },
      roleRef: { apiGroup: group, kind: 'Role', name },
      subjects: [{ kind: 'ServiceAccount', name: account, namespace }],
    },
  ];
}
