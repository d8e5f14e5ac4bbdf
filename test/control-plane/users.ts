/** People and programs that may do only what a test lets them: client certificates, and service accounts with signed tokens. */
import { randomUUID } from 'node:crypto';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { stringify } from 'yaml';
import type { Access } from '../../charts/shared/system.ts';
import { type Requester, requester } from './request.ts';
import { applyObject, resourcePath, type TestObject } from './resource-path.ts';
import { type Authority, signToken } from './x509.ts';

/** A rule as RBAC writes it. */
export interface Rule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
  readonly resourceNames?: readonly string[];
}

export interface UserInput {
  readonly name: string;
  /** Rules in the whole cluster. */
  readonly cluster?: readonly Rule[];
  /** Rules by namespace. */
  readonly namespaces?: Readonly<Record<string, readonly Rule[]>>;
  /**
   * `certificate`, or `token` of a service account in `kube-system`.
   * @default {'certificate'}
   */
  readonly by?: 'certificate' | 'token';
  /** Groups, with a certificate: `system:nodes` for a kubelet. @default {[]} */
  readonly groups?: readonly string[];
  /** A token ends after this many seconds. @default {3600} */
  readonly tokenSeconds?: number;
}

/** The rules of rendered permissions, for a user. */
export function rightsOf(access: readonly Access[]): Pick<UserInput, 'cluster' | 'namespaces'> {
  const all = [...Map.groupBy(access, ({ namespace = '' }) => namespace)];
  const { '': cluster = [], ...namespaces } = Object.fromEntries(
    all.map(([namespace, own]) => [namespace, own.flatMap(({ rules }) => rules)]),
  );
  return { cluster, namespaces };
}

export interface User {
  readonly kubeconfig: string;
  /** File that the kubeconfig names as `tokenFile` (with `by: 'token'`). */
  readonly tokenFile: string;
  readonly client: Requester;
  /** Writes a new token, as kubelet does; returns it. */
  renewToken(seconds: number): Promise<string>;
  /** Takes all rights away, and gives them back. */
  revoke(): Promise<void>;
  grant(): Promise<void>;
}

/** The part of a control plane that {@link makeUser} needs. */
export interface UserHost {
  readonly server: string;
  readonly folder: string;
  readonly authority: Authority;
  readonly serviceAccountKey: string;
  readonly admin: Requester;
}

/** Text of a kubeconfig that leads to a server by the CA that it trusts. */
export function kubeconfigText(server: string, ca: string, user: Readonly<Record<string, unknown>>): string {
  return kubeconfigOf({ server, 'certificate-authority-data': base64(ca) }, user);
}

/** Text of a kubeconfig with one cluster, user and context. */
export function kubeconfigOf(cluster: object, user: object): string {
  return stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'test', cluster }],
    users: [{ name: 'test', user }],
    contexts: [{ name: 'test', context: { cluster: 'test', user: 'test' } }],
    'current-context': 'test',
  });
}

/** Makes the user, with its roles and a kubeconfig file. */
export async function makeUser(host: UserHost, input: UserInput): Promise<User> {
  const kubeconfig = join(host.folder, `${input.name}.kubeconfig`);
  const tokenFile = join(host.folder, `${input.name}.token`);
  const byToken = input.by === 'token';
  const subject = byToken
    ? { kind: 'ServiceAccount', name: input.name, namespace: 'kube-system' }
    : { kind: 'User', name: input.name, apiGroup: 'rbac.authorization.k8s.io' };
  const uid = byToken ? await makeServiceAccount(host.admin, input.name) : '';
  const renewToken = (seconds: number): Promise<string> => {
    const token = tokenFor(host, { namespace: 'kube-system', name: input.name, uid, seconds });
    writeFileSync(tokenFile, token, { mode: 0o600 });
    return Promise.resolve(token);
  };
  const roles = rolesOf(input, subject);
  const grant = async (): Promise<void> => {
    for (const object of roles) await apply(host.admin, object);
  };
  const revoke = async (): Promise<void> => {
    for (const object of roles.filter(({ kind }) => kind.endsWith('Binding')))
      await host.admin.request('DELETE', resourcePath(object));
  };
  await grant();
  const ca = host.authority.certificate;
  if (byToken) {
    const token = await renewToken(input.tokenSeconds ?? 3600);
    writeFileSync(kubeconfig, kubeconfigText(host.server, ca, { tokenFile }), { mode: 0o600 });
    return {
      kubeconfig,
      tokenFile,
      renewToken,
      revoke,
      grant,
      client: requester({ server: host.server, ca, token }),
    };
  }
  rmSync(tokenFile, { force: true });
  const identity = host.authority.issue({
    commonName: input.name,
    ...(input.groups === undefined ? {} : { organizations: input.groups }),
  });
  const user = {
    'client-certificate-data': base64(identity.certificate),
    'client-key-data': base64(identity.key),
  };
  writeFileSync(kubeconfig, kubeconfigText(host.server, ca, user), { mode: 0o600 });
  const client = requester({ server: host.server, ca, cert: identity.certificate, key: identity.key });
  return { kubeconfig, tokenFile, renewToken, revoke, grant, client };
}

