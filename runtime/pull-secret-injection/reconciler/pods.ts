/**
 * Audits the pods of one namespace: which lack names that the plan adds now, and which of these cannot pull. The imagePullSecrets
 * of a pod are immutable, so the remedy is a new pod.
 */

import { type ConditionInput, conditionIn, readiness } from '../../core/kubernetes/conditions.ts';
import { type LabelRequirement, type Labels, selects } from '../../core/kubernetes/label-selector.ts';
import { type KubeObject, listedPullSecrets } from '../../core/kubernetes/object.ts';
import { recreation } from '../../core/kubernetes/pod-owner.ts';
import type { EntryStatus } from '../../core/kubernetes/pull-status.ts';
import { recordOf, recordsIn, textOf, valueAt } from '../../core/record.ts';
import { counted } from '../../core/text.ts';
import type { Apply, Reader, Result, Sample } from '../../engine/contract.ts';
import { reportPullStatus } from '../../engine/pull-status.ts';
import type { PullSecretProfile } from '../kinds/profile.ts';
import type { SidecarSet } from '../kinds/sidecar-set.ts';
import { isSkipped, RECONCILER_NAME } from '../options.ts';
import { planInjection, WEBHOOK_NAME } from '../plan/plan.ts';
import { hooksIn, isMirrored, policyObjects, policyVersion, renderedHook, WEBHOOK } from './admission.ts';
import {
  accountRefuses,
  type Context,
  isTerminating,
  namespaceLabels,
  namespaceRef,
  planIn,
  SERVICE_ACCOUNT,
} from './view.ts';

// Reports whether new pods get names, as observed in the cluster rather than configured.

export const ENDPOINT_SLICES = {
  role: 'hosted',
  apiVersion: 'discovery.k8s.io/v1',
  kind: 'EndpointSlice',
} as const;
/** Label of the EndpointSlices of a Service. */
export const SERVICE_NAME_LABEL = 'kubernetes.io/service-name';

/** The state of admission: `True` only if all required objects were found. */
export type InjectionState = Pick<ConditionInput, 'status' | 'reason' | 'message'>;

/** Determines the state of admission. */
export function injectionState({ reader, options }: Context): InjectionState {
  if (options.admission === 'webhook') return webhookState(reader);
  if (options.admission === 'policy') return policyState(reader);
  return no(
    'AdmissionOff',
    'Neither policy nor webhook is enabled: the cluster operator sets admission of pull-secret-injection in the fleet',
  );
}

function no(reason: string, message: string): InjectionState {
  return { status: 'False', reason, message };
}

function policyState(reader: Reader): InjectionState {
  if (policyVersion(reader) === undefined)
    return no(
      'PolicyNotServed',
      'The API server does not serve MutatingAdmissionPolicy (requires Kubernetes 1.36); use the webhook',
    );
  const [policy, binding] = policyObjects(reader);
  if (policy === undefined) return no('PolicyPending', 'The admission policy does not exist yet');
  if (binding === undefined)
    return no('PolicyPending', 'The admission policy has no binding yet, and changes no pod');
  // The policy has no status for its expressions; only a dry run shows whether they work.
  return { status: 'True', reason: 'Policy', message: 'New pods get the names from the admission policy' };
}

function webhookState(reader: Reader): InjectionState {
  const [hook] = hooksIn(reader);
  if (hook === undefined)
    return no(
      'WebhookMissing',
      `MutatingWebhookConfiguration "${WEBHOOK_NAME}" not found; apply the rendered one`,
    );
  if (
    (hook.clientConfig?.caBundle ?? '') === '' &&
    reader.get(WEBHOOK)?.metadata.creationTimestamp !== undefined
  )
    return no(
      'WebhookUntrusted',
      `MutatingWebhookConfiguration "${WEBHOOK_NAME}" has no caBundle: the API server cannot trust the webhook; check its certificate source`,
    );
  if (!reader.serves(ENDPOINT_SLICES))
    return unknown('WebhookNotSeen', 'Cannot check whether the webhook responds: EndpointSlices are unknown');
  const endpoints = reader
    .list(ENDPOINT_SLICES)
    .flatMap((slice) => recordsIn(slice['endpoints']))
    .map((endpoint) => valueAt(endpoint, 'conditions.ready'));
  // An endpoint without the condition counts as ready, as for kube-proxy.
  const ready = endpoints.filter((isReady) => isReady !== false).length;
  if (ready === 0)
    return no(
      'WebhookDown',
      `No pod of Service "${WEBHOOK_NAME}" is ready: new pods are not injected. See the log of Deployment "${WEBHOOK_NAME}"`,
    );
  const message = `New pods get the names from the webhook (${ready} ready)`;
  return { status: 'True', reason: 'Webhook', message };
}

