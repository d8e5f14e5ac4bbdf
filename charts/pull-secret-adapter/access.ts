/**
 * Admission bounds of the adapter in its own namespace, beyond RBAC: Jobs of our program with their one account, the Secret of a
 * cluster, and the per-cluster records. Without them, a stolen token of the adapter could read every Secret of the namespace
 * through a pod, run as any of its ServiceAccounts, or misuse the Job's program and cloud account by a variable, volume or CA.
 */

import {
  type AccountBound,
  accountBounds,
  cel,
  celOf,
  GOES,
} from '../../runtime/core/kubernetes/account-bounds.ts';
import type { KubeObject } from '../../runtime/core/kubernetes/object.ts';
import {
  EVENTS,
  grant,
  kubernetesObject,
  labels,
  may,
  type PodSpec,
  type PolicyRule,
  READ,
  secretsByName,
} from '../../runtime/core/kubernetes/objects.ts';
import {
  CLUSTER_LABEL,
  dataSecretName,
  HASH_ANNOTATION,
  jobLabels,
  PURPOSE_LABEL,
} from '../../runtime/pull-secret-adapter/names.ts';
import {
  authoritiesOfPod,
  federationOfPod,
  JOB_BINDING,
  JOB_CLUSTER_ROLE,
  PULL_SECRET_KEY,
  pullSecretBinding,
  pullSecretJob,
} from '../../runtime/pull-secret-adapter/objects.ts';
import { type JobSettings, OWN_JOB_VARIABLES } from '../../runtime/pull-secret-adapter/options.ts';

/** Variables of every Job, with any value. None of them names a program, library or address. */
const VARIABLES = [...OWN_JOB_VARIABLES, 'GCP_API_TIMEOUT'];

export const ADAPTER_ACCOUNT = 'pull-secret-adapter';
export const JOB_ACCOUNT = 'pullsecret-adapter-job';

/** Inputs of the rendered Jobs: with the ConfigMap of additional CAs, and the workload identity pool; empty: none. */
export interface JobBounds
  extends Pick<JobSettings, 'namespace' | 'image' | 'jobAuthorities' | 'federation'> {
  /** Additional variables. */
  readonly environment: Readonly<Record<string, string>>;
}

/** Only the objects that the adapter names after a cluster. */
function ofClusters(name: string, resource: string, kinds: string): AccountBound {
  const expression = `request.name.startsWith('cluster-') && request.name.endsWith('-pullsecret-${name}')`;
  const message = `the pull secret adapter writes and deletes only the ${kinds} cluster-ID-pullsecret-${name}`;
  return { name, apiGroup: '', resource, validations: [{ expression, message }] };
}

const SPEC = 'object.spec.template.spec';
const CONTAINER = `${SPEC}.containers[0]`;
/** CEL: the Secret of the Job's cluster. */
const DATA = `'${dataSecretName(`' + variables.labels['${CLUSTER_LABEL}'] + '`)}'`;

/** A Job must equal the rendered one; fields that vary by cluster are validated separately. */
function jobs(bounds: JobBounds): AccountBound {
  return {
    name: 'jobs',
    apiGroup: 'batch',
    resource: 'jobs',
    variables: [
      { name: 'labels', expression: 'object.spec.template.metadata.labels' },
      { name: 'annotations', expression: 'object.spec.template.metadata.annotations' },
      { name: 'fixed', expression: celOf(LABELS) },
    ],
    validations: [
      {
        expression: "request.name.startsWith('pullsecret-')",
        message: 'the pull secret adapter writes and deletes only the Jobs pullsecret-ID',
      },
      {
        expression: `${GOES}(variables.fixed.all(key, variables.labels[?key].orValue('') == variables.fixed[key]) && variables.labels.all(key, key in variables.fixed || key in ${JSON.stringify(MAYBE)}))`,
        message: 'pods of Jobs of the pull secret adapter must have only the labels of their cluster',
      },
      {
        expression: `${GOES}${CONTAINER}.env.all(variable, ${variableIs(bounds)})`,
        message:
          'Jobs of the pull secret adapter must have only the variables of its installation and of their cluster',
      },
      {
        expression: `${GOES}(object.spec in [${[true, false].map((stores) => celOf(jobOf(bounds, stores), 'job')).join(', ')}] && !object.spec.?manualSelector.orValue(false) && !has(object.metadata.ownerReferences) && !has(object.metadata.finalizers))`,
        message: `the pull secret adapter runs only its own Jobs, with the image ${bounds.image}, as the service account ${JOB_ACCOUNT}`,
      },
    ],
  };
}

const GIVEN = ['generation', 'gcp-project', 'secret-name', 'created-by'].map(
  (name) => `hyperfleet.io/${name}`,
);
/** Optional cluster labels, and labels that the API server adds. */
const MAYBE = [
  ...['cluster-name', 'region', 'provider'].map((name) => `hyperfleet.io/${name}`),
  ...['controller-uid', 'job-name'].flatMap((name) => [name, `batch.kubernetes.io/${name}`]),
];

/** Labels by which the NetworkPolicy selects the pods. */
const LABELS = {
  ...jobLabels(
    { id: cel(`variables.labels['${CLUSTER_LABEL}']`), name: '', region: '', provider: '' },
    'store',
  ),
  [PURPOSE_LABEL]: cel(`variables.labels['${PURPOSE_LABEL}']`),
};

