/**
 * What the API server makes of a pod's `imagePullSecrets` when injection is at work.
 *
 * Source of the rule: the ServiceAccount admission plugin of kube-apiserver 1.36. It runs before mutating policies and
 * webhooks, copies the account's list only into a pod that has none, and validates after all mutation.
 */
import type { LocalObjectReference } from './image-pull-secrets.ts';

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

/** On a ServiceAccount: the names in its list that are ours, separated by `, `. Others' entries are never touched. */
export const ADDED_ANNOTATION = 'pullwright.dev/added-pull-secrets';

/** A list of pull secrets in which some are ours. */
export interface AccountList {
  readonly references: readonly LocalObjectReference[];
  /** What {@link ADDED_ANNOTATION} says. */
  readonly ours: readonly string[];
}

/** Reads {@link ADDED_ANNOTATION}. */
export function readAdded(value: unknown): readonly string[] {
  return typeof value === 'string' ? value.split(', ').filter((name) => name !== '') : [];
}

/**
 * The list as it should be: what is wanted and not there is added at the end, and what was added and is no longer wanted goes. A name
 * that somebody else wrote stays theirs, wanted or not. Undefined when nothing changes.
 *
 * @param wanted names that should be there
 * @example
 * ```ts
 * import { accountListFor } from './service-account-pull-secrets.ts';
 * import assert from 'node:assert/strict';
 *
 * const list = { references: [{ name: 'theirs' }, { name: 'old' }], ours: ['old'] };
 * assert.deepEqual(accountListFor(list, ['theirs', 'reg']), {
 *   references: [{ name: 'theirs' }, { name: 'reg' }],
 *   ours: ['reg'],
 * });
 * assert.equal(accountListFor({ references: [{ name: 'theirs' }], ours: [] }, ['theirs']), undefined);
 * ```
 */
export function accountListFor(
  { references, ours }: AccountList,
  wanted: readonly string[],
): AccountList | undefined {
  const there = new Set(references.map(({ name }) => name ?? ''));
  const wants = new Set(wanted);
  const added = [...wants].filter((name) => !there.has(name));
  const given = new Set(ours.filter((name) => there.has(name) && !wants.has(name)));
  const kept = [...new Set(ours)].filter((name) => wants.has(name) && there.has(name));
  const mine = [...kept, ...added];
  if (added.length === 0 && given.size === 0 && mine.join() === ours.join()) return undefined;
  return {
    references: [
      ...references.filter(({ name }) => !given.has(name ?? '')),
      ...added.map((name) => ({ name })),
    ],
    ours: mine,
  };
}
