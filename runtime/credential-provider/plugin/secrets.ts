/**
 * Reads the pull secrets of the namespace, with as few requests as the permissions allow.
 *
 * Lists the older types only when the usual type has nothing for any source: one list of all types would include certificates and
 * Helm releases, and one list per type would cost every pull two more requests.
 */

import { PullwrightError } from '../../core/errors.ts';
import { isNamespaceName, isObjectName } from '../../core/kubernetes/object.ts';
import { isRecord, recordOf, recordsIn, textOf, valueAt } from '../../core/record.ts';
import { type Redacted, redact, reveal } from '../../core/redacted.ts';
import { shellWord } from '../../core/text.ts';
import { BODY_KEY, type NamespacePullSecret } from '../auth-file.ts';
import type { ApiAnswer, ApiGet } from './api-server.ts';
import type { ProviderRequest } from './request.ts';

/** Annotation of a ServiceAccount with names of Secrets, separated by commas or spaces; passed by the kubelet if configured. */
export const SECRETS_ANNOTATION = 'pullwright.dev/image-pull-secrets';

const DOCKER_CONFIG_TYPE = 'kubernetes.io/dockerconfigjson';
/** Selects other types that may hold credentials; excludes large and frequent ones. */
const OTHER_TYPES = [
  DOCKER_CONFIG_TYPE,
  'Opaque',
  'kubernetes.io/service-account-token',
  'kubernetes.io/tls',
  'kubernetes.io/basic-auth',
  'kubernetes.io/ssh-auth',
  'helm.sh/release.v1',
  'bootstrap.kubernetes.io/token',
]
  .map((type) => `type!=${type}`)
  .join(',');

type Annotated = Pick<ProviderRequest, 'annotations'>;
/** Any answer but 200. */
type Refusal = Extract<ApiAnswer, { message: string }>;

/**
 * Lists the Secrets of the usual type with one request; reads them by name where a list is forbidden. `order`: of Secrets that were
 * read by name; undefined after a list.
 */
export async function readSecrets(get: ApiGet, puller: Puller, request: Annotated, mode: 'list' | 'named') {
  if (mode === 'named') return readNamed(get, puller, request);
  const answer = await get(listPath(puller.namespace, `type=${DOCKER_CONFIG_TYPE}`));
  if (answer.code === 403) return readNamed(get, puller, request, answer);
  if (!('body' in answer)) throw notRead(answer);
  return { secrets: secretsOf(answer.body), order: undefined };
}

/** Lists the Secrets of the older types, which {@link readSecrets} does not list. */
export async function readOtherTypes(get: ApiGet, puller: Puller): Promise<readonly NamespacePullSecret[]> {
  const answer = await get(listPath(puller.namespace, OTHER_TYPES));
  if (!('body' in answer)) throw notRead(answer);
  return secretsOf(answer.body).filter(({ type }) => Object.hasOwn(BODY_KEY, type));
}

function listPath(namespace: string, selector: string): string {
  return `/api/v1/namespaces/${namespace}/secrets?fieldSelector=${encodeURIComponent(selector)}`;
}

/** Names in the imagePullSecrets of pod and ServiceAccount, in that order; undefined when neither is readable. */
export async function referencedSecrets(get: ApiGet, puller: Puller): Promise<readonly string[] | undefined> {
  const base = `/api/v1/namespaces/${puller.namespace}`;
  const [pod, account] = await Promise.all([
    referencesOf(get, puller.pod && `${base}/pods/${puller.pod}`, 'spec.imagePullSecrets'),
    referencesOf(
      get,
      puller.serviceAccount && `${base}/serviceaccounts/${puller.serviceAccount}`,
      'imagePullSecrets',
    ),
  ]);
  return pod === undefined && account === undefined
    ? undefined
    : unique([...(pod ?? []), ...(account ?? [])]);
}

async function referencesOf(get: ApiGet, path: string | undefined, at: string) {
  if (path === undefined) return undefined;
  const answer = await get(path);
  if (!('body' in answer)) return undefined;
  return recordsIn(valueAt(answer.body, at))
    .map(({ name }) => name)
    .filter(isObjectName);
}

async function readNamed(get: ApiGet, puller: Puller, request: Annotated, forbidden?: Refusal) {
  const listed = (request.annotations[SECRETS_ANNOTATION] ?? '').split(/[\s,]+/).filter(isObjectName);
  const names = listed.length > 0 ? unique(listed) : await referencedSecrets(get, puller);
  if (names === undefined || (names.length === 0 && forbidden !== undefined))
    throw needsRole(puller, names ?? [], forbidden);
  const answers = await Promise.all(
    names.map((name) => get(`/api/v1/namespaces/${puller.namespace}/secrets/${name}`)),
  );
  const refused = answers.filter((answer): answer is Refusal => answer.code === 403);
  if (names.length > 0 && refused.length === names.length) throw needsRole(puller, names, refused[0]);
  const secrets = answers.flatMap((answer) => {
    if ('body' in answer) return [secretOf(recordOf(answer.body))];
    // Any other error does not mean that the Secret is absent.
    if (![403, 404].includes(answer.code)) throw notRead(answer);
    return [];
  });
  return { secrets, order: names };
}

function secretsOf(list: unknown): readonly NamespacePullSecret[] {
  return recordsIn(recordOf(list)['items']).map(secretOf);
}

