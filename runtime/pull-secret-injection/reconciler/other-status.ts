/**
 * What becomes of a SidecarSet. Where the definition is ours its status says so; where Kruise is installed the status is
 * Kruise's, and a PullStatus in our own namespace speaks instead.
 */

import {
  type ConditionInput,
  type ConditionText,
  type SummaryRow,
  summarize,
} from '../../core/kubernetes/conditions.ts';
import type { KubeObject } from '../../core/kubernetes/object.ts';
import { counted, countedOf } from '../../core/text.ts';
import type { Reader, Ref, Result } from '../../engine/contract.ts';
import { reportPullStatus } from '../../engine/pull-status.ts';
import {
  ANY_PROFILE,
  GRANT_API_VERSION,
  GRANT_KIND,
  type PullSecretGrant,
  readPullSecretGrant,
} from '../kinds/grant.ts';
import {
  isDrawn,
  namesGiven,
  pinnedRevision,
  pinText,
  type SidecarSet,
  type SidecarSetRevision,
} from '../kinds/sidecar-set.ts';
import { namespaceRef, secretRef } from '../names.ts';
import { type InjectionOptions, RECONCILER_NAME } from '../options.ts';
import { injectionState, type TriedPod, trySet } from './pods.ts';
import {
  COUNT_AGAIN_MS,
  type Count,
  causeConditions,
  countNamespaces,
  distributing,
  eventsOf,
  platformTrouble,
  profileRef,
  RECOUNT_MS,
  samplesOf,
  statusOf,
} from './profile-status.ts';
import { heldCondition, heldRemoval, heldText } from './removals.ts';
import {
  bringerName,
  type Distributor,
  distributionIn,
  KRUISE_NAMESPACE,
  kruiseInjects,
  planIn,
  revisionsOf,
  sidecarSetObjects,
  sidecarSetOf,
  unreadText,
} from './view.ts';

/** What should be true of the report on a SidecarSet. */
export function reconcileSidecarSet(reader: Reader, name: string, options: InjectionOptions): Result {
  const object = sidecarSetObjects(reader).find((candidate) => candidate.metadata.name === name);
  if (object === undefined) return {};
  return kruiseInjects(reader) ? reportBeside(reader, object, options) : ownStatus(reader, object, options);
}

function ownStatus(reader: Reader, object: KubeObject, options: InjectionOptions): Result {
  const { apiVersion, kind, metadata } = object;
  const copies = copiesOf(reader, object, options);
  const held = heldCondition(object, heldRemoval(reader, object, options));
  const { conditions, trials } = conditionsOf(reader, object, options, { copies, held });
  const ref: Ref = { role: 'hosted', apiVersion, kind, name: metadata.name };
  return {
    ...statusOf(reader, object, { conditions }),
    dryRuns: trials,
    ...tellCopies(reader, ref, copies, held),
  };
}

/** What a set that says where its secrets come from brings, and how far that is. */
interface Copies {
  readonly one: Distributor;
  readonly count: Count;
}

function copiesOf(reader: Reader, object: KubeObject, options: InjectionOptions): Copies | undefined {
  const name = bringerName(object);
  const one = distributionIn(reader).distributors.find((candidate) => candidate.name === name);
  if (one === undefined || one.suspended || one.secrets.length === 0) return undefined;
  return { one, count: countNamespaces(reader, one, options) };
}

/** As of a profile: an event for each cause, the counts as metrics, and another look. */
function tellCopies(
  reader: Reader,
  regarding: Ref,
  copies: Copies | undefined,
  held: readonly ConditionInput[],
): Result {
  if (copies === undefined)
    return held.length === 0 ? {} : { events: eventsOf(regarding, held), requeueAfterMs: RECOUNT_MS };
  const { one, count } = copies;
  return {
    events: eventsOf(regarding, [...held, ...causeConditions(count)]),
    metrics: samplesOf(reader, one, count),
    requeueAfterMs: distributing(count) === undefined ? RECOUNT_MS : COUNT_AGAIN_MS,
  };
}

function reportBeside(reader: Reader, object: KubeObject, options: InjectionOptions): Result {
  const namespace = options.ownNamespace;
  if (reader.get(namespaceRef(namespace)) === undefined) return {};
  const { apiVersion, kind, metadata } = object;
  const copies = copiesOf(reader, object, options);
  const held = heldCondition(object, heldRemoval(reader, object, options));
  const said = reportPullStatus(reader, 'hosted', {
    reporter: RECONCILER_NAME,
    about: { apiVersion, kind, namespace, name: metadata.name },
    conditions: [
      ...summarize(BESIDE, { held, count: copies?.count }),
      ...held,
      ...(copies === undefined ? [] : causeConditions(copies.count)),
    ],
    verdicts: [],
  });
  const ref: Ref = { role: 'hosted', apiVersion, kind, name: metadata.name };
  return { apply: [said.apply], status: [said.status], ...tellCopies(reader, ref, copies, held) };
}

