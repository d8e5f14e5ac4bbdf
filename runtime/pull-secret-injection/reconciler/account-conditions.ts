/** What a profile says of ServiceAccounts: whose pods it leaves out, and who does not list its names yet. */
import type { Problem, World } from '../../controller/contract.ts';
import type { PullSecretProfile } from '../../rules/injection/profile.ts';
import type { ConditionInput, ConditionText } from '../../rules/kubernetes/conditions.ts';
import { type Labels, selects } from '../../rules/kubernetes/label-selector.ts';
import { counted } from '../../rules/text/counted.ts';
import { exemptionOf, type InjectionOptions } from '../options.ts';
import { isBrought } from './approved.ts';
import { namespaceRef } from './names.ts';
import { enforcingIn, referencesOf, withheld } from './service-accounts.ts';
import { isTerminating, namespaceLabels } from './view.ts';

/** Both conditions, each only where there is something to say. */
export function accountConditions(
  world: World,
  profile: PullSecretProfile,
  options: InjectionOptions,
): readonly ConditionInput[] {
  if (!profile.injects || profile.suspended) return [];
  return [...leftOut(world, profile, options), ...listed(world, profile, options)];
}

const LISTING = 'Listing';
/** What the owners of accounts do about it. */
const THEIRS: readonly string[] = ['MountableSecretsEnforced', 'ManagedElsewhere'];

/** Somebody of the platform must act: the lists are not allowed, or may not be written. */
export function isPlatforms({ status, reason }: ConditionInput): boolean {
  return status === 'False' && reason !== LISTING && !THEIRS.includes(reason);
}

/** Their owners must act. */
export function isTenants({ status, reason }: ConditionInput): boolean {
  return status === 'False' && THEIRS.includes(reason);
}

/** The owners of these accounts are told in a PullStatus: it is no trouble of the platform's. */
function leftOut(
  world: World,
  profile: PullSecretProfile,
  options: InjectionOptions,
): readonly ConditionInput[] {
  if (options.admission === 'none') return [];
  const found = enforcingIn(world).filter(
    (account) =>
      withheld(account, [profile]).length > 0 && isServed(world, profile, options, account.namespace),
  );
  if (found.length === 0) return [];
  const names = found.map(({ namespace, name }) => `${namespace}/${name}`);
  const message = `Pods of ${counted(names.length, 'ServiceAccount')} get nothing, because ${names.length === 1 ? 'it enforces' : 'they enforce'} mountable secrets and ${names.length === 1 ? 'does' : 'do'} not list what is added: ${someOf(names)}; their owners list it, or take the annotation off`;
  return [{ type: 'AccountsServed', status: 'False', reason: 'MountableSecretsEnforced', message }];
}

function isServed(
  world: World,
  profile: PullSecretProfile,
  options: InjectionOptions,
  name: string,
): boolean {
  const namespace = world.get(namespaceRef(name));
  if (namespace === undefined || isTerminating(namespace)) return false;
  const labels: Labels = namespaceLabels(namespace);
  const pod = { namespace: name, labels: {}, annotations: {}, namespaceLabels: labels };
  if (!selects(profile.namespaceSelector, labels) || exemptionOf(pod, options) !== undefined) return false;
  return !profile.onRequest || profile.secrets.some((secret) => isBrought(world, profile, secret, name));
}

/** Only profiles that name accounts go through their namespaces. */
function listed(
  world: World,
  profile: PullSecretProfile,
  options: InjectionOptions,
): readonly ConditionInput[] {
  const { serviceAccounts, secrets } = profile;
  const type = 'AccountsListed';
  if (serviceAccounts.length === 0) return [];
  if (!options.serviceAccounts)
    return [
      {
        type,
        status: 'False',
        reason: 'NotAllowed',
        message:
          'spec.serviceAccounts asks for names in ServiceAccounts, which the operator of the cluster does not allow; set serviceAccounts: true for the system',
      },
    ];
  const lacking = world
    .list({ role: 'hosted', apiVersion: 'v1', kind: 'ServiceAccount' })
    .filter(({ metadata: { name, namespace = '' } }) => {
      return serviceAccounts.includes(name) && isServed(world, profile, options, namespace);
    })
    .filter((account) => {
      const has = new Set(referencesOf(account).map(({ name }) => name));
      const { namespace = '' } = account.metadata;
      return secrets.some(
        (secret) =>
          !has.has(secret.name) && (!profile.onRequest || isBrought(world, profile, secret, namespace)),
      );
    })
    .map(({ metadata: { namespace = '', name } }) => ({
      name: `${namespace}/${name}`,
      refusal: world.refusal({ role: 'hosted', apiVersion: 'v1', kind: 'ServiceAccount', namespace, name }),
    }));
  if (lacking.length === 0)
    return [{ type, status: 'True', reason: 'Listed', message: 'The chosen ServiceAccounts list the names' }];
  const names = lacking.map(({ name }) => name);
  // An account is always somebody else's: that alone is said of it over a folder, and refuses no patch.
  const refusal = lacking
    .map(({ refusal }) => refusal)
    .find((one) => one !== undefined && one.code !== 'ForeignObject');
  if (refusal !== undefined) return [{ type, status: 'False', ...refusedText(refusal, names) }];
  const message = `${counted(lacking.length, 'ServiceAccount')} ${lacking.length === 1 ? 'does' : 'do'} not list the names yet: ${someOf(names)}`;
  return [{ type, status: 'False', reason: LISTING, message }];
}

/** Nothing is on its way to an account whose write was refused for good. */
function refusedText({ code, message, hint }: Problem, lacking: readonly string[]): ConditionText {
  const first = `${message}${hint === undefined ? '' : `. ${hint}`}`;
  const all = counted(lacking.length, 'ServiceAccount lacks', 'ServiceAccounts lack');
  return { reason: code, message: `${first} (${all} the names: ${someOf(lacking)})` };
}

function someOf(names: readonly string[]): string {
  const shown = names.slice(0, 5).map((name) => `"${name}"`);
  return `${shown.join(', ')}${names.length > 5 ? ` and ${names.length - 5} more` : ''}`;
}
