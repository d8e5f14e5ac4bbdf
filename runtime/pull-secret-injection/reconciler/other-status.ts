/**
 * Reconciles the status of SidecarSets and grants. Kruise, if installed, owns the status of SidecarSets: the reconciler then
 * writes a PullStatus in its own namespace instead.
 */

import { type ConditionInput, type ConditionText, readinessOf } from '../../core/kubernetes/conditions.ts';
import type { KubeObject } from '../../core/kubernetes/object.ts';
import { counted, countedOf } from '../../core/text.ts';
import type { Ref, Result } from '../../engine/contract.ts';
import { reportPullStatus } from '../../engine/pull-status.ts';
import { ANY_PROFILE, GRANT, readPullSecretGrant } from '../kinds/grant.ts';
import {
  isDrawn,
  namesGiven,
  pinnedRevision,
  pinText,
  type SidecarSet,
  type SidecarSetRevision,
} from '../kinds/sidecar-set.ts';
import { RECONCILER_NAME } from '../options.ts';
import { heldCondition, heldRemoval, heldText } from './namespace.ts';
import { injectionState, trySet } from './pods.ts';
import {
  COUNT_AGAIN_MS,
  type Count,
  causeConditions,
  countNamespaces,
  distributing,
  eventsOf,
  NOT_TRIED,
  platformTrouble,
  RECOUNT_MS,
  samplesOf,
  statusOf,
} from './profile-status.ts';
import {
  bringerName,
  type Context,
  distributionIn,
  KRUISE_NAMESPACE,
  kruiseInjects,
  namespaceRef,
  namesText,
  planIn,
  profileRef,
  revisionsOf,
  secretRef,
  sidecarSetObjects,
  sidecarSetOf,
  unreadText,
} from './view.ts';

/** Reconciles the status of a SidecarSet, or its PullStatus. */
export function reconcileSidecarSet(context: Context, name: string): Result {
  const { reader } = context;
  const object = sidecarSetObjects(reader).find((candidate) => candidate.metadata.name === name);
  const isKruises = kruiseInjects(reader);
  const { ownNamespace: namespace } = context.options;
  if (object === undefined || (isKruises && reader.get(namespaceRef(namespace)) === undefined)) return {};
  // A set with a source namespace also distributes its Secrets.
  const one = distributionIn(reader).distributors.find((candidate) => candidate.name === bringerName(object));
  const isBringing = one !== undefined && !one.suspended && one.secrets.length > 0;
  const count = isBringing ? countNamespaces(context, one) : undefined;
  const held = heldCondition(object, heldRemoval(context, object));
  const causes = count === undefined ? [] : causeConditions(count);
  const { apiVersion, kind } = object;
  // As for a profile: an event for each cause, the counts as metrics, and a requeue.
  const isQuiet = count === undefined && held.length === 0;
  const told: Result = isQuiet
    ? {}
    : {
        events: eventsOf({ role: 'hosted', apiVersion, kind, name }, [...held, ...causes]),
        ...(isBringing && count !== undefined ? { metrics: samplesOf(reader, one, count) } : {}),
        requeueAfterMs: count && distributing(count) ? COUNT_AGAIN_MS : RECOUNT_MS,
      };
  if (isKruises) {
    const said = reportPullStatus(reader, 'hosted', {
      reporter: RECONCILER_NAME,
      about: { apiVersion, kind, namespace, name },
      conditions: [...besideKruise(held, count), ...held, ...causes],
      verdicts: [],
    });
    return { apply: [said.apply], status: [said.status], ...told };
  }
  const facts = injectionFacts(context, object);
  return {
    ...statusOf(reader, object, [...injected(facts, held, count), ...held, CONTAINERS, ...causes]),
    dryRuns: facts.trials,
    ...told,
  };
}

