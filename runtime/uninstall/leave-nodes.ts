/**
 * Nodes that are to be left: the programs of a DaemonSet are told so, and each has to have done it before its DaemonSet goes.
 */
import type { KubeClient } from '../kube/client.ts';
import { objectRef } from '../kube/resources.ts';
import { PullwrightError } from '../rules/errors.ts';
import type { KubeObject } from '../rules/kubernetes/object.ts';
import { nameOf, type UninstallRemoval } from './plan.ts';
import { type CarryOutOptions, poll } from './wait.ts';

/** Added to the command line of the programs on nodes: settle what is under way, tidy up, do nothing more. */
export const LEAVE_FLAG = '--uninstall';

/**
 * All at once, so that the nodes leave at the same time. The work is done by a container that must end before the pod's own
 * begins: a pod is Ready only when its node has been left. A probe alone would not do, because a kubelet that has just been
 * restarted takes running containers for ready until it has asked them.
 */
export async function tellNodesToLeave(
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
export async function waitForNodes(object: KubeObject, options: CarryOutOptions): Promise<void> {
  let said = '';
  await poll(options, async () => {
    const live = await options.client.get(objectRef(object));
    if (live === undefined) return undefined;
    const toGo = nodesToGo(live);
    if (toGo === '') return undefined;
    const left = [toGo, ...(await heldUpNodes(live, options.client))].join('; ');
    if (left !== said) options.say(`${nameOf(object)}: ${left}`);
    said = left;
    return new PullwrightError(`Cannot leave the nodes of "${nameOf(object)}": ${left}`, {
      code: 'NodesNotLeft',
      hint: 'Where nothing is said of a node, the log of its pod says why. Run this again to go on, or with --skip-nodes to leave the nodes as they are: their config.json stays either way',
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
 * import { nodesToGo } from './leave-nodes.ts';
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

/** Nodes of which one line each is said. */
const NAMED = 3;

async function heldUpNodes(
  { metadata, spec }: KubeObject,
  client: Pick<KubeClient, 'list'>,
): Promise<readonly string[]> {
  const { matchLabels = {} } =
    (spec as { selector?: { matchLabels?: Readonly<Record<string, string>> } }).selector ?? {};
  const labelSelector = Object.entries(matchLabels)
    .map(([key, value]) => `${key}=${value}`)
    .join(',');
  const pods = { apiVersion: 'v1', kind: 'Pod', namespace: metadata.namespace ?? '' };
  const { items } = await client.list(pods, { labelSelector });
  const said = items.flatMap((pod) => heldUp(pod) ?? []);
  return said.length <= NAMED ? said : [...said.slice(0, NAMED), `and ${said.length - NAMED} more`];
}

interface ContainerState {
  readonly state?: {
    readonly waiting?: { readonly reason?: string; readonly message?: string };
  };
}

/** What a container waits for on its way to work, and is no trouble. */
const ON_ITS_WAY: ReadonlySet<string> = new Set(['PodInitializing', 'ContainerCreating', '']);

/**
 * Why a pod does not get to work, in the words of its node; undefined when nothing is known.
 *
 * @example
 * ```ts
 * import { heldUp } from './leave-nodes.ts';
 * import assert from 'node:assert/strict';
 *
 * const waiting = { reason: 'ImagePullBackOff', message: 'Back-off pulling image "r.example.com/p:1"' };
 * const status = { initContainerStatuses: [{ state: { waiting } }] };
 * const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'p' }, spec: { nodeName: 'n1' }, status };
 * assert.equal(heldUp(pod), 'node n1: ImagePullBackOff: Back-off pulling image "r.example.com/p:1"');
 * ```
 */
export function heldUp({ spec, status }: KubeObject): string | undefined {
  const { nodeName = 'none yet' } = (spec ?? {}) as { nodeName?: string };
  const { initContainerStatuses = [], containerStatuses = [] } = (status ?? {}) as Readonly<
    Record<string, readonly ContainerState[] | undefined>
  >;
  const waiting = [...initContainerStatuses, ...containerStatuses].map(waitsFor).find((said) => said !== '');
  return waiting === undefined ? undefined : `node ${nodeName}: ${waiting}`;
}

function waitsFor({ state }: ContainerState): string {
  const { reason = '', message = '' } = state?.waiting ?? {};
  if (ON_ITS_WAY.has(reason)) return '';
  return message === '' ? reason : `${reason}: ${message}`;
}
