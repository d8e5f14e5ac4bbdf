/** The status of one profile: whether it can be read, whether pods get its names, how many namespaces hold its Secrets. */

import {
  type Condition,
  type ConditionInput,
  type ConditionText,
  nextConditions,
  readiness,
  readinessOf,
} from '../../core/kubernetes/conditions.ts';
import type { KubeObject, SecretObject } from '../../core/kubernetes/object.ts';
import { recordOf } from '../../core/record.ts';
import { sameSecret } from '../../core/redacted.ts';
import { counted, countedOf } from '../../core/text.ts';
import type { EventNote, Reader, Ref, Result, Sample } from '../../engine/contract.ts';
import { CAUSES, type Cause, isTenants, TENANTS_CAUSE } from '../causes.ts';
import { GRANT_API_VERSION, GRANT_KIND } from '../kinds/grant.ts';
import { PROFILE_API_VERSION, PROFILE_KIND, type PullSecretProfile } from '../kinds/profile.ts';
import { namespaceRef, secretRef } from '../names.ts';
import { type InjectionOptions, isOutside } from '../options.ts';
import { accountConditions } from './accounts.ts';
import { type Copy, type CopyContext, copyOf, type Trouble } from './copies.ts';
import { type InjectionState, injectionState, type TriedPod, tryPods } from './pods.ts';
import { heldCondition, heldRemoval, heldText, REMOVAL_HELD } from './removals.ts';
import { missingSources } from './sources.ts';
import {
  type Distribution,
  type Distributor,
  distributionIn,
  isTerminating,
  namespaceLabels,
  namesText,
  profileOf,
  serves,
} from './view.ts';

// Reports on copies by cause, for a profile or a SidecarSet that names the sources of its secrets.

/** A condition for each cause. */
export function causeConditions(count: Count): readonly ConditionInput[] {
  return CAUSES.map((cause) => causeCondition(cause, count));
}

/** What the platform must do something about. */
export function platformTrouble(count: Count): ConditionText | undefined {
  const bad = CAUSES.filter((cause) => cause !== TENANTS_CAUSE)
    .map((cause) => causeCondition(cause, count))
    .filter(({ status }) => status === 'False');
  const [first] = bad;
  if (first === undefined) return undefined;
  return { reason: first.reason, message: bad.map(({ message }) => message).join('; ') };
}

/** Copies are on their way. */
export function distributing({ selected, current, blocked, behind }: Count): ConditionText | undefined {
  if (current + blocked >= selected) return undefined;
  const message = `${countedOf(current, selected, ['namespace', 'namespaces'], ['is', 'are'])} up to date; next is "${behind ?? ''}"`;
  return { reason: 'Distributing', message };
}

/** Troubles of one cause, with the number of namespaces that have each. */
function causeCondition({ type, reasons, well }: Cause, count: Count): ConditionInput {
  const found = reasons.flatMap((reason) => {
    const trouble = count.troubles.get(reason);
    return trouble === undefined ? [] : [{ reason, ...trouble }];
  });
  const [first] = found;
  if (first !== undefined) {
    const message = found
      .map((one) => `${one.message} (${one.count} of ${counted(count.selected, 'namespace')})`)
      .join('; ');
    return { type, status: 'False', reason: first.reason, message };
  }
  if (count.selected === 0) return { type, status: 'Unknown', ...NOTHING_SELECTED };
  return { type, status: 'True', reason: 'AsWanted', message: well };
}

/** What cannot be told where no namespace is served. */
const NOTHING_SELECTED: ConditionText = {
  reason: 'NothingSelected',
  message: 'No namespace is selected: nothing could be checked',
};

// The status of one profile: a condition for each cause, and `Ready`, which sums up the problems that the platform can fix.

/** Whether new pods get the names. @param tried what came of trying it; undefined where nothing is tried */
function injectingOf(
  reader: Reader,
  profile: PullSecretProfile,
  options: InjectionOptions,
  tried: InjectionState | undefined,
): ConditionInput {
  const type = 'Injecting';
  if (!profile.injects)
    return { type, status: 'False', reason: 'NotWanted', message: 'spec.mode is Distribute' };
  if (profile.suspended)
    return { type, status: 'False', reason: 'Suspended', message: 'spec.suspend is set' };
  const state = injectionState(reader, options);
  return { type, ...(state.status === 'True' ? (tried ?? state) : state) };
}

