/** The status of one profile: whether it can be read, whether pods get its names, how many namespaces hold its Secrets. */
import type { Outcome, Ref, Sample, World } from '../../controller/contract.ts';
import { PROFILE_API_VERSION, PROFILE_KIND, type PullSecretProfile } from '../../rules/injection/profile.ts';
import { INJECTION_POLICY_NAME } from '../../rules/injection/profile-policy.ts';
import {
  type Condition,
  type ConditionInput,
  nextConditions,
  readiness,
} from '../../rules/kubernetes/conditions.ts';
import type { KubeObject } from '../../rules/kubernetes/object.ts';
import type { InjectionOptions } from '../options.ts';
import { annotatedGrant } from './consent.ts';
import { secretRef, sourceName } from './names.ts';
import { policyVersion } from './policy-plan.ts';
import { type Count, countNamespaces } from './profile-count.ts';
import { profileOf } from './view.ts';

/** Copies are on their way: counted again after this long. */
const COUNT_AGAIN_MS = 1000;
/** Everything is well: counted again after this long, for what no event tells. */
const RECOUNT_MS = 10_000;

/** The profile object. */
export function profileRef(name: string): Ref {
  return { role: 'hosted', apiVersion: PROFILE_API_VERSION, kind: PROFILE_KIND, name };
}

/** What should be true of the status of a profile. */
export function reconcileProfile(world: World, name: string, options: InjectionOptions): Outcome {
  const object = world.get(profileRef(name));
  if (object === undefined) return {};
  const read = profileOf(object);
  if (!read.ok) {
    const message = read.problems.join('; ');
    return statusOf(world, object, { conditions: stalled(object, 'Invalid', message) });
  }
  const count = countNamespaces(world, read.profile, options);
  const injecting = injectionOf(world, read.profile, options);
  const summary = summaryOf(object, read.profile, count, injecting);
  const sample = (state: 'selected' | 'current', value: number): Sample =>
    namespacesSample({ scope: world.scope.name, profile: name, state }, value);
  const settled = summary.some((condition) => condition.type === 'Ready' && condition.status === 'True');
  return {
    ...statusOf(world, object, {
      conditions: [...summary, injecting, ...grantConditions(world, read.profile, options)],
      namespaces: { selected: count.selected, current: count.current },
      copies: read.profile.distributes ? `${count.current}/${count.selected}` : '-',
    }),
    metrics: [
      sample('selected', count.selected),
      // One that only injects brings nothing, and is behind with nothing.
      ...(read.profile.distributes ? [sample('current', count.current)] : []),
    ],
    requeueAfterMs: settled ? RECOUNT_MS : COUNT_AGAIN_MS,
  };
}

function namespacesSample(labels: Readonly<Record<string, string>>, value: number): Sample {
  const help = 'Namespaces that a profile selects, and those of them that hold everything that it brings';
  return { name: 'pullwright_profile_namespaces', help, value, labels };
}

function summaryOf(
  object: KubeObject,
  profile: PullSecretProfile,
  count: Count,
  injecting: ConditionInput,
): readonly ConditionInput[] {
  const generation = generationOf(object);
  if (profile.suspended)
    return stalled(object, 'Suspended', 'spec.suspend is set: nothing is injected or brought up to date');
  const [trouble] = count.troubles;
  if (trouble !== undefined) {
    const [reason, { message, count: namespaces }] = trouble;
    return stalled(object, reason, `${message} (${namespaces} namespaces)`);
  }
  if (injecting.status === 'False' && profile.injects && injecting.reason !== 'PolicyPending')
    return stalled(object, injecting.reason, injecting.message);
  const ready = { reason: 'Current', message: readyText(profile, count) };
  const behind = profile.distributes && count.current < count.selected;
  const progressing = {
    reason: 'Distributing',
    // A Secret of another type is not among what is read; the API server tells of it when the copy is to be made.
    message: `${count.current} of ${count.selected} namespaces are up to date; next is "${count.behind ?? ''}", unless a Secret of another type is in the way there`,
  };
  const pending = { reason: injecting.reason, message: injecting.message };
  if (behind) return readiness({ ...generation, ready, progressing });
  return readiness({
    ...generation,
    ready,
    ...(injecting.reason === 'PolicyPending' ? { progressing: pending } : {}),
  });
}

function readyText({ distributes }: PullSecretProfile, { selected }: Count): string {
  return distributes ? `All ${selected} namespaces hold the Secrets` : `${selected} namespaces are selected`;
}

/** Whether new pods get the names, and through whom. */
function injectionOf(world: World, profile: PullSecretProfile, options: InjectionOptions): ConditionInput {
  const condition = (status: 'True' | 'False', reason: string, message: string): ConditionInput => ({
    type: 'Injecting',
    status,
    reason,
    message,
  });
  if (!profile.injects) return condition('False', 'NotWanted', 'spec.mode is Distribute');
  if (profile.suspended) return condition('False', 'Suspended', 'spec.suspend is set');
  if (options.admission === 'webhook')
    return condition('True', 'Webhook', 'New pods get the names from the webhook');
  if (options.admission === 'none')
    return condition('False', 'AdmissionOff', 'Neither policy nor webhook is switched on; set admission');
  const apiVersion = policyVersion(world);
  if (apiVersion === undefined)
    return condition(
      'False',
      'PolicyNotServed',
      'The cluster serves no MutatingAdmissionPolicy (Kubernetes 1.36 does); use the webhook',
    );
  const policy = world.get({
    role: 'hosted',
    apiVersion,
    kind: 'MutatingAdmissionPolicy',
    name: INJECTION_POLICY_NAME,
  });
  return policy === undefined
    ? condition('False', 'PolicyPending', 'The admission policy is not there yet')
    : condition('True', 'Policy', 'New pods get the names from the admission policy');
}

/** Clauses of grants that grant nothing: the owner of the source should know. */
function grantConditions(
  world: World,
  profile: PullSecretProfile,
  options: InjectionOptions,
): readonly ConditionInput[] {
  const problems = profile.secrets.flatMap(({ sources }) =>
    sources.flatMap((source) => {
      const object = world.get(secretRef(source.namespace, source.name));
      const found = object === undefined ? [] : annotatedGrant(object, options.trustedLabelKeys).problems;
      return found.map((problem) => `Secret "${sourceName(source)}": ${problem}`);
    }),
  );
  if (problems.length === 0) return [];
  return [{ type: 'GrantsReadable', status: 'False', reason: 'GrantInvalid', message: problems.join('; ') }];
}

function stalled(object: KubeObject, reason: string, message: string): readonly ConditionInput[] {
  return readiness({ ...generationOf(object), ready: { reason, message }, stalled: { reason, message } });
}

function generationOf(object: KubeObject): { readonly observedGeneration?: number } {
  const { generation } = object.metadata;
  return generation === undefined ? {} : { observedGeneration: generation };
}

function statusOf(
  world: World,
  object: KubeObject,
  {
    conditions,
    ...rest
  }: { readonly conditions: readonly ConditionInput[]; readonly [field: string]: unknown },
): Outcome {
  const before = (object.status as { conditions?: readonly Condition[] } | undefined)?.conditions ?? [];
  return {
    status: [
      {
        ref: profileRef(object.metadata.name),
        status: {
          ...generationOf(object),
          ...rest,
          conditions: nextConditions(before, conditions, world.now),
        },
      },
    ],
  };
}