function injected(
  { subject, trouble, unknown, tried }: ReturnType<typeof injectionFacts>,
  held: readonly ConditionInput[],
  count: Count | undefined,
): readonly ConditionInput[] {
  const names = namesGiven(subject.set, subject.variants);
  return readinessOf([
    ['stalled', heldText(held)],
    ['stalled', trouble],
    ['stalled', count && platformTrouble(count)],
    ['unknown', unknown],
    ['stalled', tried?.status === 'False' ? tried : undefined],
    ['unknown', tried?.status === 'Unknown' ? tried : undefined],
    ['progressing', count && distributing(count)],
    ['ready', { reason: 'Injecting', message: `imagePullSecrets are injected: ${names}` }],
  ]);
}

const CONTAINERS: ConditionInput = {
  type: 'ContainersInjected',
  status: 'False',
  reason: 'SecretsOnly',
  message: 'Only imagePullSecrets are injected, never containers; install Kruise to inject containers',
};

/** `Ready` of a set that Kruise injects reports the state of its copies only. */
function besideKruise(held: readonly ConditionInput[], count: Count | undefined): readonly ConditionInput[] {
  const message =
    count === undefined
      ? 'Kruise injects this SidecarSet; Pullwright delivers its Secrets when the annotation pullwright.dev/source-namespace is set'
      : `Kruise injects this SidecarSet; ${countedOf(count.current, count.selected, ['namespace', 'namespaces'], ['has', 'have'])} its Secrets`;
  return readinessOf([
    ['stalled', heldText(held)],
    ['stalled', count && platformTrouble(count)],
    ['progressing', count && distributing(count)],
    ['ready', { reason: 'LeftToKruise', message }],
  ]);
}

/** A set, its variants if it is pinned, and the pinned revision if that exists. */
interface Subject {
  readonly set: SidecarSet;
  readonly variants: readonly SidecarSet[];
  readonly pinned: SidecarSetRevision | undefined;
}

/** State of the injection of a set: problems, unknowns, and the dry run. */
function injectionFacts(context: Context, object: KubeObject) {
  const set = sidecarSetOf(object);
  const variants = planIn(context).sidecarSets.filter(({ name }) => name === set.name);
  const subject: Subject = { set, variants, pinned: pinnedRevision(set, revisionsOf(context.reader, set)) };
  const trouble = troubleOf(context, subject);
  const unknown = trouble === undefined ? unknownOf(context, subject) : undefined;
  const [first] = variants;
  // A dry run needs an API server that has stored the set, and at least one name.
  const isTried =
    trouble === undefined && unknown === undefined && object.metadata.creationTimestamp !== undefined;
  const { tried, trials } =
    isTried && first?.imagePullSecrets.some((one) => one !== '') === true
      ? trySet(context, first, object)
      : NOT_TRIED;
  return { subject, trouble, unknown, tried, trials };
}

/** Returns why it is unknown, or depends on the pod, whether names are injected; undefined if known. */
function unknownOf(context: Context, { variants }: Subject): ConditionText | undefined {
  const { status, reason, message } = injectionState(context);
  if (status === 'Unknown') return { reason, message };
  if (variants.some(({ containers }) => containers > 0) || context.options.withoutContainers)
    return undefined;
  return {
    reason: 'DependsOnOthers',
    message:
      'The set has no container: its secrets are injected only into pods that get a container from another set',
  };
}

function troubleOf(context: Context, subject: Subject): ConditionText | undefined {
  const own = specTrouble(subject);
  if (own !== undefined) return own;
  const bringing = planIn(context).sidecarSets.filter((other) => other.containers > 0);
  if (bringing.length === 0 && !context.options.withoutContainers)
    return {
      reason: 'NoContainers',
      message:
        'No SidecarSet has a container, so nothing is injected, as in Kruise; add one, set withoutContainers, or use a PullSecretProfile',
    };
  const state = injectionState(context);
  if (state.status === 'False') return { reason: state.reason, message: state.message };
  return isDrawn(subject.set) ? notDrawn(subject) : undefined;
}