/** Secrets whose names pods get and that other tools deliver: looked up in the namespaces of the pods. */
function presentCondition(
  profile: PullSecretProfile,
  { selected, absent }: Count,
): readonly ConditionInput[] {
  const type = 'SecretsPresent';
  if (!profile.injects || profile.secrets.every(({ sources }) => profile.distributes && sources.length > 0))
    return [];
  if (selected === 0) return [{ type, status: 'Unknown', ...NOTHING_SELECTED }];
  if (absent.namespaces === 0) {
    const message = `${all(selected, ['has', 'have'])} the Secrets that others bring`;
    return [{ type, status: 'True', reason: 'Present', message }];
  }
  // Only Secrets of one type are read, so that their absence is not proven.
  const message = `Secret "${absent.secret}", which another tool must deliver, is not seen in ${absent.namespaces} of ${counted(selected, 'namespace')}, first in "${absent.first}"; create it, or name its sources`;
  return [{ type, status: 'Unknown', reason: 'SecretsNotSeen', message }];
}

function all(selected: number, [one, many]: readonly [one: string, many: string]): string {
  return selected === 1 ? `The one namespace that is selected ${one}` : `All ${selected} namespaces ${many}`;
}

/** Namespaces that it selects and that this system does not work in. Of its own choice nothing is wrong with the profile. */
function servedCondition(
  reader: Reader,
  profile: PullSecretProfile,
  options: InjectionOptions,
): readonly ConditionInput[] {
  const { namespaces } = options;
  const outside = reader
    .list({ role: 'hosted', apiVersion: 'v1', kind: 'Namespace' })
    .filter((object) => isOutside(object.metadata.name, options) && !isTerminating(object))
    .filter((object) => serves(profile, namespaceLabels(object), { ...options, namespaces: [] }))
    .map(({ metadata }) => metadata.name);
  if (outside.length === 0) return [];
  const message = `Of the namespaces that it selects ${namesText(outside)} ${outside.length === 1 ? 'is' : 'are'} left alone: the fleet has pull-secret-injection work in ${namesText(namespaces)} alone; add them to its namespaces, or select fewer`;
  return [{ type: 'NamespacesServed', status: 'False', reason: 'OutsideNamespaces', message }];
}

const SUSPENDED = {
  reason: 'Suspended',
  message: 'spec.suspend is set: nothing is injected or updated',
};

/** Problems that the platform must fix come first; an unknown state never counts as good. */
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

function readyText(
  profile: PullSecretProfile,
  count: Count,
  accounts: readonly ConditionInput[],
): ConditionText {
  const theirs = accounts.map(({ type }) => `; see ${type}`);
  const isBlocked = count.blocked > 0 || theirs.length > 0;
  const message = `${servedText(profile, count)}${theirs.join('')}`;
  return { reason: isBlocked ? 'BlockedByTenants' : 'Current', message };
}

function servedText({ distributes }: PullSecretProfile, { selected, current, blocked }: Count): string {
  if (!distributes) return counted(selected, 'namespace is selected', 'namespaces are selected');
  if (blocked === 0) return `${all(selected, ['holds', 'hold'])} the Secrets`;
  return `${countedOf(current, selected, ['namespace', 'namespaces'], ['holds', 'hold'])} the Secrets; in ${blocked} ${blocked === 1 ? 'the owner has' : 'their owners have'} to act, see TargetsFree`;
}

// How many namespaces of a profile hold what it brings. What was found for a namespace is remembered with everything that it was
// found from, so that counting thousands again after one of them changed costs as much as looking at them.

export interface Count {
  readonly selected: number;
  readonly current: number;
  /** Not current, and only the owner of the namespace can do something about it. */
  readonly blocked: number;
  /** The first namespace that is behind. */
  readonly behind: string | undefined;
  /** The first problem of each reason, and in how many namespaces it is. */
  readonly troubles: ReadonlyMap<string, { readonly message: string; readonly count: number }>;
  /** Secrets that another tool must deliver: in how many namespaces one is not seen, and the first of them. */
  readonly absent: { readonly namespaces: number; readonly first: string; readonly secret: string };
}

/** One namespace: whether the profile selects it, whether it holds everything, and what is wrong there. */
interface Standing {
  readonly selected: boolean;
  readonly current: boolean;
  readonly troubles: readonly Trouble[];
  /** The first Secret that another tool must deliver and that is not seen. */
  readonly absent?: string | undefined;
}

/** What was found for the namespaces of a profile. */
interface Memory {
  readonly distribution: Distribution;
  readonly options: InjectionOptions;
  /** With consent, sources of the profile, and the Secrets of the namespace under the names of its secrets. */
  readonly found: WeakMap<KubeObject, { readonly seen: readonly unknown[]; readonly standing: Standing }>;
}

const memories = new WeakMap<PullSecretProfile, Memory>();

