/** Looks for everything of ours in a cluster: by our labels, by our kinds, and by our field managers. */

import { OWNER_LABEL } from '../controller/contract.ts';
import { isApiError } from '../kube/api-error.ts';
import type { KubeClient, Selector } from '../kube/client.ts';
import type { Collection } from '../kube/resources.ts';
import { CREDENTIAL_PROVIDER } from '../rules/credential-provider/platform.ts';
import { PullwrightError } from '../rules/errors.ts';
import type { KubeObject } from '../rules/kubernetes/object.ts';
import type { Deliverer } from './delivered.ts';
import { PART_OF } from './plan.ts';

const BY_LABEL: readonly string[] = [PART_OF, OWNER_LABEL].map((label) =>
  label === PART_OF ? `${label}=pullwright` : label,
);

const ADMISSION = 'admissionregistration.k8s.io';
const RBAC = 'rbac.authorization.k8s.io/v1';

/** Kinds that are rendered or applied, each listed by our labels. */
const LABELLED: readonly Collection[] = [
  ...['Deployment', 'DaemonSet'].map((kind) => ({ apiVersion: 'apps/v1', kind })),
  { apiVersion: 'batch/v1', kind: 'CronJob' },
  ...['Secret', 'ConfigMap', 'ServiceAccount', 'Service', 'Namespace'].map((kind) => ({
    apiVersion: 'v1',
    kind,
  })),
  ...['Role', 'RoleBinding', 'ClusterRole', 'ClusterRoleBinding'].map((kind) => ({ apiVersion: RBAC, kind })),
  { apiVersion: 'policy/v1', kind: 'PodDisruptionBudget' },
  { apiVersion: 'networking.k8s.io/v1', kind: 'NetworkPolicy' },
  { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease' },
  ...['MutatingWebhookConfiguration', 'ValidatingAdmissionPolicy', 'ValidatingAdmissionPolicyBinding'].map(
    (kind) => ({ apiVersion: `${ADMISSION}/v1`, kind }),
  ),
  ...['v1', 'v1beta1', 'v1alpha1'].flatMap((version) =>
    ['MutatingAdmissionPolicy', 'MutatingAdmissionPolicyBinding'].map((kind) => ({
      apiVersion: `${ADMISSION}/${version}`,
      kind,
    })),
  ),
  { apiVersion: 'apiextensions.k8s.io/v1', kind: 'CustomResourceDefinition' },
  { apiVersion: 'machineconfiguration.openshift.io/v1', kind: 'MachineConfig' },
  { apiVersion: 'monitoring.coreos.com/v1', kind: 'PrometheusRule' },
  { apiVersion: 'monitoring.coreos.com/v1', kind: 'ServiceMonitor' },
  { apiVersion: 'monitoring.coreos.com/v1', kind: 'PodMonitor' },
  { apiVersion: 'cert-manager.io/v1', kind: 'Certificate' },
  { apiVersion: 'external-secrets.io/v1', kind: 'ExternalSecret' },
  { apiVersion: 'bitnami.com/v1alpha1', kind: 'SealedSecret' },
];

/** Listed whole, or by a name. */
const WHOLE: readonly (Collection & Selector)[] = [
  { apiVersion: 'pullwright.dev/v1alpha1', kind: 'PullSecretProfile' },
  { apiVersion: 'pullwright.dev/v1alpha1', kind: 'PullSecretGrant' },
  { apiVersion: 'pullwright.dev/v1alpha1', kind: 'PullStatus' },
  { apiVersion: `${CREDENTIAL_PROVIDER.group}/v1`, kind: CREDENTIAL_PROVIDER.kind },
  { apiVersion: `${CREDENTIAL_PROVIDER.group}/v1alpha1`, kind: CREDENTIAL_PROVIDER.kind },
  { apiVersion: 'hypershift.openshift.io/v1beta1', kind: 'NodePool' },
  {
    apiVersion: 'monitoring.coreos.com/v1',
    kind: 'PrometheusRule',
    fieldSelector: 'metadata.name=pullwright-credential-provider',
  },
  // Of these only what we added is ours.
  { apiVersion: 'v1', kind: 'ServiceAccount' },
  { apiVersion: 'v1', kind: 'Node' },
  { apiVersion: 'apps/v1', kind: 'Deployment' },
];

/** Requests under way at once. */
const WORKERS = 8;

/**
 * Everything in the cluster that could be ours, each object once.
 *
 * @throws PullwrightError when a kind cannot be read; kinds that the cluster does not serve are none
 */
export async function findObjects(client: KubeClient): Promise<readonly KubeObject[]> {
  const queries = [
    ...LABELLED.flatMap((kind) => BY_LABEL.map((labelSelector) => ({ ...kind, labelSelector }))),
    ...WHOLE,
  ];
  const found = new Map<string, KubeObject>();
  const worker = async (): Promise<void> => {
    for (let query = queries.shift(); query !== undefined; query = queries.shift())
      for await (const object of listAll(client, query))
        found.set(object.metadata.uid ?? `${object.kind}/${object.metadata.name}`, object);
  };
  await Promise.all(Array.from({ length: WORKERS }, worker));
  return [...found.values()];
}

async function* listAll(client: KubeClient, query: Collection & Selector): AsyncGenerator<KubeObject> {
  const { labelSelector, fieldSelector, ...collection } = query;
  const selector = {
    ...(labelSelector === undefined ? {} : { labelSelector }),
    ...(fieldSelector === undefined ? {} : { fieldSelector }),
  };
  let next: string | undefined;
  do {
    try {
      const page = await client.list(collection, {
        limit: 500,
        ...selector,
        ...(next === undefined ? {} : { next }),
      });
      yield* page.items;
      next = page.next;
    } catch (error) {
      // Not served, or no longer: the definition may just have been removed.
      if (error instanceof PullwrightError && error.code === 'KindNotServed') return;
      if (isApiError(error, 404)) return;
      throw error;
    }
  } while (next !== undefined);
}

const COLLECTIONS: Readonly<Record<Deliverer['tool'], Collection>> = {
  'Argo CD Application': { apiVersion: 'argoproj.io/v1alpha1', kind: 'Application' },
  'Flux Kustomization': { apiVersion: 'kustomize.toolkit.fluxcd.io/v1', kind: 'Kustomization' },
};

/**
 * Whether what is marked is still synced, as far as the cluster can tell: it is not when the cluster serves the tool's kind and has no
 * such object. A tool that runs in another cluster is taken for one that goes on.
 *
 * @throws ApiError when the cluster does not answer
 */
export async function isStillThere(client: KubeClient, deliverer: Deliverer): Promise<boolean> {
  const { name, namespace, tool } = deliverer;
  const collection = { ...COLLECTIONS[tool], ...(namespace === undefined ? {} : { namespace }) };
  try {
    const { items } = await client.list(collection, { fieldSelector: `metadata.name=${name}`, limit: 1 });
    return items.length > 0;
  } catch (error) {
    if (error instanceof PullwrightError && error.code === 'KindNotServed') return true;
    // Who may uninstall need not be allowed to look at the tool.
    if (isApiError(error, 404) || isApiError(error, 403)) return true;
    throw error;
  }
}
