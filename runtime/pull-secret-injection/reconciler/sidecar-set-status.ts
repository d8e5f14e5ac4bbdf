/**
 * What becomes of a SidecarSet. Where the definition is ours its status says so; where Kruise is installed the status is
 * Kruise's, and a PullStatus in our own namespace speaks instead.
 */

import type { Outcome, Ref, World } from '../../controller/contract.ts';
import { reportPullStatus } from '../../controller/pull-status.ts';
import type { SidecarSet } from '../../rules/injection/sidecar-set.ts';
import { isDrawn } from '../../rules/injection/sidecar-set-injection.ts';
import {
  type Condition,
  type ConditionInput,
  type ConditionText,
  nextConditions,
  readiness,
  type SummaryRow,
  summarize,
} from '../../rules/kubernetes/conditions.ts';
import type { KubeObject } from '../../rules/kubernetes/object.ts';
import { RECONCILER_NAME } from '../name.ts';
import type { InjectionOptions } from '../options.ts';
import { injectionState } from './injecting.ts';
import { namespaceRef } from './names.ts';
import { type TriedPod, trySet } from './tried.ts';
import { kruiseInjects, planIn, sidecarSetObjects, sidecarSetOf } from './view.ts';

/** What should be true of the report on a SidecarSet. */
export function reconcileSidecarSet(world: World, name: string, options: InjectionOptions): Outcome {
  const object = sidecarSetObjects(world).find((candidate) => candidate.metadata.name === name);
  if (object === undefined) return {};
  return kruiseInjects(world) ? reportBeside(world, object, options) : ownStatus(world, object, options);
}

function ownStatus(world: World, object: KubeObject, options: InjectionOptions): Outcome {
  const { apiVersion, kind, metadata, status } = object;
  const before = (status as { conditions?: readonly Condition[] } | undefined)?.conditions ?? [];
  const generation = metadata.generation === undefined ? {} : { observedGeneration: metadata.generation };
  const { conditions: said, trials } = conditionsOf(world, object, options);
  const conditions = nextConditions(before, said, world.now);
  const ref: Ref = { role: 'hosted', apiVersion, kind, name: metadata.name };
  return { status: [{ ref, status: { ...generation, conditions } }], trials };
}

function reportBeside(world: World, object: KubeObject, options: InjectionOptions): Outcome {
  const namespace = options.ownNamespace;
  if (world.get(namespaceRef(namespace)) === undefined) return {};
  const { apiVersion, kind, metadata } = object;
  const message =
    'Kruise injects this SidecarSet; Pullwright brings its Secrets when the annotation pullwright.dev/source-namespace says from where';
  const said = reportPullStatus(world, 'hosted', {
    reporter: RECONCILER_NAME,
    about: { apiVersion, kind, namespace, name: metadata.name },
    conditions: readiness('ready', { reason: 'LeftToKruise', message }),
    verdicts: [],
  });
  return { apply: [said.apply], status: [said.status] };
}

function conditionsOf(
  world: World,
  object: KubeObject,
  options: InjectionOptions,
): { readonly conditions: readonly ConditionInput[]; readonly trials: TriedPod['trials'] } {
  const { set } = sidecarSetOf(object);
  const containers: ConditionInput = {
    type: 'ContainersInjected',
    status: 'False',
    reason: 'SecretsOnly',
    message: 'Only imagePullSecrets are injected, never containers; install Kruise to inject containers',
  };
  const trouble = troubleOf(world, object, options);
  const unknown = trouble === undefined ? unknownOf(world, set, options) : undefined;
  const isTriable = trouble === undefined && unknown === undefined;
  const { tried, trials } = isTriable ? triedOf(world, object, options) : NOT_TRIED;
  return { conditions: [...summarize(SUMMARY, { trouble, unknown, tried, set }), containers], trials };
}

interface SetFacts {
  readonly trouble: ConditionText | undefined;
  readonly unknown: ConditionText | undefined;
  readonly tried: TriedPod['tried'];
  readonly set: SidecarSet;
}

const SUMMARY: readonly SummaryRow<SetFacts>[] = [
  ['stalled', ({ trouble }) => trouble],
  ['unknown', ({ unknown }) => unknown],
  ['stalled', ({ tried }) => (tried?.status === 'False' ? tried : undefined)],
  ['unknown', ({ tried }) => (tried?.status === 'Unknown' ? tried : undefined)],
  [
    'ready',
    ({ set }) => ({
      reason: 'Injecting',
      message: `imagePullSecrets are injected: ${set.imagePullSecrets.join(', ') || 'none'}`,
    }),
  ],
];

const NOT_TRIED: TriedPod = { tried: undefined, trials: [] };

/** A pod with its names, where an API server has stored the set and it names anything. */
function triedOf(world: World, object: KubeObject, options: InjectionOptions): TriedPod {
  const set = planIn(world, options).sidecarSets.find(({ name }) => name === object.metadata.name);
  const isTried =
    object.metadata.creationTimestamp !== undefined && set?.imagePullSecrets.some((one) => one !== '');
  return set === undefined || isTried !== true ? NOT_TRIED : trySet(world, set, object, options);
}

/** What cannot be told for all pods at once. */
function unknownOf(world: World, set: SidecarSet, options: InjectionOptions): ConditionText | undefined {
  const { status, reason, message } = injectionState(world, options);
  if (status === 'Unknown') return { reason, message };
  if (set.containers > 0 || options.withoutContainers) return undefined;
  return {
    reason: 'DependsOnOthers',
    message:
      'The set brings no container: its secrets are injected only into pods that another set brings one to',
  };
}

function troubleOf(world: World, object: KubeObject, options: InjectionOptions): ConditionText | undefined {
  const { set } = sidecarSetOf(object);
  if (set.paused) return { reason: 'Paused', message: 'injectionStrategy.paused is set' };
  if (!set.selector.ok)
    return { reason: 'SelectorInvalid', message: `spec.selector: ${set.selector.problem}` };
  if (set.selector.requirements.length === 0)
    return { reason: 'SelectorEmpty', message: 'spec.selector is empty and selects no pod' };
  if (!planIn(world, options).sidecarSets.some(({ name }) => name === set.name))
    return {
      reason: 'RevisionMissing',
      message: 'injectionStrategy.revision names a revision that does not exist',
    };
  const bringing = planIn(world, options).sidecarSets.filter((other) => other.containers > 0);
  if (bringing.length === 0 && !options.withoutContainers)
    return {
      reason: 'NoContainers',
      message:
        'No SidecarSet brings a container, and as in Kruise nothing is injected then; add one, set withoutContainers, or use a PullSecretProfile',
    };
  const state = injectionState(world, options);
  if (state.status === 'False') return { reason: state.reason, message: state.message };
  if (isDrawn(set))
    return {
      reason: 'PartialNotDrawn',
      message:
        'updateStrategy.partition between 0% and 100% is not drawn per pod: pods that updateStrategy.selector selects get the current names',
    };
  return undefined;
}
