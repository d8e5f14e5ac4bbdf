/**
 * What the adapter may run and write in its own namespace, beyond what RBAC can say: Jobs of our program as their one account, with the Secret
 * of a cluster and no other, and such Secrets. Whoever has the adapter's token could else read, through a pod, every Secret that lies
 * beside it, and be whichever service account lives there.
 */
import type { AccountBound } from '../shared/account-bounds.ts';
import { IMAGE_IS, imageVariables } from '../shared/account-bounds.ts';

const OPERATIONS = ['CREATE', 'UPDATE', 'DELETE'] as const;
/** Of CEL, about the name of a Secret. */
const isData = (name: string): string =>
  `${name}.startsWith('cluster-') && ${name}.endsWith('-pullsecret-data')`;

/**
 * The bounds of the adapter's account.
 *
 * @example
 * ```ts
 * import { adapterBounds } from './job-policy.ts';
 * import assert from 'node:assert/strict';
 *
 * const bounds = adapterBounds({ image: 'registry.example.com/pullwright:0.1.0', jobAccount: 'job' });
 * assert.deepEqual(bounds.map(({ name }) => name), ['data', 'jobs']);
 * ```
 */
export function adapterBounds({
  image,
  jobAccount,
}: {
  readonly image: string;
  readonly jobAccount: string;
}): readonly AccountBound[] {
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
      ],
    },
  ];
}
