/** ServiceAccounts that enforce mountable secrets: their pods are left out, and their owners and the profiles say so. */

import { type ConditionInput, readiness } from '../../core/kubernetes/conditions.ts';
import { selects } from '../../core/kubernetes/label-selector.ts';
import type { KubeObject } from '../../core/kubernetes/object.ts';
import { counted } from '../../core/text.ts';
import type { Apply, Reader, Result, StatusPatch } from '../../engine/contract.ts';
import { reportPullStatus } from '../../engine/pull-status.ts';
import type { PullSecretProfile } from '../kinds/profile.ts';
import { namespaceRef } from '../names.ts';
import { exemptionOf, type InjectionOptions, RECONCILER_NAME } from '../options.ts';
import { accountRefuses, ENFORCE_MOUNTABLE_SECRETS, type EnforcingAccount } from '../plan/accounts.ts';
import type { LocalObjectReference } from '../plan/plan.ts';
import { isTerminating, namespaceLabels, profilesIn } from './view.ts';

const KIND = { role: 'hosted', apiVersion: 'v1', kind: 'ServiceAccount' } as const;

function accountsIn(reader: Reader, namespace?: string): readonly KubeObject[] {
  return reader.list({ ...KIND, ...(namespace === undefined ? {} : { namespace }) });
}

/** The references that an account lists. */
function referencesOf(account: KubeObject): readonly LocalObjectReference[] {
  const references = account['imagePullSecrets'];
  return Array.isArray(references) ? (references as readonly LocalObjectReference[]) : [];
}

/** Whether pods of the account are refused when they name what it does not list. */
function isEnforcing({ metadata }: KubeObject): boolean {
  return metadata.annotations?.[ENFORCE_MOUNTABLE_SECRETS] === 'true';
}

/** Whether a pod of the account that names these would be refused. */
export function refusesNames(
  reader: Reader,
  namespace: string,
  name: string,
  names: readonly string[],
): boolean {
  const object = reader.get({ ...KIND, namespace, name });
  if (object === undefined || !isEnforcing(object)) return false;
  return accountRefuses({ name, imagePullSecrets: referencesOf(object), enforceMountable: true }, names);
}

const enforcing = new WeakMap<readonly KubeObject[], readonly EnforcingAccount[]>();

/** The accounts that enforce mountable secrets, by namespace and name. Looked for once until an account changes. */
export function enforcingIn(reader: Reader): readonly EnforcingAccount[] {
  const objects = accountsIn(reader);
  const known = enforcing.get(objects);
  if (known !== undefined) return known;
  const found = objects.filter(isEnforcing).map((object) => ({
    namespace: object.metadata.namespace ?? '',
    name: object.metadata.name,
    listed: referencesOf(object).map(({ name }) => name ?? ''),
  }));
  enforcing.set(objects, found);
  return found;
}

/** Whether there is anything to look at in the accounts of the namespace. */
export function accountsMatter(reader: Reader, namespace: string): boolean {
  return accountsIn(reader, namespace).some(isEnforcing);
}

/** What an account says that concerns anybody here; empty for nearly all of them. */
export function accountSays(object: KubeObject | undefined): string {
  return object === undefined || !isEnforcing(object) ? '' : JSON.stringify(object['imagePullSecrets'] ?? []);
}

/** What should be true of the accounts of one namespace. */
export function reconcileAccounts(reader: Reader, name: string, options: InjectionOptions): Result {
  const namespace = reader.get(namespaceRef(name));
  if (namespace === undefined || isTerminating(namespace)) return { retain: 'all' };
  const accounts = accountsIn(reader, name).filter(
    ({ metadata }) => metadata.deletionTimestamp === undefined,
  );
  const profiles = servingPods(reader, namespace, options);
  const reports = accounts.flatMap((account) => reportOf(reader, account, profiles, options));
  return {
    apply: reports.map(({ apply }) => apply),
    status: reports.map(({ status }) => status),
  };
}

