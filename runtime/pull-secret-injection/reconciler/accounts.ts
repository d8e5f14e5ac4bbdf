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

/** The names that an account, or the spec of a pod, lists. */
export function listedBy(lists: Readonly<Record<string, unknown>> | undefined): readonly string[] {
  const references = lists?.['imagePullSecrets'];
  if (!Array.isArray(references)) return [];
  return (references as readonly ({ name?: string } | null)[]).map((reference) => reference?.name ?? '');
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
  const account = reader.get({ ...KIND, namespace, name });
  return account !== undefined && accountRefuses(account, names);
}

/** Whether the account would refuse a pod that names one of `names`. */
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

/** The accounts that enforce mountable secrets, by namespace and name. Looked for once until an account changes. */
export function enforcingIn(reader: Reader): readonly EnforcingAccount[] {
  return enforcing(reader.list(KIND));
}

/** Whether there is anything to look at in the accounts of the namespace. */
export function accountsMatter(reader: Reader, namespace: string): boolean {
  return reader.list({ ...KIND, namespace }).some(isEnforcing);
}

/** What an account says that decides about its pods; empty for nearly all of them. */
export function accountSays(object: KubeObject | undefined): string {
  return object === undefined || !isEnforcing(object) ? '' : JSON.stringify(object['imagePullSecrets'] ?? []);
}

/** Whether the profile adds names to pods of the namespace, whatever labels those have. */
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

/** Names of the profile that pods of an enforcing account would be refused for. */
function withheld({ listed }: EnforcingAccount, { secrets }: PullSecretProfile): readonly string[] {
  return secrets.map(({ name }) => name).filter((name) => !listed.includes(name));
}

/** What should be true of the accounts of one namespace: those whose pods get nothing have a PullStatus beside them. */
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

/** The report of a profile on accounts whose pods it skips. Their owners get a PullStatus: the platform cannot fix it. */
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
