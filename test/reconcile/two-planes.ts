/** A management cluster with HyperShift's kinds, and the API server of a hosted cluster. */
import { type ControlPlane, startControlPlane } from '../control-plane/control-plane.ts';
import { HYPERSHIFT_CRDS } from '../support/hypershift.ts';
import { makeNamespaces } from './scene.ts';

export interface TwoPlanes {
  readonly management: ControlPlane;
  readonly hosted: ControlPlane;
}

/** Both, side by side; whoever asks for them stops them. */
export async function startTwoPlanes(): Promise<TwoPlanes> {
  const [management, hosted] = await Promise.all([
    startControlPlane({ crds: HYPERSHIFT_CRDS }),
    startControlPlane({ crds: ['pullstatuses.pullwright.dev'] }),
  ]);
  await makeNamespaces(hosted, 'openshift-config');
  return { management, hosted };
}
