/**
 * What the adapter may run and write in its own namespace, beyond what RBAC can say: Jobs of our program as their one account, with the Secret
 * of a cluster and no other, such Secrets, and what it remembers of clusters. Otherwise a stolen token of the adapter could read, through a pod,
 * every Secret of the namespace, run as each of its ServiceAccounts, and by a variable, a volume or a CA
 * misuse the Job's program and its cloud account.
 */

import {
  type AccountBound,
  accountBounds,
  cel,
  celOf,
  GOES,
} from '../../runtime/core/kubernetes/account-bounds.ts';
import type { KubeObject, ObjectMeta } from '../../runtime/core/kubernetes/object.ts';
import {
  EVENTS,
  grant,
  kubernetesObject,
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
import { type AdapterSettings, OWN_JOB_VARIABLES } from '../../runtime/pull-secret-adapter/options.ts';

/** Of CEL, about a name: that of an object of a cluster. */
const isOfCluster = (name: string, what: 'data' | 'places'): string =>
  `${name}.startsWith('cluster-') && ${name}.endsWith('-pullsecret-${what}')`;
const isData = (name: string): string => isOfCluster(name, 'data');

/** Variables that the adapter gives every Job, with any value; none of them names a program, a library or an address. */
const VARIABLES = [...OWN_JOB_VARIABLES, 'GCP_API_TIMEOUT', 'LOG_FORMAT'];

/** What Jobs are made with. */
export interface JobBounds {
  readonly namespace: string;
  readonly image: string;
  readonly jobAccount: string;
  /** Further variables. */
  readonly environment: Readonly<Record<string, string>>;
  /** ConfigMap of further authorities, and the pool of identities; empty: none. */
  readonly told: Pick<AdapterSettings, 'jobAuthorities' | 'federation'>;
}

/** The bounds of the adapter's account. */
export function adapterBounds(input: JobBounds): readonly AccountBound[] {
  return [
    {
      name: 'data',
      apiGroup: '',
      resource: 'secrets',
      validations: [
        {
          expression: isData('request.name'),
          message: 'the pull secret adapter writes and deletes only the Secrets cluster-ID-pullsecret-data',
        },
      ],
    },
    {
      name: 'places',
      apiGroup: '',
      resource: 'configmaps',
      validations: [
        {
          expression: isOfCluster('request.name', 'places'),
          message:
            'the pull secret adapter writes and deletes only the ConfigMaps cluster-ID-pullsecret-places',
        },
      ],
    },
    jobs(input),
    bindings(input),
  ];
}

const SPEC = 'object.spec.template.spec';
const CONTAINER = `${SPEC}.containers[0]`;
/** Of CEL: the Secret of the Job's cluster. */
const DATA = `'${dataSecretName(`' + variables.labels['${CLUSTER_LABEL}'] + '`)}'`;

/** A Job is the rendered one. What is its cluster's own has a rule of its own. */
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
        message: 'the pull secret adapter gives the pods of its Jobs the labels of their cluster alone',
      },
      {
        expression: `${GOES}${CONTAINER}.env.all(variable, ${variableIs(bounds)})`,
        message:
          'the pull secret adapter gives its Jobs the variables of its installation and of their cluster alone',
      },
      {
        expression: `${GOES}(object.spec in [${[true, false].map((stores) => celOf(jobOf(bounds, stores), 'job')).join(', ')}] && !object.spec.?manualSelector.orValue(false) && !has(object.metadata.ownerReferences) && !has(object.metadata.finalizers))`,
        message: `the pull secret adapter runs only its own Jobs, of the image ${bounds.image}, as the service account ${bounds.jobAccount}`,
      },
    ],
  };
}

const GIVEN = ['generation', 'gcp-project', 'secret-name', 'created-by'].map(
  (name) => `hyperfleet.io/${name}`,
);
/** Where the cluster has them, and what the API server adds. */
const MAYBE = [
  ...['cluster-name', 'region', 'provider'].map((name) => `hyperfleet.io/${name}`),
  ...['controller-uid', 'job-name'].flatMap((name) => [name, `batch.kubernetes.io/${name}`]),
];

