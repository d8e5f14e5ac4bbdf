/**
 * What the adapter may run and write in its own namespace, beyond what RBAC can say: Jobs of our program as their one account, with the Secret
 * of a cluster and no other, such Secrets, and what it remembers of clusters. Whoever has the adapter's token could else read, through a pod,
 * every Secret that lies beside it, be whichever service account lives there, and by a variable, a folder or an authority
 * of his own turn the Job's program and its account in the cloud to other ends.
 */

import {
  type AccountBound,
  accountBounds,
  IMAGE_IS,
  imageVariables,
} from '../../runtime/core/kubernetes/account-bounds.ts';
import type { KubeObject, ObjectMeta } from '../../runtime/core/kubernetes/object.ts';
import {
  admissionPolicy,
  clusterRole,
  clusterRoleBinding,
  type PolicyRule,
  role,
  roleBinding,
  secretsByName,
} from '../../runtime/core/kubernetes/objects.ts';
import {
  AUTHORITIES_MOUNT,
  authoritiesOfPod,
  CONFIG_MOUNT,
  FEDERATION_CONFIG,
  federationOfPod,
  JOB_BINDING,
  JOB_CLUSTER_ROLE,
  OWN_JOB_VARIABLES,
  PULL_SECRET_MOUNT,
  RESULTS_MOUNT,
  TOKEN_MOUNT,
} from '../../runtime/pull-secret-adapter/objects.ts';

const OPERATIONS = ['CREATE', 'UPDATE', 'DELETE'] as const;
/** Of CEL, about a name: that of an object of a cluster. */
const isOfCluster = (name: string, what: 'data' | 'places'): string =>
  `${name}.startsWith('cluster-') && ${name}.endsWith('-pullsecret-${what}')`;
const isData = (name: string): string => isOfCluster(name, 'data');

/** Variables that the adapter gives every Job, whatever their values; none of them names a program, a library or an address. */
const VARIABLES = [...OWN_JOB_VARIABLES, 'GCP_API_TIMEOUT', 'LOG_FORMAT'];
const FOLDERS = [PULL_SECRET_MOUNT, RESULTS_MOUNT, CONFIG_MOUNT, TOKEN_MOUNT, AUTHORITIES_MOUNT];

/** What Jobs are made with. */
export interface JobBounds {
  readonly image: string;
  readonly jobAccount: string;
  /** Further variables, as the installation's options give them. */
  readonly environment: Readonly<Record<string, string>>;
  /** ConfigMap of further authorities to trust. */
  readonly authorities?: string;
}

/**
 * What the flags of the adapter say of its Jobs, those that an installation adds by hand among them.
 *
 * @example
 * ```ts
 * import { toldOfJobs } from './access.ts';
 * import assert from 'node:assert/strict';
 *
 * const told = toldOfJobs(['adapter', '--job-env', 'A=b=c', '--job-env=B=', '--job-ca', 'authorities']);
 * assert.deepEqual(told, { environment: { A: 'b=c', B: '' }, authorities: 'authorities' });
 * ```
 */
export function toldOfJobs(args: readonly string[]): Pick<JobBounds, 'environment' | 'authorities'> {
  const authorities = valuesOf(args, '--job-ca').at(-1);
  const environment = Object.fromEntries(
    valuesOf(args, '--job-env').map((pair) => {
      const at = pair.indexOf('=');
      return [pair.slice(0, at), pair.slice(at + 1)];
    }),
  );
  return { environment, ...(authorities === undefined ? {} : { authorities }) };
}

function valuesOf(args: readonly string[], flag: string): readonly string[] {
  return args.flatMap((word, index) => {
    if (word === flag) return args.slice(index + 1, index + 2);
    return word.startsWith(`${flag}=`) ? [word.slice(flag.length + 1)] : [];
  });
}

/**
 * The bounds of the adapter's account.
 *
 * @example
 * ```ts
 * import { adapterBounds } from './access.ts';
 * import assert from 'node:assert/strict';
 *
 * const bounds = adapterBounds({ image: 'registry.example.com/pullwright:0.1.0', jobAccount: 'job', environment: {} });
 * assert.deepEqual(bounds.map(({ name }) => name), ['data', 'places', 'jobs']);
 * ```
 */
export function adapterBounds(input: JobBounds): readonly AccountBound[] {
  return [
    {
      name: 'data',
      apiGroup: '',
      resource: 'secrets',
      operations: OPERATIONS,
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
      operations: OPERATIONS,
      validations: [
        {
          expression: isOfCluster('request.name', 'places'),
          message:
            'the pull secret adapter writes and deletes only the ConfigMaps cluster-ID-pullsecret-places',
        },
      ],
    },
    jobs(input),
  ];
}

