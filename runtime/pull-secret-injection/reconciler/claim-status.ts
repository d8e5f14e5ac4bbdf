/** The status of one PullSecretClaim: what became of the request, for the owner of the namespace. */
import type { Outcome, Ref, World } from '../../controller/contract.ts';
import { PROFILE_API_VERSION, PROFILE_KIND, type PullSecretProfile } from '../../rules/injection/profile.ts';
import { INJECT_LABEL } from '../../rules/injection/profile-plan.ts';
import {
  CLAIM_API_VERSION,
  CLAIM_KIND,
  type PullSecretClaim,
  readPullSecretClaim,
} from '../../rules/injection/pull-secret-claim.ts';
import {
  type Condition,
  type ConditionInput,
  type ConditionText,
  nextConditions,
  readiness,
  type SummaryRow,
  summarize,
} from '../../rules/kubernetes/conditions.ts';
import type { KubeObject, SecretObject } from '../../rules/kubernetes/object.ts';
import { exemptionOf, type InjectionOptions, isOutside } from '../options.ts';
import { writerOf } from './claims.ts';
import { type Copy, copiesFor } from './copies.ts';
import { type InjectionState, injectionState } from './injecting.ts';
import { namespaceRef } from './names.ts';
import { profileRef } from './profile-status.ts';
import { namesText } from './unread.ts';
import { distributionIn, namespaceLabels, profileOf, profilesIn, serves } from './view.ts';

/** What should be true of the status of a claim. */
export function reconcileClaim(
  world: World,
  namespace: string,
  name: string,
  options: InjectionOptions,
): Outcome {
  const ref: Ref = { role: 'hosted', apiVersion: CLAIM_API_VERSION, kind: CLAIM_KIND, namespace, name };
  const object = world.get(ref);
  if (object === undefined) return {};
  const claim = readPullSecretClaim(object);
  const { generation } = object.metadata;
  const observed = generation === undefined ? {} : { observedGeneration: generation };
  const before = (object.status as { conditions?: readonly Condition[] } | undefined)?.conditions ?? [];
  const { conditions, secrets } = stateOf(world, claim, options, generation);
  return {
    status: [
      { ref, status: { ...observed, secrets, conditions: nextConditions(before, conditions, world.now) } },
    ],
  };
}

interface State {
  readonly conditions: readonly ConditionInput[];
  /** Names of the Secrets that are there. */
  readonly secrets: readonly string[];
}

function stateOf(
  world: World,
  claim: PullSecretClaim,
  options: InjectionOptions,
  generation: number | undefined,
): State {
  const stopped = (said: ConditionText): State => ({
    conditions: readiness('stalled', said, generation),
    secrets: [],
  });
  if (claim.problems.length > 0)
    return stopped({ reason: 'ClaimInvalid', message: claim.problems.join('; ') });
  const profile = profilesIn(world).find(({ name }) => name === claim.profile);
  const refusal = refusalOf(world, claim, profile, options);
  if (refusal !== undefined || profile === undefined)
    return stopped(refusal ?? { reason: 'ProfileMissing', message: '' });
  const namespace = world.get(namespaceRef(claim.namespace));
  const distribution = distributionIn(world, options);
  const copies =
    namespace === undefined
      ? []
      : copiesFor({ world, distribution, namespace, options }).filter(
          ({ distributor }) => distributor === profile.name,
        );
  // The webhook goes by it: only what this profile wrote is what was asked for.
  const secrets = copies
    .filter(({ ref }) => writerOf(world.get(ref) as SecretObject | undefined) === profile.name)
    .map(({ name }) => name);
  const isAwaited = copies.length > 0 && secrets.length === 0;
  const injecting = isAwaited ? NOT_BROUGHT : injectingIn(world, profile, namespace, options);
  return {
    conditions: [
      ...summarize(SUMMARY, { world, profile, copies }, generation),
      ...(profile.injects ? [{ type: 'Injecting', ...injecting }] : []),
    ],
    secrets,
  };
}

const NOT_BROUGHT: InjectionState = {
  status: 'False',
  reason: 'NotBrought',
  message: 'No Secret is here yet: new pods get the names with the Secrets, not before',
};

