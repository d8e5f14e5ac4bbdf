/**
 * What a profile on request gives to pods: a name only where its Secret is, so that a claim which nobody approved gives nothing. The
 * copy that the profile wrote shows the approval; to the webhook, which reads no Secret, the status of the claim that says so.
 */
import type { World } from '../../controller/contract.ts';
import type { ProfileSecret, PullSecretProfile } from '../../rules/injection/profile.ts';
import type { InjectionPlan } from '../../rules/injection/profile-plan.ts';
import { readPullSecretClaim } from '../../rules/injection/pull-secret-claim.ts';
import { NAMESPACE_NAME_LABEL } from '../../rules/kubernetes/label-selector.ts';
import type { SecretObject } from '../../rules/kubernetes/object.ts';
import { writerOf } from './claims.ts';
import { secretRef } from './names.ts';
import { claimObjects } from './requests.ts';

/**
 * The plan with profiles on request narrowed, secret by secret, to the namespaces that hold what was asked for.
 *
 * @param only the one namespace whose pods are looked at: the others are not gone through
 */
export function approvedPlan(world: World, plan: InjectionPlan, only?: string): InjectionPlan {
  return narrowedPlan(plan, only, (profile, secret, namespace) =>
    isBrought(world, profile, secret, namespace),
  );
}

/** The same for the pods of one namespace, by what the reconciler said in the status of its claims. */
export function claimedPlan(world: World, plan: InjectionPlan, namespace: string): InjectionPlan {
  return narrowedPlan(plan, namespace, (profile, secret) => {
    if (!isAwaited(profile, secret)) return true;
    return claimObjects(world, namespace).some((object) => {
      const { secrets } = (object.status ?? {}) as { readonly secrets?: unknown };
      const isAbout = readPullSecretClaim(object).profile === profile.name;
      return isAbout && Array.isArray(secrets) && secrets.includes(secret.name);
    });
  });
}

type IsGiven = (profile: PullSecretProfile, secret: ProfileSecret, namespace: string) => boolean;

function narrowedPlan(plan: InjectionPlan, only: string | undefined, isGiven: IsGiven): InjectionPlan {
  if (!plan.profiles.some(({ onRequest }) => onRequest)) return plan;
  return { ...plan, profiles: plan.profiles.flatMap((profile) => approvedParts(profile, only, isGiven)) };
}

function approvedParts(
  profile: PullSecretProfile,
  only: string | undefined,
  isGiven: IsGiven,
): readonly PullSecretProfile[] {
  if (!profile.onRequest) return [profile];
  const asking = askingIn(profile).filter((name) => only === undefined || name === only);
  return profile.secrets.flatMap((secret) => {
    const values = asking.filter((namespace) => isGiven(profile, secret, namespace));
    const holds = { key: NAMESPACE_NAME_LABEL, operator: 'In', values } as const;
    if (values.length === 0) return [];
    return [
      {
        ...profile,
        secrets: [secret],
        namespaceSelector: [...profile.namespaceSelector.slice(0, -1), holds],
      },
    ];
  });
}

/** Whether a pod of the namespace may be given the name. What somebody else is to bring, nobody approves. */
export function isBrought(
  world: World,
  profile: PullSecretProfile,
  secret: ProfileSecret,
  namespace: string,
): boolean {
  const copy = world.get(secretRef(namespace, secret.name)) as SecretObject | undefined;
  return !isAwaited(profile, secret) || writerOf(copy) === profile.name;
}

function isAwaited({ distributes }: PullSecretProfile, { sources }: ProfileSecret): boolean {
  return distributes && sources.length > 0;
}

/** The namespaces that ask: the last requirement of a profile on request, as it was read. */
function askingIn({ namespaceSelector }: PullSecretProfile): readonly string[] {
  return namespaceSelector.at(-1)?.values ?? [];
}
