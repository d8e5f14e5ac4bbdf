/** One reconciliation of the credential provider over a world of doubles, and what came out. */

import type { Condition } from '../../../runtime/core/kubernetes/conditions.ts';
import type { KubeObject } from '../../../runtime/core/kubernetes/object.ts';
import type { ReconcilerOptions } from '../../../runtime/credential-provider/options.ts';
import { credentialProviderReconciler } from '../../../runtime/credential-provider/reconciler/reconcile.ts';
import type { Result } from '../../../runtime/engine/contract.ts';
import { type ClusterShape, clusterObjects, worldOf } from './world-double.ts';

export const KEY = { scope: 'local', name: 'cluster' } as const;

export interface Seen {
  readonly outcome: Result;
  readonly configs: readonly KubeObject[];
  readonly conditions: ReadonlyMap<string, Condition>;
  /** Conditions of the PullStatus. */
  readonly reported: ReadonlyMap<string, Condition>;
}

export function reconcile(shape: ClusterShape, options: Partial<ReconcilerOptions> = {}): Seen {
  const reconciler = credentialProviderReconciler(() => ({
    mode: 'auto',
    secretAnnotation: false,
    ...options,
  }));
  const result = reconciler.reconcile(worldOf(clusterObjects(shape), shape.hosted), KEY);
  const objects = (result.apply ?? []).flatMap((one) => ('object' in one ? [one.object] : []));
  const conditionsOf = (kind: string): ReadonlyMap<string, Condition> => {
    const status = result.status?.find(({ ref }) => ref.kind === kind)?.status as
      | { conditions?: readonly Condition[] }
      | undefined;
    return new Map((status?.conditions ?? []).map((one) => [one.type, one]));
  };
  return {
    outcome: result,
    configs: objects.filter(({ kind }) => kind !== 'PullStatus'),
    conditions: conditionsOf('CRIOCredentialProviderConfig'),
    reported: conditionsOf('PullStatus'),
  };
}
