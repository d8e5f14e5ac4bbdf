/**
 * The NodePools of a hosted cluster: which of them take our ConfigMap, what their nodes run, how far they are.
 *
 * A NodePool gates itself: all of a hosted cluster share one ConfigMap and may be versions apart, so only nodes count whose
 * NodePool refers to it.
 */

import type { Condition } from '../../core/kubernetes/conditions.ts';
import type { KubeObject } from '../../core/kubernetes/object.ts';
import {
  type ClusterPair,
  HOSTED_CLUSTER_NAMESPACE,
  type Reader,
  type Watch,
} from '../../engine/contract.ts';
import { type NodeObject, type Rollout, tooOld } from '../pools.ts';

/** Label of the hosted cluster's nodes; its value is the NodePool's name. */
const NODE_POOL_LABEL = 'hypershift.openshift.io/nodePool';
/** The definition allows no more entries in `spec.config`. */
const MAX_CONFIGS = 10;

const NODE_POOL = {
  role: 'management',
  apiVersion: 'hypershift.openshift.io/v1beta1',
  kind: 'NodePool',
} as const;

export const NODE_POOL_READ: Watch = { ...NODE_POOL, namespace: HOSTED_CLUSTER_NAMESPACE, optional: true };

export interface NodePool {
  readonly namespace: string;
  readonly name: string;
  /** Names in `spec.config`. */
  readonly configs: readonly string[];
  /** Whether our ConfigMap is one of them. */
  readonly refers: boolean;
  /** Its nodes that would not start with the file. */
  readonly tooOld: readonly string[];
  readonly rollout: Rollout;
}

interface NodePoolObject extends KubeObject {
  readonly spec?: {
    readonly clusterName?: string;
    readonly config?: readonly { readonly name?: string }[];
  };
  readonly status?: {
    readonly conditions?: readonly (Condition & { readonly observedGeneration?: number })[];
  };
}

/** The NodePools, by name, and what nodes that belong to none of them run. */
export function readNodePools(
  reader: Reader,
  hosted: NonNullable<ClusterPair['hostedCluster']>,
  configMap: string,
): { readonly pools: readonly NodePool[]; readonly strayOld: readonly string[] } {
  const nodes = reader.list({ role: 'hosted', apiVersion: 'v1', kind: 'Node' }) as readonly NodeObject[];
  const objects = (reader.list(NODE_POOL) as readonly NodePoolObject[]).filter(
    ({ metadata, spec }) => metadata.namespace === hosted.namespace && spec?.clusterName === hosted.name,
  );
  const names = new Set(objects.map(({ metadata }) => metadata.name));
  const poolOf = ({ metadata }: NodeObject): string => metadata.labels?.[NODE_POOL_LABEL] ?? '';
  return {
    pools: objects.map((object) =>
      nodePool(
        object,
        nodes.filter((node) => poolOf(node) === object.metadata.name),
        configMap,
      ),
    ),
    strayOld: nodes.filter((node) => !names.has(poolOf(node))).flatMap(tooOld),
  };
}

function nodePool(object: NodePoolObject, nodes: readonly NodeObject[], configMap: string): NodePool {
  const configs = (object.spec?.config ?? []).map(({ name }) => (typeof name === 'string' ? name : ''));
  return {
    namespace: object.metadata.namespace ?? '',
    name: object.metadata.name,
    configs,
    refers: configs.includes(configMap),
    tooOld: nodes.flatMap(tooOld),
    rollout: rolloutOf(object),
  };
}

/** By HyperShift's own conditions; those of an older generation do not speak of the present `spec.config`. */
function rolloutOf({ metadata, status }: NodePoolObject): Rollout {
  const now = (type: string): string | undefined =>
    status?.conditions?.find(
      (one) =>
        one.type === type &&
        (one.observedGeneration ?? Number.MAX_SAFE_INTEGER) >= (metadata.generation ?? 0),
    )?.status;
  if (now('ValidMachineConfig') === 'False') return 'Degraded';
  return now('UpdatingConfig') === 'False' ? 'Done' : 'Progressing';
}

/**
 * How a NodePool is made to take the ConfigMap: the YAML to paste, with what is there already.
 */
export function configToPaste(configs: readonly string[], configMap: string): string {
  return ['spec:', '  config:', ...[...configs, configMap].map((name) => `  - name: ${name}`)].join('\n');
}

/** What is missing for a NodePool that does not refer to the ConfigMap, and what to do. */
export function howToRefer(
  pool: Pick<NodePool, 'namespace' | 'name' | 'configs' | 'tooOld'>,
  configMap: string,
): { readonly reason: string; readonly message: string } {
  const name = `NodePool ${pool.namespace}/${pool.name}`;
  if (pool.tooOld.length > 0)
    return {
      reason: 'UnsupportedVersion',
      message: `${name} does not refer to ConfigMap ${configMap}, and must not yet: its kubelets would not start. Too old: ${pool.tooOld.slice(0, 5).join(', ')}`,
    };
  if (pool.configs.length >= MAX_CONFIGS)
    return {
      reason: 'NotReferenced',
      message: `${name} does not refer to ConfigMap ${configMap}, and its spec.config has ${pool.configs.length} entries already, the most that are allowed: put two of them into one ConfigMap, then add this one`,
    };
  return {
    reason: 'NotReferenced',
    message: `${name} does not refer to ConfigMap ${configMap}, so its nodes do not get the configuration. Set in it:\n${configToPaste(pool.configs, configMap)}`,
  };
}
