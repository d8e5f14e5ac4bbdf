/**
 * A real control plane for tests: etcd and kube-apiserver, with RBAC, on loopback ports of their own; on demand the controller
 * manager. Ready in about two seconds; several at once; gone with its folder when the test ends, whatever ends it.
 *
 * ```ts
 * // needs: control plane
 * import { controlPlane } from '../control-plane/live.ts';
 *
 * const plane = await controlPlane({ crds: ['nodepools.hypershift.openshift.io'] });
 * test('...', async () => {
 *   await plane.apply({ apiVersion: 'v1', kind: 'Secret', metadata: { name: 'a', namespace: 'default' } });
 *   const { status, body } = await plane.client.request('GET', '/api/v1/namespaces/default/secrets/a');
 *   await eventually(async () => ...);              // test/control-plane/eventually.ts
 *   await plane.kubectl('get', 'nodes');            // admin
 *   const user = await plane.user({ name: 'u', namespaces: { default: [{ apiGroups: [''], resources: ['secrets'], verbs: ['get'] }] } });
 *   await plane.apiServer.restart();                // or kill(), pause(), resume(), start(); the same on plane.etcd
 * });
 * ```
 * `plane.kubeconfig` is an admin's (system:masters); `user.kubeconfig` has only the rights given.
 */
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type ProcessResult, runProcess } from '../support/process.ts';
import { type Binaries, controlPlaneBinaries } from './build.ts';
import { ALL_CRDS, type CrdName, installCrds } from './crds.ts';
import { Daemon, startWatchdog } from './daemon.ts';
import { apiServerFlags, etcdFlags, SERVICE_ADDRESS } from './flags.ts';
import { freePorts } from './ports.ts';
import { type Answer, type Requester, requester } from './request.ts';
import { applyObject, resourcePath, type TestObject } from './resource-path.ts';
import { accountKubeconfig, kubeconfigText, makeUser, type User, type UserInput } from './users.ts';
import { Authority, newKey, pemOf } from './x509.ts';

export interface ControlPlaneOptions {
  /** Runs kube-controller-manager: service account tokens, DaemonSet pods, garbage collection, namespace deletion. @default {false} */
  readonly controllerManager?: boolean;
  /** Lets kubelets of this machine join: listens on this address too, and on that of the Service. @default none */
  readonly nodeAddress?: string;
  /** Definitions to install; `all` for every one that is known. @default {[]} */
  readonly crds?: readonly CrdName[] | 'all';
  /** More flags of kube-apiserver. */
  readonly apiServerFlags?: readonly string[];
  readonly progress?: (line: string) => void;
}

/** A running control plane. */
export interface ControlPlane {
  /** `https://127.0.0.1:<port>` */
  readonly server: string;
  /** PEM of the CA. */
  readonly ca: string;
  /** Path of an administrator's kubeconfig. */
  readonly kubeconfig: string;
  /** Scratch folder, removed by `stop`. */
  readonly folder: string;
  /** Raw requests as administrator. */
  readonly client: Requester;
  readonly etcd: Daemon;
  readonly apiServer: Daemon;
  readonly controllerManager: Daemon | undefined;
  /** `http://127.0.0.1:<port>` of etcd, for its JSON gateway. */
  readonly etcdServer: string;
  /** Server-side apply as `test`, forced; throws when refused. Gives the object as stored. */
  apply(object: TestObject, manager?: string): Promise<TestObject>;
  /** The object, or undefined when there is none. */
  get(ref: TestObject): Promise<TestObject | undefined>;
  remove(ref: TestObject): Promise<Answer>;
  kubectl(...args: readonly string[]): Promise<ProcessResult>;
  user(input: UserInput): Promise<User>;
  /** Path of a kubeconfig with the rights of a service account that is there already. */
  account(namespace: string, name: string): Promise<string>;
  /** Drops the history of etcd: a watch from before gets 410 once the API server's cache is gone (restart it). */
  compact(): Promise<void>;
  stop(): Promise<void>;
}

/** Starts one; see the head of the file. */
export async function startControlPlane(options: ControlPlaneOptions = {}): Promise<ControlPlane> {
  const binaries = await controlPlaneBinaries(options.progress);
  const folder = mkdtempSync(join(tmpdir(), 'pullwright-control-plane-'));
  const watchdog = startWatchdog(folder);
  try {
    return await startIn(folder, binaries, options, () => watchdog.finish());
  } catch (error) {
    await watchdog.finish();
    throw error;
  }
}