/** By these a NetworkPolicy finds the pods. */
const LABELS = {
  ...jobLabels(
    { id: cel(`variables.labels['${CLUSTER_LABEL}']`), name: '', region: '', provider: '' },
    'store',
  ),
  [PURPOSE_LABEL]: cel(`variables.labels['${PURPOSE_LABEL}']`),
};

/** The rendered Job; what differs from cluster to cluster is the request's own. */
function jobOf({ image, namespace, jobAccount, told }: JobBounds, stores: boolean): object {
  const job = pullSecretJob({
    ...told,
    name: '',
    namespace,
    labels: cel<never>('variables.labels'),
    annotations: Object.fromEntries(
      [...GIVEN, HASH_ANNOTATION].map((key) => [key, cel(`variables.annotations['${key}']`)]),
    ),
    image,
    imagePullSecrets: [],
    serviceAccount: jobAccount,
    needsApiServer: cel<boolean>(`${SPEC}.automountServiceAccountToken`),
    env: {},
    ...(stores ? { dataSecret: cel(DATA) } : {}),
    passAs: 'file',
    jobTtlSeconds: cel<number>('object.spec.ttlSecondsAfterFinished'),
    jobDeadlineSeconds: cel<number>('object.spec.activeDeadlineSeconds'),
  });
  const { template, ...spec } = job['spec'] as { readonly template: { readonly spec: PodSpec } };
  // Its variables have a rule of their own.
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

/** The rendered binding, in no namespace of the platform: RBAC names it, and says not whom it binds. */
function bindings({ namespace, jobAccount: serviceAccount }: JobBounds): AccountBound {
  const binding = pullSecretBinding('', {}, { namespace, serviceAccount });
  return {
    name: 'bindings',
    apiGroup: 'rbac.authorization.k8s.io',
    resource: 'rolebindings',
    validations: [
      {
        expression: `request.name == '${JOB_BINDING}' && (${GOES}(object.roleRef == ${celOf(binding['roleRef'])} && object.?subjects.orValue([]) == ${celOf(binding['subjects'])}))`,
        message: `the pull secret adapter binds the ClusterRole ${JOB_CLUSTER_ROLE} for the ServiceAccount ${namespace}/${serviceAccount}, by the name ${JOB_BINDING}, and nothing else`,
      },
      {
        expression:
          "!(request.namespace in ['default', 'openshift']) && !request.namespace.startsWith('kube-') && !request.namespace.startsWith('openshift-')",
        message: 'the pull secret adapter has nothing to do in namespaces of the platform',
      },
    ],
  };
}

// The rights of adapter and Jobs. In its own namespace the adapter has Jobs, their pods temporary Secrets and
// records; elsewhere one binding by its name, and only such that gives the Job's one role, which it holds by the verb `bind` without
// having those rights itself.

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
  // Server-side apply names what it creates, so the one name suffices.
  may(['get', ...WRITE], RBAC_GROUP, ['rolebindings'], [JOB_BINDING]),
  // Whether a management namespace exists at all: a Role inside it would be deleted with it.
  may(['get'], '', ['namespaces']),
  may(['bind'], RBAC_GROUP, ['clusterroles'], [JOB_CLUSTER_ROLE]),
];

/** Input of {@link adapterRights}. */
export interface Rights extends JobBounds {
  readonly account: string;
  readonly pullSecretName: string;
  readonly labels: NonNullable<ObjectMeta['labels']>;
  readonly jobLabels: NonNullable<ObjectMeta['labels']>;
}

export function adapterRights(input: Rights): readonly KubeObject[] {
  const { namespace, account, labels } = input;
  const subject = { name: account, namespace };
  const meta = { name: 'pullwright-pull-secret-adapter', labels };
  // Server-side apply names what it creates, so the one name suffices.
  const job = secretsByName([input.pullSecretName], ['get', ...WRITE]);
  return [
    kubernetesObject('ClusterRole', { name: JOB_CLUSTER_ROLE, labels: input.jobLabels }, { rules: [job] }),
    ...grant(meta, EVERYWHERE, subject),
    ...grant({ ...meta, namespace }, OWN, subject),
    ...accountBounds(subject, {
      component: 'adapter',
      rules: OWN,
      bounds: adapterBounds(input),
      secretTypes: ['Opaque'],
    }),
  ];
}
