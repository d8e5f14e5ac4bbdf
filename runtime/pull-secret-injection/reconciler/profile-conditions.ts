/** What is said of one profile: a condition for each cause, and `Ready`, which sums up what the platform can do something about. */
import type { World } from '../../controller/contract.ts';
import type { PullSecretProfile } from '../../rules/injection/profile.ts';
import { CAUSES, type Cause } from '../../rules/injection/profile-causes.ts';
import { CONFIRM_ANNOTATION } from '../../rules/injection/removal-breaker.ts';
import {
  type ConditionInput,
  type ConditionText,
  type SummaryRow,
  summarize,
} from '../../rules/kubernetes/conditions.ts';
import { type InjectionOptions, isOutside } from '../options.ts';
import { accountConditions } from './account-conditions.ts';
import { annotatedGrant } from './consent.ts';
import { type InjectionState, injectionState } from './injecting.ts';
import { secretRef, sourceName } from './names.ts';
import type { Count } from './profile-count.ts';
import type { HeldRemoval } from './removals.ts';
import { namesText } from './unread.ts';
import { isTerminating, namespaceLabels, serves } from './view.ts';

/** What decides besides the profile and its namespaces. */
export interface ProfileContext {
  readonly options: InjectionOptions;
  readonly generation: number | undefined;
  readonly removal: HeldRemoval | undefined;
  /** What came of trying it; undefined where nothing is tried: in a folder, or while nothing injects. */
  readonly tried: InjectionState | undefined;
}

/** Type of the condition that is there while a removal waits for a confirmation. */
export const REMOVAL_HELD = 'RemovalHeld';

/** Everything. */
export function profileConditions(
  world: World,
  profile: PullSecretProfile,
  count: Count,
  { options, generation, removal, tried }: ProfileContext,
): readonly ConditionInput[] {
  const injecting = injectingOf(world, profile, options, tried);
  const causes = profile.distributes ? CAUSES.map((cause) => causeCondition(cause, count)) : [];
  const present = presentCondition(profile, count);
  const held = heldCondition(profile, removal);
  return [
    ...summarize(SUMMARY, { profile, count, injecting, present, held }, generation),
    ...held,
    injecting,
    ...causes,
    ...present,
    ...servedCondition(world, profile, options),
    ...accountConditions(world, profile, options),
    ...grantConditions(world, profile, options),
  ];
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
      .map((one) => `${one.message} (${one.count} of ${count.selected} namespaces)`)
      .join('; ');
    return { type, status: 'False', reason: first.reason, message };
  }
  if (count.selected === 0) return { type, status: 'Unknown', ...nothingSelected(count) };
  if (type === 'Granted' && count.unasked > 0)
    return {
      type,
      status: 'Unknown',
      reason: 'SourceMissing',
      message: `No PullSecretGrant gives a source that is not there to ${count.unasked} of ${count.selected} namespaces; the Secret itself may grant it once it is`,
    };
  return { type, status: 'True', reason: 'AsWanted', message: well };
}

/** What cannot be told where nobody is served. */
function nothingSelected({ pending }: Count): ConditionText {
  const asks = pending === 0 ? '' : `; ${pending} that ask by a PullSecretClaim are not granted yet`;
  return { reason: 'NothingSelected', message: `No namespace is selected: nothing could be checked${asks}` };
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
  if (selected === 0) return [{ type, status: 'Unknown', ...nothingSelected(count) }];
  if (absent.namespaces === 0)
    return [
      {
        type,
        status: 'True',
        reason: 'Present',
        message: `All ${selected} namespaces have the Secrets that others bring`,
      },
    ];
  // Only Secrets of one type are read, so that their absence is not proven.
  const message = `Secret "${absent.secret}", which somebody else is to bring, is not seen in ${absent.namespaces} of ${selected} namespaces, first in "${absent.first}"; bring it, or name its sources`;
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

/** Which copies stay for now, and how to say that they may go. */
function heldCondition(
  { name }: PullSecretProfile,
  removal: HeldRemoval | undefined,
): readonly ConditionInput[] {
  if (removal === undefined || removal.confirmed) return [];
  const { gone, all, hash } = removal;
  const some = gone
    .slice(0, 5)
    .map((copy) => `"${copy}"`)
    .join(', ');
  const more = gone.length > 5 ? ` and ${gone.length - 5} more` : '';
  const message = `removes ${gone.length} of ${all} copies: ${some}${more} stay until the annotation ${CONFIRM_ANNOTATION}: "${hash}" on PullSecretProfile "${name}" confirms it`;
  return [{ type: REMOVAL_HELD, status: 'True', reason: 'Share', message }];
}

interface Summary {
  readonly held: readonly ConditionInput[];
  readonly profile: PullSecretProfile;
  readonly count: Count;
  readonly injecting: ConditionInput;
  readonly present: readonly ConditionInput[];
}

/** What the platform must do something about comes first; nothing concludes well from what cannot be told. */
const SUMMARY: readonly SummaryRow<Summary>[] = [
  ['stalled', heldBy],
  ['stalled', suspendedBy],
  ['stalled', causesBy],
  ['stalled', offBy],
  ['unknown', unknownBy],
  ['progressing', distributingBy],
  ['progressing', pendingBy],
  ['ready', readyBy],
];

function heldBy({ held: [held] }: Summary): ConditionText | undefined {
  return held === undefined ? undefined : { reason: REMOVAL_HELD, message: held.message };
}

function suspendedBy({ profile }: Summary): ConditionText | undefined {
  if (!profile.suspended) return undefined;
  return { reason: 'Suspended', message: 'spec.suspend is set: nothing is injected or brought up to date' };
}

function causesBy({ profile, count }: Summary): ConditionText | undefined {
  const causes = profile.distributes ? CAUSES.filter(({ whose }) => whose === 'platform') : [];
  const bad = causes.map((cause) => causeCondition(cause, count)).filter(({ status }) => status === 'False');
  const [first] = bad;
  if (first === undefined) return undefined;
  return { reason: first.reason, message: bad.map(({ message }) => message).join('; ') };
}

function offBy({ profile, injecting }: Summary): ConditionText | undefined {
  const isOff = injecting.status === 'False' && profile.injects && injecting.reason !== 'PolicyPending';
  return isOff ? injecting : undefined;
}

function unknownBy({ count, injecting, present }: Summary): ConditionText | undefined {
  if (count.selected === 0) return nothingSelected(count);
  return [injecting, ...present].find(({ status }) => status === 'Unknown');
}

function distributingBy({ profile, count }: Summary): ConditionText | undefined {
  if (!profile.distributes || count.current + count.blocked >= count.selected) return undefined;
  return {
    reason: 'Distributing',
    message: `${count.current} of ${count.selected} namespaces are up to date; next is "${count.behind ?? ''}"`,
  };
}

function pendingBy({ profile, injecting }: Summary): ConditionText | undefined {
  return profile.injects && injecting.reason === 'PolicyPending' ? injecting : undefined;
}

function readyBy({ profile, count }: Summary): ConditionText {
  const reason = count.blocked === 0 ? 'Current' : 'BlockedByTenants';
  return { reason, message: readyText(profile, count) };
}

function readyText({ distributes }: PullSecretProfile, { selected, current, blocked }: Count): string {
  if (!distributes) return `${selected} namespaces are selected`;
  if (blocked === 0) return `All ${selected} namespaces hold the Secrets`;
  return `${current} of ${selected} namespaces hold the Secrets; in ${blocked} their owners have to act, see TargetsFree`;
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
