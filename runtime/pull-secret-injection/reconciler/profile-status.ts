/** The status of one profile: whether it is valid, whether pods get its names, and how many namespaces hold its Secrets. */

import {
  type ConditionInput,
  type ConditionText,
  readiness,
  readinessOf,
} from '../../core/kubernetes/conditions.ts';
import type { KubeObject, SecretObject } from '../../core/kubernetes/object.ts';
import { oncePer, recordOf } from '../../core/record.ts';
import { sameSecret } from '../../core/redacted.ts';
import { counted, countedOf } from '../../core/text.ts';
import { refOf } from '../../engine/changes.ts';
import type { EventNote, Reader, Ref, Result, Sample } from '../../engine/contract.ts';
import { statusPatch } from '../../engine/pull-status.ts';
import { CAUSES, type Cause, isTenants, TENANTS_CAUSE } from '../causes.ts';
import { GRANT } from '../kinds/grant.ts';
import type { ProfileSecret, PullSecretProfile } from '../kinds/profile.ts';
import { type InjectionOptions, isOutside } from '../options.ts';
import { type Copy, type CopyContext, copyOf } from './copies.ts';
import { heldCondition, heldRemoval, heldText, REMOVAL_HELD } from './namespace.ts';
import { type InjectionState, injectionState, type TriedPod, tryPods } from './pods.ts';
import { missingSources } from './sources.ts';
import {
  accountConditions,
  type Context,
  type Distribution,
  type Distributor,
  distributionIn,
  isTerminating,
  namespaceLabels,
  namespaceRef,
  namesText,
  profileOf,
  profileRef,
  secretRef,
  serves,
} from './view.ts';

// Conditions on copies by cause, for a profile or a SidecarSet with a source namespace.

/** One condition per cause. */
export function causeConditions(count: Count): readonly ConditionInput[] {
  return CAUSES.map((cause) => causeCondition(cause, count));
}

/** Reason and message of the problems that the platform must fix. */
export function platformTrouble(count: Count): ConditionText | undefined {
  const bad = CAUSES.filter((cause) => cause !== TENANTS_CAUSE)
    .map((cause) => causeCondition(cause, count))
    .filter(({ status }) => status === 'False');
  const [first] = bad;
  if (first === undefined) return undefined;
  return { reason: first.reason, message: bad.map(({ message }) => message).join('; ') };
}

/** Reason and message while copies are still being written. */
export function distributing({ selected, current, blocked, behind }: Count): ConditionText | undefined {
  if (current + blocked >= selected) return undefined;
  const message = `${countedOf(current, selected, ['namespace', 'namespaces'], ['is', 'are'])} up to date; next is "${behind ?? ''}"`;
  return { reason: 'Distributing', message };
}

/** The condition for one cause, with the number of namespaces for each reason. */
function causeCondition({ type, reasons, well }: Cause, count: Count): ConditionInput {
  const found = reasons.flatMap((reason) => {
    const [first, ...others] = count.troubles.get(reason) ?? [];
    if (first === undefined) return [];
    const share = `${1 + others.length} of ${counted(count.selected, 'namespace')}`;
    return [{ reason, message: `${first.message} (${share})` }];
  });
  const [first] = found;
  if (first !== undefined)
    return {
      type,
      status: 'False',
      reason: first.reason,
      message: found.map(({ message }) => message).join('; '),
    };
  if (count.selected === 0) return { type, status: 'Unknown', ...NOTHING_SELECTED };
  return { type, status: 'True', reason: 'AsWanted', message: well };
}

/** Reported when the profile selects no namespace. */
const NOTHING_SELECTED: ConditionText = {
  reason: 'NothingSelected',
  message: 'No namespace is selected: nothing to check',
};

// The status of one profile: a condition per cause, and `Ready`, which sums up the problems that the platform can fix.

/** Reports whether new pods get the names. @param tried the result of the dry run; undefined if there is none */
function injectingOf(
  context: Context,
  profile: PullSecretProfile,
  tried: InjectionState | undefined,
): ConditionInput {
  const type = 'Injecting';
  if (!profile.injects)
    return { type, status: 'False', reason: 'NotWanted', message: 'spec.mode is Distribute' };
  if (profile.suspended)
    return { type, status: 'False', reason: 'Suspended', message: 'spec.suspend is set' };
  const state = injectionState(context);
  return { type, ...(state.status === 'True' ? (tried ?? state) : state) };
}

