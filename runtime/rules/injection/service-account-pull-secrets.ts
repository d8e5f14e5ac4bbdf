/**
 * What the API server makes of a pod's `imagePullSecrets` when injection is at work.
 *
 * Source of the rule: the ServiceAccount admission plugin of kube-apiserver 1.36. It runs before mutating policies and
 * webhooks, copies the account's list only into a pod that has none, and validates after all mutation.
 */
import { type LocalObjectReference, mergeImagePullSecrets } from './image-pull-secrets.ts';

export const ENFORCE_MOUNTABLE_SECRETS = 'kubernetes.io/enforce-mountable-secrets';

/** A ServiceAccount, as far as pull secrets go. */
export interface PullSecretAccount {
  readonly name: string;
  readonly imagePullSecrets: readonly LocalObjectReference[];
  /** The account carries `kubernetes.io/enforce-mountable-secrets=true`. */
  readonly enforceMountable: boolean;
}

/** The pod's list as stored, or why the pod is refused. */
export type AdmittedPullSecrets =
  | { readonly ok: true; readonly imagePullSecrets: readonly string[]; readonly added: readonly string[] }
  | { readonly ok: false; readonly error: string };

/** The list that injection starts from: the pod's own, or the account's when the pod has none. */
export function startingPullSecrets(
  pod: readonly LocalObjectReference[],
  account: PullSecretAccount | undefined,
): readonly LocalObjectReference[] {
  return pod.length > 0 ? pod : (account?.imagePullSecrets ?? []);
}

/**
 * Follows a pod through admission. `injected` empty: nothing is injected and the pod's list stays as it is.
 *
 * @example
 * ```ts
 * import { admitPullSecrets } from './service-account-pull-secrets.ts';
 * import assert from 'node:assert/strict';
 *
 * const account = { name: 'default', imagePullSecrets: [{ name: 'sa1' }], enforceMountable: false };
 * assert.deepEqual(admitPullSecrets([], account, ['s0']), { ok: true, imagePullSecrets: ['sa1', 's0'], added: ['s0'] });
 * assert.equal(admitPullSecrets([], { ...account, enforceMountable: true }, ['s0']).ok, false);
 * ```
 */
export function admitPullSecrets(
  pod: readonly LocalObjectReference[],
  account: PullSecretAccount | undefined,
  injected: readonly string[],
): AdmittedPullSecrets {
  const start = startingPullSecrets(pod, account);
  const { merged, added } = mergeImagePullSecrets(start, injected);
  const names = injected.length === 0 ? start.map((reference) => reference.name ?? '') : merged;
  const refused = account?.enforceMountable === true ? unlisted(names, account) : undefined;
  return refused === undefined ? { ok: true, imagePullSecrets: names, added } : { ok: false, error: refused };
}

/** Whether the account would refuse a pod that names one of `names`. */
export function accountRefuses(account: PullSecretAccount, names: readonly string[]): boolean {
  return account.enforceMountable && unlisted(names, account) !== undefined;
}

function unlisted(
  names: readonly string[],
  { name, imagePullSecrets }: PullSecretAccount,
): string | undefined {
  const listed = new Set(imagePullSecrets.map((reference) => reference.name ?? ''));
  const at = names.findIndex((secret) => !listed.has(secret));
  if (at < 0) return undefined;
  return `imagePullSecrets[${at}].name="${names[at]}" is not allowed because service account ${name} does not reference that imagePullSecret`;
}
