/** Whether new pods get names, by what stands in the cluster and not by what was configured. */
import type { World } from '../../controller/contract.ts';
import { WEBHOOK_NAME } from '../../rules/injection/profile-plan.ts';
import { INJECTION_POLICY_NAME } from '../../rules/injection/profile-policy.ts';
import type { ConditionInput } from '../../rules/kubernetes/conditions.ts';
import type { InjectionOptions } from '../options.ts';
import { policyVersion } from './policy-plan.ts';

const ADMISSION = 'admissionregistration.k8s.io';
export const ENDPOINT_SLICES: { readonly apiVersion: string; readonly kind: string } = {
  apiVersion: 'discovery.k8s.io/v1',
  kind: 'EndpointSlice',
};
/** On the slices of a Service. */
export const SERVICE_NAME_LABEL = 'kubernetes.io/service-name';

/** The state of admission: `True` only when everything that it needs was seen. */
export type InjectionState = Pick<ConditionInput, 'status' | 'reason' | 'message'>;

/** Looks. */
export function injectionState(world: World, options: InjectionOptions): InjectionState {
  if (options.admission === 'webhook') return webhookState(world);
  if (options.admission === 'policy') return policyState(world);
  return no(
    'AdmissionOff',
    'Neither policy nor webhook is switched on: the operator of the cluster sets admission of pull-secret-injection in the fleet',
  );
}

function no(reason: string, message: string): InjectionState {
  return { status: 'False', reason, message };
}

function policyState(world: World): InjectionState {
  const apiVersion = policyVersion(world);
  if (apiVersion === undefined)
    return no(
      'PolicyNotServed',
      'The cluster serves no MutatingAdmissionPolicy (Kubernetes 1.36 does); use the webhook',
    );
  const ref = { role: 'hosted', apiVersion, name: INJECTION_POLICY_NAME } as const;
  const policy = world.get({ ...ref, kind: 'MutatingAdmissionPolicy' });
  const binding = world.get({ ...ref, kind: 'MutatingAdmissionPolicyBinding' });
  if (policy === undefined || binding === undefined)
    return no(
      'PolicyPending',
      policy === undefined
        ? 'The admission policy is not there yet'
        : 'The admission policy has no binding yet, and changes no pod',
    );
  // It has no status that would say whether its expressions can be evaluated: a pod that is tried shows that.
  return { status: 'True', reason: 'Policy', message: 'New pods get the names from the admission policy' };
}

interface Hook {
  readonly clientConfig?: { readonly caBundle?: string };
}

function webhookState(world: World): InjectionState {
  const configuration = world.get({
    role: 'hosted',
    apiVersion: `${ADMISSION}/v1`,
    kind: 'MutatingWebhookConfiguration',
    name: WEBHOOK_NAME,
  });
  const hooks = (configuration?.['webhooks'] ?? []) as readonly Hook[];
  const [hook] = Array.isArray(hooks) ? hooks : [];
  if (hook === undefined)
    return no(
      'WebhookMissing',
      `There is no MutatingWebhookConfiguration "${WEBHOOK_NAME}"; apply the rendered one`,
    );
  if ((hook.clientConfig?.caBundle ?? '') === '' && configuration?.metadata.creationTimestamp !== undefined)
    return no(
      'WebhookUntrusted',
      `MutatingWebhookConfiguration "${WEBHOOK_NAME}" has no caBundle: the API server cannot trust the webhook; see to its certificate source`,
    );
  if (!world.serves({ role: 'hosted', ...ENDPOINT_SLICES }))
    return {
      status: 'Unknown',
      reason: 'WebhookNotSeen',
      message: 'Whether a webhook answers cannot be seen from here',
    };
  const ready = readyEndpoints(world);
  if (ready === 0)
    return no(
      'WebhookDown',
      `No pod of the Service "${WEBHOOK_NAME}" is ready: new pods pass as they are. What it waits for is in the log of Deployment "${WEBHOOK_NAME}"`,
    );
  return {
    status: 'True',
    reason: 'Webhook',
    message: `New pods get the names from the webhook (${ready} ready)`,
  };
}

function readyEndpoints(world: World): number {
  return world.list({ role: 'hosted', ...ENDPOINT_SLICES }).reduce((sum, slice) => {
    const endpoints = slice['endpoints'];
    const list = Array.isArray(endpoints)
      ? (endpoints as readonly { conditions?: { ready?: boolean } }[])
      : [];
    // A slice that does not say counts as ready, as for kube-proxy.
    return sum + list.filter(({ conditions }) => conditions?.ready !== false).length;
  }, 0);
}
