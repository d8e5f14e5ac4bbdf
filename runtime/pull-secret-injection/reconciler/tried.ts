/** What came of trying whether new pods get the names of a profile or a SidecarSet, and what is to be tried. */
import type { Outcome, World } from '../../controller/contract.ts';
import type { PullSecretProfile } from '../../rules/injection/profile.ts';
import type { SidecarSet } from '../../rules/injection/sidecar-set.ts';
import type { Condition } from '../../rules/kubernetes/conditions.ts';
import type { KubeObject } from '../../rules/kubernetes/object.ts';
import type { InjectionOptions } from '../options.ts';
import { type InjectionState, injectionState } from './injecting.ts';
import { type Trial, trialOf, trialOfSet } from './trial.ts';
import { isMirrored } from './webhook-mirror.ts';

/** What is asked, and what is known of the answer. */
export interface TriedPod {
  readonly tried: InjectionState | undefined;
  readonly trials: NonNullable<Outcome['trials']>;
}

/** A profile as it is read, and as it is stored. */
interface Subject {
  readonly profile: PullSecretProfile;
  readonly object: KubeObject;
  readonly options: InjectionOptions;
}

/** Only while everything that can be looked at says that names are injected: else there is nothing to try. */
export function tryPods(world: World, { profile, object, options }: Subject): TriedPod {
  return tryTrial(world, trialOf(world, profile, options), before(object, 'Injecting'), options);
}

/** The same for a SidecarSet, whose `Ready` says it. */
export function trySet(
  world: World,
  set: SidecarSet,
  object: KubeObject,
  options: InjectionOptions,
): TriedPod {
  return tryTrial(world, trialOfSet(world, set, options), before(object, 'Ready'), options);
}

function tryTrial(
  world: World,
  trial: Trial | undefined,
  earlier: InjectionState | undefined,
  options: InjectionOptions,
): TriedPod {
  const state = injectionState(world, options);
  if (state.status !== 'True') return { tried: undefined, trials: [] };
  // Until pods are sent to the webhook there is nothing to try: what an earlier generation found still counts.
  if (options.admission === 'webhook' && !isMirrored(world, options))
    return { tried: earlier ?? PENDING, trials: [] };
  if (trial === undefined)
    return {
      tried: unknown('NothingToTry', 'No selected namespace takes injected pods: nothing could be tried'),
      trials: [],
    };
  const answer = world.trial(trial);
  const { namespace } = trial;
  const trials = [trial];
  if (answer === undefined) return { tried: earlier ?? PENDING, trials };
  if (!answer.ok)
    return {
      tried: unknown('NotTried', `A pod could not be tried in namespace "${namespace}": ${answer.reason}`),
      trials,
    };
  if (answer.lacks.length === 0)
    return {
      tried: { ...state, message: `${state.message}: one was tried in namespace "${namespace}"` },
      trials,
    };
  const remedy =
    options.admission === 'webhook'
      ? 'look at whether its certificate is made by the caBundle for the name of the Service, at whether the API server reaches it, and at what else changes pods at admission'
      : 'look at what else changes pods at admission';
  const message = `A pod that was tried in namespace "${namespace}" lacks ${answer.lacks.join(', ')}: ${remedy}`;
  return { tried: { status: 'False', reason: 'NotInjected', message }, trials };
}

const PENDING: InjectionState = unknown('NotTriedYet', 'A pod is being tried');

function unknown(reason: string, message: string): InjectionState {
  return { status: 'Unknown', reason, message };
}

/** What an earlier process found of the same generation counts until this one has an answer. */
function before({ metadata, status }: KubeObject, said: 'Injecting' | 'Ready'): InjectionState | undefined {
  const { observedGeneration, conditions = [] } = (status ?? {}) as {
    readonly observedGeneration?: number;
    readonly conditions?: readonly Condition[];
  };
  const found = conditions.find(({ type }) => type === said);
  if (found?.status !== 'True' || observedGeneration !== metadata.generation) return undefined;
  return { status: 'True', reason: found.reason, message: found.message };
}
