/** A hosted cluster and its management cluster in memory, with planted secrets, for tests of the global pull secret. */

import type { KubeObject, SecretObject } from '../../runtime/core/kubernetes/object.ts';
import { reveal } from '../../runtime/core/redacted.ts';
import { type OfflineResult, runOffline } from '../../runtime/engine/offline/offline.ts';
import { ObjectStore } from '../../runtime/engine/store.ts';
import { reconcilers } from '../../runtime/global-pull-secret/reconciler/reconcile.ts';
import { decodeObject } from '../../runtime/kube/decode.ts';
import { plantedAuth } from '../support/canary.ts';
import { meta, refOf } from '../support/meta.ts';

const SCOPE = {
  name: 'clusters/a',
  controlPlaneNamespace: 'clusters-a',
  hostedCluster: { namespace: 'clusters', name: 'a' },
};
export const NOW: Date = new Date('2026-01-01T00:00:00Z');

type Auths = Readonly<Record<string, unknown>>;

export const auth = (label: string): { auth: string } => ({ auth: plantedAuth(label) });
export const config = (auths: Auths): string => JSON.stringify({ auths });

export function secret(
  name: string,
  namespace: string,
  data: Readonly<Record<string, string>>,
  type = 'kubernetes.io/dockerconfigjson',
): KubeObject {
  const encoded = Object.fromEntries(
    Object.entries(data).map(([key, value]) => [key, Buffer.from(value).toString('base64')]),
  );
  return decodeObject({
    ...meta('v1 Secret', {
      name,
      namespace,
      uid: `uid-${name}`,
      managedFields: [{ manager: 'kubectl', operation: 'Update', fieldsV1: {} }],
    }),
    type,
    data: encoded,
  });
}

export const platform = (text: string): KubeObject =>
  secret('pull-secret', 'clusters-a', { '.dockerconfigjson': text });
export const additional = (text: string, type?: string): KubeObject =>
  secret('additional-pull-secret', 'kube-system', { '.dockerconfigjson': text }, type);

/** Both clusters of one hosted cluster, in memory. */
export class Fleet {
  readonly hosted: ObjectStore = new ObjectStore();
  readonly management: ObjectStore = new ObjectStore();
  readonly #options: Readonly<Record<string, unknown>>;

  /** Without options no agent reports: none runs here. */
  constructor(options: Readonly<Record<string, unknown>> = {}) {
    const { agent = {} } = options as { readonly agent?: object };
    this.#options = { ...options, agent: { report: false, ...agent } };
  }

  reconcile(now: Date = NOW): OfflineResult {
    return runOffline({
      reconcilers: reconcilers(this.#options),
      scope: SCOPE,
      stores: { hosted: this.hosted, management: this.management },
      now,
    });
  }

  secret(name: string): SecretObject | undefined {
    return this.hosted.get({ apiVersion: 'v1', kind: 'Secret', namespace: 'kube-system', name }) as
      | SecretObject
      | undefined;
  }

  auths(name: string): Auths | undefined {
    const value = this.secret(name)?.data?.['.dockerconfigjson'];
    return value === undefined
      ? undefined
      : (JSON.parse(Buffer.from(reveal(value), 'base64').toString()) as { auths: Auths }).auths;
  }

  /** Status of the PullStatus about the additional secret, or about the copy of the platform's. */
  status(about: 'additional' | 'original' = 'additional'): ReportedStatus | undefined {
    return this.hosted.get(
      refOf('pullwright.dev/v1alpha1 PullStatus', `secret-${about}-pull-secret`, 'kube-system'),
    )?.status as ReportedStatus | undefined;
  }

  verdicts(about: 'additional' | 'original' = 'additional'): readonly string[] {
    return (this.status(about)?.verdicts ?? []).map((one) => `${one.subject} ${one.verdict}`);
  }

  /** `True Merged` and the like. */
  condition(about: 'additional' | 'original', type = 'Ready'): string | undefined {
    const found = this.status(about)?.conditions.find((one) => one.type === type);
    return found === undefined ? undefined : `${found.status} ${found.reason}`;
  }
}

interface ReportedStatus {
  readonly verdicts: readonly { subject: string; verdict: string; reason: string; message: string }[];
  readonly conditions: readonly { type: string; status: string; reason: string; message: string }[];
  readonly summary: Readonly<Record<string, string>>;
}

/** A node with a manual label. */
export const eligibleNode: KubeObject = meta('v1 Node', {
  name: 'labelled',
  uid: 'labelled',
  labels: { 'hypershift.openshift.io/nodepool-globalps-enabled': 'true' },
});

export function fleet(
  platformText: string,
  additionalText?: string,
  options?: Readonly<Record<string, unknown>>,
): Fleet {
  const made = new Fleet(options);
  made.management.set(platform(platformText));
  made.hosted.set(eligibleNode);
  if (additionalText !== undefined) made.hosted.set(additional(additionalText));
  return made;
}

export const PLATFORM: string = config({
  'quay.io': auth('platform'),
  'registry.example.com': auth('platform-2'),
});