/** Profiles that add names to pods of the namespace, whatever labels those have. */
function servingPods(
  reader: Reader,
  namespace: KubeObject,
  options: InjectionOptions,
): readonly PullSecretProfile[] {
  const labels = namespaceLabels(namespace);
  const pod = { namespace: namespace.metadata.name, labels: {}, annotations: {}, namespaceLabels: labels };
  if (exemptionOf(pod, options) !== undefined) return [];
  return profilesIn(reader).filter(
    (profile) => profile.injects && !profile.suspended && selects(profile.namespaceSelector, labels),
  );
}

/** Names that pods of an enforcing account would be refused for, with the profile that would add each. */
function withheld(
  account: EnforcingAccount,
  profiles: readonly PullSecretProfile[],
): readonly { readonly profile: string; readonly name: string }[] {
  return profiles.flatMap(({ name: profile, secrets }) =>
    secrets.flatMap(({ name }) => (account.listed.includes(name) ? [] : [{ profile, name }])),
  );
}

function reportOf(
  reader: Reader,
  account: KubeObject,
  profiles: readonly PullSecretProfile[],
  options: InjectionOptions,
): readonly { readonly apply: Apply; readonly status: StatusPatch }[] {
  const { name, namespace = '' } = account.metadata;
  const found = enforcingIn(reader).find((one) => one.namespace === namespace && one.name === name);
  const names = found === undefined || options.admission === 'none' ? [] : withheld(found, profiles);
  if (names.length === 0) return [];
  const reason = 'MountableSecretsEnforced';
  const message = `ServiceAccount "${name}" enforces mountable secrets: its pods get nothing while it does not list what profiles add; list it in imagePullSecrets, or take the annotation ${ENFORCE_MOUNTABLE_SECRETS} off`;
  const said = reportPullStatus(reader, 'hosted', {
    reporter: RECONCILER_NAME,
    about: { apiVersion: 'v1', kind: account.kind, namespace, name },
    conditions: readiness('stalled', { reason, message }),
    verdicts: names.map((one) => ({
      subject: one.name,
      verdict: 'Warning',
      reason,
      message: `is not given to pods of ServiceAccount "${name}", which does not list it (profile "${one.profile}")`,
    })),
  });
  return [said];
}

/** What a profile says of accounts whose pods it leaves out. Their owners are told in a PullStatus: it is no trouble of the platform's. */
export function accountConditions(
  reader: Reader,
  profile: PullSecretProfile,
  options: InjectionOptions,
): readonly ConditionInput[] {
  if (!profile.injects || profile.suspended || options.admission === 'none') return [];
  const found = enforcingIn(reader).filter(
    (account) =>
      withheld(account, [profile]).length > 0 && isServed(reader, profile, options, account.namespace),
  );
  if (found.length === 0) return [];
  const names = found.map(({ namespace, name }) => `${namespace}/${name}`);
  const message = `Pods of ${counted(names.length, 'ServiceAccount')} get nothing, because ${names.length === 1 ? 'it enforces' : 'they enforce'} mountable secrets and ${names.length === 1 ? 'does' : 'do'} not list what is added: ${someOf(names)}; their owners list it, or take the annotation off`;
  return [{ type: 'AccountsServed', status: 'False', reason: 'MountableSecretsEnforced', message }];
}

function isServed(
  reader: Reader,
  profile: PullSecretProfile,
  options: InjectionOptions,
  name: string,
): boolean {
  const namespace = reader.get(namespaceRef(name));
  if (namespace === undefined || isTerminating(namespace)) return false;
  const labels = namespaceLabels(namespace);
  const pod = { namespace: name, labels: {}, annotations: {}, namespaceLabels: labels };
  return selects(profile.namespaceSelector, labels) && exemptionOf(pod, options) === undefined;
}

function someOf(names: readonly string[]): string {
  const shown = names.slice(0, 5).map((name) => `"${name}"`);
  return `${shown.join(', ')}${names.length > 5 ? ` and ${names.length - 5} more` : ''}`;
}
