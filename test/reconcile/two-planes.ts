/** A management cluster with HyperShift's kinds, and the API server of a hosted cluster. */
import { type ControlPlane, startControlPlane } from '../control-plane/control-plane.ts';

export interface TwoPlanes {
  readonly management: ControlPlane;
  readonly hosted: ControlPlane;
}

/** Both, side by side; whoever asks for them stops them. */
export async function startTwoPlanes(): Promise<TwoPlanes> {
  const [management, hosted] = await Promise.all([
    startControlPlane({
      crds: [
        'hostedcontrolplanes.hypershift.openshift.io',
        'hostedclusters.hypershift.openshift.io',
        'nodepools.hypershift.openshift.io',
        'machines.cluster.x-k8s.io',
      ],
    }),
    startControlPlane({ crds: ['pullstatuses.pullwright.dev'] }),
  ]);
  await hosted.client.request('POST', '/api/v1/namespaces', { metadata: { name: 'openshift-config' } });
  return { management, hosted };
}