/** Reconciles the pods of one namespace. */
export function reconcilePods(context: Context, name: string): Result {
  const { reader } = context;
  const namespace = reader.get(namespaceRef(name));
  if (namespace === undefined || isTerminating(namespace)) return { retain: 'all' };
  const found = uninjectedPods(context, namespace);
  const previews = found.filter(({ pod }) => isPlanned(pod)).flatMap((one) => previewOf(reader, one));
  const created = found.filter(({ pod }) => !isPlanned(pod));
  if (created.length === 0) return { apply: previews };
  const stuck = created.filter((one) => one.stuck).length;
  const hindrance = hindranceIn(context);
  const said = reportPullStatus(reader, 'hosted', {
    reporter: RECONCILER_NAME,
    about: { apiVersion: 'v1', kind: 'PodList', namespace: name, name },
    conditions: summary(created.length, stuck, hindrance),
    verdicts: created.map((one) => verdictOf(one, hindrance)),
  });
  const sample = (state: 'stuck' | 'running', value: number): Sample => ({
    name: 'pullwright_uninjected_pods',
    help: 'Pods that lack pull secrets of their profiles: stuck without an image, or running',
    value,
    labels: { scope: reader.scope.name, namespace: name, state },
  });
  return {
    apply: [...previews, said.apply],
    status: [said.status],
    metrics: [sample('stuck', stuck), sample('running', created.length - stuck)],
  };
}

/** A running pod needs no action: most new profiles select older pods, such as Pullwright's own agents. */
function summary(pods: number, stuck: number, hindrance: string | undefined): readonly ConditionInput[] {
  const reason = 'PodsUninjected';
  const lack = `${counted(pods, 'pod lacks', 'pods lack')} pull secrets that profiles add`;
  if (stuck === 0)
    return readiness('ready', {
      reason,
      message: `${lack}; none fails to pull, and new pods get them`,
    });
  const remedy =
    hindrance === undefined ? 'recreate the stuck pods' : `new ones would lack them too: ${hindrance}`;
  return readiness('stalled', { reason, message: `${lack}, and ${stuck} cannot pull; ${remedy}` });
}

/** Returns why a new pod would lack the names too. Ignores a pending policy, which will exist shortly. */
function hindranceIn(context: Context): string | undefined {
  const { status, reason, message } = injectionState(context);
  return status === 'False' && reason !== 'PolicyPending' ? message : undefined;
}

type UninjectedPod = ReturnType<typeof uninjectedPods>[number];

/** Active pods of the namespace that lack names of the plan. */
function uninjectedPods(context: Context, namespace: KubeObject) {
  const { reader, options } = context;
  const plan = planIn(context);
  const labels = namespaceLabels(namespace);
  const { name } = namespace.metadata;
  if (plan.profiles.length + plan.sidecarSets.length === 0) return [];
  return reader.list({ role: 'hosted', apiVersion: 'v1', kind: 'Pod', namespace: name }).flatMap((pod) => {
    const { annotations = {}, labels: own = {} } = pod.metadata;
    const seen = { namespace: name, labels: own, annotations, namespaceLabels: labels };
    if (!isActive(pod) || isSkipped(seen, options)) return [];
    const { names, by } = planInjection(plan, seen);
    const has = new Set(listedPullSecrets(pod.spec));
    const missing = names.filter((secret) => !has.has(secret));
    // A new pod would not get these names either; the PullStatus of its ServiceAccount reports them.
    const isLeftOut = accountRefuses(accountOf(reader, pod), [...has, ...missing]);
    if (missing.length === 0 || isLeftOut) return [];
    // Profiles and SidecarSets that would have added them.
    const sources = by.filter((one) => one.names.some((secret) => missing.includes(secret)));
    return [{ pod, missing, by: sources.map(({ source }) => source), stuck: isStuck(pod) }];
  });
}

/** Reports whether the pod may still pull: it is neither completed nor terminating. */
export function isActive(pod: object): boolean {
  const isOver = ['Succeeded', 'Failed'].includes(textOf(valueAt(pod, 'status.phase')));
  return valueAt(pod, 'metadata.deletionTimestamp') === undefined && !isOver;
}

/** Reports whether a container waits for an image that cannot be pulled. */
function isStuck(pod: KubeObject): boolean {
  const statuses = ['containerStatuses', 'initContainerStatuses'].flatMap((list) =>
    recordsIn(valueAt(pod.status, list)),
  );
  return statuses.some(({ state }) =>
    ['ErrImagePull', 'ImagePullBackOff'].includes(textOf(valueAt(state, 'waiting.reason'))),
  );
}