/** Condition on injected Secrets that other tools deliver: whether every selected namespace has them. */
function presentCondition(profile: PullSecretProfile, count: Count): readonly ConditionInput[] {
  const { selected, absent } = count;
  const type = 'SecretsPresent';
  if (!profile.injects || profile.secrets.every(({ sources }) => profile.distributes && sources.length > 0))
    return [];
  if (selected === 0) return [{ type, status: 'Unknown', ...NOTHING_SELECTED }];
  if (absent.namespaces === 0) {
    const message = `${all(selected, ['has', 'have'])} the Secrets that other tools deliver`;
    return [{ type, status: 'True', reason: 'Present', message }];
  }
  // Only Secrets of one type are watched, so a miss does not prove absence.
  const message = `Secret "${absent.secret}", which another tool must deliver, is not seen in ${absent.namespaces} of ${counted(selected, 'namespace')}, first in "${absent.first}"; create it, or name its sources`;
  return [{ type, status: 'Unknown', reason: 'SecretsNotSeen', message }];
}

function all(selected: number, [one, many]: readonly [one: string, many: string]): string {
  return selected === 1 ? `The selected namespace ${one}` : `All ${selected} namespaces ${many}`;
}

/** Condition on selected namespaces outside `options.namespaces`. The restriction is intended: `Ready` ignores it. */
function servedCondition(context: Context, profile: PullSecretProfile): readonly ConditionInput[] {
  const { reader, options } = context;
  const { namespaces } = options;
  const outside = reader
    .list({ role: 'hosted', apiVersion: 'v1', kind: 'Namespace' })
    .filter((object) => isOutside(object.metadata.name, options) && !isTerminating(object))
    .filter((object) => serves(profile, namespaceLabels(object), { ...options, namespaces: [] }))
    .map(({ metadata }) => metadata.name);
  if (outside.length === 0) return [];
  const message = `Of the selected namespaces, ${namesText(outside)} ${outside.length === 1 ? 'is' : 'are'} ignored: the fleet limits pull-secret-injection to ${namesText(namespaces)}; add them to its namespaces, or select fewer`;
  return [{ type: 'NamespacesServed', status: 'False', reason: 'OutsideNamespaces', message }];
}

const SUSPENDED = {
  reason: 'Suspended',
  message: 'spec.suspend is set: nothing is injected or updated',
};

/** Problems that the platform must fix come first; an unknown state never counts as ready. */
function summaryOf(
  profile: PullSecretProfile,
  count: Count,
  generation: number | undefined,
  said: {
    readonly injecting: ConditionInput;
    readonly held: readonly ConditionInput[];
    readonly present: readonly ConditionInput[];
    readonly accounts: readonly ConditionInput[];
  },
): readonly ConditionInput[] {
  const { injecting, held, present, accounts } = said;
  const isPending = injecting.reason === 'PolicyPending';
  const isBroken = profile.injects && injecting.status === 'False' && !isPending;
  return readinessOf(
    [
      ['stalled', heldText(held)],
      ['stalled', profile.suspended ? SUSPENDED : undefined],
      ['stalled', profile.distributes ? platformTrouble(count) : undefined],
      ['stalled', isBroken ? injecting : undefined],
      ['unknown', count.selected === 0 ? NOTHING_SELECTED : undefined],
      ['unknown', [injecting, ...present].find(({ status }) => status === 'Unknown')],
      ['progressing', profile.distributes ? distributing(count) : undefined],
      ['progressing', isPending ? injecting : undefined],
      ['ready', readyText(profile, count, accounts)],
    ],
    generation,
  );
}

function readyText(profile: PullSecretProfile, count: Count, accounts: readonly ConditionInput[]) {
  const theirs = accounts.map(({ type }) => `; see ${type}`);
  const isBlocked = count.blocked > 0 || theirs.length > 0;
  const message = `${servedText(profile, count)}${theirs.join('')}`;
  return { reason: isBlocked ? 'BlockedByTenants' : 'Current', message };
}

function servedText({ distributes }: PullSecretProfile, { selected, current, blocked }: Count): string {
  if (!distributes) return counted(selected, 'namespace is selected', 'namespaces are selected');
  if (blocked === 0) return `${all(selected, ['has', 'have'])} the Secrets`;
  return `${countedOf(current, selected, ['namespace', 'namespaces'], ['has', 'have'])} the Secrets; in ${blocked} ${blocked === 1 ? 'the owner' : 'their owners'} must act, see TargetsFree`;
}

// Counts the namespaces that hold a profile's Secrets. Each result is cached with its inputs, so recounting thousands of
// namespaces after one change costs only a comparison.

export type Count = Readonly<ReturnType<typeof countNamespaces>>;

/** The state of one namespace: selected, current, and its problems. */
type Standing = ReturnType<typeof look>;

/**
 * Cached results for the namespaces of a profile. `seen` holds the inputs: grants, the profile's sources, and the namespace's
 * Secrets with the profile's names.
 */
type Standings = WeakMap<KubeObject, { readonly seen: readonly unknown[]; readonly standing: Standing }>;

