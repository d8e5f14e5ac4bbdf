/** Machines and Nodes that get the eligibility label, and platforms on which the controller runs. */
import { runOffline } from '../../../../runtime/engine/offline/offline.ts';
import { ObjectStore } from '../../../../runtime/engine/store.ts';
import { ELIGIBLE_LABELS, poolEligibility } from '../../../../runtime/global-pull-secret/eligibility.ts';
import { reconcilers } from '../../../../runtime/global-pull-secret/reconciler/reconcile.ts';
import { decodeObject } from '../../../../runtime/kube/decode.ts';
import { meta } from '../../../support/meta.ts';
import { type ConformanceSuite, rows } from '../../suite.ts';

interface Input {
  readonly platform: string;
  readonly upgradeType?: string;
  /** Labels that the NodePool sets on its Machines. */
  readonly nodeLabels?: Readonly<Record<string, string>>;
  readonly taints?: readonly unknown[];
  readonly machineOwned?: boolean;
}

type Labels = Readonly<Record<string, string>> | null;
type Answer =
  | { readonly machineLabel: Labels; readonly nodeLabel: Labels }
  | { readonly controllerRuns: boolean }
  | { readonly machineLabels: Labels; readonly taintsAnnotation?: string };

export const suite: ConformanceSuite<Input, Answer> = {
  cases: rows,
  answer({ platform, upgradeType, nodeLabels }) {
    // HyperShift's unit test takes a pool of this platform that is replaced.
    if (nodeLabels !== undefined) {
      const { eligible } = poolEligibility({ platform, upgradeType: upgradeType ?? 'Replace' });
      return { machineLabels: eligible ? ELIGIBLE_LABELS.machine : {} };
    }
    if (upgradeType === undefined) return { controllerRuns: runsOn(platform) };
    if (!poolEligibility({ platform, upgradeType }).eligible) return { machineLabel: null, nodeLabel: null };
    return { machineLabel: ELIGIBLE_LABELS.machine, nodeLabel: ELIGIBLE_LABELS.node };
  },
  mutation: {
    file: 'runtime/global-pull-secret/eligibility.ts',
    replace: "['AWS', 'Azure']",
    by: "['KubeVirt']",
  },
};

/** Whether a cluster of this platform gets the copy of its pull secret. */
function runsOn(platform: string): boolean {
  const management = new ObjectStore();
  management.set({
    ...meta('hypershift.openshift.io/v1beta1 NodePool', { name: 'p', namespace: 'clusters' }),
    spec: { platform: { type: platform } },
  });
  management.set(
    decodeObject({
      ...meta('v1 Secret', { name: 'pull-secret', namespace: 'clusters-a' }),
      data: { '.dockerconfigjson': Buffer.from('{"auths":{}}').toString('base64') },
    }),
  );
  const hosted = new ObjectStore();
  const scope = {
    name: 'clusters/a',
    controlPlaneNamespace: 'clusters-a',
    hostedCluster: { namespace: 'clusters', name: 'a' },
  };
  const { objects } = runOffline({
    reconcilers: reconcilers({}),
    scope,
    stores: { hosted, management },
    now: new Date(0),
  });
  return objects.some((object) => object.ref.name === 'original-pull-secret');
}
