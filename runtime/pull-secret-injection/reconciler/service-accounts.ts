/**
 * The ServiceAccounts of one namespace: names that profiles add to their lists, for tools that read credentials from there, and a
 * PullStatus for the owner of an account whose pods are left out.
 */

import type {
  Action,
  Apply,
  JsonPatchOperation,
  Outcome,
  Ref,
  StatusPatch,
  World,
} from '../../controller/contract.ts';
import { OWNER_LABEL } from '../../controller/contract.ts';
import { reportPullStatus } from '../../controller/pull-status.ts';
import type { LocalObjectReference } from '../../rules/injection/image-pull-secrets.ts';
import type { PullSecretProfile } from '../../rules/injection/profile.ts';
import {
  type AccountList,
  ADDED_ANNOTATION,
  accountListFor,
  accountRefuses,
  ENFORCE_MOUNTABLE_SECRETS,
  type EnforcingAccount,
  readAdded,
} from '../../rules/injection/service-account-pull-secrets.ts';
import { readiness } from '../../rules/kubernetes/conditions.ts';
import { selects } from '../../rules/kubernetes/label-selector.ts';
import type { KubeObject, SecretObject } from '../../rules/kubernetes/object.ts';
import { RECONCILER_NAME } from '../name.ts';
import { exemptionOf, type InjectionOptions } from '../options.ts';
import { isBrought } from './approved.ts';
import { writerOf } from './claims.ts';
import { namespaceRef, secretRef } from './names.ts';
import { unreadableIn } from './unreadable.ts';
import { isTerminating, namespaceLabels, profilesIn } from './view.ts';

const KIND = { role: 'hosted', apiVersion: 'v1', kind: 'ServiceAccount' } as const;

function accountsIn(world: World, namespace?: string): readonly KubeObject[] {
  return world.list({ ...KIND, ...(namespace === undefined ? {} : { namespace }) });
}

/** The references that an account lists. */
export function referencesOf(account: KubeObject): readonly LocalObjectReference[] {
  const references = account['imagePullSecrets'];
  return Array.isArray(references) ? (references as readonly LocalObjectReference[]) : [];
}

/** Whether pods of the account are refused when they name what it does not list. */
export function isEnforcing({ metadata }: KubeObject): boolean {
  return metadata.annotations?.[ENFORCE_MOUNTABLE_SECRETS] === 'true';
}

/** Whether a pod of the account that names these would be refused. */
export function refusesNames(
  world: World,
  namespace: string,
  name: string,
  names: readonly string[],
): boolean {
  const object = world.get({ ...KIND, namespace, name });
  if (object === undefined || !isEnforcing(object)) return false;
  return accountRefuses({ name, imagePullSecrets: referencesOf(object), enforceMountable: true }, names);
}

const enforcing = new WeakMap<readonly KubeObject[], readonly EnforcingAccount[]>();

