/** What is said of one profile: a condition for each cause, and `Ready`, which sums up what the platform can do something about. */
import type { World } from '../../controller/contract.ts';
import type { PullSecretProfile } from '../../rules/injection/profile.ts';
import {
  type ConditionInput,
  type ConditionText,
  type SummaryRow,
  summarize,
} from '../../rules/kubernetes/conditions.ts';
import { counted, countedOf } from '../../rules/text/counted.ts';
import { type InjectionOptions, isOutside } from '../options.ts';
import { causeConditions, distributing, NOTHING_SELECTED, platformTrouble } from './cause-conditions.ts';
import { annotatedGrant } from './consent.ts';
import { heldText } from './held-removal.ts';
import { type InjectionState, injectionState } from './injecting.ts';
import { secretRef, sourceName } from './names.ts';
import type { Count } from './profile-count.ts';
import { accountConditions } from './service-accounts.ts';
import { namesText } from './unread.ts';
import { isTerminating, namespaceLabels, serves } from './view.ts';

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
  world: World,
  profile: PullSecretProfile,
  count: Count,
  { options, generation, held, tried }: ProfileContext,
): readonly ConditionInput[] {
  const injecting = injectingOf(world, profile, options, tried);
  const causes = profile.distributes ? causeConditions(count) : [];
  const present = presentCondition(profile, count);
  const accounts = accountConditions(world, profile, options);
  return [
    ...summarize(SUMMARY, { profile, count, injecting, present, held, accounts }, generation),
    ...held,
    injecting,
    ...causes,
    ...present,
    ...servedCondition(world, profile, options),
    ...accounts,
    ...grantConditions(world, profile, options),
  ];
}

/** Whether new pods get the names. */
function injectingOf(
  world: World,
  profile: PullSecretProfile,
  options: InjectionOptions,
  tried: InjectionState | undefined,
): ConditionInput {
  const type = 'Injecting';
  if (!profile.injects)
    return { type, status: 'False', reason: 'NotWanted', message: 'spec.mode is Distribute' };
  if (profile.suspended)
    return { type, status: 'False', reason: 'Suspended', message: 'spec.suspend is set' };
  const state = injectionState(world, options);
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
  world: World,
  profile: PullSecretProfile,
  options: InjectionOptions,
): readonly ConditionInput[] {
  const { namespaces } = options;
  const outside = world
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

/** Clauses of grants that grant nothing: the owner of the source should know. */
function grantConditions(
  world: World,
  profile: PullSecretProfile,
  options: InjectionOptions,
): readonly ConditionInput[] {
  const problems = profile.secrets.flatMap(({ sources }) =>
    sources.flatMap((source) => {
      const object = world.get(secretRef(source.namespace, source.name));
      const found = object === undefined ? [] : annotatedGrant(object, options.trustedLabelKeys).problems;
      return found.map((problem) => `Secret "${sourceName(source)}": ${problem}`);
    }),
  );
  if (problems.length === 0) return [];
  return [{ type: 'GrantsReadable', status: 'False', reason: 'GrantInvalid', message: problems.join('; ') }];
}
