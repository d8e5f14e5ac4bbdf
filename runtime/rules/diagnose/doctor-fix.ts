/** The YAML that fixes a link: as few fields as server-side apply needs. No value of a Secret is ever among them. */

import type { KubeObject } from '../kubernetes/object.ts';
import { recreation } from '../kubernetes/pod-owner.ts';
import type { DoctorInput, Fault, Link } from './doctor-types.ts';

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
      advice: `Write imagePullSecrets ${names.join(', ') || '(none)'} into the template that the pod is made from, and ${recreation(template)}`,
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
    ...(isPod
      ? { advice: `Pod "${template.metadata.name}" keeps its list; then ${recreation(template)}` }
      : {}),
  };
}

/**
 * Of a pod without a credential that Secrets of its namespace have. Whoever would give one of them has a reason not to, which a list
 * by hand would hide.
 *
 * @param lack what is about what, and what is missing
 */
export function useOther(
  input: DoctorInput,
  elsewhere: readonly string[],
  lack: Required<Pick<Fault, 'about' | 'message'>>,
): Fault | undefined {
  const [better] = elsewhere;
  if (better === undefined) return undefined;
  const found = input.notGiven?.find(({ secret }) => elsewhere.includes(secret));
  if (found === undefined) {
    const message = `${lack.message}; Secret "${better}" of the namespace does`;
    return { about: lack.about, message, ...fixAccount(input, undefined, better) };
  }
  const { secret, by, why } = found;
  const { isPod, template } = input;
  const again = isPod ? `; then, for pod "${template.metadata.name}": ${recreation(template)}` : '';
  return {
    about: by,
    message: `${lack.message}; Secret "${secret}" of the namespace does, and ${by}, which has it for pods, does not give it to this one: ${why}`,
    advice: `Change that, or list the Secret in imagePullSecrets${again}`,
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