const BESIDE: readonly SummaryRow<Pick<SetFacts, 'held' | 'count'>>[] = [
  ['stalled', ({ held }) => heldText(held)],
  ['stalled', ({ count }) => count && platformTrouble(count)],
  ['progressing', ({ count }) => count && distributing(count)],
  [
    'ready',
    ({ count }) => ({
      reason: 'LeftToKruise',
      message:
        count === undefined
          ? 'Kruise injects this SidecarSet; Pullwright brings its Secrets when the annotation pullwright.dev/source-namespace says from where'
          : `Kruise injects this SidecarSet; ${countedOf(count.current, count.selected, ['namespace', 'namespaces'], ['holds', 'hold'])} its Secrets`,
    }),
  ],
];

function conditionsOf(
  reader: Reader,
  object: KubeObject,
  options: InjectionOptions,
  { copies, held }: { readonly copies: Copies | undefined; readonly held: readonly ConditionInput[] },
): { readonly conditions: readonly ConditionInput[]; readonly trials: TriedPod['trials'] } {
  const { set } = sidecarSetOf(object);
  const containers: ConditionInput = {
    type: 'ContainersInjected',
    status: 'False',
    reason: 'SecretsOnly',
    message: 'Only imagePullSecrets are injected, never containers; install Kruise to inject containers',
  };
  const variants = planIn(reader, options).sidecarSets.filter(({ name }) => name === set.name);
  const subject: Subject = { set, variants, pinned: pinnedRevision(set, revisionsOf(reader, set)) };
  const trouble = troubleOf(reader, subject, options);
  const unknown = trouble === undefined ? unknownOf(reader, subject, options) : undefined;
  const isTriable = trouble === undefined && unknown === undefined;
  const { tried, trials } = isTriable ? triedOf(reader, object, variants[0], options) : NOT_TRIED;
  return {
    conditions: [
      ...summarize(SUMMARY, { trouble, unknown, tried, subject, held, count: copies?.count }),
      ...held,
      containers,
      ...(copies === undefined ? [] : causeConditions(copies.count)),
    ],
    trials,
  };
}

/** A set, what it comes to with its pin put in, and the revision that it is pinned to, if that is there. */
interface Subject {
  readonly set: SidecarSet;
  readonly variants: readonly SidecarSet[];
  readonly pinned: SidecarSetRevision | undefined;
}

interface SetFacts {
  readonly trouble: ConditionText | undefined;
  readonly unknown: ConditionText | undefined;
  readonly tried: TriedPod['tried'];
  readonly subject: Subject;
  /** What is said of a removal of its copies that waits. */
  readonly held: readonly ConditionInput[];
  /** Of its copies, when it brings any. */
  readonly count: Count | undefined;
}

const SUMMARY: readonly SummaryRow<SetFacts>[] = [
  ['stalled', ({ held }) => heldText(held)],
  ['stalled', ({ trouble }) => trouble],
  ['stalled', ({ count }) => count && platformTrouble(count)],
  ['unknown', ({ unknown }) => unknown],
  ['stalled', ({ tried }) => (tried?.status === 'False' ? tried : undefined)],
  ['unknown', ({ tried }) => (tried?.status === 'Unknown' ? tried : undefined)],
  ['progressing', ({ count }) => count && distributing(count)],
  [
    'ready',
    ({ subject: { set, variants } }) => ({
      reason: 'Injecting',
      message: `imagePullSecrets are injected: ${namesGiven(set, variants)}`,
    }),
  ],
];

const NOT_TRIED: TriedPod = { tried: undefined, trials: [] };

/** A pod with its names, where an API server has stored the set and it names anything. */
function triedOf(
  reader: Reader,
  object: KubeObject,
  set: SidecarSet | undefined,
  options: InjectionOptions,
): TriedPod {
  const isTried =
    object.metadata.creationTimestamp !== undefined && set?.imagePullSecrets.some((one) => one !== '');
  return set === undefined || isTried !== true ? NOT_TRIED : trySet(reader, set, object, options);
}

/** What cannot be told for all pods at once. */
function unknownOf(
  reader: Reader,
  { variants }: Subject,
  options: InjectionOptions,
): ConditionText | undefined {
  const { status, reason, message } = injectionState(reader, options);
  if (status === 'Unknown') return { reason, message };
  if (variants.some(({ containers }) => containers > 0) || options.withoutContainers) return undefined;
  return {
    reason: 'DependsOnOthers',
    message:
      'The set brings no container: its secrets are injected only into pods that another set brings one to',
  };
}

function troubleOf(reader: Reader, subject: Subject, options: InjectionOptions): ConditionText | undefined {
  const own = specTrouble(subject);
  if (own !== undefined) return own;
  const bringing = planIn(reader, options).sidecarSets.filter((other) => other.containers > 0);
  if (bringing.length === 0 && !options.withoutContainers)
    return {
      reason: 'NoContainers',
      message:
        'No SidecarSet brings a container, and as in Kruise nothing is injected then; add one, set withoutContainers, or use a PullSecretProfile',
    };
  const state = injectionState(reader, options);
  if (state.status === 'False') return { reason: state.reason, message: state.message };
  return isDrawn(subject.set) ? notDrawn(subject) : undefined;
}

