/**
 * What the API server makes of a pod's `imagePullSecrets` when injection is at work.
 *
 * Source of the rule: the ServiceAccount admission plugin of kube-apiserver 1.36. It runs before mutating policies and
 * webhooks, copies the account's list only into a pod that has none, and validates after all mutation.
 */
import type { LocalObjectReference } from './plan.ts';

export const ENFORCE_MOUNTABLE_SECRETS = 'kubernetes.io/enforce-mountable-secrets';

/** A ServiceAccount, as far as pull secrets go. */
export interface PullSecretAccount {
  readonly name: string;
  readonly imagePullSecrets: readonly LocalObjectReference[];
  /** The account carries `kubernetes.io/enforce-mountable-secrets=true`. */
  readonly enforceMountable: boolean;
}

/** An account that carries `kubernetes.io/enforce-mountable-secrets=true`, and the names that it lists. */
export interface EnforcingAccount {
  readonly namespace: string;
  readonly name: string;
  readonly listed: readonly string[];
}

/** Whether the account would refuse a pod that names one of `names`. */
export function accountRefuses(
  { enforceMountable, imagePullSecrets }: PullSecretAccount,
  names: readonly string[],
): boolean {
  const listed = new Set(imagePullSecrets.map((reference) => reference.name ?? ''));
  return enforceMountable && names.some((name) => !listed.has(name));
}
