/** Reconciles the admission policy or the webhook's configuration. If the plan cannot be compiled, the current policy stays. */

import { isDeepStrictEqual } from 'node:util';
import type { KubeObject } from '../../core/kubernetes/object.ts';
import type { Action, Reader, Ref, Result } from '../../engine/contract.ts';
import { PROFILE } from '../kinds/profile.ts';
import { excludedNamespaces } from '../options.ts';
import { compileInjectionPolicy, INJECTION_POLICY_NAME, WEBHOOK_NAME } from '../plan/plan.ts';
import { baseHook, type Hook, mirroredHooks } from '../plan/webhook-entries.ts';
import { type Context, enforcingIn, planIn } from './view.ts';

// Keeps the webhook's configuration in sync with the plan, so that the API server sends only pods that injection changes.

export const WEBHOOK: Ref = {
  role: 'hosted',
  apiVersion: 'admissionregistration.k8s.io/v1',
  kind: 'MutatingWebhookConfiguration',
  name: WEBHOOK_NAME,
};

/** Reconciles the configuration. Never creates one: without the rendered configuration no webhook is installed. */
export function reconcileWebhook(context: Context): Result {
  const { resourceVersion, uid } = context.reader.get(WEBHOOK)?.metadata ?? {};
  const wanted = wantedHooks(context);
  if (wanted === undefined || resourceVersion === undefined) return {};
  const patch: Action = {
    ref: { ...WEBHOOK, ...(uid === undefined ? {} : { uid }) },
    operations: [
      // The CA injector writes the same list: the patch must fail if the object has changed since it was read.
      { op: 'test', path: '/metadata/resourceVersion', value: resourceVersion },
      { op: 'replace', path: '/webhooks', value: wanted },
    ],
  };
  return { actions: [patch] };
}

/** Reports whether the webhook's entries match the current plan. */
export function isMirrored(context: Context): boolean {
  return wantedHooks(context) === undefined;
}

/** Cache key of a dry run: the configuration's UID and its rendered entry. */
export function renderedHook(reader: Reader): string {
  return `${reader.get(WEBHOOK)?.metadata.uid} ${JSON.stringify(baseHook(hooksIn(reader)))}`;
}

/** The entries of the webhook's configuration. */
export function hooksIn(reader: Reader): readonly Hook[] {
  const hooks = reader.get(WEBHOOK)?.['webhooks'];
  return Array.isArray(hooks) ? (hooks as readonly Hook[]) : [];
}

/** Returns the desired `webhooks`; undefined if they are current, or the rendered entry is missing. */
function wantedHooks(context: Context): readonly Hook[] | undefined {
  const present = hooksIn(context.reader);
  const wanted = mirroredHooks(planIn(context), present);
  return isDeepStrictEqual(wanted, present) ? undefined : wanted;
}

/** Returns the policy and its binding; each is undefined if missing. */
export function policyObjects(reader: Reader): readonly (KubeObject | undefined)[] {
  const ref = {
    role: 'hosted',
    apiVersion: policyVersion(reader) ?? '',
    name: INJECTION_POLICY_NAME,
  } as const;
  return ['MutatingAdmissionPolicy', 'MutatingAdmissionPolicyBinding'].map((kind) =>
    reader.get({ ...ref, kind }),
  );
}

const VERSIONS: readonly string[] = [
  'admissionregistration.k8s.io/v1',
  'admissionregistration.k8s.io/v1beta1',
];

/**
 * Returns the served version of MutatingAdmissionPolicy; undefined if none is served (below 1.36 without the feature gate). A
 * folder has no API server: the newest version is assumed.
 */
export function policyVersion(reader: Reader): string | undefined {
  const served = VERSIONS.find((apiVersion) =>
    reader.serves({ role: 'hosted', apiVersion, kind: 'MutatingAdmissionPolicy' }),
  );
  if (served !== undefined) return served;
  const profiles = reader.list({ role: 'hosted', ...PROFILE });
  return profiles.some(({ metadata }) => metadata.creationTimestamp === undefined) ? VERSIONS[0] : undefined;
}

/** Reconciles the policy, or the webhook's configuration. */
export function reconcilePolicy(context: Context): Result {
  const { reader, options } = context;
  if (options.admission === 'webhook') return reconcileWebhook(context);
  const apiVersion = policyVersion(reader);
  if (options.admission !== 'policy' || apiVersion === undefined) return {};
  const plan = planIn(context);
  if (plan.profiles.length + plan.sidecarSets.length === 0) return {};
  const compiled = compileInjectionPolicy(plan, {
    apiVersion,
    excludedNamespaces: excludedNamespaces(options),
    onlyNamespaces: options.namespaces,
    enforcing: enforcingIn(reader),
  });
  if (!compiled.ok) {
    return {
      retain: 'all',
      errors: [{ retryPolicy: 'terminal', code: 'PolicyTooLarge', message: compiled.problem }],
    };
  }
  return {
    apply: [
      { role: 'hosted', object: compiled.policy },
      { role: 'hosted', object: compiled.binding },
    ],
    metrics: [
      {
        name: 'pullwright_injection_policy_characters',
        help: 'Characters of CEL in the injection policy',
        value: compiled.size,
        labels: { scope: reader.scope.name },
      },
    ],
  };
}
