/**
 * Who changes such a pod at the moment, by what stands in the store: our policy with its binding, our webhook, or the webhook of
 * Kruise; each only for the namespaces and pods that its selectors take.
 */
import type { ObjectStore } from '../../controller/store.ts';
import { KRUISE_WEBHOOK_CONFIGURATION } from '../../pull-secret-injection/reconciler/view.ts';
import { PROFILE_API_VERSION, PROFILE_KIND } from '../../rules/injection/profile.ts';
import { WEBHOOK_NAME } from '../../rules/injection/profile-plan.ts';
import { INJECTION_POLICY_NAME } from '../../rules/injection/profile-policy.ts';
import { SIDECAR_SET_API_VERSIONS } from '../../rules/injection/sidecar-set.ts';
import { type Labels, readSelector, selects } from '../../rules/kubernetes/label-selector.ts';
import type { SourceKind } from '../object-source.ts';

const GROUP = 'admissionregistration.k8s.io';
const WEBHOOKS = { apiVersion: `${GROUP}/v1`, kind: 'MutatingWebhookConfiguration' } as const;
const POLICY_VERSIONS = [`${GROUP}/v1`, `${GROUP}/v1beta1`] as const;

const DECLARATIONS = [
  { apiVersion: PROFILE_API_VERSION, kind: PROFILE_KIND },
  ...SIDECAR_SET_API_VERSIONS.map((apiVersion) => ({ apiVersion, kind: 'SidecarSet' })),
];

/** What to read of a cluster. */
export const FORCE_KINDS: readonly SourceKind[] = [
  ...POLICY_VERSIONS.flatMap((apiVersion) =>
    ['MutatingAdmissionPolicy', 'MutatingAdmissionPolicyBinding'].map((kind) => ({
      apiVersion,
      kind,
      name: INJECTION_POLICY_NAME,
    })),
  ),
  { ...WEBHOOKS, name: WEBHOOK_NAME },
  { ...WEBHOOKS, name: KRUISE_WEBHOOK_CONFIGURATION },
];

/** A pod that is still to be made. */
interface Subject {
  readonly labels: Labels;
  readonly namespaceLabels: Labels;
}

export interface Force {
  /** Profiles, and SidecarSets where Kruise is not there, are injected into the pod. */
  readonly ours: boolean;
  /** Kruise injects SidecarSets into the pod; undefined where Kruise is not there. */
  readonly kruise: boolean | undefined;
}

/** Looks. A folder of declarations is taken to be applied to a cluster whose admission is on; a cluster, and a dump of one, says itself. */
export function forceOf(store: ObjectStore, subject: Subject): Force {
  const isDeclared = DECLARATIONS.some((kind) =>
    store.list(kind).some(({ metadata }) => metadata.creationTimestamp === undefined),
  );
  const kruise = hooksOf(store, KRUISE_WEBHOOK_CONFIGURATION).filter(({ name }) => name === 'mpod.kb.io');
  const ours =
    isDeclared ||
    policyTakes(store, subject) ||
    hooksOf(store, WEBHOOK_NAME).some((hook) => takes(hook, subject));
  return { ours, kruise: kruise.length === 0 ? undefined : kruise.some((hook) => takes(hook, subject)) };
}

interface Selectors {
  readonly name?: string;
  readonly namespaceSelector?: unknown;
  readonly objectSelector?: unknown;
}

function policyTakes(store: ObjectStore, subject: Subject): boolean {
  return POLICY_VERSIONS.some((apiVersion) => {
    const ref = { apiVersion, name: INJECTION_POLICY_NAME };
    const policy = store.get({ ...ref, kind: 'MutatingAdmissionPolicy' });
    const isBound = store.get({ ...ref, kind: 'MutatingAdmissionPolicyBinding' }) !== undefined;
    const { matchConstraints = {} } = (policy?.spec ?? {}) as { readonly matchConstraints?: Selectors };
    return policy !== undefined && isBound && takes(matchConstraints, subject);
  });
}

function hooksOf(store: ObjectStore, name: string): readonly Selectors[] {
  const hooks = store.get({ ...WEBHOOKS, name })?.['webhooks'];
  return Array.isArray(hooks) ? (hooks as readonly Selectors[]) : [];
}

/** Without a selector everything is taken. */
function takes(
  { namespaceSelector, objectSelector }: Selectors,
  { labels, namespaceLabels }: Subject,
): boolean {
  return meets(namespaceSelector, namespaceLabels) && meets(objectSelector, labels);
}

function meets(selector: unknown, labels: Labels): boolean {
  if (selector === undefined || selector === null) return true;
  const read = readSelector(selector, { strict: false });
  return read.ok && selects(read.requirements, labels);
}