const known = oncePer((_distribution: Distribution) =>
  oncePer((_options: InjectionOptions) => oncePer((_profile: PullSecretProfile): Standings => new WeakMap())),
);

const UNSELECTED = { selected: false, current: false, troubles: [], absent: undefined };

/** Counts the namespaces of `profile`. */
export function countNamespaces(context: Context, profile: PullSecretProfile) {
  const standings = standingsOf(context, profile);
  const selected = standings.filter(([, standing]) => standing.selected);
  const current = selected.filter(([, standing]) => standing.current).length;
  /** Not current, and only the namespace owner can fix it. */
  const blocked = selected.filter(([, standing]) => isBlocked(standing)).length;
  /** The first namespace with pending copies. */
  const behind = profile.distributes
    ? selected.find(([, standing]) => !standing.current && !isBlocked(standing))?.[0]
    : undefined;
  /** By reason, one for each namespace with it. */
  const troubles = Map.groupBy(
    selected.flatMap(([, standing]) => standing.troubles),
    ({ reason }) => reason,
  );
  const lacking = selected.filter(([, { absent }]) => absent !== undefined);
  const [first = '', standing] = lacking[0] ?? [];
  /** Namespaces that lack a Secret which another tool must deliver: their number, and the first one. */
  const absent = { namespaces: lacking.length, first, secret: standing?.absent ?? '' };
  return { selected: selected.length, current, blocked, behind, troubles, absent };
}

/** Reports whether only the namespace owner can fix the problems. */
function isBlocked({ current, troubles }: Standing): boolean {
  return !current && troubles.length > 0 && troubles.every(({ reason }) => isTenants(reason));
}

function standingsOf(
  { reader, options }: Context,
  profile: PullSecretProfile,
): readonly (readonly [namespace: string, Standing])[] {
  const distribution = distributionIn(reader);
  const sources = profile.secrets.flatMap((secret) => secret.sources);
  const shared = [
    reader.list({ role: 'hosted', ...GRANT }),
    ...sources.map(({ namespace, name }) => reader.get(secretRef(namespace, name))),
    // Consent depends on the source namespace: a grant that is deleted with its namespace is not a revocation.
    ...sources.map(({ namespace }) => homeOf(reader, namespace)),
  ];
  const found = known(distribution)(options)(profile);
  return reader.list({ role: 'hosted', apiVersion: 'v1', kind: 'Namespace' }).map((namespace) => {
    const { name } = namespace.metadata;
    const refs = profile.secrets.map((secret) => secretRef(name, secret.name));
    const seen = [...shared, ...refs.flatMap((ref) => [reader.get(ref), reader.refusal(ref)?.code])];
    const before = found.get(namespace);
    if (before?.seen.every((object, at) => object === seen[at]) === true) return [name, before.standing];
    const standing = look({ reader, distribution, namespace, options }, profile);
    found.set(namespace, { seen, standing });
    return [name, standing];
  });
}

function homeOf(reader: Reader, name: string): string {
  const namespace = reader.get(namespaceRef(name));
  return namespace === undefined ? '' : `${namespace.metadata.uid} ${isTerminating(namespace)}`;
}

function look(context: CopyContext, profile: PullSecretProfile) {
  const { reader, namespace, options } = context;
  if (!serves(profile, namespaceLabels(namespace), options) || isTerminating(namespace)) return UNSELECTED;
  const { injects, distributes, secrets } = profile;
  const isBrought = ({ sources }: ProfileSecret): boolean => distributes && sources.length > 0;
  const isAbsent = (name: string): boolean =>
    reader.get(secretRef(namespace.metadata.name, name)) === undefined;
  const absent = secrets.find((secret) => injects && !isBrought(secret) && isAbsent(secret.name))?.name;
  const copies = secrets.filter(isBrought).flatMap((secret) => copyOf(context, profile, secret) ?? []);
  const troubles = copies.flatMap(({ trouble }) => trouble ?? []);
  return {
    selected: true,
    current: distributes && copies.every((copy) => isCurrent(reader, copy)),
    // Namespaces are counted by reason, not by Secret.
    troubles: troubles.filter((one, at) => troubles.findIndex(({ reason }) => reason === one.reason) === at),
    /** The first Secret that another tool must deliver and that is not found. */
    absent,
  };
}

function isCurrent(reader: Reader, copy: Copy): boolean {
  if (copy.trouble !== undefined) return false;
  const present = reader.get(copy.ref) as SecretObject | undefined;
  const [has, wants] = [present?.data?.['.dockerconfigjson'], copy.object?.data?.['.dockerconfigjson']];
  return has !== undefined && wants !== undefined && sameSecret(has, wants);
}

/** Recount interval while copies are being written. */
export const COUNT_AGAIN_MS = 1000;
/** Recount interval when everything is current, for changes without an event. */
export const RECOUNT_MS = 10_000;