/** The accounts that enforce mountable secrets, by namespace and name. Looked for once until an account changes. */
export function enforcingIn(world: World): readonly EnforcingAccount[] {
  const objects = accountsIn(world);
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
export function accountsMatter(world: World, namespace: string, options: InjectionOptions): boolean {
  if (options.serviceAccounts && profilesIn(world).some(({ serviceAccounts }) => serviceAccounts.length > 0))
    return true;
  return accountsIn(world, namespace).some((object) => accountSays(object) !== '');
}

/** Whether an account of the namespace lists the name because of us, for as long as the copy stands. */
export function isListed(world: World, namespace: string, name: string): boolean {
  return accountsIn(world, namespace).some(({ metadata }) =>
    readAdded(metadata.annotations?.[ADDED_ANNOTATION]).includes(name),
  );
}

/** What an account says that concerns anybody here; empty for nearly all of them. */
export function accountSays(object: KubeObject | undefined): string {
  if (object === undefined) return '';
  const added = object.metadata.annotations?.[ADDED_ANNOTATION];
  if (!isEnforcing(object) && added === undefined) return '';
  return JSON.stringify([isEnforcing(object), added, object['imagePullSecrets']]);
}

/** What is left to somebody who sets it back is tried again when it has stopped, which no event tells. */
const LOOK_AGAIN_MS = 60_000;

/** What should be true of the accounts of one namespace. */
export function reconcileAccounts(world: World, name: string, options: InjectionOptions): Outcome {
  const namespace = world.get(namespaceRef(name));
  if (namespace === undefined || isTerminating(namespace)) return { keep: 'all' };
  const accounts = accountsIn(world, name).filter(({ metadata }) => metadata.deletionTimestamp === undefined);
  const profiles = servingPods(world, namespace, options);
  const reports = accounts.flatMap((account) => reportOf(world, account, profiles, options));
  const actions = accounts.flatMap((account) => listAction(world, namespace, account, options));
  return {
    apply: reports.map(({ apply }) => apply),
    status: reports.map(({ status }) => status),
    actions,
    ...(actions.length === 0 ? {} : { requeueAfterMs: LOOK_AGAIN_MS }),
  };
}

/** Profiles that add names to pods of the namespace, whatever labels those have. */
function servingPods(
  world: World,
  namespace: KubeObject,
  options: InjectionOptions,
): readonly PullSecretProfile[] {
  const labels = namespaceLabels(namespace);
  const pod = { namespace: namespace.metadata.name, labels: {}, annotations: {}, namespaceLabels: labels };
  if (exemptionOf(pod, options) !== undefined) return [];
  return profilesIn(world).filter(
    (profile) => profile.injects && !profile.suspended && selects(profile.namespaceSelector, labels),
  );
}

/** Names that pods of an enforcing account would be refused for, with the profile that would add each. */
export function withheld(
  account: EnforcingAccount,
  profiles: readonly PullSecretProfile[],
): readonly { readonly profile: string; readonly name: string }[] {
  return profiles.flatMap(({ name: profile, secrets }) =>
    secrets.flatMap(({ name }) => (account.listed.includes(name) ? [] : [{ profile, name }])),
  );
}

function reportOf(
  world: World,
  account: KubeObject,
  profiles: readonly PullSecretProfile[],
  options: InjectionOptions,
): readonly { readonly apply: Apply; readonly status: StatusPatch }[] {
  const { name, namespace = '' } = account.metadata;
  const found = enforcingIn(world).find((one) => one.namespace === namespace && one.name === name);
  const names = found === undefined || options.admission === 'none' ? [] : withheld(found, profiles);
  if (names.length === 0) return [];
  const reason = 'MountableSecretsEnforced';
  const message = `ServiceAccount "${name}" enforces mountable secrets: its pods get nothing while it does not list what profiles add; list it in imagePullSecrets, or take the annotation ${ENFORCE_MOUNTABLE_SECRETS} off`;
  const said = reportPullStatus(world, 'hosted', {
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

function listAction(
  world: World,
  namespace: KubeObject,
  account: KubeObject,
  options: InjectionOptions,
): readonly Action[] {
  const { name, uid, resourceVersion } = account.metadata;
  if (resourceVersion === undefined) return [];
  const present: AccountList = {
    references: referencesOf(account),
    ours: readAdded(account.metadata.annotations?.[ADDED_ANNOTATION]),
  };
  const wanted = wantedIn(world, { namespace, account, options }, present.ours);
  const next = accountListFor(present, wanted);
  if (next === undefined) return [];
  const ref: Ref = {
    ...KIND,
    namespace: namespace.metadata.name,
    name,
    ...(uid === undefined ? {} : { uid }),
  };
  // Whoever changed the account in between is read first.
  const unchanged = { op: 'test', path: '/metadata/resourceVersion', value: resourceVersion } as const;
  return [{ action: 'json-patch', ref, operations: [unchanged, ...operationsFor(account, next)] }];
}

interface AccountContext {
  readonly namespace: KubeObject;
  readonly account: KubeObject;
  readonly options: InjectionOptions;
}

function wantedIn(
  world: World,
  { namespace, account, options }: AccountContext,
  ours: readonly string[],
): readonly string[] {
  // What was added while it was allowed is taken off.
  if (!options.serviceAccounts) return [];
  const { name, labels = {} } = account.metadata;
  const own = namespaceLabels(namespace);
  const where = namespace.metadata.name;
  const pod = { namespace: where, labels, annotations: {}, namespaceLabels: own };
  const isExempt = exemptionOf(pod, options) !== undefined;
  const asking = profilesIn(world).filter(
    (profile) => profile.injects && selects(profile.namespaceSelector, own),
  );
  const wanted = asking
    .filter(({ serviceAccounts }) => !isExempt && serviceAccounts.includes(name))
    .flatMap((profile) =>
      profile.secrets
        // What is suspended gives nothing new.
        .filter((secret) => !profile.suspended || ours.includes(secret.name))
        .filter((secret) => !profile.onRequest || isBrought(world, profile, secret, where))
        .map((secret) => secret.name),
    );
  return [...wanted, ...ours.filter((secret) => isLeftStanding(world, where, secret, asking))];
}

/** The copy stands although its profile no longer asks for it here: it is held, or cannot be read. The name stays as long. */
function isLeftStanding(
  world: World,
  namespace: string,
  name: string,
  asking: readonly PullSecretProfile[],
): boolean {
  const copy = world.get(secretRef(namespace, name)) as SecretObject | undefined;
  if (copy?.metadata.labels?.[OWNER_LABEL] !== RECONCILER_NAME) return false;
  const writer = writerOf(copy);
  if (writer !== undefined && unreadableIn(world).has(writer)) return true;
  return !asking.some(
    (profile) => profile.name === writer && profile.secrets.some((one) => one.name === name),
  );
}

const ANNOTATION_PATH = '/metadata/annotations/pullwright.dev~1added-pull-secrets';

function operationsFor(account: KubeObject, next: AccountList): readonly JsonPatchOperation[] {
  const { annotations } = account.metadata;
  const text = next.ours.join(', ');
  const list: JsonPatchOperation[] =
    next.references.length > 0
      ? [{ op: 'add', path: '/imagePullSecrets', value: next.references }]
      : account['imagePullSecrets'] === undefined
        ? []
        : [{ op: 'remove', path: '/imagePullSecrets' }];
  if (text === '')
    return annotations?.[ADDED_ANNOTATION] === undefined
      ? list
      : [...list, { op: 'remove', path: ANNOTATION_PATH }];
  const added: JsonPatchOperation =
    annotations === undefined
      ? { op: 'add', path: '/metadata/annotations', value: { [ADDED_ANNOTATION]: text } }
      : { op: 'add', path: ANNOTATION_PATH, value: text };
  return [...list, added];
}
