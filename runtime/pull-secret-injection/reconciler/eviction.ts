/** Which stuck pods are asked to go, so that admission may give their successors what they lack. */
import type { Action, World } from '../../controller/contract.ts';
import type { InjectionPlan } from '../../rules/injection/profile-plan.ts';
import type { KubeObject } from '../../rules/kubernetes/object.ts';
import { replacesPods } from '../../rules/kubernetes/pod-owner.ts';
import type { InjectionOptions } from '../options.ts';
import { injectionState } from './injecting.ts';
import { secretRef } from './names.ts';
import type { UninjectedPod } from './uninjected-pod.ts';

/**
 * Only pods that somebody makes again, that are stuck, for whom every missing Secret is at hand by now, while something injects. The
 * engine asks the API server, in a dry run, what would become of the successor before it evicts.
 */
export function evictionOf(
  world: World,
  plan: InjectionPlan,
  one: UninjectedPod,
  options: InjectionOptions,
): readonly Action[] {
  const { namespace = '', name, uid = '', ownerReferences = [], creationTimestamp = '' } = one.pod.metadata;
  const owner = ownerReferences.find(({ controller }) => controller === true);
  const allowed = one.by.every((source) =>
    plan.profiles.some((profile) => `profile/${profile.name}` === source && profile.repair === 'Evict'),
  );
  const atHand = one.missing.every((secret) => world.get(secretRef(namespace, secret)) !== undefined);
  if (!one.stuck || !allowed || !atHand || owner === undefined || !replacesPods(owner)) return [];
  if (injectionState(world, options).status !== 'True') return [];
  const reason = `cannot pull its image and lacks ${one.missing.join(', ')}, which ${one.by.join(', ')} adds to new pods`;
  const successor = { pod: successorOf(one.pod), wants: one.missing };
  return [
    {
      action: 'evict',
      role: 'hosted',
      namespace,
      name,
      uid,
      reason,
      createdAt: creationTimestamp,
      owner: { apiVersion: owner.apiVersion, kind: owner.kind, name: owner.name, uid: owner.uid },
      successor,
    },
  ];
}

/** The pod as its controller will ask for it: without what the cluster made of it. */
function successorOf(pod: KubeObject): KubeObject {
  const { namespace, labels, annotations } = pod.metadata;
  const {
    nodeName: _node,
    ephemeralContainers: _debug,
    ...spec
  } = (pod.spec ?? {}) as Readonly<Record<string, unknown>>;
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: `${pod.metadata.name.slice(0, 200)}-successor`,
      ...(namespace === undefined ? {} : { namespace }),
      ...(labels === undefined ? {} : { labels }),
      ...(annotations === undefined ? {} : { annotations }),
    },
    spec,
  };
}
