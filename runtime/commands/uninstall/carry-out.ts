/**
 * Nodes that are to be left: the programs of a DaemonSet are told so, and each has to have done it before its DaemonSet goes.
 */

import { PullwrightError } from '../../core/errors.ts';
import type { KubeObject } from '../../core/kubernetes/object.ts';
import { inParallel } from '../../core/parallel.ts';
import { defined } from '../../core/record.ts';
import { CREDENTIAL_PROVIDER } from '../../credential-provider/platform.ts';
import { OWNER_LABEL } from '../../engine/contract.ts';
import { isApiError } from '../../kube/api-error.ts';
import type { KubeClient, Selector } from '../../kube/client.ts';
import { pagesOf } from '../../kube/informer.ts';
import { type Collection, objectRef } from '../../kube/resources.ts';
import type { Clock } from '../../node/clock.ts';
import {
  type Deliverer,
  nameOf,
  PART_OF,
  STAGES,
  type UninstallPlan,
  type UninstallRemoval,
} from './plan.ts';

// Waiting for what a removal brings about, with an end.

export interface CarryOutOptions {
  readonly client: KubeClient;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** How long nodes may take, and how long an object may take to go. Milliseconds. */
  readonly timeoutMs: number;
  readonly say: (line: string) => void;
}

/** Looks until `look` gives no problem; throws the last one after the time. */
export async function poll(
  { clock, signal, timeoutMs }: CarryOutOptions,
  look: () => Promise<PullwrightError | undefined>,
): Promise<void> {
  const deadline = clock.monotonic() + timeoutMs;
  for (;;) {
    const problem = await look();
    if (problem === undefined) return;
    if (clock.monotonic() > deadline) throw problem;
    if (!(await clock.sleep(1000, signal))) throw stopped();
  }
}

/** For a run that is interrupted. */
export function stopped(): PullwrightError {
  return new PullwrightError('Stopped: what was removed stays removed', {
    code: 'Stopped',
    hint: 'Run this again to go on',
  });
}

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

/** The program of the node, in the mode that cleans up and exits; without what only a container that stays may have. */
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
    const left = nodesToGo(live);
    if (left === '') return undefined;
    if (left !== said) options.say(`${nameOf(object)}: ${left}`);
    said = left;
    return new PullwrightError(`Cannot leave the nodes of "${nameOf(object)}": ${left}`, {
      code: 'NodesNotLeft',
      hint: 'The status and the log of its pods say why. Run this again to go on, or with --skip-nodes to leave the nodes as they are: their config.json stays either way',
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
 */
export function nodesToGo({ metadata, status }: KubeObject): string {
  const seen = (status ?? {}) as DaemonSetStatus;
  if ((seen.observedGeneration ?? 0) < (metadata.generation ?? 0))
    return 'its controller has not seen it yet';
  const wanted = seen.desiredNumberScheduled ?? 0;
  const left = Math.min(seen.updatedNumberScheduled ?? 0, seen.numberReady ?? 0);
  return left >= wanted ? '' : `${left} of ${wanted} nodes left`;
}

// Carries a removal plan out, stage by stage. What is done is kept nowhere but in the cluster, so that a run that was killed is
// continued by running it again.

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
      ...defined({ uid: metadata.uid }),
      // The pods of a program end before the next stage begins.
      ...(['Deployment', 'DaemonSet', 'CronJob'].includes(kind)
        ? { propagation: 'Foreground' as const }
        : {}),
    });
  } catch (error) {
    // Another object of this name by now: left to the next run.
    if (!isApiError(error, 404, 409)) throw error;
  }
}

