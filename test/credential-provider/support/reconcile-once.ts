/** One reconciliation of the credential provider over a world of doubles, and what came out. */
import type { Outcome } from '../../../runtime/controller/contract.ts';
import type { ReconcilerOptions } from '../../../runtime/credential-provider/reconciler/options.ts';
import { credentialProviderReconciler } from '../../../runtime/credential-provider/reconciler/reconciler.ts';
import type { Condition } from '../../../runtime/rules/kubernetes/conditions.ts';
import type { KubeObject } from '../../../runtime/rules/kubernetes/object.ts';
import { type ClusterShape, clusterObjects, worldOf } from './world-double.ts';

export const KEY = { scope: 'local', name: 'cluster' } as const;

export interface Seen {
  readonly outcome: Outcome;
  readonly configs: readonly KubeObject[];
  readonly conditions: ReadonlyMap<string, Condition>;
  /** Conditions of the PullStatus. */
  readonly reported: ReadonlyMap<string, Condition>;
}

export function reconcile(shape: ClusterShape, options: Partial<ReconcilerOptions> = {}): Seen {
  const reconciler = credentialProviderReconciler({
    mode: 'auto',
    platform: 'None',
    secretAnnotation: false,
    ...options,
  });
  const outcome = reconciler.reconcile(worldOf(clusterObjects(shape), shape.hosted), KEY);
  const objects = (outcome.apply ?? []).flatMap((one) => ('object' in one ? [one.object] : []));
  const conditionsOf = (kind: string): ReadonlyMap<string, Condition> => {
    const status = outcome.status?.find(({ ref }) => ref.kind === kind)?.status as
      | { conditions?: readonly Condition[] }
      | undefined;
    return new Map((status?.conditions ?? []).map((one) => [one.type, one]));
  };
  return {
    outcome,
    configs: objects.filter(({ kind }) => kind !== 'PullStatus'),
    conditions: conditionsOf('CRIOCredentialProviderConfig'),
    reported: conditionsOf('PullStatus'),
  };
}
