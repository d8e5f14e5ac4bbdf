/** Which hosted cluster was whose, in a ConfigMap beside the Lease: the next process, and the one that takes over, go on with it. */
import { isApiError } from '../kube/api-error.ts';
import type { KubeObject } from '../rules/kubernetes/object.ts';
import type { Cluster } from './cluster.ts';
import type { Remembered } from './cluster-ownership.ts';

/** Name of the ConfigMap. */
export const CLAIM_MEMORY = 'pullwright-hosted-clusters';
/** Field manager of the ConfigMap. */
export const DISCOVERY_MANAGER = 'pullwright-discovery';

export interface ClaimMemory {
  read(): Promise<Remembered>;
  write(record: Remembered): Promise<void>;
}

/** For one process alone. */
export const NO_CLAIM_MEMORY: ClaimMemory = {
  read: () => Promise.resolve({}),
  write: () => Promise.resolve(),
};

/** In `namespace` of the management cluster. Where the rights of an older installation do not reach so far, nothing is remembered. */
export function claimMemory(management: Cluster, namespace: string): ClaimMemory {
  const ref = { apiVersion: 'v1', kind: 'ConfigMap', namespace, name: CLAIM_MEMORY };
  return {
    read: async () => {
      const found = await unlessForbidden(management.client.get(ref));
      return (found?.['data'] ?? {}) as Remembered;
    },
    write: async (record) => {
      management.assertMayWrite();
      const data = Object.fromEntries(Object.entries(record).flatMap(([mark, name]) => keyed(mark, name)));
      const object = { ...claimConfigMap(namespace), data };
      await unlessForbidden(management.client.apply(object, { manager: DISCOVERY_MANAGER, force: true }));
    },
  };
}

/** The ConfigMap without what is remembered in it. */
export function claimConfigMap(namespace: string): KubeObject {
  const labels = {
    'app.kubernetes.io/managed-by': 'pullwright',
    'app.kubernetes.io/name': CLAIM_MEMORY,
    'app.kubernetes.io/part-of': 'pullwright',
  };
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: CLAIM_MEMORY, namespace, labels } };
}

/** Keys of a ConfigMap are narrower than addresses: those are not remembered. */
function keyed(mark: string, name: string): readonly (readonly [string, string])[] {
  return /^[\w.-]{1,253}$/.test(mark) ? [[mark, name]] : [];
}

async function unlessForbidden<T>(answer: Promise<T>): Promise<T | undefined> {
  try {
    return await answer;
  } catch (error) {
    if (isApiError(error, 403)) return undefined;
    throw error;
  }
}