/** The rendered Job, with CEL references to the request for fields that vary by cluster. */
function jobOf(bounds: JobBounds, stores: boolean): object {
  const job = pullSecretJob({
    ...bounds,
    name: '',
    labels: cel<never>('variables.labels'),
    annotations: Object.fromEntries(
      [...GIVEN, HASH_ANNOTATION].map((key) => [key, cel(`variables.annotations['${key}']`)]),
    ),
    imagePullSecrets: [],
    serviceAccount: JOB_ACCOUNT,
    needsApiServer: cel<boolean>(`${SPEC}.automountServiceAccountToken`),
    env: {},
    ...(stores ? { dataSecret: cel(DATA) } : {}),
    passAs: 'file',
    jobTtlSeconds: cel<number>('object.spec.ttlSecondsAfterFinished'),
    jobDeadlineSeconds: cel<number>('object.spec.activeDeadlineSeconds'),
  });
  const { template, ...spec } = job['spec'] as { readonly template: { readonly spec: PodSpec } };
  // Variables are validated separately.
  const containers = template.spec.containers.map((one) => ({ ...one, env: cel<never>(`${CONTAINER}.env`) }));
  return { ...spec, template: { ...template, spec: { ...template.spec, containers } } };
}

function variableIs({ environment }: JobBounds): string {
  const files = [...federationOfPod('').env, ...authoritiesOfPod('').env];
  const further = Object.entries(environment)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, value]) => ({ name, ...(value === '' ? {} : { value }) }));
  const data = { secretKeyRef: { name: cel(DATA), key: PULL_SECRET_KEY } };
  const given = [...files, ...further, { name: 'PULL_SECRET_DATA', valueFrom: data }];
  return `(variable.name in ${JSON.stringify(VARIABLES)} && !has(variable.valueFrom)) || variable in ${celOf(given)}`;
}

/** The rendered RoleBinding, outside of platform namespaces: RBAC restricts its name, but not its subjects. */
function bindings({ namespace }: JobBounds): AccountBound {
  const binding = pullSecretBinding('', {}, { namespace, serviceAccount: JOB_ACCOUNT });
  return {
    name: 'bindings',
    apiGroup: 'rbac.authorization.k8s.io',
    resource: 'rolebindings',
    validations: [
      {
        expression: `request.name == '${JOB_BINDING}' && (${GOES}(object.roleRef == ${celOf(binding['roleRef'])} && object.?subjects.orValue([]) == ${celOf(binding['subjects'])}))`,
        message: `the pull secret adapter binds the ClusterRole ${JOB_CLUSTER_ROLE} for the ServiceAccount ${namespace}/${JOB_ACCOUNT}, by the name ${JOB_BINDING}, and nothing else`,
      },
      {
        expression:
          "!(request.namespace in ['default', 'openshift']) && !request.namespace.startsWith('kube-') && !request.namespace.startsWith('openshift-')",
        message: 'the pull secret adapter must not write in platform namespaces',
      },
    ],
  };
}

// RBAC of the adapter and its Jobs. In its own namespace the adapter manages Jobs, their pods, temporary Secrets and records. In
// other namespaces it may write one RoleBinding by name, only to the Jobs' role. The verb `bind` permits this without holding the
// role's rights.

const RBAC_GROUP = 'rbac.authorization.k8s.io';
const WRITE = ['create', 'patch', 'delete'] as const;

const OWN: readonly PolicyRule[] = [
  may([...READ, ...WRITE], 'batch', ['jobs']),
  may(['list'], '', ['pods']),
  may([...READ, ...WRITE], '', ['configmaps']),
  may(['get', ...WRITE], '', ['secrets']),
  EVENTS,
  may(['get', 'create', 'update', 'patch'], 'coordination.k8s.io', ['leases']),
];

const EVERYWHERE: readonly PolicyRule[] = [
  // Server-side apply names the object it creates, so one resource name suffices.
  may(['get', ...WRITE], RBAC_GROUP, ['rolebindings'], [JOB_BINDING]),
  // To check that a management namespace exists. A Role inside it would be deleted with it.
  may(['get'], '', ['namespaces']),
  may(['bind'], RBAC_GROUP, ['clusterroles'], [JOB_CLUSTER_ROLE]),
];

/** @param pullSecretName the Secret that the Jobs write */
export function adapterRights(input: JobBounds, pullSecretName: string): readonly KubeObject[] {
  const { namespace } = input;
  const subject = { name: ADAPTER_ACCOUNT, namespace };
  const own = labels({ name: ADAPTER_ACCOUNT, component: 'adapter' });
  const meta = { name: 'pullwright-pull-secret-adapter', labels: own };
  const ofJobs = labels({ name: JOB_ACCOUNT, component: 'job' });
  // Server-side apply names the object it creates, so one resource name suffices.
  const job = secretsByName([pullSecretName], ['get', ...WRITE]);
  return [
    kubernetesObject('ClusterRole', { name: JOB_CLUSTER_ROLE, labels: ofJobs }, { rules: [job] }),
    ...grant(meta, EVERYWHERE, subject),
    ...grant({ ...meta, namespace }, OWN, subject),
    ...accountBounds(subject, {
      component: 'adapter',
      rules: OWN,
      bounds: [
        ofClusters('data', 'secrets', 'Secrets'),
        ofClusters('places', 'configmaps', 'ConfigMaps'),
        jobs(input),
        bindings(input),
      ],
      secretTypes: ['Opaque'],
    }),
  ];
}