/** Reconciles the status of a profile. */
export function reconcileProfile(context: Context, name: string): Result {
  const { reader } = context;
  const object = reader.get(profileRef(name));
  if (object === undefined) return {};
  const read = profileOf(object);
  const { generation, creationTimestamp } = object.metadata;
  if (!read.ok) {
    const invalid = { reason: 'Invalid', message: read.problems.join('; ') };
    return statusOf(reader, object, readiness('stalled', invalid, generation));
  }
  const { profile } = read;
  const count = countNamespaces(context, profile);
  const removal = heldRemoval(context, object);
  // An object from a folder has no API server for a dry run.
  const isTried = creationTimestamp !== undefined && profile.injects && !profile.suspended;
  const { tried, trials } = isTried ? tryPods(context, profile, object) : NOT_TRIED;
  const held = heldCondition(object, removal);
  const injecting = injectingOf(context, profile, tried);
  const present = presentCondition(profile, count);
  const accounts = accountConditions(context, profile);
  const summary = summaryOf(profile, count, generation, { held, injecting, present, accounts });
  const conditions = [
    ...summary,
    ...held,
    injecting,
    ...(profile.distributes ? causeConditions(count) : []),
    ...present,
    ...servedCondition(context, profile),
    ...accounts,
  ];
  return {
    ...statusOf(reader, object, conditions, {
      ...fieldsOf(context, object, profile, count),
      // Status patches are merged: an omitted field would keep its value.
      ...(removal === undefined && recordOf(object.status)['heldRemoval'] === undefined
        ? {}
        : { heldRemoval: removal?.hash ?? '' }),
    }),
    dryRuns: trials,
    metrics: samplesOf(reader, profile, count),
    events: eventsOf(profileRef(name), conditions),
    requeueAfterMs: summary[0]?.reason === 'Distributing' ? COUNT_AGAIN_MS : RECOUNT_MS,
  };
}

/** No dry run: in a folder, or while nothing is injected. */
export const NOT_TRIED: TriedPod = { tried: undefined, trials: [] };

function fieldsOf(context: Context, object: KubeObject, profile: PullSecretProfile, count: Count) {
  const { selected, current, blocked } = count;
  const { distributes, secrets, copies } = profile;
  const brings = distributes && secrets.some(({ sources }) => sources.length > 0);
  const missing = copies.removeAfterMs === undefined ? [] : missingSources(context, profile, object);
  const isSaid = missing.length > 0 || recordOf(object.status)['missingSources'] !== undefined;
  return {
    namespaces: { selected, current, ...(blocked === 0 ? {} : { blocked }) },
    copies: brings ? `${current}/${selected}` : '-',
    // Only if the profile removes entries of deleted sources.
    ...(isSaid ? { missingSources: missing } : {}),
  };
}

/** The counts as metric samples. */
export function samplesOf({ scope }: Reader, { name, distributes }: Distributor, count: Count) {
  const sample = (state: 'selected' | 'current' | 'blocked', value: number): Sample => ({
    name: 'pullwright_profile_namespaces',
    help: 'Namespaces that a profile selects, that have all its Secrets, and whose owners must act',
    value,
    labels: { scope: scope.name, profile: name, state },
  });
  // A profile that only injects delivers nothing, so it has no such samples.
  return [
    sample('selected', count.selected),
    ...(distributes ? [sample('current', count.current), sample('blocked', count.blocked)] : []),
  ];
}

/** One event per cause, regardless of the number of namespaces. */
export function eventsOf(regarding: Ref, conditions: readonly ConditionInput[]): readonly EventNote[] {
  const told = ['SourcesReady', 'Granted', 'NamesFree'];
  return conditions
    .filter(({ type, status, reason }) =>
      type === REMOVAL_HELD ? reason !== 'Confirmed' : told.includes(type) && status === 'False',
    )
    .map(({ type, reason, message }) => ({
      regarding,
      type: 'Warning',
      reason: type === REMOVAL_HELD ? REMOVAL_HELD : reason,
      action: 'Distribute',
      // Omit the number of namespaces, as each change of it would send a new event.
      note: message.replace(/ \(\d+ of \d+ namespaces?\)/g, ''),
    }));
}

/**
 * Returns the status patch of one of our objects. Unchanged conditions keep their lastTransitionTime.
 *
 * @param more further fields of the status
 */
export function statusOf(
  reader: Reader,
  object: KubeObject,
  conditions: readonly ConditionInput[],
  more: Readonly<Record<string, unknown>> = {},
): Result {
  const { generation } = object.metadata;
  const fields = { ...(generation === undefined ? {} : { observedGeneration: generation }), ...more };
  return { status: [statusPatch(refOf('hosted', object), object, conditions, reader.now, fields)] };
}