const UNSELECTED: Standing = { selected: false, current: false, troubles: [] };

/** Counts the namespaces of `profile`. */
export function countNamespaces(
  reader: Reader,
  profile: PullSecretProfile,
  options: InjectionOptions,
): Count {
  const standings = standingsOf(reader, profile, options);
  const selected = standings.filter(([, standing]) => standing.selected);
  const current = selected.filter(([, standing]) => standing.current).length;
  const blocked = selected.filter(([, standing]) => isBlocked(standing)).length;
  const behind = profile.distributes
    ? selected.find(([, standing]) => !standing.current && !isBlocked(standing))?.[0]
    : undefined;
  const troubles = new Map<string, { message: string; count: number }>();
  for (const { reason, message } of selected.flatMap(([, standing]) => standing.troubles)) {
    const before = troubles.get(reason);
    troubles.set(reason, { message: before?.message ?? message, count: (before?.count ?? 0) + 1 });
  }
  const lacking = selected.filter(([, { absent }]) => absent !== undefined);
  const [first = '', standing] = lacking[0] ?? [];
  const absent = { namespaces: lacking.length, first, secret: standing?.absent ?? '' };
  return { selected: selected.length, current, blocked, behind, troubles, absent };
}

/** Nothing is wrong but what the owner of the namespace has to do. */
function isBlocked({ current, troubles }: Standing): boolean {
  return !current && troubles.length > 0 && troubles.every(({ reason }) => isTenants(reason));
}

function standingsOf(
  reader: Reader,
  profile: PullSecretProfile,
  options: InjectionOptions,
): readonly (readonly [namespace: string, Standing])[] {
  const distribution = distributionIn(reader);
  const sources = profile.secrets.flatMap((secret) => secret.sources);
  const shared = [
    reader.list({ role: 'hosted', apiVersion: GRANT_API_VERSION, kind: GRANT_KIND }),
    ...sources.map(({ namespace, name }) => reader.get(secretRef(namespace, name))),
    // A grant that goes with its namespace is not withdrawn.
    ...sources.map(({ namespace }) => homeOf(reader, namespace)),
  ];
  const before = memories.get(profile);
  const memory: Memory =
    before?.distribution === distribution && before.options === options
      ? before
      : { distribution, options, found: new WeakMap() };
  memories.set(profile, memory);
  return reader.list({ role: 'hosted', apiVersion: 'v1', kind: 'Namespace' }).map((namespace) => {
    const { name } = namespace.metadata;
    const refs = profile.secrets.map((secret) => secretRef(name, secret.name));
    const seen = [...shared, ...refs.flatMap((ref) => [reader.get(ref), reader.refusal(ref)?.code])];
    const known = memory.found.get(namespace);
    if (known?.seen.every((object, at) => object === seen[at]) === true) return [name, known.standing];
    const standing = look({ reader, distribution, namespace, options }, profile);
    memory.found.set(namespace, { seen, standing });
    return [name, standing];
  });
}

function homeOf(reader: Reader, name: string): string {
  const namespace = reader.get(namespaceRef(name));
  return namespace === undefined ? '' : `${namespace.metadata.uid} ${isTerminating(namespace)}`;
}

function look(context: CopyContext, profile: PullSecretProfile): Standing {
  const { reader, namespace, options } = context;
  if (!serves(profile, namespaceLabels(namespace), options) || isTerminating(namespace)) return UNSELECTED;
  const [brought, others] = [true, false].map((is) =>
    profile.secrets.filter(({ sources }) => (profile.distributes && sources.length > 0) === is),
  );
  const isAbsent = (name: string): boolean =>
    reader.get(secretRef(namespace.metadata.name, name)) === undefined;
  const absent = profile.injects ? others?.find(({ name }) => isAbsent(name))?.name : undefined;
  const copies = (brought ?? []).flatMap((secret) => copyOf(context, profile, secret) ?? []);
  return {
    selected: true,
    current: profile.distributes && copies.every((copy) => isCurrent(reader, copy)),
    troubles: copies.flatMap(({ trouble }) => trouble ?? []),
    absent,
  };
}

function isCurrent(reader: Reader, copy: Copy): boolean {
  if (copy.trouble !== undefined) return false;
  const present = reader.get(copy.ref) as SecretObject | undefined;
  const [has, wants] = [present?.data?.['.dockerconfigjson'], copy.object?.data?.['.dockerconfigjson']];
  return has !== undefined && wants !== undefined && sameSecret(has, wants);
}

/** Copies are on their way: counted again after this long. */
export const COUNT_AGAIN_MS = 1000;
/** When all is well, counts are refreshed after this time, for changes without an event. */
export const RECOUNT_MS = 10_000;

