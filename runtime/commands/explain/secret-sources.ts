/**
 * Secrets as documents with credentials, each decoded once: a folder or a cluster may have a thousand pods for one of them. For as long as
 * there is the object, which is as long as the command looks at it.
 */
import type { AuthSource } from '../../rules/auth-lookup/kubelet.ts';
import { pullSecretSource, secretDataText } from '../../rules/docker-config/secret-text.ts';
import { GLOBAL_PULL_SECRET as NAMES } from '../../rules/kubernetes/global-pull-secret.ts';
import { describeObject, type KubeObject, type SecretObject } from '../../rules/kubernetes/object.ts';

type Sources = WeakMap<KubeObject, AuthSource | undefined>;

const ofPods: Sources = new WeakMap();
const ofNodes: Sources = new WeakMap();

/** What the kubelet reads of a Secret that a pod lists; undefined for those that it passes over. */
export function podSource(secret: KubeObject): AuthSource | undefined {
  return remembered(ofPods, secret, () => pullSecretSource(secret as SecretObject));
}

/** A Secret as a docker config of nodes. Its type does not count: the copy of the platform's secret may be Opaque. */
export function nodeSource(secret: KubeObject): AuthSource | undefined {
  return remembered(ofNodes, secret, () => {
    const value = (secret as SecretObject).data?.[NAMES.dataKey];
    const { namespace, name } = secret.metadata;
    if (value === undefined) return undefined;
    return {
      name: describeObject({ kind: 'Secret', namespace, name }),
      format: 'config.json',
      text: secretDataText(value),
    };
  });
}

function remembered(
  sources: Sources,
  secret: KubeObject,
  make: () => AuthSource | undefined,
): AuthSource | undefined {
  if (sources.has(secret)) return sources.get(secret);
  const made = make();
  sources.set(secret, made);
  return made;
}