function jobs({ image, jobAccount, environment, authorities }: JobBounds): AccountBound {
  const configMaps = [FEDERATION_CONFIG, ...(authorities === undefined ? [] : [authorities])];
  return {
    name: 'jobs',
    apiGroup: 'batch',
    resource: 'jobs',
    operations: OPERATIONS,
    variables: [
      ...imageVariables(image),
      { name: 'pod', expression: "dyn(request.operation == 'DELETE' ? {} : object.spec.template.spec)" },
      { name: 'all', expression: 'dyn(variables.pod.?containers.orValue([]))' },
      { name: 'volumes', expression: 'dyn(variables.pod.?volumes.orValue([]))' },
    ],
    validations: [
      {
        expression: [
          "!['initContainers', 'hostNetwork', 'hostPID', 'hostIPC', 'shareProcessNamespace'].exists(key, key in variables.pod)",
          `variables.pod.?serviceAccountName.orValue('${jobAccount}') == '${jobAccount}'`,
          `variables.all.all(one, ${IMAGE_IS} && !('command' in one) && !('envFrom' in one) && !('lifecycle' in one) && one.?args.orValue([]) == ['job'])`,
        ].join(' && '),
        message: `the pull secret adapter runs only its own Jobs, as the service account ${jobAccount}`,
      },
      {
        expression: [
          "variables.volumes.all(one, one.all(key, key in ['name', 'secret', 'emptyDir', 'configMap', 'projected']))",
          `variables.volumes.all(one, !has(one.secret) || (${isData('one.secret.secretName')}))`,
          "variables.volumes.all(one, !has(one.projected) || one.projected.sources.all(source, source.all(key, key == 'serviceAccountToken')))",
          `variables.all.all(one, one.?env.orValue([]).all(variable, !variable.?valueFrom.?secretKeyRef.hasValue() || (${isData('variable.valueFrom.secretKeyRef.name')})))`,
        ].join(' && '),
        message:
          'the pull secret adapter gives its Jobs no Secret but that of a cluster, and no folder of a node',
      },
      {
        expression: [
          `variables.volumes.all(one, !has(one.configMap) || one.configMap.name in ${JSON.stringify(configMaps)})`,
          `variables.all.all(one, one.?volumeMounts.orValue([]).all(mount, mount.mountPath in ${JSON.stringify(FOLDERS)} && !('subPath' in mount) && !('subPathExpr' in mount)))`,
          `variables.all.all(one, one.?env.orValue([]).all(variable, ${variableIs(environment)}))`,
        ].join(' && '),
        message:
          'the pull secret adapter gives its Jobs the folders, variables and authorities of its installation alone',
      },
    ],
  };
}

function variableIs(further: Readonly<Record<string, string>>): string {
  const files = [...federationOfPod('').env, ...authoritiesOfPod('').env].map(
    ({ name, value = '' }) => [name, value] as const,
  );
  const exact = Object.fromEntries([...files, ...Object.entries(further)]);
  const given = Object.entries(exact).map(
    ([name, value]) => `(variable.name == ${text(name)} && variable.?value.orValue('') == ${text(value)})`,
  );
  return `variable.name in ${JSON.stringify(VARIABLES)} || ${given.join(' || ')}`;
}

/** A literal of CEL: its escapes are those of JSON. */
function text(value: string): string {
  return JSON.stringify(value);
}

// What the adapter may bind. RBAC lets it give one role by its name, yet not say to whom and where: whoever has the adapter's token could
// let anybody write, and so read, the Secret of that name in any namespace. The API server refuses that here.

export interface BindingPolicyInput {
  readonly account: string;
  readonly jobAccount: string;
  readonly namespace: string;
  readonly labels: NonNullable<ObjectMeta['labels']>;
}

