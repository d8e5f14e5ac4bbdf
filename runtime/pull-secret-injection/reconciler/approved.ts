/**
 * What a profile on request gives to pods: a name only where its Secret is, so that a claim which nobody approved gives nothing. The
 * copy that the profile wrote shows the approval, to policy, webhook, audit and preview alike.
 */
import type { World } from '../../controller/contract.ts';
import type { ProfileSecret, PullSecretProfile } from '../../rules/injection/profile.ts';
import type { InjectionPlan } from '../../rules/injection/profile-plan.ts';
import { NAMESPACE_NAME_LABEL } from '../../rules/kubernetes/label-selector.ts';
import type { SecretObject } from '../../rules/kubernetes/object.ts';
import { writerOf } from './claims.ts';
import { secretRef } from './names.ts';

/**
 * The plan with profiles on request narrowed, secret by secret, to the namespaces that hold what was asked for.
 *
 * @param only the one namespace whose pods are looked at: the others are not gone through
 */
export function approvedPlan(world: World, plan: InjectionPlan, only?: string): InjectionPlan {
  if (!plan.profiles.some(({ onRequest }) => onRequest)) return plan;
  return { ...plan, profiles: plan.profiles.flatMap((profile) => approvedParts(world, profile, only)) };
}

function approvedParts(
  world: World,
  profile: PullSecretProfile,
  only: string | undefined,
): readonly PullSecretProfile[] {
  if (!profile.onRequest) return [profile];
  const asking = askingIn(profile).filter((name) => only === undefined || name === only);
  return profile.secrets.flatMap((secret) => {
    const values = asking.filter((namespace) => isBrought(world, profile, secret, namespace));
    const isGiven = { key: NAMESPACE_NAME_LABEL, operator: 'In', values } as const;
    if (values.length === 0) return [];
    return [
      {
        ...profile,
        secrets: [secret],
        namespaceSelector: [...profile.namespaceSelector.slice(0, -1), isGiven],
      },
    ];
  });
}

/** Whether a pod of the namespace may be given the name. What somebody else is to bring, nobody approves. */
export function isBrought(
  world: World,
  profile: PullSecretProfile,
  { name, sources }: ProfileSecret,
  namespace: string,
): boolean {
  if (!profile.distributes || sources.length === 0) return true;
  return writerOf(world.get(secretRef(namespace, name)) as SecretObject | undefined) === profile.name;
}

/** The namespaces that ask: the last requirement of a profile on request, as it was read. */
function askingIn({ namespaceSelector }: PullSecretProfile): readonly string[] {
  return namespaceSelector.at(-1)?.values ?? [];
}