/** The profile object. */
export function profileRef(name: string): Ref {
  return { role: 'hosted', apiVersion: PROFILE_API_VERSION, kind: PROFILE_KIND, name };
}

/** What should be true of the status of a profile. */
export function reconcileProfile(reader: Reader, name: string, options: InjectionOptions): Result {
  const object = reader.get(profileRef(name));
  if (object === undefined) return {};
  const read = profileOf(object);
  const { generation, creationTimestamp } = object.metadata;
  if (!read.ok) {
    const invalid = { reason: 'Invalid', message: read.problems.join('; ') };
    return statusOf(reader, object, readiness('stalled', invalid, generation));
  }
  const { profile } = read;
  const count = countNamespaces(reader, profile, options);
  const removal = heldRemoval(reader, object, options);
  // A folder has no API server.
  const isTried = creationTimestamp !== undefined && profile.injects && !profile.suspended;
  const { tried, trials } = isTried ? tryPods(reader, profile, object, options) : NOT_TRIED;
  const held = heldCondition(object, removal);
  const injecting = injectingOf(reader, profile, options, tried);
  const present = presentCondition(profile, count);
  const accounts = accountConditions(reader, profile, options);
  const summary = summaryOf(profile, count, generation, { held, injecting, present, accounts });
  const conditions = [
    ...summary,
    ...held,
    injecting,
    ...(profile.distributes ? causeConditions(count) : []),
    ...present,
    ...servedCondition(reader, profile, options),
    ...accounts,
  ];
  return {
    ...statusOf(reader, object, conditions, {
      ...countsOf(profile, count),
      ...rememberedOf(reader, object, profile, options),
      // A status is merged: omitted fields stay.
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

/** The report without a trial: in a folder, or while nothing injects. */
export const NOT_TRIED: TriedPod = { tried: undefined, trials: [] };

function countsOf(
  { distributes, secrets }: PullSecretProfile,
  { selected, current, blocked }: Count,
): Readonly<Record<string, unknown>> {
  const brings = distributes && secrets.some(({ sources }) => sources.length > 0);
  return {
    namespaces: { selected, current, ...(blocked === 0 ? {} : { blocked }) },
    copies: brings ? `${current}/${selected}` : '-',
  };
}

/** Since when sources are gone; said only where it decides about copies. */
function rememberedOf(
  reader: Reader,
  object: KubeObject,
  profile: PullSecretProfile,
  options: InjectionOptions,
): Readonly<Record<string, unknown>> {
  const keeps = profile.copies.removeAfterMs === undefined;
  const missing = keeps ? [] : missingSources(reader, profile, object, options);
  const isSaid = missing.length > 0 || recordOf(object.status)['missingSources'] !== undefined;
  return isSaid ? { missingSources: missing } : {};
}

/** The counts as metrics. */
export function samplesOf(
  { scope }: Reader,
  { name, distributes }: Distributor,
  count: Count,
): readonly Sample[] {
  const sample = (state: 'selected' | 'current' | 'blocked', value: number): Sample => ({
    name: 'pullwright_profile_namespaces',
    help: 'Namespaces that a profile selects, those that hold everything that it brings, and those whose owners have to act',
    value,
    labels: { scope: scope.name, profile: name, state },
  });
  // One that only injects brings nothing, and is behind with nothing.
  return [
    sample('selected', count.selected),
    ...(distributes ? [sample('current', count.current), sample('blocked', count.blocked)] : []),
  ];
}

/** One for each cause, however many namespaces have it. */
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
      // The number of namespaces is in the condition: an event is not sent again for each of them.
      note: message.replace(/ \(\d+ of \d+ namespaces?\)/g, ''),
    }));
}

/**
 * The status of an object of ours: conditions keep the time of their last transition.
 *
 * @param fields what it says besides
 */
export function statusOf(
  reader: Reader,
  { apiVersion, kind, metadata, status }: KubeObject,
  conditions: readonly ConditionInput[],
  fields: Readonly<Record<string, unknown>> = {},
): Result {
  const { namespace, name, generation } = metadata;
  const where = namespace === undefined ? { name } : { namespace, name };
  const before = (status as { conditions?: readonly Condition[] } | undefined)?.conditions ?? [];
  return {
    status: [
      {
        ref: { role: 'hosted', apiVersion, kind, ...where },
        status: {
          ...(generation === undefined ? {} : { observedGeneration: generation }),
          ...fields,
          conditions: nextConditions(before, conditions, reader.now),
        },
      },
    ],
  };
}