/** A kubeconfig with a token of a service account that is there already: exactly the rights of a pod. */
export async function accountKubeconfig(
  host: UserHost,
  account: { readonly namespace: string; readonly name: string },
): Promise<string> {
  const { namespace, name } = account;
  const { status, body } = await host.admin.request(
    'GET',
    `/api/v1/namespaces/${namespace}/serviceaccounts/${name}`,
  );
  if (status !== 200) throw new Error(`Cannot find ServiceAccount ${namespace}/${name}: ${status}`);
  const token = tokenFor(host, { namespace, name, uid: body.metadata.uid as string, seconds: 3600 });
  const path = join(host.folder, `${namespace}-${name}.kubeconfig`);
  writeFileSync(path, kubeconfigText(host.server, host.authority.certificate, { token }), { mode: 0o600 });
  return path;
}

async function makeServiceAccount(admin: Requester, name: string): Promise<string> {
  const account = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name, namespace: 'kube-system' } };
  return (await applyObject(admin, account)).metadata['uid'] as string;
}

/** A token as the API server signs them, also one whose time is over. */
export function tokenFor(
  host: Pick<UserHost, 'serviceAccountKey'>,
  account: {
    readonly namespace: string;
    readonly name: string;
    readonly uid: string;
    readonly seconds: number;
  },
): string {
  const now = Math.floor(Date.now() / 1000);
  return signToken(host.serviceAccountKey, {
    iss: ISSUER,
    aud: [ISSUER],
    sub: `system:serviceaccount:${account.namespace}:${account.name}`,
    iat: now - 60,
    nbf: now - 60,
    exp: now + account.seconds,
    jti: randomUUID(),
    'kubernetes.io': {
      namespace: account.namespace,
      serviceaccount: { name: account.name, uid: account.uid },
    },
  });
}

/** `--service-account-issuer` of the API server. */
export const ISSUER = 'https://kubernetes.default.svc';

function rolesOf(input: UserInput, subject: object): readonly TestObject[] {
  const cluster = input.cluster === undefined ? [] : pairOf({ name: input.name }, input.cluster, subject);
  const rest = Object.entries(input.namespaces ?? {}).flatMap(([namespace, rules]) =>
    pairOf({ name: input.name, namespace }, rules, subject),
  );
  return [...cluster, ...rest];
}

function pairOf(metadata: TestObject['metadata'], rules: readonly Rule[], subject: object): TestObject[] {
  const kind = metadata.namespace === undefined ? 'ClusterRole' : 'Role';
  const apiVersion = 'rbac.authorization.k8s.io/v1';
  const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind, name: metadata.name };
  return [
    { apiVersion, kind, metadata, rules },
    { apiVersion, kind: `${kind}Binding`, metadata, roleRef, subjects: [subject] },
  ];
}

async function apply(admin: Requester, object: TestObject): Promise<void> {
  const { namespace } = object.metadata;
  if (namespace !== undefined)
    await admin.request('POST', '/api/v1/namespaces', { metadata: { name: namespace } });
  await applyObject(admin, object);
}

function base64(text: string): string {
  return Buffer.from(text).toString('base64');
}
