/**
 * Carries a removal plan out, stage by stage. What is done is kept nowhere but in the cluster, so that a run that was killed is
 * continued by running it again.
 */
import { isApiError } from '../kube/api-error.ts';
import type { KubeClient } from '../kube/client.ts';
import { objectRef } from '../kube/resources.ts';
import { PullwrightError } from '../rules/errors.ts';
import type { KubeObject } from '../rules/kubernetes/object.ts';
import { tellNodesToLeave, waitForNodes } from './leave-nodes.ts';
import { nameOf, STAGES, type UninstallPlan, type UninstallRemoval } from './plan.ts';
import { type CarryOutOptions, poll, stopped } from './wait.ts';

/** What was done. */
export interface Done {
  /** Number of objects that were removed or released. */
  readonly removed: number;
  /** Namespaces that were left, each with what it holds. */
  readonly inUse: ReadonlyMap<string, string>;
}

/**
 * Removes what `plan` lists. Namespaces that hold something of others stay.
 *
 * @throws PullwrightError at the first thing that does not go; what was done stays done
 */
export async function carryOut(plan: Pick<UninstallPlan, 'stages'>, options: CarryOutOptions): Promise<Done> {
  let removed = 0;
  const inUse = new Map<string, string>();
  for (const { name, removals } of plan.stages) {
    const head = `[${STAGES.indexOf(name) + 1}/${STAGES.length}] ${name}`;
    options.say(`${head}: ${removals.length}`);
    await tellNodesToLeave(removals, options);
    for (const removal of removals) {
      const holds = await holderOf(removal.object, options.client);
      if (holds !== undefined) {
        inUse.set(removal.object.metadata.name, holds);
        continue;
      }
      await removeOne(removal, options);
      removed += 1;
      options.say(`${head}: ${removal.do === 'release' ? 'released' : 'removed'} ${nameOf(removal.object)}`);
    }
    for (const removal of removals) if (isToGo(removal, inUse)) await waitUntilGone(removal.object, options);
  }
  return { removed, inUse };
}

function isToGo({ do: what, object }: UninstallRemoval, inUse: ReadonlyMap<string, string>): boolean {
  return what !== 'release' && !(object.kind === 'Namespace' && inUse.has(object.metadata.name));
}

async function removeOne(
  { object, do: what, managers }: UninstallRemoval,
  options: CarryOutOptions,
): Promise<void> {
  const { client } = options;
  if (options.signal.aborted) throw stopped();
  if (what === 'release') return release(object, managers ?? [], client);
  if (what === 'leave-nodes') await waitForNodes(object, options);
  const { kind, metadata } = object;
  try {
    await client.remove(objectRef(object), {
      ...(metadata.uid === undefined ? {} : { uid: metadata.uid }),
      // The pods of a program end before the next stage begins.
      ...(['Deployment', 'DaemonSet', 'CronJob'].includes(kind)
        ? { propagation: 'Foreground' as const }
        : {}),
    });
  } catch (error) {
    // Another object of this name by now: the next run judges it.
    if (!isApiError(error, 404, 409)) throw error;
  }
}

/** An apply without fields gives up all that this manager applied, and nothing else. */
async function release(object: KubeObject, managers: readonly string[], client: KubeClient): Promise<void> {
  const { apiVersion, kind, metadata } = object;
  const { name, namespace, uid } = metadata;
  const empty = {
    apiVersion,
    kind,
    metadata: {
      name,
      ...(namespace === undefined ? {} : { namespace }),
      ...(uid === undefined ? {} : { uid }),
    },
  };
  for (const manager of managers) {
    try {
      await client.apply(empty, { manager });
    } catch (error) {
      // With the uid of an object that has gone, nothing is made.
      if (!isApiError(error, 404, 409)) throw error;
    }
  }
}

async function waitUntilGone(object: KubeObject, options: CarryOutOptions): Promise<void> {
  await poll(options, async () => {
    const live = await options.client.get(objectRef(object)).catch(absentWhenNotServed);
    if (live === undefined || live.metadata.uid !== object.metadata.uid) return undefined;
    const finalizers = live.metadata.finalizers ?? [];
    return new PullwrightError(
      `Cannot remove "${nameOf(object)}": it is still there${finalizers.length === 0 ? '' : `, held by finalizers ${finalizers.join(', ')}`}`,
      {
        code: 'StillThere',
        hint: 'Look at who holds it, then run this again',
      },
    );
  });
}

function absentWhenNotServed(error: unknown): undefined {
  if (error instanceof PullwrightError && error.code === 'KindNotServed') return undefined;
  throw error;
}

/** What every namespace has, and what a cluster puts there by itself. */
const USUAL: readonly string[] = [
  'kube-root-ca.crt',
  'openshift-service-ca.crt',
  'default',
  'builder',
  'deployer',
  // Made for our webhook by whoever issues certificates.
  'pullwright-webhook-tls',
];
const CONTENTS: readonly (readonly [apiVersion: string, kind: string])[] = [
  ...['Pod', 'Secret', 'ConfigMap', 'ServiceAccount', 'Service', 'PersistentVolumeClaim'].map(
    (kind) => ['v1', kind] as const,
  ),
  ...['Deployment', 'StatefulSet', 'DaemonSet'].map((kind) => ['apps/v1', kind] as const),
  ['batch/v1', 'Job'],
  ['batch/v1', 'CronJob'],
];

/** A namespace goes with all that is in it: the first thing of others in this one. */
async function holderOf(
  { kind: what, metadata }: KubeObject,
  client: KubeClient,
): Promise<string | undefined> {
  if (what !== 'Namespace') return undefined;
  const namespace = metadata.name;
  for (const [apiVersion, kind] of CONTENTS) {
    const { items } = await client.list({ apiVersion, kind, namespace }, { limit: 50 });
    const other = items.find(({ metadata }) => !USUAL.includes(metadata.name) && !isMinted(metadata.name));
    if (other !== undefined) return nameOf({ ...other, kind });
  }
  return undefined;
}

/** Secrets that OpenShift makes for the service accounts of every namespace. */
function isMinted(name: string): boolean {
  return /^(default|builder|deployer)-(token|dockercfg)-[a-z0-9]+$/.test(name);
}
