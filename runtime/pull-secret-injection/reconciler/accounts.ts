/** ServiceAccounts that enforce mountable secrets: their pods are skipped, and their owners and the profiles report it. */

import { type ConditionInput, readiness } from '../../core/kubernetes/conditions.ts';
import { selects } from '../../core/kubernetes/label-selector.ts';
import type { KubeObject } from '../../core/kubernetes/object.ts';
import { oncePer } from '../../core/record.ts';
import { counted } from '../../core/text.ts';
import type { Reader, Result } from '../../engine/contract.ts';
import { reportPullStatus } from '../../engine/pull-status.ts';
import type { PullSecretProfile } from '../kinds/profile.ts';
import { namespaceRef } from '../names.ts';
import { exemptionOf, type InjectionOptions, RECONCILER_NAME } from '../options.ts';
import { ENFORCE_MOUNTABLE_SECRETS, type EnforcingAccount } from '../plan/policy.ts';
import { isTerminating, namespaceLabels, namesText, profilesIn } from './view.ts';

const KIND = { role: 'hosted', apiVersion: 'v1', kind: 'ServiceAccount' } as const;

/** The names in `imagePullSecrets` of an account, or of a pod spec. */
export function listedBy(lists: Readonly<Record<string, unknown>> | undefined): readonly string[] {
  const references = lists?.['imagePullSecrets'];
  if (!Array.isArray(references)) return [];
  return (references as readonly ({ name?: string } | null)[]).map((reference) => reference?.name ?? '');
}

/** Reports whether pods of the account are rejected for a name that the account does not list. */
function isEnforcing({ metadata }: KubeObject): boolean {
  return metadata.annotations?.[ENFORCE_MOUNTABLE_SECRETS] === 'true';
}

/** Reports whether a pod of the account with these names would be rejected. */
export function refusesNames(
  reader: Reader,
  namespace: string,
  name: string,
  names: readonly string[],
): boolean {
  const account = reader.get({ ...KIND, namespace, name });
  return account !== undefined && accountRefuses(account, names);
}

/** Reports whether the account would reject a pod with these names. */
export function accountRefuses(account: KubeObject, names: readonly string[]): boolean {
  const listed = new Set(listedBy(account));
  return isEnforcing(account) && names.some((name) => !listed.has(name));
}

const enforcing = oncePer((objects: readonly KubeObject[]): readonly EnforcingAccount[] =>
  objects.filter(isEnforcing).map((account) => ({
    namespace: account.metadata.namespace ?? '',
    name: account.metadata.name,
    listed: listedBy(account),
  })),
);

/** The accounts that enforce mountable secrets. Computed once per change of an account. */
export function enforcingIn(reader: Reader): readonly EnforcingAccount[] {
  return enforcing(reader.list(KIND));
}

/** Reports whether any account of the namespace enforces mountable secrets. */
export function accountsMatter(reader: Reader, namespace: string): boolean {
  return reader.list({ ...KIND, namespace }).some(isEnforcing);
}

/** The names that an enforcing account lists, as text; empty for all other accounts. */
export function accountSays(object: KubeObject | undefined): string {
  return object === undefined || !isEnforcing(object) ? '' : JSON.stringify(object['imagePullSecrets'] ?? []);
}

/** Reports whether the profile adds names to pods of the namespace, regardless of their labels. */
function reaches(
  { injects, suspended, namespaceSelector }: PullSecretProfile,
  namespace: KubeObject | undefined,
  options: InjectionOptions,
): boolean {
  if (namespace === undefined || isTerminating(namespace)) return false;
  if (!injects || suspended || options.admission === 'none') return false;
  const { name } = namespace.metadata;
  const labels = namespaceLabels(namespace);
  const pod = { namespace: name, labels: {}, annotations: {}, namespaceLabels: labels };
  return selects(namespaceSelector, labels) && exemptionOf(pod, options) === undefined;
}

/** Names of the profile for which pods of an enforcing account would be rejected. */
function withheld({ listed }: EnforcingAccount, { secrets }: PullSecretProfile): readonly string[] {
  return secrets.map(({ name }) => name).filter((name) => !listed.includes(name));
}

/** Reconciles the accounts of one namespace: each one whose pods are skipped gets a PullStatus. */
export function reconcileAccounts(reader: Reader, name: string, options: InjectionOptions): Result {
  const namespace = reader.get(namespaceRef(name));
  if (namespace === undefined || isTerminating(namespace)) return { retain: 'all' };
  const profiles = profilesIn(reader).filter((profile) => reaches(profile, namespace, options));
  const reports = enforcingIn(reader)
    .filter((account) => account.namespace === name)
    .flatMap((account) => {
      const reason = 'MountableSecretsEnforced';
      const verdicts = profiles.flatMap((profile) =>
        withheld(account, profile).map((subject) => ({
          subject,
          verdict: 'Warning' as const,
          reason,
          message: `is not given to pods of ServiceAccount "${account.name}", which does not list it (profile "${profile.name}")`,
        })),
      );
      if (verdicts.length === 0) return [];
      const message = `ServiceAccount "${account.name}" enforces mountable secrets: its pods get nothing while it does not list what profiles add; list it in imagePullSecrets, or take the annotation ${ENFORCE_MOUNTABLE_SECRETS} off`;
      const said = reportPullStatus(reader, 'hosted', {
        reporter: RECONCILER_NAME,
        about: { apiVersion: 'v1', kind: 'ServiceAccount', namespace: name, name: account.name },
        conditions: readiness('stalled', { reason, message }),
        verdicts,
      });
      return [said];
    });
  return { apply: reports.map(({ apply }) => apply), status: reports.map(({ status }) => status) };
}

/** The profile's condition on accounts whose pods it skips. Their owners get a PullStatus: the platform cannot fix it. */
export function accountConditions(
  reader: Reader,
  profile: PullSecretProfile,
  options: InjectionOptions,
): readonly ConditionInput[] {
  const names = enforcingIn(reader)
    .filter(
      (account) =>
        withheld(account, profile).length > 0 &&
        reaches(profile, reader.get(namespaceRef(account.namespace)), options),
    )
    .map(({ namespace, name }) => `${namespace}/${name}`);
  if (names.length === 0) return [];
  const enforce = names.length === 1 ? 'it enforces' : 'they enforce';
  const message = `Pods of ${counted(names.length, 'ServiceAccount')} get nothing, because ${enforce} mountable secrets and ${names.length === 1 ? 'does' : 'do'} not list what is added: ${namesText(names)}; their owners list it, or take the annotation off`;
  return [{ type: 'AccountsServed', status: 'False', reason: 'MountableSecretsEnforced', message }];
}
