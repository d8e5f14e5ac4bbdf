/**
 * Carries out an uninstall plan. A DaemonSet is deleted after its program has cleaned up every node.
 */

import { PullwrightError } from '../../core/errors.ts';
import { describeObject, type KubeObject, templateContainers } from '../../core/kubernetes/object.ts';
import { inParallel } from '../../core/parallel.ts';
import { defined, recordOf, textsIn } from '../../core/record.ts';
import { CREDENTIAL_PROVIDER } from '../../credential-provider/platform.ts';
import { OWNER_LABEL } from '../../engine/contract.ts';
import { isApiError, unlessRefused } from '../../kube/api-error.ts';
import type { KubeClient, Selector } from '../../kube/client.ts';
import { pagesOf } from '../../kube/informer.ts';
import { type Collection, objectRef } from '../../kube/resources.ts';
import type { Clock } from '../../node/clock.ts';
import { type Deliverer, PART_OF, STAGES, type UninstallPlan, type UninstallRemoval } from './plan.ts';

// Polls for the effect of a removal, with a deadline.

export interface CarryOutOptions {
  readonly client: KubeClient;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** Time limit for all nodes of a DaemonSet, and for the deletion of one object. Milliseconds. */
  readonly timeoutMs: number;
  readonly say: (line: string) => void;
}

/** Calls `look` until it returns no problem; throws the last problem after the deadline. */
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

/** The error of an interrupted run. */
export function stopped(): PullwrightError {
  return new PullwrightError('Interrupted: removed objects are not restored', {
    code: 'Stopped',
    hint: 'Run this again to continue',
  });
}

/** Flag for the programs on nodes: finish the change in progress, clean up, then do nothing. */
export const LEAVE_FLAG = '--uninstall';

/**
 * Adds the flag to all DaemonSets at once, so that the nodes are cleaned up in parallel. An init container cleans up, so a pod
 * is Ready only after its node is clean. A readiness probe is not enough: a restarted kubelet treats running containers as
 * ready until it has probed them.
 */
export async function tellNodesToLeave(
  removals: readonly UninstallRemoval[],
  { client }: CarryOutOptions,
): Promise<void> {
  for (const { object, do: what } of removals) {
    const [container = {}] = templateContainers(object);
    const command = textsIn(container['command']);
    if (what !== 'leave-nodes' || command.length === 0 || command.includes(LEAVE_FLAG)) continue;
    const pod = '/spec/template/spec';
    const path = `${pod}/containers/0/command`;
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

/** The node's program in the mode that cleans up and exits, without probes and ports, which only its daemon has. */
function leavingContainer(container: Readonly<Record<string, unknown>>, command: readonly string[]): object {
  const {
    livenessProbe: _alive,
    readinessProbe: _ready,
    startupProbe: _up,
    ports: _ports,
    ...rest
  } = container;
  return { ...rest, name: 'leave-node', command: [...command, LEAVE_FLAG, '--once'] };
}

/** Waits until every node of the DaemonSet is clean: all its pods have the new template and are ready. */
export async function waitForNodes(object: KubeObject, options: CarryOutOptions): Promise<void> {
  let said = '';
  await poll(options, async () => {
    const live = await options.client.get(objectRef(object));
    if (live === undefined) return undefined;
    const left = nodesToGo(live);
    if (left === '') return undefined;
    if (left !== said) options.say(`${describeObject(object)}: ${left}`);
    said = left;
    return new PullwrightError(`Cannot clean up the nodes of "${describeObject(object)}": ${left}`, {
      code: 'NodesNotLeft',
      hint: 'See the status and logs of its pods. Run this again to continue, or with --skip-nodes to skip the clean-up: nodes keep their config.json either way',
    });
  });
}

/** What the DaemonSet still waits for; empty if nothing. */
export function nodesToGo({ metadata, status }: KubeObject): string {
  const number = (field: string): number => Number(recordOf(status)[field] ?? 0);
  if (number('observedGeneration') < (metadata.generation ?? 0)) return 'not yet observed by its controller';
  const wanted = number('desiredNumberScheduled');
  const left = Math.min(number('updatedNumberScheduled'), number('numberReady'));
  return left >= wanted ? '' : `${left} of ${wanted} nodes cleaned up`;
}

// Carries out a removal plan, stage by stage. Progress is stored only in the cluster, so a second run continues a killed one.

/**
 * Removes the objects of `plan`. Keeps namespaces that contain objects of other owners.
 *
 * @throws PullwrightError for the first object that cannot be removed; earlier removals are not undone
 */
export async function carryOut(plan: Pick<UninstallPlan, 'stages'>, options: CarryOutOptions) {
  /** Number of objects that were removed or released. */
  let removed = 0;
  /** Namespaces that were kept, each with an object that it contains. */
  const inUse = new Map<string, string>();
  for (const { name, removals } of plan.stages) {
    const head = `[${STAGES.indexOf(name) + 1}/${STAGES.length}] ${name}`;
    options.say(`${head}: ${removals.length}`);
    await tellNodesToLeave(removals, options);
    const deleted: KubeObject[] = [];
    for (const removal of removals) {
      const holds = await holderOf(removal.object, options.client);
      if (holds !== undefined) {
        inUse.set(removal.object.metadata.name, holds);
        continue;
      }
      await removeOne(removal, options);
      removed += 1;
      if (removal.do !== 'release') deleted.push(removal.object);
      options.say(
        `${head}: ${removal.do === 'release' ? 'released' : 'removed'} ${describeObject(removal.object)}`,
      );
    }
    for (const object of deleted) await waitUntilGone(object, options);
  }
  return { removed, inUse };
}

async function removeOne({ object, do: what, managers }: UninstallRemoval, options: CarryOutOptions) {
  const { client } = options;
  if (options.signal.aborted) throw stopped();
  if (what === 'release') return release(object, managers ?? [], client);
  if (what === 'leave-nodes') await waitForNodes(object, options);
  const { kind, metadata } = object;
  // The pods of a program terminate before the next stage begins.
  const propagation = ['Deployment', 'DaemonSet', 'CronJob'].includes(kind) ? 'Foreground' : undefined;
  const removal = client.remove(objectRef(object), defined({ uid: metadata.uid, propagation }));
  // The object is already deleted, or a new one has its name. The next run plans a new one.
  await unlessRefused(removal, 404, 409);
}

/** An apply without fields releases everything that this manager applied, and nothing else. */
async function release(object: KubeObject, managers: readonly string[], client: KubeClient): Promise<void> {
  const { apiVersion, kind, metadata } = object;
  const { name, namespace, uid } = metadata;
  const empty = { apiVersion, kind, metadata: { name, ...defined({ namespace, uid }) } };
  // With the uid of a deleted object, the apply fails instead of creating one.
  for (const manager of managers) await unlessRefused(client.apply(empty, { manager }), 404, 409);
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
      `Cannot remove "${describeObject(object)}": it still exists${finalizers.length === 0 ? '' : `, blocked by finalizers ${finalizers.join(', ')}`}`,
      { code: 'StillThere', hint: 'Find what blocks the deletion, then run this again' },
    );
  });
}

