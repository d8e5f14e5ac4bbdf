/** Setup of most live tests of distribution: a source, a profile of team "a" that distributes it, and waits for the reconciler. */
import assert from 'node:assert/strict';
import type { ControlPlane } from '../control-plane/control-plane.ts';
import { eventually } from '../control-plane/eventually.ts';
import type { TestObject } from '../control-plane/resource-path.ts';
import { grantObject, namespaceObject, profileObject, type RunningReconciler, sourceObject } from './live.ts';

/** Waits until a check passes, and then asserts that the reconciler has not ended meanwhile. */
export function waiter(reconciler: RunningReconciler): (check: () => Promise<void>) => Promise<void> {
  return async (check) => {
    await eventually(check);
    assert.equal(reconciler.process.exitCode, null, reconciler.log);
  };
}

/** The namespace `platform` with the Secret `quay`, and a grant of it to `namespaces`. */
export async function applySource(plane: ControlPlane, namespaces?: readonly string[]): Promise<void> {
  await plane.apply(namespaceObject('platform'));
  await plane.apply(sourceObject('platform', 'quay', ['quay.io']));
  await plane.apply(grantObject('platform', ['quay'], namespaces));
}

/** The profile `team`: `platform/quay` as `reg` in every namespace with the label `team: a`. */
export function teamProfile(more: Record<string, unknown> = {}): TestObject {
  return profileObject('team', {
    namespaceSelector: { matchLabels: { team: 'a' } },
    selector: {},
    secrets: [{ name: 'reg', sources: [{ namespace: 'platform', name: 'quay' }] }],
    ...more,
  });
}

/** A pull secret by its place. */
export function secretAt(namespace: string, name = 'reg'): TestObject {
  return { apiVersion: 'v1', kind: 'Secret', metadata: { name, namespace } };
}

/** Registries of a pull secret; undefined when there is none. */
export async function hostsIn(
  plane: ControlPlane,
  namespace: string,
  name = 'reg',
): Promise<readonly string[] | undefined> {
  const body = (await plane.get(secretAt(namespace, name)))?.['data']?.['.dockerconfigjson'];
  if (body === undefined) return undefined;
  const { auths } = JSON.parse(Buffer.from(String(body), 'base64').toString()) as { auths: object };
  return Object.keys(auths).sort();
}

async function foundCondition(
  plane: ControlPlane,
  about: string | TestObject,
  type: string,
): Promise<Record<'status' | 'reason' | 'message', string> | undefined> {
  const object = typeof about === 'string' ? profileObject(about, {}) : about;
  const found = (await plane.get(object))?.['status']?.conditions ?? [];
  return found.find((condition: { type: string }) => condition.type === type);
}

/** Status and reason of a condition of a profile, by its name, or of another object: `True Current`. */
export async function conditionOf(
  plane: ControlPlane,
  about: string | TestObject,
  type: string,
): Promise<string> {
  const found = await foundCondition(plane, about, type);
  return `${found?.status} ${found?.reason}`;
}

/** Message of the condition. */
export async function messageOf(
  plane: ControlPlane,
  about: string | TestObject,
  type: string,
): Promise<string> {
  return (await foundCondition(plane, about, type))?.message ?? '';
}