/** Problems in the set's own spec that prevent injection. */
function specTrouble({ set, variants, pinned }: Subject): ConditionText | undefined {
  if (set.paused) return { reason: 'Paused', message: 'injectionStrategy.paused is set' };
  if (!set.selector.ok)
    return { reason: 'SelectorInvalid', message: `spec.selector: ${set.selector.problem}` };
  if (set.selector.requirements.length === 0)
    return { reason: 'SelectorEmpty', message: 'spec.selector is empty and selects no pod' };
  if (set.namespaceSelector?.ok === false)
    return {
      reason: 'SelectorInvalid',
      message: `spec.namespaceSelector: ${set.namespaceSelector.problem}; the set is not injected, and its copies stay until it is corrected`,
    };
  if (variants.length > 0) return undefined;
  const { selector } = set.update;
  if (pinned !== undefined && selector?.ok === false)
    return {
      reason: 'SelectorInvalid',
      message: `spec.updateStrategy.selector, which decides which pods get the pinned ${pinText(set)}: ${selector.problem}; the set is not injected until it is corrected`,
    };
  return {
    reason: 'RevisionMissing',
    message: `injectionStrategy.revision is ${pinText(set)}, but namespace "${KRUISE_NAMESPACE}" has no such ControllerRevision: the set is not injected; name an existing one`,
  };
}

/** Kruise chooses the revision for each pod at random, which is unsupported here. */
function notDrawn({ set, variants, pinned }: Subject): ConditionText {
  const old = pinned?.imagePullSecrets.join(', ') || 'none';
  return {
    reason: 'PartialNotDrawn',
    message: `updateStrategy.partition of ${set.update.partitionPercent}% is not applied per pod (${pinText(set)} has ${old}). Pods get: ${namesGiven(set, variants)}. Set it to 0% or 100%, or select pods by updateStrategy.selector`,
  };
}

// The status of one PullSecretGrant: whether it is valid, and whether its Secrets and profiles exist.

/** Reconciles the status of a grant. A grant may be created before its Secrets and profiles; the status lists missing ones. */
export function reconcileGrant(context: Context, namespace: string, name: string): Result {
  const { reader, options } = context;
  const ref: Ref = { role: 'hosted', ...GRANT, namespace, name };
  const object = reader.get(ref);
  if (object === undefined) return {};
  const { problems, secrets, profiles } = readPullSecretGrant(object, options.trustedLabelKeys);
  const known = new Set(distributionIn(reader).distributors.map((one) => one.name));
  const [unread] = secrets.flatMap((secret) => unreadText(context, { namespace, name: secret }) ?? []);
  const absent = secrets.filter((secret) => reader.get(secretRef(namespace, secret)) === undefined);
  const strange = profiles.filter(
    (one) => one !== ANY_PROFILE && !known.has(one) && reader.get(profileRef(one)) === undefined,
  );
  const whom = profiles.map((one) => (one === ANY_PROFILE ? 'any profile' : `"${one}"`)).join(', ');
  const summary = readinessOf(
    [
      [
        'stalled',
        problems.length === 0 ? undefined : { reason: 'GrantInvalid', message: problems.join('; ') },
      ],
      ['stalled', unread === undefined ? undefined : { reason: 'SourceUnread', message: unread }],
      ['progressing', waiting('SourceMissing', 'Secret', absent)],
      ['progressing', waiting('ProfileMissing', 'profile', strange)],
      [
        'ready',
        { reason: 'Granted', message: `${counted(secrets.length, 'Secret')} may be distributed by ${whom}` },
      ],
    ],
    object.metadata.generation,
  );
  return statusOf(reader, object, summary);
}

function waiting(reason: string, kind: string, names: readonly string[]): ConditionText | undefined {
  if (names.length === 0) return undefined;
  const [verb, pronoun] = names.length === 1 ? ['does', 'it does'] : ['do', 'they do'];
  const message = `The ${kind} ${namesText(names)} ${verb} not exist; the grant applies as soon as ${pronoun}`;
  return { reason, message };
}