/** Whether new pods of this namespace get the names, as far as it is not for each pod to say. */
function injectingIn(
  world: World,
  profile: PullSecretProfile,
  namespace: KubeObject | undefined,
  options: InjectionOptions,
): InjectionState {
  if (profile.suspended) return { status: 'False', ...suspendedText(profile) };
  if (namespace === undefined) return injectionState(world, options);
  const { name } = namespace.metadata;
  const pod = { namespace: name, labels: {}, annotations: {}, namespaceLabels: namespaceLabels(namespace) };
  const exempt = exemptionOf(pod, options);
  if (exempt === undefined) return injectionState(world, options);
  const why =
    exempt === 'opted-out'
      ? `has the label ${INJECT_LABEL}: "false"; take it off, or name the Secrets in your pods`
      : 'is left alone by the operator of the cluster; name the Secrets in your pods';
  return { status: 'False', reason: 'PodsLeftAlone', message: `Namespace "${name}" ${why}` };
}

/** Why the profile gives this namespace nothing, whoever would approve it. */
function refusalOf(
  world: World,
  { profile: name, namespace }: PullSecretClaim,
  profile: PullSecretProfile | undefined,
  options: InjectionOptions,
): ConditionText | undefined {
  if (profile === undefined) {
    const exists = world.get(profileRef(name)) !== undefined;
    return exists
      ? {
          reason: 'ProfileInvalid',
          message: `PullSecretProfile "${name}" cannot be read now; its author is told why`,
        }
      : {
          reason: 'ProfileMissing',
          message: `PullSecretProfile "${name}" does not exist; ${offersText(world, namespace, options)}`,
        };
  }
  if (!profile.onRequest)
    return {
      reason: 'NotOnRequest',
      message: `PullSecretProfile "${name}" offers nothing on request: it serves whom it selects without a claim`,
    };
  const object = world.get(namespaceRef(namespace));
  if (object !== undefined && serves(profile, namespaceLabels(object), options)) return undefined;
  const why = isOutside(namespace, options)
    ? 'the fleet does not have pull-secret-injection work in it; ask the operator of the cluster'
    : 'its namespaceSelector does not select it, or it opted out';
  return {
    reason: 'NotOffered',
    message: `PullSecretProfile "${name}" is not offered to namespace "${namespace}": ${why}`,
  };
}

/** Tenants may not list profiles: what is offered to them is all that they are told of. */
function offersText(world: World, namespace: string, options: InjectionOptions): string {
  const object = world.get(namespaceRef(namespace));
  const labels = object === undefined ? {} : namespaceLabels(object);
  const profiles = world.list({ role: 'hosted', apiVersion: PROFILE_API_VERSION, kind: PROFILE_KIND });
  const offered = profiles.flatMap((one) => {
    const read = profileOf(one);
    const isOffered = read.ok && read.profile.onRequest && serves(read.profile, labels, options);
    return isOffered && object !== undefined ? [one.metadata.name] : [];
  });
  return offered.length === 0
    ? 'nothing is offered to this namespace'
    : `offered here: ${namesText(offered)}`;
}

interface ClaimFacts {
  readonly world: World;
  readonly profile: PullSecretProfile;
  readonly copies: readonly Copy[];
}

/** A request that nobody has approved yet waits; every other trouble needs somebody to put it right. */
const SUMMARY: readonly SummaryRow<ClaimFacts>[] = [
  ['stalled', suspended],
  ['progressing', ({ copies }) => only(troubled(copies), (reason) => reason === 'NotGranted')],
  ['stalled', ({ copies }) => troubled(copies)],
  ['progressing', awaited],
  ['ready', brought],
  ['unknown', nothingBrought],
];

function suspended({ profile }: ClaimFacts): ConditionText | undefined {
  return profile.suspended ? suspendedText(profile) : undefined;
}

function suspendedText({ name }: PullSecretProfile): ConditionText {
  const message = `PullSecretProfile "${name}" is suspended: what is here stays, and new pods get no names; ask its author`;
  return { reason: 'Suspended', message };
}

function troubled(copies: readonly Copy[]): ConditionText | undefined {
  return copies.find(({ trouble }) => trouble !== undefined)?.trouble;
}

function only(
  said: ConditionText | undefined,
  wanted: (reason: string) => boolean,
): ConditionText | undefined {
  return said !== undefined && wanted(said.reason) ? said : undefined;
}

function awaited({ world, copies }: ClaimFacts): ConditionText | undefined {
  const next = copies.find(({ ref }) => world.get(ref) === undefined);
  return next === undefined
    ? undefined
    : { reason: 'Distributing', message: `Secret "${next.name}" is on its way` };
}

function brought({ copies }: ClaimFacts): ConditionText | undefined {
  return copies.length === 0
    ? undefined
    : { reason: 'Brought', message: 'Every Secret is in this namespace' };
}

function nothingBrought({ profile }: ClaimFacts): ConditionText {
  return {
    reason: 'NothingBrought',
    message: `PullSecretProfile "${profile.name}" brings no Secret here; somebody else is to bring what it names`,
  };
}
