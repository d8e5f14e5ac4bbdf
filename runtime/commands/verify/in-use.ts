/** Which images are in use, and by whom: pods, and the templates that pods are made from. */
import type { ObjectStore } from '../../controller/store.ts';
import { describeObject, type KubeObject } from '../../rules/kubernetes/object.ts';
import { imagesOf, listedNames, type PodPuller, podSpecIn, WORKLOADS } from '../pod-spec.ts';

/** A user of images; several that pull alike are one. */
export interface ImageUser {
  readonly puller: PodPuller;
  readonly images: readonly string[];
  /** `Deployment/web/shop` */
  readonly usedBy: string;
  /** Names of the Secrets that it lists, in order. */
  readonly secrets: readonly string[];
}

/** Templates that make pods: ReplicaSets are left out, because the old ones of a Deployment stay behind. */
export const USING_KINDS: readonly { readonly apiVersion: string; readonly kind: string }[] = [
  ...new Map(Object.values(WORKLOADS).map((kind) => [kind.kind, kind])).values(),
].filter(({ kind }) => kind !== 'ReplicaSet');

/**
 * Everything in `store` that uses images. What has ended uses none. An image is given once per namespace and list of Secrets,
 * with the first that uses it.
 */
export function imageUsers(store: ObjectStore): readonly ImageUser[] {
  const seen = new Set<string>();
  return USING_KINDS.flatMap((kind) => store.list(kind))
    .filter((object) => !hasEnded(object))
    .flatMap((object): readonly ImageUser[] => {
      const user = userOf(store, object);
      const images = user.images.filter((image) => {
        const id = [user.puller.namespace, ...user.secrets, '', image].join('\n');
        return !seen.has(id) && seen.add(id);
      });
      return images.length === 0 ? [] : [{ ...user, images }];
    });
}

function userOf(store: ObjectStore, object: KubeObject): ImageUser {
  const { name, namespace = 'default' } = object.metadata;
  const puller: PodPuller = { namespace, serviceAccount: 'default', pod: { kind: object.kind, name } };
  const spec = podSpecIn(object);
  return {
    puller,
    images: imagesOf(spec),
    usedBy: describeObject({ kind: object.kind, namespace, name }),
    secrets: listedNames(store, puller, spec).map((secret) => secret.name),
  };
}

function hasEnded({ kind, status }: KubeObject): boolean {
  const { phase, completionTime } = (status ?? {}) as { phase?: unknown; completionTime?: unknown };
  return kind === 'Pod' ? phase === 'Succeeded' || phase === 'Failed' : completionTime !== undefined;
}
