/** Shared by the live tests: pull secrets with planted credentials, and their state in a cluster. */
import assert from 'node:assert/strict';
import type { ControlPlane } from '../control-plane/control-plane.ts';
import type { TestObject } from '../control-plane/resource-path.ts';
import { plantedAuth } from '../support/canary.ts';
import {
  controlPlaneNamespace,
  hostedControlPlane as controlPlaneOf,
  kubeconfigSecret,
} from '../support/hypershift.ts';
import { meta, pullSecretObject } from '../support/meta.ts';

/** A pull secret with one planted credential per registry. */
export function pullSecret(name: string, namespace: string, registries: readonly string[]): TestObject {
  const auths = Object.fromEntries(
    registries.map((registry) => [registry, { auth: plantedAuth(`${name}-${registry}`) }]),
  );
  return pullSecretObject({ name, namespace }, { auths });
}

/** A Secret of the pull secret type with these data. */
export function secretOf(
  name: string,
  namespace: string,
  data: Readonly<Record<string, string>>,
): TestObject {
  const metadata = { name, namespace };
  return { apiVersion: 'v1', kind: 'Secret', type: 'kubernetes.io/dockerconfigjson', metadata, data };
}

export const additional = (...registries: string[]): TestObject =>
  pullSecret('additional-pull-secret', 'kube-system', registries);
export const platform = (...registries: string[]): TestObject =>
  pullSecret('pull-secret', 'openshift-config', registries);

/** Part of the additional secret without meaning: a new value triggers the secret's watchers. */
export const touched = (value: number): TestObject =>
  meta('v1 Secret', {
    name: 'additional-pull-secret',
    namespace: 'kube-system',
    annotations: { 'example.com/touched': String(value) },
  });

/** Reference to an object of kube-system. */
export function inKubeSystem(kind: string, name: string, apiVersion = 'v1'): TestObject {
  return { apiVersion, kind, metadata: { name, namespace: 'kube-system' } };
}

export const GLOBAL: TestObject = inKubeSystem('Secret', 'global-pull-secret');
export const ORIGINAL: TestObject = inKubeSystem('Secret', 'original-pull-secret');
export const SYNCER: TestObject = inKubeSystem('DaemonSet', 'global-pull-secret-syncer', 'apps/v1');
export const STATUS: TestObject = inKubeSystem(
  'PullStatus',
  'secret-additional-pull-secret',
  'pullwright.dev/v1alpha1',
);

/** The registries in the pull secret, sorted; `[]` when there is none. Throws when what is there is not whole. */
export function registriesOf(secret: TestObject | undefined): readonly string[] {
  if (secret === undefined) return [];
  const text = Buffer.from(String(secret['data']?.['.dockerconfigjson']), 'base64').toString();
  const { auths } = JSON.parse(text) as { auths: Record<string, { auth: string }> };
  for (const { auth } of Object.values(auths))
    assert.match(Buffer.from(auth, 'base64').toString(), /^robot:.+/);
  return Object.keys(auths).sort();
}

export async function makeNamespaces(plane: ControlPlane, ...names: readonly string[]): Promise<void> {
  for (const name of names) await plane.client.request('POST', '/api/v1/namespaces', { metadata: { name } });
}

/** A stand-alone cluster with the namespaces and the platform's pull secret. */
export async function furnish(plane: ControlPlane, ...registries: string[]): Promise<void> {
  await makeNamespaces(plane, 'openshift-config');
  await plane.apply(platform(...registries));
  // Credentials that reach no node are not Ready.
  await plane.apply(meta('v1 Node', { name: 'worker', labels: { 'kubernetes.io/os': 'linux' } }));
}

/** Events about an object, newest last. */
export async function eventsAbout(plane: ControlPlane, name: string): Promise<readonly TestObject[]> {
  const { body } = await plane.client.request('GET', '/apis/events.k8s.io/v1/events');
  return (body.items as TestObject[]).filter((event) => event['regarding']?.name === name);
}

/** The control plane of `clusters/<name>`, in the namespace where HyperShift puts it. */
export function hostedControlPlane(name: string): TestObject {
  return controlPlaneOf(name, '4.20.0');
}

/** The hosted cluster `clusters/<name>`, as its management cluster has it: with the platform's pull secret, and its kubeconfig. */
export async function declare(
  management: ControlPlane,
  name: string,
  kubeconfig: string,
  plane: TestObject = hostedControlPlane(name),
): Promise<void> {
  const namespace = controlPlaneNamespace(name);
  await makeNamespaces(management, namespace);
  await management.apply(pullSecret('pull-secret', namespace, ['quay.io']));
  await management.apply(kubeconfigSecret(name, kubeconfig));
  await management.apply(plane);
}
