/** What the webhook makes of a pod that is being created: the same plan that the admission policy is compiled from. */
import type { World } from '../../controller/contract.ts';
import {
  INJECTED_ANNOTATION,
  injectedText,
  type LocalObjectReference,
  mergeImagePullSecrets,
  patchImagePullSecrets,
  patchInjectedText,
  type SetAnnotations,
  type SetPullSecrets,
} from '../../rules/injection/image-pull-secrets.ts';
import {
  type InjectionPlan,
  type PlannedInjection,
  planInjection,
} from '../../rules/injection/profile-plan.ts';
import { INJECTION_POLICY_NAME } from '../../rules/injection/profile-policy.ts';
import type { Labels } from '../../rules/kubernetes/label-selector.ts';
import type { AdmissionRequest } from '../../webhook/admission-review.ts';
import { exemptionOf, type InjectionOptions } from '../options.ts';
import { policyVersion } from '../reconciler/policy-plan.ts';
import { refusesNames } from '../reconciler/service-accounts.ts';

/** The pod as the API server sends it. */
export interface AdmittedPod {
  readonly metadata?: {
    readonly labels?: Labels;
    readonly annotations?: Readonly<Record<string, unknown>>;
    readonly deletionTimestamp?: string;
  };
  readonly spec?: {
    readonly imagePullSecrets?: readonly LocalObjectReference[];
    readonly serviceAccountName?: string;
  };
  readonly status?: { readonly phase?: string };
}

/** Whether a request is for a pod that is being made: nothing else is looked at. */
export function isNewPod({ operation, resource, subResource }: AdmissionRequest): boolean {
  return operation === 'CREATE' && resource.resource === 'pods' && (subResource ?? '') === '';
}

/** A pod that is over, or is going, pulls nothing. */
function isOver({ metadata, status }: AdmittedPod): boolean {
  return (
    metadata?.deletionTimestamp !== undefined || status?.phase === 'Succeeded' || status?.phase === 'Failed'
  );
}

export interface AdmissionInput {
  readonly pod: AdmittedPod;
  readonly namespace: string;
  /** Undefined when the namespace is not known: nothing that looks at its labels matches. */
  readonly namespaceLabels: Labels | undefined;
  readonly plan: InjectionPlan;
  readonly options: InjectionOptions;
}

export interface PodAnswer {
  readonly outcome: 'injected' | 'unchanged' | 'skipped';
  readonly patch: readonly (SetPullSecrets | SetAnnotations)[];
  readonly warnings: readonly string[];
}

const SKIPPED: PodAnswer = { outcome: 'skipped', patch: [], warnings: [] };

/** Whether our admission policy is at work: then the webhook stays out of it, so that a profile is never applied twice. */
export function policyInjects(world: World): boolean {
  const apiVersion = policyVersion(world);
  if (apiVersion === undefined) return false;
  const ref = { role: 'hosted' as const, apiVersion, name: INJECTION_POLICY_NAME };
  return (
    world.get({ ...ref, kind: 'MutatingAdmissionPolicy' }) !== undefined &&
    world.get({ ...ref, kind: 'MutatingAdmissionPolicyBinding' }) !== undefined
  );
}

/** Decides for one pod. */
export function admitPod(world: World, input: AdmissionInput): PodAnswer {
  const { namespace, namespaceLabels, plan, options } = input;
  const { metadata = {} } = input.pod;
  const { labels = {}, annotations = {} } = metadata;
  const seen = { namespace, namespaceLabels, labels, annotations };
  if (isOver(input.pod) || exemptionOf(seen, options) !== undefined) return SKIPPED;
  const planned = planInjection(plan, seen);
  if (planned.names.length === 0) return { ...SKIPPED, outcome: 'unchanged' };
  return inject(world, namespace, input.pod, planned);
}

function inject(
  world: World,
  namespace: string,
  { metadata: { annotations } = {}, spec = {} }: AdmittedPod,
  { names, by }: PlannedInjection,
): PodAnswer {
  const { imagePullSecrets: own = [], serviceAccountName: account = 'default' } = spec;
  const merged = mergeImagePullSecrets(own, names);
  if (refusesNames(world, namespace, account, merged.merged)) {
    const warning = `pull secrets ${merged.added.join(', ')} are not added: service account "${account}" enforces mountable secrets; list them there`;
    return { ...SKIPPED, warnings: merged.added.length === 0 ? [] : [warning] };
  }
  const note = (): SetAnnotations =>
    patchInjectedText(annotations, injectedText(by, merged.added, annotations?.[INJECTED_ANNOTATION]));
  const patch = [...patchImagePullSecrets(own, merged), ...(merged.added.length === 0 ? [] : [note()])];
  return { outcome: patch.length === 0 ? 'unchanged' : 'injected', patch, warnings: [] };
}
