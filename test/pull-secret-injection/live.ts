/** The reconciler as a process of its own against a real control plane, with exactly the rights that the charts render. */
import assert from 'node:assert/strict';
import { closeSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { injectionAccess } from '../../charts/pull-secret-injection/access.ts';
import {
  collisionPolicy,
  consentPolicy,
  dryRunPolicy,
  grantConsentPolicy,
  guardPolicy,
  sidecarSetConsentPolicy,
} from '../../charts/pull-secret-injection/consent.ts';
import { RECONCILERS } from '../../runtime/commands/reconcile/reconcilers.ts';
import { pullSecretGrantCrd } from '../../runtime/pull-secret-injection/kinds/grant.ts';
import { pullSecretProfileCrd } from '../../runtime/pull-secret-injection/kinds/profile.ts';
import { sidecarSetCrd } from '../../runtime/pull-secret-injection/kinds/sidecar-set.ts';
import type { InjectionOptions } from '../../runtime/pull-secret-injection/options.ts';
import type { ControlPlane, ControlPlaneOptions } from '../control-plane/control-plane.ts';
import { installCrd } from '../control-plane/crds.ts';
import { eventually } from '../control-plane/eventually.ts';
import { controlPlane } from '../control-plane/live.ts';
import type { TestObject } from '../control-plane/resource-path.ts';
import type { User } from '../control-plane/users.ts';
import { plantedAuth } from '../support/canary.ts';
import { meta, pullSecretObject } from '../support/meta.ts';
import { RunningProgram } from '../support/running-program.ts';

const root = new URL('../..', import.meta.url).pathname;

/** A control plane with our kinds and policies; stops after the tests of the file, unless `start` says otherwise. */
export async function startPlane(
  more: Pick<ControlPlaneOptions, 'apiServerFlags'> = {},
  start = controlPlane,
): Promise<ControlPlane> {
  const plane = await start({
    controllerManager: true,
    crds: ['pullstatuses.pullwright.dev'],
    ...more,
  });
  await Promise.all(
    [pullSecretProfileCrd(), pullSecretGrantCrd(), sidecarSetCrd()].map((crd) =>
      installCrd(plane.client, crd),
    ),
  );
  const serviceAccount = { namespace: 'kube-system', name: 'reconciler' };
  const guard = [...dryRunPolicy(serviceAccount), ...guardPolicy(serviceAccount)];
  const consent = [...consentPolicy(), ...grantConsentPolicy(), ...collisionPolicy()];
  for (const object of [...consent, ...sidecarSetConsentPolicy(), ...guard]) await plane.apply(object);
  await eventually(() => guarded(plane));
  return plane;
}

/** The API server takes policies in a moment after it stored them, the last one (the guard) last. */
async function guarded(plane: ControlPlane): Promise<void> {
  const account = ['--as=system:serviceaccount:kube-system:reconciler', '--as-group=system:masters'];
  const probe = ['create', 'secret', 'generic', 'probe', '--namespace=default', '--dry-run=server'];
  const { code, stderr } = await plane.kubectl(...probe, ...account);
  if (code === 0 || !stderr.includes('writes only pull secrets'))
    throw new Error(`the guard policy is not at work yet: ${stderr}`);
}

/** The reconciler's account: what the charts grant, nothing else. */
export function reconcilerUser(
  plane: ControlPlane,
  more: Partial<Parameters<typeof injectionAccess>[0]> = {},
): Promise<User> {
  return plane.user({
    name: 'reconciler',
    by: 'token',
    cluster: injectionAccess({ admission: 'policy', audit: true, ...more }).flatMap(({ rules }) => rules),
  });
}

/** Writes to a file, as a container does: a pipe would be as slow as its reader. */
export class RunningReconciler extends RunningProgram {
  readonly #file: string;

  constructor(command: readonly string[], file: string) {
    const log = openSync(file, 'a');
    super(command, {}, log);
    closeSync(log);
    this.#file = file;
  }

  override get log(): string {
    return readFileSync(this.#file, 'utf8');
  }

  override async stop(): Promise<number | null> {
    const code = await super.stop();
    assert.equal(code, 0, this.log.slice(-3000));
    assert.doesNotMatch(this.log, /ReconcilerThrew/);
    return code;
  }
}

/** Node with the sources, as in development. */
const SOURCES = [process.execPath, join(root, 'main.ts')];

/**
 * Starts `pullwright reconcile` for this one system.
 *
 * @param command what runs it, such as the executable that ships
 */
export function startReconciler(
  plane: ControlPlane,
  user: User,
  options: Partial<InjectionOptions> = {},
  command: readonly string[] = SOURCES,
): RunningReconciler {
  return startCommand(user.kubeconfig, options, command, plane.folder);
}

/** Same as {@link startReconciler}, against the API server of `kubeconfig`; the output file is in the same folder. */
export function startCommand(
  kubeconfig: string,
  options: Partial<InjectionOptions>,
  command: readonly string[],
  folder: string = dirname(kubeconfig),
): RunningReconciler {
  const config = join(folder, 'reconcile.yaml');
  const off = Object.fromEntries(Object.keys(RECONCILERS).map((name) => [name, false]));
  writeFileSync(config, JSON.stringify({ systems: { ...off, 'pull-secret-injection': options } }));
  const flags = ['--kubeconfig', kubeconfig, '--config', config, '--health-port=0', '--metrics-port=0'];
  return new RunningReconciler(
    [...command, 'reconcile', ...flags],
    join(folder, `reconcile-${Date.now()}.log`),
  );
}

export function namespaceObject(name: string, labels: Record<string, string> = {}): TestObject {
  return { apiVersion: 'v1', kind: 'Namespace', metadata: { name, labels } };
}

export function sourceObject(namespace: string, name: string, hosts: readonly string[]): TestObject {
  const auths = Object.fromEntries(hosts.map((host) => [host, { auth: plantedAuth(host) }]));
  return pullSecretObject({ name, namespace }, { auths });
}

/** Grants Secrets of a namespace to any profile, for these namespaces. */
export function grantObject(
  namespace: string,
  secrets: readonly string[],
  namespaces: readonly string[] = ['*'],
): TestObject {
  return {
    ...meta('pullwright.dev/v1alpha1 PullSecretGrant', { name: `of-${secrets[0]}`, namespace }),
    spec: { secrets: secrets.map((name) => ({ name })), profiles: [{ name: '*' }], namespaces },
  };
}

export function profileObject(name: string, spec: Record<string, unknown>): TestObject {
  return { apiVersion: 'pullwright.dev/v1alpha1', kind: 'PullSecretProfile', metadata: { name }, spec };
}

export interface PodInput {
  readonly name: string;
  readonly namespace: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly own?: readonly string[];
  readonly account?: string;
  readonly nodeName?: string;
  readonly owners?: readonly object[];
}

export function podObject(input: PodInput): TestObject {
  const { name, namespace, labels = {}, annotations = {}, own, account, nodeName, owners } = input;
  return {
    ...meta('v1 Pod', {
      name,
      namespace,
      labels,
      annotations,
      ...(owners === undefined ? {} : { ownerReferences: owners }),
    }),
    spec: {
      ...(own === undefined ? {} : { imagePullSecrets: own.map((secret) => ({ name: secret })) }),
      ...(account === undefined ? {} : { serviceAccountName: account }),
      ...(nodeName === undefined ? {} : { nodeName }),
      containers: [{ name: 'c', image: 'registry.example.com/a/b:1' }],
    },
  };
}

/** Answer of the API server to the POST of a pod. */
export async function createPod(
  plane: ControlPlane,
  input: PodInput,
): Promise<{ readonly names: readonly string[] } | { readonly refused: string }> {
  const made = await postPod(plane, input);
  if ('refused' in made) return made;
  const references = (made.pod['spec'].imagePullSecrets ?? []) as readonly { name?: string }[];
  return { names: references.map((reference) => reference.name ?? '') };
}

/** The pod that the API server makes of a POST. */
export async function postPod(
  plane: ControlPlane,
  input: PodInput,
): Promise<{ readonly pod: TestObject } | { readonly refused: string }> {
  const path = `/api/v1/namespaces/${input.namespace}/pods`;
  const { status, body } = await plane.client.request('POST', path, podObject(input));
  return status === 201 ? { pod: body as TestObject } : { refused: String(body.message) };
}

/** Waits until the namespace has its service account, without which no pod can be created. */
export async function readyNamespace(
  plane: ControlPlane,
  name: string,
  labels: Record<string, string> = {},
): Promise<void> {
  await plane.apply(namespaceObject(name, labels));
  const account = meta('v1 ServiceAccount', { name: 'default', namespace: name });
  await eventually(async () => {
    if ((await plane.get(account)) === undefined) throw new Error(`no service account in ${name}`);
  });
}