/** A policy of the API server for RoleBindings that the adapter writes, and its binding. */
export function bindingPolicy(input: BindingPolicyInput): readonly KubeObject[] {
  const { account, jobAccount, namespace, labels } = input;
  const user = `system:serviceaccount:${namespace}:${account}`;
  const subject = `object.subjects[0].kind == 'ServiceAccount' && object.subjects[0].name == '${jobAccount}' && object.subjects[0].namespace == '${namespace}'`;
  return admissionPolicy({
    metadata: { name: 'pullwright-pull-secret-adapter-bindings', labels },
    apiGroup: 'rbac.authorization.k8s.io',
    apiVersion: 'v1',
    resource: 'rolebindings',
    operations: ['CREATE', 'UPDATE', 'DELETE'],
    matchConditions: [{ name: 'by-the-adapter', expression: `request.userInfo.username == '${user}'` }],
    validations: [
      {
        expression: `request.operation == 'DELETE' || (object.roleRef.kind == 'ClusterRole' && object.roleRef.name == '${JOB_CLUSTER_ROLE}')`,
        message: `the pull secret adapter binds the ClusterRole ${JOB_CLUSTER_ROLE} and no other role`,
      },
      {
        expression: `request.operation == 'DELETE' || (has(object.subjects) && object.subjects.size() == 1 && ${subject})`,
        message: `the pull secret adapter binds for the ServiceAccount ${namespace}/${jobAccount} and nobody else`,
      },
      {
        expression: `request.name == '${JOB_BINDING}'`,
        message: `the binding of the pull secret adapter is named ${JOB_BINDING}`,
      },
      {
        expression:
          "!(request.namespace in ['default', 'openshift']) && !request.namespace.startsWith('kube-') && !request.namespace.startsWith('openshift-')",
        message: 'the pull secret adapter has nothing to do in namespaces of the platform',
      },
    ],
    actions: ['Deny'],
    // Without the answer of the policy there is no proof.
    failurePolicy: 'Fail',
  });
}

// The rights of adapter and Jobs. In its own namespace the adapter has Jobs, their pods temporary Secrets and
// records; elsewhere one binding by its name, and only such that gives the Job's one role, which it holds by the verb `bind` without
// having those rights itself.

const RBAC_GROUP = 'rbac.authorization.k8s.io';

const OWN: readonly PolicyRule[] = [
  { apiGroups: ['batch'], resources: ['jobs'], verbs: ['get', 'list', 'watch', 'create', 'patch', 'delete'] },
  { apiGroups: [''], resources: ['pods'], verbs: ['list'] },
  {
    apiGroups: [''],
    resources: ['configmaps'],
    verbs: ['get', 'list', 'watch', 'create', 'patch', 'delete'],
  },
  { apiGroups: [''], resources: ['secrets'], verbs: ['get', 'create', 'patch', 'delete'] },
  { apiGroups: ['events.k8s.io'], resources: ['events'], verbs: ['create', 'patch'] },
  { apiGroups: ['coordination.k8s.io'], resources: ['leases'], verbs: ['get', 'create', 'update', 'patch'] },
];

const EVERYWHERE: readonly PolicyRule[] = [
  // Server-side apply names what it creates, so the one name suffices.
  {
    apiGroups: [RBAC_GROUP],
    resources: ['rolebindings'],
    resourceNames: [JOB_BINDING],
    verbs: ['get', 'create', 'patch', 'delete'],
  },
  // Whether a management namespace is there at all: a right inside it would end with it.
  { apiGroups: [''], resources: ['namespaces'], verbs: ['get'] },
  {
    apiGroups: [RBAC_GROUP],
    resources: ['clusterroles'],
    resourceNames: [JOB_CLUSTER_ROLE],
    verbs: ['bind'],
  },
];

/** Input of {@link adapterRights}. */
export interface Rights extends JobBounds {
  readonly namespace: string;
  readonly account: string;
  readonly pullSecretName: string;
  readonly labels: NonNullable<ObjectMeta['labels']>;
  readonly jobLabels: NonNullable<ObjectMeta['labels']>;
}

export function adapterRights(input: Rights): readonly KubeObject[] {
  const { namespace, account, labels } = input;
  const subject = { name: account, namespace };
  const subjects = [subject];
  const meta = { name: 'pullwright-pull-secret-adapter', labels };
  // Server-side apply names what it creates, so the one name suffices.
  const job = secretsByName([input.pullSecretName], ['get', 'create', 'patch', 'delete']);
  return [
    clusterRole({ name: JOB_CLUSTER_ROLE, labels: input.jobLabels }, [job]),
    clusterRole(meta, EVERYWHERE),
    clusterRoleBinding(meta, subjects),
    role({ ...meta, namespace }, OWN),
    roleBinding({ ...meta, namespace }, subjects),
    ...accountBounds(subject, {
      component: 'adapter',
      rules: OWN,
      bounds: adapterBounds(input),
      secretTypes: ['Opaque'],
    }),
  ];
}