/** Reports whether the object is from a folder. Such pods preview the result of admission; templates are never changed. */
export function isPlanned(pod: KubeObject): boolean {
  return pod.metadata.creationTimestamp === undefined;
}

function previewOf(reader: Reader, { pod, missing }: UninjectedPod): readonly Apply[] {
  const { namespace, name, uid } = pod.metadata;
  if (uid === undefined || namespace === undefined) return [];
  const listed = listedPullSecrets(pod.spec);
  // The API server copies the ServiceAccount's list into a pod without a list, before any injection.
  const own = listed.length > 0 ? listed : listedPullSecrets(accountOf(reader, pod));
  const merged = new Set([...own, ...missing]);
  return [
    {
      part: { role: 'hosted', apiVersion: 'v1', kind: 'Pod', namespace, name, uid },
      fields: { spec: { imagePullSecrets: Array.from(merged, (secret) => ({ name: secret })) } },
    },
  ];
}

function accountOf(reader: Reader, { metadata, spec }: KubeObject): KubeObject | undefined {
  const name = textOf(valueAt(spec, 'serviceAccountName')) || 'default';
  return reader.get({ ...SERVICE_ACCOUNT, namespace: metadata.namespace ?? '', name });
}

function verdictOf({ pod, missing, by, stuck }: UninjectedPod, hindrance: string | undefined): EntryStatus {
  const remedy =
    stuck && hindrance !== undefined ? `a new one would lack them too: ${hindrance}` : recreation(pod);
  return {
    subject: `pod/${pod.metadata.name}`,
    verdict: stuck ? 'Rejected' : 'Warning',
    reason: stuck ? 'StuckUninjected' : 'Uninjected',
    message: `lacks ${missing.join(', ')} from ${by.join(', ')}: it was created before them, or while injection was off; ${remedy}`,
  };
}

// Labels for a dry-run pod that match a selector.

/** Returns the minimal labels that meet all requirements; undefined if no labels can. Never throws. */
function exampleLabels(requirements: readonly LabelRequirement[]): Labels | undefined {
  const byKey = Map.groupBy(requirements, ({ key }) => key);
  const labels: Record<string, string> = {};
  for (const [key, own] of byKey) {
    // NotIn and DoesNotExist match without the label.
    if (selects(own, {})) continue;
    const value = candidates(own).find((one) => selects(own, { [key]: one }));
    if (value === undefined) return undefined;
    labels[key] = value;
  }
  return labels;
}

/** Candidate values for a label: those of the first `In` requirement, else a value that no requirement lists. */
function candidates(requirements: readonly LabelRequirement[]): readonly string[] {
  const [asked] = requirements.filter(({ operator }) => operator === 'In');
  if (asked !== undefined) return asked.values ?? [];
  const excluded = new Set(requirements.flatMap(({ values = [] }) => values));
  let other = 'x';
  while (excluded.has(other)) other += 'x';
  return [other];
}

// A server-side dry run tests whether new pods get the names of a profile or a SidecarSet. The pod is in the first suitable
// namespace, has matching labels and minimal resources, and meets every Pod Security Standard.

/** The dry-run requests, and the result if known. */
export interface TriedPod {
  readonly tried: InjectionState | undefined;
  readonly trials: NonNullable<Result['dryRuns']>;
}

/** Parameters of a dry run: the pod's labels, the expected names, and a predicate for the namespace. */
interface Attempt {
  readonly labels: Labels | undefined;
  readonly wants: readonly string[];
  readonly isMeant: (namespaceLabels: Labels) => boolean;
}

/** Dry-runs a pod of a profile, unless the observed state already shows that names are not injected. */
export function tryPods(context: Context, profile: PullSecretProfile, object: KubeObject): TriedPod {
  const { selector, namespaceSelector, secrets } = profile;
  const attempt = {
    labels: exampleLabels(selector),
    wants: secrets.map((secret) => secret.name),
    isMeant: (labels: Labels) => selects(namespaceSelector, labels),
  };
  return tryAttempt(context, attempt, before(object, 'Injecting'));
}

/**
 * The same for a SidecarSet with its pin applied, reported in its `Ready`. No dry run if another set replaces this one, or no set
 * has a container.
 */
