/**
 * A pod that is made up to try whether new pods get the names of a profile or a SidecarSet: in the first namespace that it
 * selects, with labels that it selects, asking for nothing that a quota or a policy for pods would refuse.
 */
import type { PodTrial, World } from '../../controller/contract.ts';
import type { PullSecretProfile } from '../../rules/injection/profile.ts';
import { planInjection } from '../../rules/injection/profile-plan.ts';
import { INJECTION_POLICY_NAME } from '../../rules/injection/profile-policy.ts';
import type { SidecarSet } from '../../rules/injection/sidecar-set.ts';
import { exampleLabels } from '../../rules/kubernetes/label-example.ts';
import { type Labels, selects } from '../../rules/kubernetes/label-selector.ts';
import type { KubeObject } from '../../rules/kubernetes/object.ts';
import { exemptionOf, type InjectionOptions } from '../options.ts';
import { policyVersion } from './policy-plan.ts';
import { refusesNames } from './service-accounts.ts';
import { isTerminating, namespaceLabels, planIn } from './view.ts';
import { renderedHook } from './webhook-mirror.ts';

/** A pod that is to be tried, and where. */
export type Trial = PodTrial & { readonly namespace: string };

/** What is to be tried; undefined when no pod can be made up that the profile selects and that is not exempt. */
export function trialOf(
  world: World,
  profile: PullSecretProfile,
  options: InjectionOptions,
): Trial | undefined {
  const labels = exampleLabels(profile.selector);
  if (labels === undefined) return undefined;
  const wants = profile.secrets.map((secret) => secret.name);
  return trialWhere(world, options, { labels, wants }, (own, name) => {
    return selects(profile.namespaceSelector, own) && !refusesNames(world, name, 'default', wants);
  });
}

/**
 * The same for a SidecarSet with its pin put in. Sets look at each other: where another one stands in for this one, or none brings a
 * container, nothing is tried.
 */
export function trialOfSet(
  world: World,
  { name, imagePullSecrets, selector, only }: SidecarSet,
  options: InjectionOptions,
): Trial | undefined {
  if (!selector.ok) return undefined;
  const labels = exampleLabels([
    ...selector.requirements,
    ...(only?.meeting === true ? only.requirements : []),
  ]);
  const wants = imagePullSecrets.filter((secret) => secret !== '');
  if (labels === undefined) return undefined;
  const plan = planIn(world, options);
  return trialWhere(world, options, { labels, wants }, (own, namespace) => {
    const { by } = planInjection(plan, { labels, namespaceLabels: own });
    return (
      by.some(({ source }) => source === `sidecarset/${name}`) &&
      !refusesNames(world, namespace, 'default', wants)
    );
  });
}

/** A certificate that was exchanged, or a way to the webhook that is closed, shows nowhere else. */
const WEBHOOK_LASTS_MS = 600_000;

/** In the first namespace that is meant and takes injected pods. */
function trialWhere(
  world: World,
  options: InjectionOptions,
  { labels, wants }: { readonly labels: Labels; readonly wants: readonly string[] },
  isMeant: (labels: Labels, name: string) => boolean,
): Trial | undefined {
  const found = world.list({ role: 'hosted', apiVersion: 'v1', kind: 'Namespace' }).find((object) => {
    const own = namespaceLabels(object);
    const pod = { namespace: object.metadata.name, labels, annotations: {}, namespaceLabels: own };
    const isTaken = exemptionOf(pod, options) === undefined && !isTerminating(object);
    return isTaken && isMeant(own, object.metadata.name);
  });
  if (found === undefined) return undefined;
  const { name } = found.metadata;
  return {
    role: 'hosted',
    namespace: name,
    pod: podIn(name, labels),
    wants,
    change: changeOf(world, options),
    ...(options.admission === 'webhook' ? { lastsMs: WEBHOOK_LASTS_MS } : {}),
  };
}

/** Who injects. That the profile changed shows in the pod and the names; what the policy says of other profiles is nothing to this one. */
function changeOf(world: World, { admission }: InjectionOptions): string {
  if (admission !== 'policy') return renderedHook(world);
  const ref = {
    role: 'hosted',
    apiVersion: policyVersion(world) ?? '',
    name: INJECTION_POLICY_NAME,
  } as const;
  return ['MutatingAdmissionPolicy', 'MutatingAdmissionPolicyBinding']
    .map((kind) => String(world.get({ ...ref, kind })?.metadata.uid))
    .join(' ');
}

/** As the strictest of the Pod Security Standards wants it. */
function podIn(namespace: string, labels: Labels): KubeObject {
  const least = { cpu: '1m', memory: '1Mi' };
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'pullwright-trial', namespace, labels },
    spec: {
      automountServiceAccountToken: false,
      restartPolicy: 'Never',
      securityContext: { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } },
      containers: [
        {
          name: 'trial',
          image: 'registry.invalid/pullwright/trial:never-run',
          resources: { requests: least, limits: least },
          securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } },
        },
      ],
    },
  };
}
