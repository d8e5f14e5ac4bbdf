/** The status of one profile: whether it can be read, whether pods get its names, how many namespaces hold its Secrets. */

import {
  type Condition,
  type ConditionInput,
  type ConditionText,
  nextConditions,
  readiness,
  type SummaryRow,
  summarize,
} from '../../core/kubernetes/conditions.ts';
import type { KubeObject, SecretObject } from '../../core/kubernetes/object.ts';
import { sameSecret } from '../../core/redacted.ts';
import { counted, countedOf } from '../../core/text.ts';
import type { EventNote, Reader, Ref, Result, Sample } from '../../engine/contract.ts';
import { CAUSES, type Cause, whoseTrouble } from '../causes.ts';
import { GRANT_API_VERSION, GRANT_KIND } from '../kinds/grant.ts';
import { PROFILE_API_VERSION, PROFILE_KIND, type PullSecretProfile } from '../kinds/profile.ts';
import { namespaceRef, secretRef } from '../names.ts';
import { type InjectionOptions, isOutside } from '../options.ts';
import { accountConditions } from './accounts.ts';
import { type Copy, type CopyContext, copyOf, type Trouble } from './copies.ts';
import { missingSources } from './missing-sources.ts';
import { type InjectionState, injectionState, tryPods } from './pods.ts';
import { type HeldRemoval, heldCondition, heldRemoval, heldText, REMOVAL_HELD } from './removals.ts';
import {
  type Distribution,
  type Distributor,
  distributionIn,
  isTerminating,
  namespaceLabels,
  namesText,
  profileOf,
  profilesIn,
  serves,
  unreadableIn,
} from './view.ts';

// What is said of copies, by cause, of a profile as of a SidecarSet that says where its secrets come from.

/** A condition for each cause. */
export function causeConditions(count: Count): readonly ConditionInput[] {
  return CAUSES.map((cause) => causeCondition(cause, count));
}