/** An apply without fields releases all that this manager applied, and nothing else. */
async function release(object: KubeObject, managers: readonly string[], client: KubeClient): Promise<void> {
  const { apiVersion, kind, metadata } = object;
  const { name, namespace, uid } = metadata;
  const empty = { apiVersion, kind, metadata: { name, ...defined({ namespace, uid }) } };
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
    const live = await options.client.get(objectRef(object)).catch((error: unknown) => {
      if (!isNotServed(error)) throw error;
      return undefined;
    });
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

function isNotServed(error: unknown): boolean {
  return error instanceof PullwrightError && error.code === 'KindNotServed';
}

/** What every namespace has, and what a cluster puts there by itself. */
const USUAL: readonly string[] = [
  'kube-root-ca.crt',
  'openshift-service-ca.crt',
  'default',
  'builder',
  'deployer',
  // Issued for our webhook by cert-manager or service-ca.
  'pullwright-webhook-tls',
];
const CONTENTS = collections({
  v1: ['Pod', 'Secret', 'ConfigMap', 'ServiceAccount', 'Service', 'PersistentVolumeClaim'],
  'apps/v1': ['Deployment', 'StatefulSet', 'DaemonSet'],
  'batch/v1': ['Job', 'CronJob'],
});

/** Kinds by the version of their API. */
function collections(kinds: Readonly<Record<string, readonly string[]>>): readonly Collection[] {
  return Object.entries(kinds).flatMap(([apiVersion, names]) => names.map((kind) => ({ apiVersion, kind })));
}

/** A namespace is deleted with all its objects: the first foreign one in it. */
async function holderOf(
  { kind: what, metadata }: KubeObject,
  client: KubeClient,
): Promise<string | undefined> {
  if (what !== 'Namespace') return undefined;
  const namespace = metadata.name;
  for (const collection of CONTENTS)
    for await (const { items } of pagesOf(client, { ...collection, namespace }, { limit: 50 })) {
      const other = items.find(({ metadata }) => !USUAL.includes(metadata.name) && !isMinted(metadata.name));
      if (other !== undefined) return nameOf({ ...other, kind: collection.kind });
    }
  return undefined;
}

/** Secrets that OpenShift makes for the service accounts of every namespace. */
function isMinted(name: string): boolean {
  return /^(default|builder|deployer)-(token|dockercfg)-[a-z0-9]+$/.test(name);
}

// Looks for everything of ours in a cluster: by our labels, by our kinds, and by our field managers.

const BY_LABEL: readonly string[] = [`${PART_OF}=pullwright`, OWNER_LABEL];

const ADMISSION = 'admissionregistration.k8s.io';
const MUTATING = ['MutatingAdmissionPolicy', 'MutatingAdmissionPolicyBinding'];
const VALIDATING = ['ValidatingAdmissionPolicy', 'ValidatingAdmissionPolicyBinding'];
const MONITORING = 'monitoring.coreos.com/v1';

/** Kinds that are rendered or applied, each listed by our labels. */
const LABELLED = collections({
  'apps/v1': ['Deployment', 'DaemonSet'],
  'batch/v1': ['CronJob'],
  v1: ['Secret', 'ConfigMap', 'ServiceAccount', 'Service', 'Namespace'],
  'rbac.authorization.k8s.io/v1': ['Role', 'RoleBinding', 'ClusterRole', 'ClusterRoleBinding'],
  'policy/v1': ['PodDisruptionBudget'],
  'networking.k8s.io/v1': ['NetworkPolicy'],
  'coordination.k8s.io/v1': ['Lease'],
  [`${ADMISSION}/v1`]: ['MutatingWebhookConfiguration', ...VALIDATING, ...MUTATING],
  [`${ADMISSION}/v1beta1`]: MUTATING,
  [`${ADMISSION}/v1alpha1`]: MUTATING,
  'apiextensions.k8s.io/v1': ['CustomResourceDefinition'],
  'machineconfiguration.openshift.io/v1': ['MachineConfig'],
  [MONITORING]: ['PrometheusRule', 'ServiceMonitor', 'PodMonitor'],
  'cert-manager.io/v1': ['Certificate'],
  'external-secrets.io/v1': ['ExternalSecret'],
  'bitnami.com/v1alpha1': ['SealedSecret'],
});

/** Listed whole, or by a name. */
const WHOLE: readonly (Collection & Selector)[] = [
  ...collections({
    'pullwright.dev/v1alpha1': ['PullSecretProfile', 'PullSecretGrant', 'PullStatus'],
    [`${CREDENTIAL_PROVIDER.group}/v1`]: [CREDENTIAL_PROVIDER.kind],
    [`${CREDENTIAL_PROVIDER.group}/v1alpha1`]: [CREDENTIAL_PROVIDER.kind],
    'hypershift.openshift.io/v1beta1': ['NodePool'],
    // Of these only what we added is ours.
    v1: ['ServiceAccount', 'Node'],
    'apps/v1': ['Deployment'],
  }),
  {
    apiVersion: MONITORING,
    kind: 'PrometheusRule',
    fieldSelector: 'metadata.name=pullwright-credential-provider',
  },
];

/** Requests under way at once. */
const WORKERS = 8;

/**
 * Everything in the cluster that could be ours, each object once.
 *
 * @throws PullwrightError when a kind cannot be read; kinds that the cluster does not serve are none
 */
export async function findObjects(client: KubeClient): Promise<readonly KubeObject[]> {
  const queries = [
    ...LABELLED.flatMap((kind) => BY_LABEL.map((labelSelector) => ({ ...kind, labelSelector }))),
    ...WHOLE,
  ];
  const found = new Map<string, KubeObject>();
  await inParallel(queries, WORKERS, async (query: Collection & Selector) => {
    try {
      for await (const { items } of pagesOf(client, query, { limit: 500, ...query }))
        for (const object of items)
          found.set(object.metadata.uid ?? `${object.kind}/${object.metadata.name}`, object);
    } catch (error) {
      // Not served, or no longer: the definition may just have been removed.
      if (!isNotServed(error) && !isApiError(error, 404)) throw error;
    }
  });
  return [...found.values()];
}

const COLLECTIONS: Readonly<Record<Deliverer['tool'], Collection>> = {
  'Argo CD Application': { apiVersion: 'argoproj.io/v1alpha1', kind: 'Application' },
  'Flux Kustomization': { apiVersion: 'kustomize.toolkit.fluxcd.io/v1', kind: 'Kustomization' },
};

/**
 * Whether what is marked is still synced, as far as the cluster shows: it is not when the cluster serves the tool's kind and has no
 * such object. A tool that runs in another cluster is assumed to sync.
 *
 * @throws ApiError when the cluster does not answer
 */
export async function isStillThere(client: KubeClient, deliverer: Deliverer): Promise<boolean> {
  const { name, namespace, tool } = deliverer;
  const collection = { ...COLLECTIONS[tool], ...(namespace === undefined ? {} : { namespace }) };
  try {
    const { items } = await client.list(collection, { fieldSelector: `metadata.name=${name}`, limit: 1 });
    return items.length > 0;
  } catch (error) {
    // The account that uninstalls may lack the right to read the tool.
    if (isNotServed(error) || isApiError(error, 404, 403)) return true;
    throw error;
  }
}