/** What the set itself says that keeps its names from pods. */
function specTrouble({ set, variants, pinned }: Subject): ConditionText | undefined {
  if (set.paused) return { reason: 'Paused', message: 'injectionStrategy.paused is set' };
  if (!set.selector.ok)
    return { reason: 'SelectorInvalid', message: `spec.selector: ${set.selector.problem}` };
  if (set.selector.requirements.length === 0)
    return { reason: 'SelectorEmpty', message: 'spec.selector is empty and selects no pod' };
  if (set.namespaceSelector?.ok === false)
    return {
      reason: 'SelectorInvalid',
      message: `spec.namespaceSelector: ${set.namespaceSelector.problem}; no pod gets names of this set, and Secrets that it brought stay until it is corrected`,
    };
  if (variants.length > 0) return undefined;
  const { selector } = set.update;
  if (pinned !== undefined && selector?.ok === false)
    return {
      reason: 'SelectorInvalid',
      message: `spec.updateStrategy.selector, which says who gets the pinned ${pinText(set)}: ${selector.problem}; no pod gets names of this set until it is corrected`,
    };
  return {
    reason: 'RevisionMissing',
    message: `injectionStrategy.revision names ${pinText(set)}, and namespace "${KRUISE_NAMESPACE}" has no such ControllerRevision: no pod gets names of this set; name one that is there`,
  };
}

/** Kruise would choose for each pod at random; here all of them get the current names. */
function notDrawn({ set, variants, pinned }: Subject): ConditionText {
  const old = pinned?.imagePullSecrets.join(', ') || 'none';
  return {
    reason: 'PartialNotDrawn',
    message: `updateStrategy.partition of ${set.update.partitionPercent}% is not drawn per pod (${pinText(set)} has ${old}). Pods get: ${namesGiven(set, variants)}. Set it to 0% or 100%, or tell the pods apart by updateStrategy.selector`,
  };
}

// The status of one PullSecretGrant: whether it can be read, and whether there is what it grants.

/** What should be true of the status of a grant. */
export function reconcileGrant(
  reader: Reader,
  namespace: string,
  name: string,
  options: InjectionOptions,
): Result {
  const ref: Ref = { role: 'hosted', apiVersion: GRANT_API_VERSION, kind: GRANT_KIND, namespace, name };
  const object = reader.get(ref);
  if (object === undefined) return {};
  const grant = readPullSecretGrant(object, options.trustedLabelKeys);
  const facts = { world: reader, grant, options };
  return statusOf(reader, object, {
    conditions: summarize(GRANT_SUMMARY, facts, object.metadata.generation),
  });
}

interface GrantFacts {
  readonly world: Reader;
  readonly grant: PullSecretGrant;
  readonly options: InjectionOptions;
}

/** A grant may come before what it grants; then it says what it waits for. */
const GRANT_SUMMARY: readonly SummaryRow<GrantFacts>[] = [
  ['stalled', ({ grant: { problems } }) => invalid(problems)],
  ['stalled', unreadSecrets],
  ['progressing', absentSecrets],
  ['progressing', strangeProfiles],
  ['ready', granted],
];

function invalid(problems: readonly string[]): ConditionText | undefined {
  return problems.length === 0 ? undefined : { reason: 'GrantInvalid', message: problems.join('; ') };
}

function unreadSecrets({ world: reader, grant, options }: GrantFacts): ConditionText | undefined {
  const { namespace } = grant;
  const [message] = grant.secrets.flatMap((name) => unreadText(reader, { namespace, name }, options) ?? []);
  return message === undefined ? undefined : { reason: 'SourceUnread', message };
}

function absentSecrets({ world: reader, grant }: GrantFacts): ConditionText | undefined {
  const absent = grant.secrets.filter((name) => reader.get(secretRef(grant.namespace, name)) === undefined);
  return waiting('SourceMissing', 'Secret', absent);
}

function strangeProfiles({ world: reader, grant }: GrantFacts): ConditionText | undefined {
  const known = new Set(distributionIn(reader).distributors.map(({ name }) => name));
  const strange = grant.profiles.filter(
    (name) => name !== ANY_PROFILE && !known.has(name) && reader.get(profileRef(name)) === undefined,
  );
  return waiting('ProfileMissing', 'profile', strange);
}

function granted({ grant }: GrantFacts): ConditionText {
  const profiles = grant.profiles
    .map((name) => (name === ANY_PROFILE ? 'any profile' : `"${name}"`))
    .join(', ');
  return {
    reason: 'Granted',
    message: `${counted(grant.secrets.length, 'Secret')} may be brought by ${profiles}`,
  };
}

function waiting(reason: string, kind: string, names: readonly string[]): ConditionText | undefined {
  if (names.length === 0) return undefined;
  const list = names
    .slice(0, 10)
    .map((name) => `"${name}"`)
    .join(', ');
  return {
    reason,
    message: `The ${kind} ${list} ${names.length === 1 ? 'does' : 'do'} not exist; the grant holds as soon as ${names.length === 1 ? 'it does' : 'they do'}`,
  };
}
