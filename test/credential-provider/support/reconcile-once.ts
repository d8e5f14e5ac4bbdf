/** One reconcile of the credential provider over doubles, and its results. */

import { credentialProviderSystem } from '../../../charts/credential-provider/chart.ts';
import type { Condition } from '../../../runtime/core/kubernetes/conditions.ts';
import type { KubeObject } from '../../../runtime/core/kubernetes/object.ts';
import type { EntryStatus } from '../../../runtime/core/kubernetes/pull-status.ts';
import {
  parseReconcilerOptions,
  type ReconcilerOptions,
} from '../../../runtime/credential-provider/options.ts';
import { credentialProviderReconciler } from '../../../runtime/credential-provider/reconciler/reconcile.ts';
import type { Result } from '../../../runtime/engine/contract.ts';
import { type ClusterShape, clusterObjects, readerOf } from './reader-double.ts';

export interface Seen {
  readonly outcome: Result;
  readonly configs: readonly KubeObject[];
  readonly conditions: ReadonlyMap<string, Condition>;
  /** Conditions of the PullStatus. */
  readonly reported: ReadonlyMap<string, Condition>;
  /** Its entries by their subject. */
  readonly verdicts: ReadonlyMap<string, EntryStatus>;
}

/** MachineConfig in the ConfigMap of a hosted cluster with the section `executable: {}`. */
export function hostedConfig(image: string, provider: object, shape: ClusterShape): KubeObject {
  const east = {
    cluster: { image, hostedCluster: { namespace: 'clusters', name: 'east' } },
    config: { executable: {}, provider },
  };
  const part = credentialProviderSystem.managementReconciler?.({} as never, [east as never], undefined);
  const options = parseReconcilerOptions(part?.options ?? {})('clusters/east');
  const [made] = reconcile({ hosted: true, ...shape }, options).configs;
  const { config = '' } = (made?.['data'] ?? {}) as { readonly config?: string };
  return JSON.parse(config) as KubeObject;
}

interface Status {
  readonly conditions?: readonly Condition[];
  readonly verdicts?: readonly EntryStatus[];
}

export function reconcile(shape: ClusterShape, options: Partial<ReconcilerOptions> = {}): Seen {
  const reconciler = credentialProviderReconciler(() => ({
    mode: 'auto',
    secretAnnotation: false,
    ...options,
  }));
  const key = { scope: shape.hosted === true ? 'clusters/east' : 'local', name: 'cluster' };
  const result = reconciler.reconcile(readerOf(clusterObjects(shape), shape.hosted), key);
  const objects = (result.apply ?? []).flatMap((one) => ('object' in one ? [one.object] : []));
  const statusOf = (kind: string): Status =>
    result.status?.find(({ ref }) => ref.kind === kind)?.status ?? {};
  const conditionsOf = (kind: string): ReadonlyMap<string, Condition> =>
    new Map((statusOf(kind).conditions ?? []).map((one) => [one.type, one]));
  return {
    outcome: result,
    configs: objects.filter(({ kind }) => kind !== 'PullStatus'),
    conditions: conditionsOf('CRIOCredentialProviderConfig'),
    reported: conditionsOf('PullStatus'),
    verdicts: new Map((statusOf('PullStatus').verdicts ?? []).map((one) => [one.subject, one])),
  };
}
