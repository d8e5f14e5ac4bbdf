/**
 * The DaemonSet `global-pull-secret-offer`: the same agent, with the same reports, on nodes where the kubelet's file belongs to somebody
 * else. It keeps a file of its own, from which the credential provider answers the kubelet, and restarts nothing.
 */
import { GLOBAL_PULL_SECRET as NAMES } from '../../runtime/rules/kubernetes/global-pull-secret.ts';
import type { LabelRequirement } from '../../runtime/rules/kubernetes/label-selector.ts';
import type { KubeObject } from '../../runtime/rules/kubernetes/object.ts';
import { daemonSet, labels, type PodSpec, type Volume, type VolumeMount } from '../shared/objects.ts';
import { agentPod } from './agent.ts';
import type { AgentOptions } from './options.ts';

const SELECTOR = { name: NAMES.offer };
const FOLDER = NAMES.offerFile.slice(0, NAMES.offerFile.lastIndexOf('/'));
/** What is for the kubelet's file, and for its restart. */
const KUBELETS: readonly string[] = ['kubelet-config', 'dbus'];

/** The DaemonSet; none where no node is to have it in this way. */
export function offerDaemonSets({ offerTo, ...options }: AgentOptions): readonly KubeObject[] {
  if (offerTo === undefined || options.shape === 'upstream') return [];
  return [
    daemonSet({
      metadata: {
        name: NAMES.offer,
        namespace: NAMES.namespace,
        labels: labels({ name: NAMES.offer, component: 'global-pull-secret' }),
      },
      selector: SELECTOR,
      maxUnavailable: options.maxUnavailable ?? '10%',
      template: { metadata: { labels: SELECTOR }, spec: offerPod(options, offerTo) },
    }),
  ];
}

function offerPod(
  { janitor: _janitor, metrics: _metrics, alsoNodes: _also, restart: _restart, ...options }: AgentOptions,
  offerTo: readonly LabelRequirement[],
): PodSpec {
  const { nodeSelector: _selector, ...pod } = agentPod({ ...options, restart: 'never' });
  const volume: Volume = { name: 'offer', hostPath: { path: FOLDER, type: 'DirectoryOrCreate' } };
  const mount: VolumeMount = { name: 'offer', mountPath: FOLDER };
  return {
    ...pod,
    affinity: {
      nodeAffinity: {
        requiredDuringSchedulingIgnoredDuringExecution: {
          nodeSelectorTerms: [{ matchExpressions: [...offerTo.map(expression), NOT_THE_OTHER] }],
        },
      },
    },
    containers: pod.containers.map((one) => ({
      ...one,
      command: [...(one.command ?? []), `--file=${NAMES.offerFile}`],
      volumeMounts: [mount, ...(one.volumeMounts ?? []).filter(({ name }) => !KUBELETS.includes(name))],
    })),
    volumes: [volume, ...(pod.volumes ?? []).filter(({ name }) => !KUBELETS.includes(name))],
  };
}

/** One node has one agent. */
const NOT_THE_OTHER = { key: NAMES.nodeLabel, operator: 'NotIn', values: ['true'] };

function expression({ key, operator, values }: LabelRequirement): {
  readonly key: string;
  readonly operator: string;
  readonly values?: readonly string[];
} {
  return { key, operator, ...(values === undefined ? {} : { values }) };
}
