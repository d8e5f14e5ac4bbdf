/** The webhook's configuration, brought up to date with what injects: pods that would get nothing are not sent. */
import { isDeepStrictEqual } from 'node:util';
import type { Action, Outcome, Ref, World } from '../../controller/contract.ts';
import { WEBHOOK_NAME } from '../../rules/injection/profile-plan.ts';
import { baseHook, type Hook, mirroredHooks } from '../../rules/injection/profile-webhook.ts';
import type { KubeObject } from '../../rules/kubernetes/object.ts';
import type { InjectionOptions } from '../options.ts';
import { planIn } from './view.ts';

const REF: Ref = {
  role: 'hosted',
  apiVersion: 'admissionregistration.k8s.io/v1',
  kind: 'MutatingWebhookConfiguration',
  name: WEBHOOK_NAME,
};

/** What should be true of the configuration. The rendered one is only added to: without it there is no webhook to speak of. */
export function reconcileWebhook(world: World, options: InjectionOptions): Outcome {
  const configuration = world.get(REF);
  const { resourceVersion, uid } = configuration?.metadata ?? {};
  const wanted = wantedHooks(world, configuration, options);
  if (wanted === undefined || resourceVersion === undefined) return {};
  const patch: Action = {
    action: 'json-patch',
    ref: { ...REF, ...(uid === undefined ? {} : { uid }) },
    operations: [
      // Whoever injects the CA writes the same list: what it wrote in between is read first.
      { op: 'test', path: '/metadata/resourceVersion', value: resourceVersion },
      { op: 'replace', path: '/webhooks', value: wanted },
    ],
  };
  return { actions: [patch] };
}

/** Whether pods are sent by what injects now. */
export function isMirrored(world: World, options: InjectionOptions): boolean {
  return wantedHooks(world, world.get(REF), options) === undefined;
}

/** What the answer to a trial depends on: the entry as it was rendered. */
export function renderedHook(world: World): string {
  const configuration = world.get(REF);
  return `${configuration?.metadata.uid} ${JSON.stringify(baseHook(hooksOf(configuration)))}`;
}

function hooksOf(configuration: KubeObject | undefined): readonly Hook[] {
  const hooks = configuration?.['webhooks'];
  return Array.isArray(hooks) ? (hooks as readonly Hook[]) : [];
}

/** The list as it should be; undefined when it is, or there is none. */
function wantedHooks(
  world: World,
  configuration: KubeObject | undefined,
  options: InjectionOptions,
): readonly Hook[] | undefined {
  const present = hooksOf(configuration);
  const wanted = mirroredHooks(planIn(world, options), present);
  return isDeepStrictEqual(wanted, present) ? undefined : wanted;
}