/** What the platform must do something about. */
export function platformTrouble(count: Count): ConditionText | undefined {
  const bad = CAUSES.filter(({ whose }) => whose === 'platform')
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

/** What cannot be told where nobody is served. */
export const NOTHING_SELECTED: ConditionText = {
  reason: 'NothingSelected',
  message: 'No namespace is selected: nothing could be checked',
};

// What is said of one profile: a condition for each cause, and `Ready`, which sums up what the platform can do something about.

/** What decides besides the profile and its namespaces. */
export interface ProfileContext {
  readonly options: InjectionOptions;
  readonly generation: number | undefined;
  /** What is said of a removal that waits. */
  readonly held: readonly ConditionInput[];
  /** What came of trying it; undefined where nothing is tried: in a folder, or while nothing injects. */
  readonly tried: InjectionState | undefined;
}

/** Everything. */
export function profileConditions(
  reader: Reader,
  profile: PullSecretProfile,
  count: Count,
  { options, generation, held, tried }: ProfileContext,
): readonly ConditionInput[] {
  const injecting = injectingOf(reader, profile, options, tried);
  const causes = profile.distributes ? causeConditions(count) : [];
  const present = presentCondition(profile, count);
  const accounts = accountConditions(reader, profile, options);
  return [
    ...summarize(SUMMARY, { profile, count, injecting, present, held, accounts }, generation),
    ...held,
    injecting,
    ...causes,
    ...present,
    ...servedCondition(reader, profile, options),
    ...accounts,
  ];
}

/** Whether new pods get the names. */
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

/** Secrets that pods are given the names of and that nobody brings here: they are looked for where pods will look. */
function presentCondition(profile: PullSecretProfile, count: Count): readonly ConditionInput[] {
  const type = 'SecretsPresent';
  const { selected, absent } = count;
  if (!profile.injects || profile.secrets.every(({ sources }) => profile.distributes && sources.length > 0))
    return [];
  if (selected === 0) return [{ type, status: 'Unknown', ...NOTHING_SELECTED }];
  if (absent.namespaces === 0)
    return [
      {
        type,
        status: 'True',
        reason: 'Present',
        message:
          selected === 1
            ? 'The one namespace that is selected has the Secrets that others bring'
            : `All ${selected} namespaces have the Secrets that others bring`,
      },
    ];
  // Only Secrets of one type are read, so that their absence is not proven.
  const message = `Secret "${absent.secret}", which somebody else is to bring, is not seen in ${absent.namespaces} of ${counted(selected, 'namespace')}, first in "${absent.first}"; bring it, or name its sources`;
  return [{ type, status: 'Unknown', reason: 'SecretsNotSeen', message }];
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

interface Summary {
  readonly held: readonly ConditionInput[];
  readonly profile: PullSecretProfile;
  readonly count: Count;
  readonly injecting: ConditionInput;
  readonly present: readonly ConditionInput[];
  readonly accounts: readonly ConditionInput[];
}

/** What the platform must do something about comes first; nothing concludes well from what cannot be told. */
const SUMMARY: readonly SummaryRow<Summary>[] = [
  ['stalled', ({ held }) => heldText(held)],
  ['stalled', suspendedBy],
  ['stalled', causesBy],
  ['stalled', offBy],
  ['unknown', unknownBy],
  ['progressing', distributingBy],
  ['progressing', pendingBy],
  ['ready', readyBy],
];

function suspendedBy({ profile }: Summary): ConditionText | undefined {
  if (!profile.suspended) return undefined;
  return { reason: 'Suspended', message: 'spec.suspend is set: nothing is injected or brought up to date' };
}

function causesBy({ profile, count }: Summary): ConditionText | undefined {
  return profile.distributes ? platformTrouble(count) : undefined;
}

function offBy({ profile, injecting }: Summary): ConditionText | undefined {
  const isOff = injecting.status === 'False' && profile.injects && injecting.reason !== 'PolicyPending';
  return isOff ? injecting : undefined;
}

function unknownBy({ count, injecting, present }: Summary): ConditionText | undefined {
  if (count.selected === 0) return NOTHING_SELECTED;
  return [injecting, ...present].find(({ status }) => status === 'Unknown');
}

function distributingBy({ profile, count }: Summary): ConditionText | undefined {
  return profile.distributes ? distributing(count) : undefined;
}

function pendingBy({ profile, injecting }: Summary): ConditionText | undefined {
  return profile.injects && injecting.reason === 'PolicyPending' ? injecting : undefined;
}

function readyBy({ profile, count, accounts }: Summary): ConditionText {
  const theirs = accounts.map(({ type }) => `; see ${type}`);
  const isBlocked = count.blocked > 0 || theirs.length > 0;
  return {
    reason: isBlocked ? 'BlockedByTenants' : 'Current',
    message: `${readyText(profile, count)}${theirs.join('')}`,
  };
}

function readyText({ distributes }: PullSecretProfile, { selected, current, blocked }: Count): string {
  if (!distributes) return counted(selected, 'namespace is selected', 'namespaces are selected');
  if (blocked === 0)
    return selected === 1
      ? 'The one namespace that is selected holds the Secrets'
      : `All ${selected} namespaces hold the Secrets`;
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
  /** The first trouble of each reason, and in how many namespaces it is. */
  readonly troubles: ReadonlyMap<string, { readonly message: string; readonly count: number }>;
  /** Secrets that somebody else is to bring: in how many namespaces one is not seen, and the first of them. */
  readonly absent: { readonly namespaces: number; readonly first: string; readonly secret: string };
}

/** One namespace: whether the profile selects it, whether it holds everything, and what is wrong there. */
interface Standing {
  readonly selected: boolean;
  readonly current: boolean;
  readonly troubles: readonly Trouble[];
  /** The first Secret that somebody else is to bring and that is not seen. */
  readonly absent?: string;
}

interface Remembered {
  /** Consent, sources of the profile, then what stands in the namespace under the names of its secrets. */
  readonly seen: readonly unknown[];
  readonly standing: Standing;
}

const remembered = new WeakMap<
  Distribution,
  WeakMap<InjectionOptions, WeakMap<PullSecretProfile, WeakMap<KubeObject, Remembered>>>
>();

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
  return !current && troubles.length > 0 && troubles.every(({ reason }) => whoseTrouble(reason) === 'tenant');
}

function standingsOf(
  reader: Reader,
  profile: PullSecretProfile,
  options: InjectionOptions,
): readonly (readonly [namespace: string, Standing])[] {
  const distribution = distributionIn(reader);
  const consent = [
    reader.list({ role: 'hosted', apiVersion: GRANT_API_VERSION, kind: GRANT_KIND }),
    [...unreadableIn(reader)].join(),
  ];
  const sources = profile.secrets.flatMap((secret) =>
    secret.sources.map(({ namespace, name }) => reader.get(secretRef(namespace, name))),
  );
  // A grant that goes with its namespace is not withdrawn.
  const homes = profile.secrets.flatMap((secret) =>
    secret.sources.map(({ namespace }) => homeOf(reader, namespace)),
  );
  const memory = memoryOf(distribution, options, profile);
  return reader.list({ role: 'hosted', apiVersion: 'v1', kind: 'Namespace' }).map((namespace) => {
    const { name } = namespace.metadata;
    const standing = profile.secrets.map((secret) => reader.get(secretRef(name, secret.name)));
    const refused = profile.secrets.map((secret) => reader.refusal(secretRef(name, secret.name))?.code);
    const seen = [...consent, ...sources, ...homes, ...standing, ...refused];
    const known = memory.get(namespace);
    if (known !== undefined && sameObjects(known.seen, seen)) return [name, known.standing];
    const found = look({ world: reader, distribution, namespace, options }, profile);
    memory.set(namespace, { seen, standing: found });
    return [name, found];
  });
}

function homeOf(reader: Reader, name: string): string {
  const namespace = reader.get(namespaceRef(name));
  return namespace === undefined ? '' : `${namespace.metadata.uid} ${isTerminating(namespace)}`;
}

function memoryOf(
  distribution: Distribution,
  options: InjectionOptions,
  profile: PullSecretProfile,
): WeakMap<KubeObject, Remembered> {
  const byOptions = within(remembered, distribution, () => new WeakMap());
  return within(
    within(byOptions, options, () => new WeakMap()),
    profile,
    () => new WeakMap(),
  );
}

function within<K extends WeakKey, V>(map: WeakMap<K, V>, key: K, make: () => V): V {
  const known = map.get(key) ?? make();
  map.set(key, known);
  return known;
}

function sameObjects(a: readonly unknown[], b: readonly unknown[]): boolean {
  return a.length === b.length && a.every((object, at) => object === b[at]);
}

function look(context: CopyContext, profile: PullSecretProfile): Standing {
  const { world: reader, namespace } = context;
  if (!serves(profile, namespaceLabels(namespace), context.options) || isTerminating(namespace))
    return UNSELECTED;
  const absent = absentOf(context, profile);
  if (!profile.distributes) return { selected: true, current: false, troubles: [], ...absent };
  const copies = profile.secrets.flatMap((secret) => copyOf(context, profile, secret) ?? []);
  return {
    selected: true,
    current: copies.every((copy) => isCurrent(reader, copy)),
    troubles: copies.flatMap(({ trouble }) => trouble ?? []),
    ...absent,
  };
}

function absentOf(
  { world: reader, namespace }: CopyContext,
  profile: PullSecretProfile,
): { readonly absent?: string } {
  if (!profile.injects) return {};
  const brought = profile.secrets.filter(({ sources }) => profile.distributes && sources.length > 0);
  const found = profile.secrets.find(
    (secret) =>
      !brought.includes(secret) && reader.get(secretRef(namespace.metadata.name, secret.name)) === undefined,
  );
  return found === undefined ? {} : { absent: found.name };
}

function isCurrent(reader: Reader, copy: Copy): boolean {
  if (copy.trouble !== undefined) return false;
  const present = reader.get(copy.ref) as SecretObject | undefined;
  const [has, wants] = [present?.data?.['.dockerconfigjson'], copy.object?.data?.['.dockerconfigjson']];
  return has !== undefined && wants !== undefined && sameSecret(has, wants);
}

/** Copies are on their way: counted again after this long. */
export const COUNT_AGAIN_MS = 1000;
/** Everything is well: counted again after this long, for what no event tells. */
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
  const { generation } = object.metadata;
  if (!read.ok) {
    const invalid = { reason: 'Invalid', message: read.problems.join('; ') };
    return statusOf(reader, object, {
      conditions: readiness('stalled', invalid, generation),
    });
  }
  const profile = profilesIn(reader).find((one) => one.name === name) ?? read.profile;
  const count = countNamespaces(reader, profile, options);
  const removal = heldRemoval(reader, object, options);
  const isTried = isLive(object) && profile.injects && !profile.suspended;
  const { tried, trials } = isTried ? tryPods(reader, { profile, object, options }) : NOT_TRIED;
  const conditions = profileConditions(reader, profile, count, {
    options,
    generation,
    held: heldCondition(object, removal),
    tried,
  });
  const summary = conditions.find(({ type }) => type === 'Ready');
  return {
    ...statusOf(reader, object, {
      conditions,
      ...countsOf(profile, count),
      ...heldOf(object, removal),
      ...missingOf(reader, object, profile, options),
    }),
    dryRuns: trials,
    metrics: samplesOf(reader, profile, count),
    events: eventsOf(profileRef(name), conditions),
    requeueAfterMs: summary?.reason === 'Distributing' ? COUNT_AGAIN_MS : RECOUNT_MS,
  };
}