export function trySet(context: Context, set: SidecarSet, object: KubeObject): TriedPod {
  const { name, imagePullSecrets, selector, only } = set;
  const plan = planIn(context);
  const requirements = [
    ...(selector.ok ? selector.requirements : []),
    ...(only?.meeting === true ? only.requirements : []),
  ];
  const labels = selector.ok ? exampleLabels(requirements) : undefined;
  const attempt = {
    labels,
    wants: imagePullSecrets.filter((secret) => secret !== ''),
    isMeant: (namespaceLabels: Labels) =>
      planInjection(plan, { labels: labels ?? {}, namespaceLabels }).by.some(
        ({ source }) => source === `sidecarset/${name}`,
      ),
  };
  return tryAttempt(context, attempt, before(object, 'Ready'));
}

/** @param earlier result of an earlier process, valid until this process has one */
function tryAttempt(context: Context, attempt: Attempt, earlier: InjectionState | undefined): TriedPod {
  const { reader, options } = context;
  const state = injectionState(context);
  if (state.status !== 'True') return { tried: undefined, trials: [] };
  const pending = earlier ?? unknown('NotTriedYet', 'A dry run is pending');
  // Until the webhook's entries are up to date, a dry run proves nothing.
  const isWebhook = options.admission === 'webhook';
  if (isWebhook && !isMirrored(context)) return { tried: pending, trials: [] };
  const trial = trialOf(context, attempt);
  if (trial === undefined)
    return {
      tried: unknown('NothingToTry', 'No selected namespace allows injection: no dry run is possible'),
      trials: [],
    };
  const where = `in namespace "${trial.pod.metadata.namespace}"`;
  const answer = reader.dryRun(trial);
  const trials = [trial];
  if (answer === undefined) return { tried: pending, trials };
  if (!answer.ok)
    return { tried: unknown('NotTried', `Dry run of a pod failed ${where}: ${answer.reason}`), trials };
  if (answer.lacks.length === 0)
    return { tried: { ...state, message: `${state.message}: dry run passed ${where}` }, trials };
  const certificate = isWebhook
    ? 'that the caBundle signed its certificate for the Service name, that the API server reaches it, and '
    : '';
  const message = `A dry-run pod ${where} lacks ${answer.lacks.join(', ')}: check ${certificate}what else mutates pods at admission`;
  return { tried: no('NotInjected', message), trials };
}

/** Results expire for the webhook: only a new dry run shows a replaced certificate or a blocked connection. */
const WEBHOOK_LASTS_MS = 600_000;

/** A dry run in the first suitable namespace; undefined if there is none, or no labels match the selector. */
function trialOf({ reader, options }: Context, { labels, wants, isMeant }: Attempt) {
  if (labels === undefined) return undefined;
  const found = reader.list({ role: 'hosted', apiVersion: 'v1', kind: 'Namespace' }).find((object) => {
    const { name } = object.metadata;
    const own = namespaceLabels(object);
    const pod = { namespace: name, labels, annotations: {}, namespaceLabels: own };
    return (
      !isSkipped(pod, options) &&
      !isTerminating(object) &&
      isMeant(own) &&
      !accountRefuses(reader.get({ ...SERVICE_ACCOUNT, namespace: name, name: 'default' }), wants)
    );
  });
  if (found === undefined) return undefined;
  const isWebhook = options.admission === 'webhook';
  return {
    role: 'hosted' as const,
    pod: podIn(found.metadata.name, labels),
    wants,
    // Cache key: the object that injects. Changes of this profile change the pod or the names; those of others do not matter.
    change: isWebhook
      ? renderedHook(reader)
      : policyObjects(reader)
          .map((object) => String(object?.metadata.uid))
          .join(' '),
    ...(isWebhook ? { lastsMs: WEBHOOK_LASTS_MS } : {}),
  };
}

/** Meets the `restricted` Pod Security Standard. */
function podIn(namespace: string, labels: Labels): KubeObject {
  const least = { cpu: '1m', memory: '1Mi' };
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'pullwright-trial', namespace, labels },
    spec: {
      automountServiceAccountToken: false,
      restartPolicy: 'Never',
      securityContext: { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } },
      containers: [
        {
          name: 'trial',
          image: 'registry.invalid/pullwright/trial:never-run',
          resources: { requests: least, limits: least },
          securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } },
        },
      ],
    },
  };
}

function unknown(reason: string, message: string): InjectionState {
  return { status: 'Unknown', reason, message };
}

/** Successful result of an earlier process for the same generation, from the status. */
function before(object: KubeObject, said: 'Injecting' | 'Ready'): InjectionState | undefined {
  const found = conditionIn(object, said);
  const { observedGeneration } = recordOf(object.status);
  if (found?.status !== 'True' || observedGeneration !== object.metadata.generation) return undefined;
  return { status: 'True', reason: found.reason, message: found.message };
}