function isNotServed(error: unknown): boolean {
  return error instanceof PullwrightError && error.code === 'KindNotServed';
}

/** Names by kind that a cluster creates in every namespace, and the certificate that is issued for our webhook. */
const USUAL: Readonly<Record<string, RegExp>> = {
  ConfigMap: /^(kube-root-ca|openshift-service-ca)\.crt$/,
  ServiceAccount: /^(default|builder|deployer)$/,
  Secret: /^(pullwright-webhook-tls|(default|builder|deployer)-(token|dockercfg)-[a-z0-9]+)$/,
};
const CONTENTS = collections({
  v1: ['Pod', 'Secret', 'ConfigMap', 'ServiceAccount', 'Service', 'PersistentVolumeClaim'],
  'apps/v1': ['Deployment', 'StatefulSet', 'DaemonSet'],
  'batch/v1': ['Job', 'CronJob'],
});

/** Kinds by API version. */
function collections(kinds: Readonly<Record<string, readonly string[]>>): readonly Collection[] {
  return Object.entries(kinds).flatMap(([apiVersion, names]) => names.map((kind) => ({ apiVersion, kind })));
}

/** The first foreign object of a namespace. Deleting the namespace would delete it too. */
async function holderOf({ kind: what, metadata }: KubeObject, client: KubeClient) {
  if (what !== 'Namespace') return undefined;
  const namespace = metadata.name;
  for (const collection of CONTENTS)
    for await (const { items } of pagesOf(client, { ...collection, namespace }, { limit: 50 })) {
      const other = items.find(({ metadata }) => USUAL[collection.kind]?.test(metadata.name) !== true);
      if (other !== undefined) return describeObject({ ...other, kind: collection.kind });
    }
  return undefined;
}

// Finds everything of ours in a cluster: by label, kind and field manager.

const BY_LABEL: readonly string[] = [`${PART_OF}=pullwright`, OWNER_LABEL];

const ADMISSION = 'admissionregistration.k8s.io';
const MUTATING = ['MutatingAdmissionPolicy', 'MutatingAdmissionPolicyBinding'];
const VALIDATING = ['ValidatingAdmissionPolicy', 'ValidatingAdmissionPolicyBinding'];
const MONITORING = 'monitoring.coreos.com/v1';

/** Rendered and applied kinds, listed by our labels. */
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

/** Kinds listed completely, or by one name. */
const WHOLE: readonly (Collection & Selector)[] = [
  ...collections({
    'pullwright.dev/v1alpha1': ['PullSecretProfile', 'PullSecretGrant', 'PullStatus'],
    [`${CREDENTIAL_PROVIDER.group}/v1`]: [CREDENTIAL_PROVIDER.kind],
    [`${CREDENTIAL_PROVIDER.group}/v1alpha1`]: [CREDENTIAL_PROVIDER.kind],
    'hypershift.openshift.io/v1beta1': ['NodePool'],
    // In these, only the fields that we added are ours.
    v1: ['ServiceAccount', 'Node'],
    'apps/v1': ['Deployment'],
  }),
  {
    apiVersion: MONITORING,
    kind: 'PrometheusRule',
    fieldSelector: 'metadata.name=pullwright-credential-provider',
  },
];

/** Maximum number of concurrent requests. */
const WORKERS = 8;

/**
 * Returns every object in the cluster that could be ours, each once.
 *
 * @throws PullwrightError when a kind cannot be read; kinds that the cluster does not serve are skipped
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
          found.set(object.metadata.uid ?? JSON.stringify(objectRef(object)), object);
    } catch (error) {
      // Not served, or not any more: an uninstall removes the definitions.
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
 * Whether the Application or Kustomization may still sync its objects: false only if the cluster serves its kind and does not
 * have it. A tool in another cluster is assumed to sync.
 *
 * @throws ApiError when the request fails
 */
export async function isStillThere(client: KubeClient, deliverer: Deliverer): Promise<boolean> {
  const { name, namespace, tool } = deliverer;
  const collection = { ...COLLECTIONS[tool], ...(namespace === undefined ? {} : { namespace }) };
  try {
    const { items } = await client.list(collection, { fieldSelector: `metadata.name=${name}`, limit: 1 });
    return items.length > 0;
  } catch (error) {
    // The account that uninstalls may lack the permission to read the tool's objects.
    if (isNotServed(error) || isApiError(error, 404, 403)) return true;
    throw error;
  }
}