/** An API server has stored it, and can be asked. */
function isLive({ metadata }: KubeObject): boolean {
  return metadata.creationTimestamp !== undefined;
}

const NOT_TRIED = { tried: undefined, trials: [] } as const;

function countsOf(profile: PullSecretProfile, count: Count): Readonly<Record<string, unknown>> {
  const { selected, current, blocked } = count;
  const brings = profile.distributes && profile.secrets.some(({ sources }) => sources.length > 0);
  return {
    namespaces: {
      selected,
      current,
      ...(blocked === 0 ? {} : { blocked }),
    },
    copies: brings ? `${current}/${selected}` : '-',
  };
}

/** Since when sources are gone; said only where it decides about copies. */
function missingOf(
  reader: Reader,
  object: KubeObject,
  profile: PullSecretProfile,
  options: InjectionOptions,
): Readonly<Record<string, unknown>> {
  const keeps = profile.copies.removeAfterMs === undefined;
  const missing = keeps ? [] : missingSources(reader, profile, object, options);
  const { missingSources: before } = (object.status ?? {}) as { missingSources?: unknown };
  return missing.length === 0 && before === undefined ? {} : { missingSources: missing };
}

/** What names the removal, until it is done or taken back. */
function heldOf({ status }: KubeObject, removal: HeldRemoval | undefined): Readonly<Record<string, unknown>> {
  if (removal !== undefined) return { heldRemoval: removal.hash };
  // A status is merged: what is not said stays.
  return ((status ?? {}) as { heldRemoval?: unknown }).heldRemoval === undefined ? {} : { heldRemoval: '' };
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

/** The status of an object of ours: conditions keep the time of their last transition. */
export function statusOf(
  reader: Reader,
  { apiVersion, kind, metadata, status }: KubeObject,
  {
    conditions,
    ...rest
  }: { readonly conditions: readonly ConditionInput[]; readonly [field: string]: unknown },
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
          ...rest,
          conditions: nextConditions(before, conditions, reader.now),
        },
      },
    ],
  };
}
