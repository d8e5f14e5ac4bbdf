/** The admission policy: compiled from everything that injects, or the one that is there when it cannot be. */
import type { Outcome, World } from '../../controller/contract.ts';
import { PROFILE_API_VERSION, PROFILE_KIND } from '../../rules/injection/profile.ts';
import { compileInjectionPolicy } from '../../rules/injection/profile-policy.ts';
import { excludedNamespaces, type InjectionOptions } from '../options.ts';
import { enforcingIn } from './service-accounts.ts';
import { planIn } from './view.ts';
import { reconcileWebhook } from './webhook-mirror.ts';

const VERSIONS: readonly string[] = [
  'admissionregistration.k8s.io/v1',
  'admissionregistration.k8s.io/v1beta1',
];

/**
 * The version of MutatingAdmissionPolicy that the cluster serves; undefined below 1.36 without the feature gate. Profiles of a
 * folder that no API server has seen say nothing about their cluster: the newest version is shown.
 */
export function policyVersion(world: World): string | undefined {
  const served = VERSIONS.find((apiVersion) =>
    world.serves({ role: 'hosted', apiVersion, kind: 'MutatingAdmissionPolicy' }),
  );
  if (served !== undefined) return served;
  const profiles = world.list({ role: 'hosted', apiVersion: PROFILE_API_VERSION, kind: PROFILE_KIND });
  return profiles.some(({ metadata }) => metadata.creationTimestamp === undefined) ? VERSIONS[0] : undefined;
}

/** What should be true of the policy, or of the webhook's configuration. */
export function reconcilePolicy(world: World, options: InjectionOptions): Outcome {
  if (options.admission === 'webhook') return reconcileWebhook(world, options);
  const apiVersion = policyVersion(world);
  if (options.admission !== 'policy' || apiVersion === undefined) return {};
  const plan = planIn(world, options);
  if (plan.profiles.length + plan.sidecarSets.length === 0) return {};
  const compiled = compileInjectionPolicy(plan, {
    apiVersion,
    excludedNamespaces: excludedNamespaces(options),
    onlyNamespaces: options.namespaces,
    enforcing: enforcingIn(world),
  });
  if (!compiled.ok) {
    return {
      keep: 'all',
      problems: [{ disposition: 'terminal', code: 'PolicyTooLarge', message: compiled.problem }],
    };
  }
  return {
    apply: [
      { role: 'hosted', object: compiled.policy },
      { role: 'hosted', object: compiled.binding },
    ],
    metrics: [
      {
        name: 'pullwright_injection_policy_characters',
        help: 'Characters of CEL in the injection policy',
        value: compiled.size,
        labels: { scope: world.scope.name },
      },
    ],
  };
}
