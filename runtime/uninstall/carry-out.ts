/**
 * Carries a removal plan out, stage by stage. What is done is kept nowhere but in the cluster, so that a run that was killed is
 * continued by running it again.
 */
import type { Clock } from '../host/clock.ts';
import { isApiError } from '../kube/api-error.ts';
import type { KubeClient } from '../kube/client.ts';
import { objectRef } from '../kube/resources.ts';
import { PullwrightError } from '../rules/errors.ts';
import type { KubeObject } from '../rules/kubernetes/object.ts';
import { nameOf, STAGES, type UninstallPlan, type UninstallRemoval } from './plan.ts';

/** Added to the command line of the programs on nodes: settle what is under way, tidy up, do nothing more. */
export const LEAVE_FLAG = '--uninstall';

/** What was done. */
export interface Done {
  /** Number of objects that were removed or released. */
  readonly removed: number;
  /** Namespaces that were left, each with what it holds. */
  readonly inUse: ReadonlyMap<string, string>;
}

export interface CarryOutOptions {
  readonly client: KubeClient;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** How long nodes may take, and how long an object may take to go. Milliseconds. */
  readonly timeoutMs: number;
  readonly say: (line: string) => void;
  /** @default {1000} */
  readonly lookEveryMs?: number;
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

/**
 * All at once, so that the nodes leave at the same time. The work is done by a container that must end before the pod's own
 * begins: a pod is Ready only when its node has been left. A probe alone would not do, because a kubelet that has just been
 * restarted takes running containers for ready until it has asked them.
 */
async function tellNodesToLeave(
  removals: readonly UninstallRemoval[],
  { client }: CarryOutOptions,
): Promise<void> {
  for (const { object, do: what } of removals) {
    if (what !== 'leave-nodes' || commandOf(object)?.includes(LEAVE_FLAG) === true) continue;
    const pod = '/spec/template/spec';
    const path = `${pod}/containers/0/command`;
    const container = containerOf(object);
    const command = container?.command;
    if (container === undefined || command === undefined) continue;
    await client.jsonPatch(
      objectRef(object),
      [
        { op: 'test', path, value: command },
        { op: 'add', path: `${path}/-`, value: LEAVE_FLAG },
        { op: 'add', path: `${pod}/initContainers`, value: [leavingContainer(container, command)] },
      ],
      'pullwright-uninstall',
    );
  }
}

interface Runs {
  readonly command?: readonly string[];
  readonly [field: string]: unknown;
}

function containerOf(object: KubeObject): Runs | undefined {
  const spec = object.spec as { template?: { spec?: { containers?: readonly Runs[] } } } | undefined;
  return spec?.template?.spec?.containers?.[0];
}

function commandOf(object: KubeObject): readonly string[] | undefined {
  return containerOf(object)?.command;
}

/** The program of the node, told to leave and to end; without what only a container that stays may have. */
function leavingContainer(container: Runs, command: readonly string[]): Readonly<Record<string, unknown>> {
  const {
    livenessProbe: _alive,
    readinessProbe: _ready,
    startupProbe: _up,
    ports: _ports,
    ...rest
  } = container;
  return { ...rest, name: 'leave-node', command: [...command, LEAVE_FLAG, '--once'] };
}

/** Every node that runs a pod of the DaemonSet has left: its pods are of the new template, and ready. */
async function waitForNodes(object: KubeObject, options: CarryOutOptions): Promise<void> {
  let said = '';
  await poll(options, async () => {
    const live = await options.client.get(objectRef(object));
    if (live === undefined) return undefined;
    const left = nodesToGo(live);
    if (left === '') return undefined;
    if (left !== said) options.say(`${nameOf(object)}: ${left}`);
    said = left;
    return new PullwrightError(`Cannot leave the nodes of "${nameOf(object)}": ${left}`, {
      code: 'NodesNotLeft',
      hint: 'The log of a pod that is not ready says why. Run this again to go on, or with --skip-nodes to leave the nodes as they are: their config.json stays either way',
    });
  });
}

interface DaemonSetStatus {
  readonly observedGeneration?: number;
  readonly desiredNumberScheduled?: number;
  readonly updatedNumberScheduled?: number;
  readonly numberReady?: number;
}

/**
 * What is still to be waited for; empty when nothing.
 *
 * @example
 * ```ts
 * import { nodesToGo } from './carry-out.ts';
 * import assert from 'node:assert/strict';
 *
 * const status = { observedGeneration: 2, desiredNumberScheduled: 3, updatedNumberScheduled: 3, numberReady: 1 };
 * const object = { apiVersion: 'apps/v1', kind: 'DaemonSet', metadata: { name: 'd', generation: 2 }, status };
 * assert.equal(nodesToGo(object), '1 of 3 nodes left');
 * ```
 */
export function nodesToGo({ metadata, status }: KubeObject): string {
  const seen = (status ?? {}) as DaemonSetStatus;
  if ((seen.observedGeneration ?? 0) < (metadata.generation ?? 0))
    return 'its controller has not seen it yet';
  const wanted = seen.desiredNumberScheduled ?? 0;
  const left = Math.min(seen.updatedNumberScheduled ?? 0, seen.numberReady ?? 0);
  return left >= wanted ? '' : `${left} of ${wanted} nodes left`;
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

/** Looks until `look` gives no problem; throws the last one after the time. */
async function poll(
  { clock, signal, timeoutMs, lookEveryMs = 1000 }: CarryOutOptions,
  look: () => Promise<PullwrightError | undefined>,
): Promise<void> {
  const deadline = clock.monotonic() + timeoutMs;
  for (;;) {
    const problem = await look();
    if (problem === undefined) return;
    if (clock.monotonic() > deadline) throw problem;
    if (!(await clock.sleep(lookEveryMs, signal))) throw stopped();
  }
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

function stopped(): PullwrightError {
  return new PullwrightError('Stopped: what was removed stays removed', {
    code: 'Stopped',
    hint: 'Run this again to go on',
  });
}
