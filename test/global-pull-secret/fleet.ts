/** A hosted cluster and its management cluster in memory, with planted secrets, for tests of the global pull secret. */
import { type OfflineResult, runOffline } from '../../runtime/controller/offline.ts';
import { ObjectStore } from '../../runtime/controller/store.ts';
import { reconcilers } from '../../runtime/global-pull-secret/reconciler/reconciler.ts';
import { decodeObject } from '../../runtime/kube/decode.ts';
import type { KubeObject, SecretObject } from '../../runtime/rules/kubernetes/object.ts';
import { reveal } from '../../runtime/rules/redacted.ts';
import { plantedAuth } from '../support/canary.ts';

const SCOPE = {
  name: 'clusters/a',
  controlPlaneNamespace: 'clusters-a',
  hostedCluster: { namespace: 'clusters', name: 'a' },
};
const NOW = new Date('2026-01-01T00:00:00Z');

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
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name, namespace, uid: `uid-${name}` },
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

  constructor(options: Readonly<Record<string, unknown>> = {}) {
    this.#options = options;
  }

  reconcile(): OfflineResult {
    return runOffline({
      reconcilers: reconcilers(this.#options),
      scope: SCOPE,
      stores: { hosted: this.hosted, management: this.management },
      now: NOW,
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

  verdicts(): readonly string[] {
    const status = this.hosted.get({
      apiVersion: 'pullwright.dev/v1alpha1',
      kind: 'PullStatus',
      namespace: 'kube-system',
      name: 'secret-additional-pull-secret',
    })?.status;
    return (
      (status as { verdicts?: { subject: string; verdict: string; reason: string }[] } | undefined)
        ?.verdicts ?? []
    ).map((one) => `${one.subject} ${one.verdict}`);
  }
}

export function fleet(
  platformText: string,
  additionalText?: string,
  options?: Readonly<Record<string, unknown>>,
): Fleet {
  const made = new Fleet(options);
  made.management.set(platform(platformText));
  if (additionalText !== undefined) made.hosted.set(additional(additionalText));
  return made;
}

export const PLATFORM: string = config({
  'quay.io': auth('platform'),
  'registry.example.com': auth('platform-2'),
});