function secretOf({ type: written, data, metadata }: Readonly<Record<string, unknown>>): NamespacePullSecret {
  const type = textOf(written) || 'Opaque';
  const body = recordOf(data)[BODY_KEY[type] ?? ''];
  return {
    name: textOf(recordOf(metadata)['name']),
    type,
    body: typeof body === 'string' ? redact(body) : undefined,
  };
}

function unique(names: readonly string[]): readonly string[] {
  return [...new Set(names)];
}

function notRead(answer: Refusal): PullwrightError {
  return new PullwrightError(
    `unable to get secrets: unable to retrieve secrets: ${answer.message} (HTTP ${answer.code})`,
    {
      code: answer.code === 401 ? 'TokenRefused' : answer.code === 404 ? 'SecretsNotFound' : 'ApiError',
      hint:
        answer.code === 401
          ? 'The API server does not accept the token: check that tokenAttributes names its audience'
          : undefined,
    },
  );
}

/** Placeholder in the printed Role when the pod's Secrets are unknown. */
const ANY_NAME = 'NAME-OF-THE-PULL-SECRET';

/**
 * The error with a command that applies the least Role: for the pod's own imagePullSecrets by name. When these are unknown, the
 * Role also permits reading pod and ServiceAccount.
 */
function needsRole(puller: Puller, names: readonly string[], answer?: Refusal) {
  const account = puller.serviceAccount ?? '<service account>';
  const metadata = { name: 'credential-provider-secret-access', namespace: puller.namespace };
  const role = { apiVersion: 'rbac.authorization.k8s.io/v1', metadata };
  const get = (resource: string, resourceNames?: readonly string[]) => ({
    apiGroups: [''],
    resources: [resource],
    ...(resourceNames === undefined ? {} : { resourceNames }),
    verbs: ['get'],
  });
  const isKnown = names.length > 0;
  const rules = [
    get('secrets', isKnown ? names : [ANY_NAME]),
    ...(isKnown ? [] : [get('pods'), get('serviceaccounts', [account])]),
  ];
  const yaml = [
    { ...role, kind: 'Role', rules },
    {
      ...role,
      kind: 'RoleBinding',
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: metadata.name },
      subjects: [{ kind: 'ServiceAccount', name: account, namespace: puller.namespace }],
    },
  ];
  const state = answer?.message ?? 'the pod references no secret';
  const first = isKnown ? '' : ` (with the pod's imagePullSecrets for ${ANY_NAME})`;
  return new PullwrightError(`unable to get secrets: unable to retrieve secrets: ${state}`, {
    code: 'SecretsForbidden',
    hint: `Let the ServiceAccount read them${first}: kubectl apply -f - <<< ${shellWord(JSON.stringify({ apiVersion: 'v1', kind: 'List', items: yaml }))}`,
  });
}

// The pod that pulls, from the claims of its ServiceAccount token. The API server verifies the signature when the token is used;
// nothing depends on the claims before.

export type Puller = Readonly<ReturnType<typeof pullerOf>>;

/**
 * Reads the claim `kubernetes.io`. Rejects an invalid namespace before it becomes part of a path or a URL.
 */
export function pullerOf(token: Redacted<string>) {
  const claims = objectOr(claimsOf(reveal(token)), 'token is malformed: its claims are not a JSON object');
  if (claims['kubernetes.io'] === undefined) throw refused('no kubernetes.io claim name in JWT claims found');
  const own = objectOr(claims['kubernetes.io'], 'kubernetes.io claim does not contain a map');
  const { namespace } = own;
  if (namespace === undefined) throw refused('no namespace found in kubernetes claim');
  if (typeof namespace !== 'string') throw refused('namespace is not a string object');
  const isName: boolean = isNamespaceName(namespace);
  if (!isName)
    throw refused(
      `namespace ${JSON.stringify(namespace.slice(0, 80))} is invalid, expected a DNS label (RFC 1123)`,
    );
  return {
    namespace,
    pod: nameAt(own, 'pod.name'),
    serviceAccount: nameAt(own, 'serviceaccount.name'),
    podUid: nameAt(own, 'pod.uid'),
  };
}

function claimsOf(token: string): unknown {
  if (/\s/.test(token)) throw refused('token is malformed: it has blanks or line breaks');
  const parts = token.split('.');
  if (parts.length !== 3) throw refused('token is malformed: must have three parts');
  try {
    return JSON.parse(textOfBase64Url(parts[1] ?? ''));
  } catch {
    throw refused('token is malformed: its claims are not JSON');
  }
}

function textOfBase64Url(text: string): string {
  const bytes = Uint8Array.from(atob(text.replaceAll('-', '+').replaceAll('_', '/')), (char) =>
    char.charCodeAt(0),
  );
  return new TextDecoder().decode(bytes);
}

function nameAt(claim: unknown, path: string): string | undefined {
  const value = valueAt(claim, path);
  return isObjectName(value) ? value : undefined;
}

function objectOr(value: unknown, state: string): Readonly<Record<string, unknown>> {
  if (isRecord(value)) return value;
  throw refused(state);
}

function refused(state: string): PullwrightError {
  return new PullwrightError(`unable to extract namespace: ${state}`, { code: 'TokenUnusable' });
}
