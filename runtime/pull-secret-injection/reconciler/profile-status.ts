/** The status of one profile: whether it can be read, whether pods get its names, how many namespaces hold its Secrets. */
import type { EventNote, Outcome, Ref, Sample, World } from '../../controller/contract.ts';
import { PROFILE_API_VERSION, PROFILE_KIND, type PullSecretProfile } from '../../rules/injection/profile.ts';
import {
  type Condition,
  type ConditionInput,
  nextConditions,
  readiness,
} from '../../rules/kubernetes/conditions.ts';
import type { KubeObject } from '../../rules/kubernetes/object.ts';
import type { InjectionOptions } from '../options.ts';
import { type HeldRemoval, heldCondition, REMOVAL_HELD } from './held-removal.ts';
import { missingSources } from './missing-sources.ts';
import { profileConditions } from './profile-conditions.ts';
import { type Count, countNamespaces } from './profile-count.ts';
import { heldRemoval } from './removals.ts';
import { tryPods } from './tried.ts';
import { type Distributor, profileOf, profilesIn } from './view.ts';

/** Copies are on their way: counted again after this long. */
export const COUNT_AGAIN_MS = 1000;
/** Everything is well: counted again after this long, for what no event tells. */
export const RECOUNT_MS = 10_000;

/** The profile object. */
export function profileRef(name: string): Ref {
  return { role: 'hosted', apiVersion: PROFILE_API_VERSION, kind: PROFILE_KIND, name };
}

/** What should be true of the status of a profile. */
export function reconcileProfile(world: World, name: string, options: InjectionOptions): Outcome {
  const object = world.get(profileRef(name));
  if (object === undefined) return {};
  const read = profileOf(object);
  const { generation } = object.metadata;
  if (!read.ok) {
    const invalid = { reason: 'Invalid', message: read.problems.join('; ') };
    return statusOf(world, object, {
      conditions: readiness('stalled', invalid, generation),
    });
  }
  const profile = profilesIn(world).find((one) => one.name === name) ?? read.profile;
  const count = countNamespaces(world, profile, options);
  const removal = heldRemoval(world, object, options);
  const isTried = isLive(object) && profile.injects && !profile.suspended;
  const { tried, trials } = isTried ? tryPods(world, { profile, object, options }) : NOT_TRIED;
  const conditions = profileConditions(world, profile, count, {
    options,
    generation,
    held: heldCondition(object, removal),
    tried,
  });
  const summary = conditions.find(({ type }) => type === 'Ready');
  return {
    ...statusOf(world, object, {
      conditions,
      ...countsOf(profile, count),
      ...heldOf(object, removal),
      ...missingOf(world, object, profile, options),
    }),
    trials,
    metrics: samplesOf(world, profile, count),
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
  world: World,
  object: KubeObject,
  profile: PullSecretProfile,
  options: InjectionOptions,
): Readonly<Record<string, unknown>> {
  const keeps = profile.copies.removeAfterMs === undefined;
  const missing = keeps ? [] : missingSources(world, profile, object, options);
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
  { scope }: World,
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

function generationOf(object: KubeObject): { readonly observedGeneration?: number } {
  const { generation } = object.metadata;
  return generation === undefined ? {} : { observedGeneration: generation };
}

function statusOf(
  world: World,
  object: KubeObject,
  {
    conditions,
    ...rest
  }: { readonly conditions: readonly ConditionInput[]; readonly [field: string]: unknown },
): Outcome {
  const before = (object.status as { conditions?: readonly Condition[] } | undefined)?.conditions ?? [];
  return {
    status: [
      {
        ref: profileRef(object.metadata.name),
        status: {
          ...generationOf(object),
          ...rest,
          conditions: nextConditions(before, conditions, world.now),
        },
      },
    ],
  };
}
