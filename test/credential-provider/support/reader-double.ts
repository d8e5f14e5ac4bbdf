/** Reader over a cluster with the Machine Config Operator's kinds. */

import type { KubeObject } from '../../../runtime/core/kubernetes/object.ts';
import type { Query, Reader, Ref } from '../../../runtime/engine/contract.ts';
import { meta } from '../../support/meta.ts';

export interface ClusterShape {
  /** Null: no Infrastructure object. */
  readonly platform?: string | null;
  readonly matchImages?: readonly string[] | null;
  readonly pools?: readonly string[];
  readonly nodes?: readonly {
    readonly name: string;
    readonly pool: string;
    readonly kubelet?: string;
    readonly runtime?: string;
    /** NodePool of a hosted cluster. */
    readonly nodePool?: string;
  }[];
  readonly more?: readonly KubeObject[];
  readonly hosted?: boolean;
  /** No CRIOCredentialProviderConfig. */
  readonly deleted?: boolean;
}

const MC = 'machineconfiguration.openshift.io/v1';

/** Objects of the cluster, without ours. */
export function clusterObjects(shape: ClusterShape): KubeObject[] {
  const { platform = 'None', matchImages = ['docker.io'], pools = ['master', 'worker'], nodes = [] } = shape;
  const spec = matchImages === null ? {} : { matchImages };
  const config: KubeObject = {
    apiVersion: 'config.openshift.io/v1',
    kind: 'CRIOCredentialProviderConfig',
    metadata: { name: 'cluster', uid: 'uid-1', generation: 3 },
    spec,
  };
  return [
    ...(shape.deleted === true ? [] : [config]),
    ...(platform === null
      ? []
      : [
          {
            ...meta('config.openshift.io/v1 Infrastructure', { name: 'cluster' }),
            status: { platformStatus: { type: platform } },
          },
        ]),
    ...(shape.hosted === true ? [] : pools.map(poolObject)),
    ...nodes.map(({ name, pool, kubelet = 'v1.34.2', runtime = 'cri-o://1.34.1', nodePool }) => ({
      ...meta('v1 Node', {
        name,
        labels: {
          [`node-role.kubernetes.io/${pool}`]: '',
          ...(nodePool === undefined ? {} : { 'hypershift.openshift.io/nodePool': nodePool }),
        },
      }),
      status: { nodeInfo: { kubeletVersion: kubelet, containerRuntimeVersion: runtime } },
    })),
    ...(shape.more ?? []),
  ];
}

function poolObject(name: string): KubeObject {
  return {
    apiVersion: MC,
    kind: 'MachineConfigPool',
    metadata: { name, labels: { 'machineconfiguration.openshift.io/mco-built-in': '' } },
    spec: {
      nodeSelector: { matchLabels: { [`node-role.kubernetes.io/${name}`]: '' } },
      configuration: { name: `rendered-${name}-1` },
    },
  };
}

export function readerOf(objects: readonly KubeObject[], isHosted = false): Reader {
  const matches = (
    object: KubeObject,
    query: Pick<Query, 'apiVersion' | 'kind'> & { namespace?: string },
  ): boolean =>
    object.apiVersion === query.apiVersion &&
    object.kind === query.kind &&
    (query.namespace === undefined || object.metadata.namespace === query.namespace);
  return {
    scope: {
      name: isHosted ? 'clusters/east' : 'local',
      controlPlaneNamespace: isHosted ? 'clusters-east' : 'openshift-config',
      ...(isHosted ? { hostedCluster: { namespace: 'clusters', name: 'east' } } : {}),
    },
    now: new Date('2026-01-01T00:00:00Z'),
    get: (ref: Ref) => objects.find((object) => matches(object, ref) && object.metadata.name === ref.name),
    list: (query: Query) => objects.filter((object) => matches(object, query)),
    lookup: () => undefined,
    dryRun: () => undefined,
    refusal: () => undefined,
    isUnreadable: () => false,
    serves: () => true,
  };
}