async function startIn(
  folder: string,
  binaries: Binaries,
  options: ControlPlaneOptions,
  finish: () => Promise<void>,
): Promise<ControlPlane> {
  const [etcdPort, peerPort, apiPort] = await freePorts(3);
  const authority = new Authority('test-ca');
  const server = `https://127.0.0.1:${apiPort}`;
  const etcdServer = `http://127.0.0.1:${etcdPort}`;
  const files = writeFiles(folder, authority, { server, nodeAddress: options.nodeAddress });
  const client = requester({
    server,
    ca: authority.certificate,
    cert: files.admin.certificate,
    key: files.admin.key,
  });
  const host = { server, folder, authority, serviceAccountKey: files.serviceAccountKey, admin: client };
  const etcd = new Daemon({
    name: 'etcd',
    folder,
    command: [binaries.etcd, ...etcdFlags(folder, etcdServer, `http://127.0.0.1:${peerPort}`)],
    ready: async () => (await fetch(`${etcdServer}/readyz`).catch(() => undefined))?.ok ?? false,
  });
  const apiServer = new Daemon({
    name: 'kube-apiserver',
    folder,
    command: [
      binaries.apiServer,
      ...apiServerFlags(folder, etcdServer, { port: apiPort ?? 0, nodeAddress: options.nodeAddress }),
      ...(options.controllerManager === true ? [] : ['--disable-admission-plugins=ServiceAccount']),
      ...(options.apiServerFlags ?? []),
    ],
    ready: async () => (await client.request('GET', '/readyz').catch(() => undefined))?.status === 200,
  });
  await etcd.start();
  await apiServer.start();
  const kubeconfig = join(folder, 'admin.kubeconfig');
  const controllerManager =
    options.controllerManager === true ? managerDaemon(folder, binaries, kubeconfig) : undefined;
  await controllerManager?.start();
  await installCrds(client, options.crds === 'all' ? ALL_CRDS : (options.crds ?? []));
  return {
    server,
    ca: authority.certificate,
    kubeconfig,
    folder,
    client,
    etcd,
    apiServer,
    controllerManager,
    etcdServer,
    ...shortcuts(client),
    // kubectl remembers the kinds of a server by its address, and a port is used again by another control plane.
    kubectl: (...args) =>
      runProcess([
        binaries.kubectl,
        `--kubeconfig=${kubeconfig}`,
        `--cache-dir=${mkdtempSync(join(folder, 'kubectl-cache-'))}`,
        ...args,
      ]),
    account: (namespace, name) => accountKubeconfig(host, { namespace, name }),
    user: (input) => makeUser(host, input),
    compact: () => compactEtcd(etcdServer),
    stop: async () => {
      client.close();
      await finish();
    },
  };
}

function shortcuts(client: Requester): Pick<ControlPlane, 'apply' | 'get' | 'remove'> {
  return {
    apply: (object, manager) => applyObject(client, object, manager),
    get: async (ref) => {
      const answer = await client.request('GET', resourcePath(ref));
      if (answer.status === 404) return undefined;
      if (answer.status !== 200) throw new Error(`Cannot read ${resourcePath(ref)}: ${answer.status}`);
      return answer.body as TestObject;
    },
    remove: (ref) => client.request('DELETE', resourcePath(ref)),
  };
}

function writeFiles(
  folder: string,
  authority: Authority,
  { server, nodeAddress }: { readonly server: string; readonly nodeAddress: string | undefined },
): { admin: { certificate: string; key: string }; serviceAccountKey: string } {
  const save = (name: string, text: string): void => writeFileSync(join(folder, name), text, { mode: 0o600 });
  const serving = authority.issue({
    commonName: 'kube-apiserver',
    hosts: ['127.0.0.1', 'localhost', ...(nodeAddress === undefined ? [] : [nodeAddress, SERVICE_ADDRESS])],
  });
  const admin = authority.issue({ commonName: 'admin', organizations: ['system:masters'] });
  const account = newKey();
  save('ca.crt', authority.certificate);
  save('serving.crt', serving.certificate);
  save('serving.key', serving.key);
  save('sa.key', pemOf(account.privateKey));
  save('sa.pub', pemOf(account.publicKey));
  const base64 = (text: string): string => Buffer.from(text).toString('base64');
  const user = { 'client-certificate-data': base64(admin.certificate), 'client-key-data': base64(admin.key) };
  save('admin.kubeconfig', kubeconfigText(server, authority.certificate, user));
  save('pids', '');
  return { admin, serviceAccountKey: pemOf(account.privateKey) };
}

function managerDaemon(folder: string, binaries: Binaries, kubeconfig: string): Daemon {
  return new Daemon({
    name: 'kube-controller-manager',
    folder,
    command: [
      binaries.controllerManager,
      `--kubeconfig=${kubeconfig}`,
      '--leader-elect=false',
      '--secure-port=0',
      `--service-account-private-key-file=${folder}/sa.key`,
      `--root-ca-file=${folder}/ca.crt`,
      '--kube-api-qps=200',
      '--kube-api-burst=400',
    ],
    ready: () => Promise.resolve(true),
  });
}

async function compactEtcd(server: string): Promise<void> {
  const post = async (path: string, body: unknown): Promise<{ header: { revision: string } }> => {
    const answer = await fetch(`${server}${path}`, { method: 'POST', body: JSON.stringify(body) });
    if (!answer.ok) throw new Error(`etcd ${path}: ${answer.status}`);
    return (await answer.json()) as { header: { revision: string } };
  };
  const { header } = await post('/v3/kv/range', { key: Buffer.from('/registry').toString('base64') });
  await post('/v3/kv/compaction', { revision: header.revision, physical: true });
}
