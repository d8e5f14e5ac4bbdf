/** Objects of a small cluster, and the engine over them, for tests of the reconciler. */

import type { KubeObject, SecretObject } from '../../runtime/core/kubernetes/object.ts';
import { reveal } from '../../runtime/core/redacted.ts';
import { type Reader, type Reconciler, withIdentity } from '../../runtime/engine/contract.ts';
import { type OfflineResult, runOffline } from '../../runtime/engine/offline/offline.ts';
import { createReader, ObjectStore } from '../../runtime/engine/store.ts';
import { decodeObject } from '../../runtime/kube/decode.ts';
import type { InjectionOptions } from '../../runtime/pull-secret-injection/options.ts';
import { pullSecretInjection } from '../../runtime/pull-secret-injection/reconciler/reconcile.ts';
import { plantedAuth } from '../support/canary.ts';
import { meta, pullSecretObject } from '../support/meta.ts';

export const PROFILE = 'pullwright.dev/v1alpha1';
export const SCOPE = { name: 'local', controlPlaneNamespace: 'openshift-config' };

export function namespace(name: string, labels: Record<string, string> = {}): KubeObject {
  return meta('v1 Namespace', { name, labels: { 'kubernetes.io/metadata.name': name, ...labels } });
}

/** `team-0` and so on, which the profiles and sets of the scenes select. */
export function teams(count: number, labels: Record<string, string> = { team: 'a' }): readonly KubeObject[] {
  return Array.from({ length: count }, (_, at) => namespace(`team-${at}`, labels));
}

/** In how many namespaces of {@link teams} a Secret of this name is. */
export function teamsWith(seen: Scene, name: string, count: number): number {
  return teams(count).filter(({ metadata }) => seen.secret(metadata.name, name) !== undefined).length;
}

const GRANTED_TO = 'test.example/granted-to';

/** The PullSecretGrant beside a source, as {@link source} was told; undefined when it grants nothing. */
function grantBeside({ metadata }: KubeObject): KubeObject | undefined {
  const text = metadata.annotations?.[GRANTED_TO];
  if (typeof text !== 'string') return undefined;
  const { name, namespace = '' } = metadata;
  return grant({ secrets: [{ name }], namespaces: text.split(', ') }, `of-${name}`, namespace);
}

/** A grant of the Secret `quay`, unless `spec` says otherwise. */
export function grant(spec: Record<string, unknown>, name = 'teams', home = 'platform'): KubeObject {
  return {
    ...meta(`${PROFILE} PullSecretGrant`, { name, namespace: home }),
    spec: { secrets: [{ name: 'quay' }], profiles: [{ name: '*' }], ...spec },
  };
}

/** Puts an object into the store; a source with its namespace and the grant beside it. */
function put(store: ObjectStore, object: KubeObject): void {
  store.set(withIdentity(object));
  if (object.kind !== 'Secret') return;
  const { name, namespace: home = '' } = object.metadata;
  if (store.get({ apiVersion: 'v1', kind: 'Namespace', name: home }) === undefined)
    store.set(withIdentity(namespace(home, { 'pullwright.dev/distribute': 'false' })));
  const grant = grantBeside(object);
  if (grant !== undefined) store.set(withIdentity(grant));
  else store.delete({ apiVersion: PROFILE, kind: 'PullSecretGrant', namespace: home, name: `of-${name}` });
}

/** A source that is granted to the namespaces `grant`; `body` is the document, or a list of registries. */
export function source(name: string, body: string | readonly string[], grant = '*'): KubeObject {
  const [inNamespace = '', secret = ''] = name.split('/');
  const document =
    typeof body === 'string'
      ? body
      : { auths: Object.fromEntries(body.map((host) => [host, { auth: plantedAuth(host) }])) };
  const annotations = grant === '' ? {} : { annotations: { [GRANTED_TO]: grant } };
  return decodeObject(pullSecretObject({ name: secret, namespace: inNamespace, ...annotations }, document));
}

/** Kruise injects SidecarSets. */
export const KRUISE: KubeObject = {
  ...meta('admissionregistration.k8s.io/v1 MutatingWebhookConfiguration', {
    name: 'kruise-mutating-webhook-configuration',
  }),
  webhooks: [{ name: 'mpod.kb.io' }],
};

export function profile(name: string, spec: Record<string, unknown>): KubeObject {
  return {
    ...meta(`${PROFILE} PullSecretProfile`, { name, generation: 1 }),
    spec: { namespaceSelector: { matchLabels: { team: 'a' } }, selector: {}, ...spec },
  };
}

export interface Scene {
  readonly store: ObjectStore;
  readonly result: OfflineResult;
  secret(namespace: string, name: string): SecretObject | undefined;
  /** Registries of a copy, sorted. */
  registries(namespace: string, name: string): readonly string[] | undefined;
  status(kind: string, name: string, namespace?: string): ReportedStatus | undefined;
  /** Puts objects in (or takes them out, by `-kind/namespace/name`) and reconciles again. */
  after(changes: readonly Change[]): Scene;
  /** The same without a restart, so many seconds later. */
  later(seconds: number, changes: readonly Change[]): Scene;
}

type Change = KubeObject | { readonly gone: KubeObject };

export interface ReportedStatus {
  readonly conditions: readonly { type: string; status: string; reason: string; message: string }[];
  readonly verdicts?: readonly { subject: string; verdict: string; reason: string; message: string }[];
  readonly copies?: string;
}

const NOW = new Date('2026-11-21T00:00:00Z');

/** The stored object with the spec and the annotations of `next`, as an API server keeps uid and status. */
export function changedTo(seen: Scene, next: KubeObject): KubeObject {
  const stored = seen.store.get({ ...next, ...next.metadata }) as KubeObject;
  const { annotations = {} } = next.metadata;
  return { ...stored, spec: next.spec, metadata: { ...stored.metadata, annotations } };
}

/** Reconciles `objects` to a fixed point. The cluster serves the policy kind when `policies` is not false. */
export function scene(objects: readonly KubeObject[], options: Partial<InjectionOptions> = {}): Scene {
  const store = new ObjectStore();
  // Offline, a kind is served when there is one of it.
  store.set(meta('admissionregistration.k8s.io/v1 MutatingAdmissionPolicy', { name: 'of-somebody-else' }));
  for (const object of objects) put(store, object);
  return reconciled(store, options);
}

function reconciled(
  store: ObjectStore,
  options: Partial<InjectionOptions>,
  reconciler: Reconciler = pullSecretInjection(options),
  now: Date = NOW,
): Scene {
  const result = runOffline({
    reconcilers: [reconciler],
    scope: SCOPE,
    stores: { hosted: store, management: store },
    now,
  });
  const change = (changes: readonly Change[]): void => {
    for (const one of changes) {
      if ('gone' in one) store.delete({ ...(one.gone as KubeObject), ...(one.gone as KubeObject).metadata });
      else put(store, one);
    }
  };
  const secret = (inNamespace: string, name: string): SecretObject | undefined =>
    store.get({ apiVersion: 'v1', kind: 'Secret', namespace: inNamespace, name }) as SecretObject | undefined;
  return {
    store,
    result,
    secret,
    registries: (inNamespace, name) => registriesOf(secret(inNamespace, name)),
    status: (kind, name, inNamespace) =>
      store.get({
        apiVersion: kind === 'SidecarSet' ? 'apps.kruise.io/v1beta1' : PROFILE,
        kind,
        name,
        ...(inNamespace === undefined ? {} : { namespace: inNamespace }),
      })?.status as ReportedStatus | undefined,
    after: (changes) => {
      change(changes);
      return reconciled(store, options);
    },
    later: (seconds, changes) => {
      change(changes);
      return reconciled(store, options, reconciler, new Date(now.getTime() + seconds * 1000));
    },
  };
}

function registriesOf(secret: SecretObject | undefined): readonly string[] | undefined {
  const body = secret?.data?.['.dockerconfigjson'];
  if (body === undefined) return undefined;
  const parsed = JSON.parse(Buffer.from(reveal(body), 'base64').toString()) as {
    auths: Record<string, unknown>;
  };
  return Object.keys(parsed.auths).sort();
}

/** The reconciler's view of a store. */
export function readerOf(store: ObjectStore, options: Partial<InjectionOptions> = {}): Reader {
  return createReader({
    scope: SCOPE,
    now: NOW,
    stores: { hosted: store, management: store },
    reads: pullSecretInjection(options).watches,
    serves: () => true,
  });
}

/** `Ready` of a status: `True Current`. */
export function ready(status: ReportedStatus | undefined): string | undefined {
  const found = status?.conditions.find((condition) => condition.type === 'Ready');
  return found === undefined ? undefined : `${found.status} ${found.reason}`;
}

/** One condition of a status, as `False SourceMissing`. */
export function conditionOf(status: ReportedStatus | undefined, type: string): string | undefined {
  const found = status?.conditions.find((condition) => condition.type === type);
  return found === undefined ? undefined : `${found.status} ${found.reason}`;
}

/** Message of `Ready`. */
export function readyMessage(status: ReportedStatus | undefined): string {
  return status?.conditions.find((condition) => condition.type === 'Ready')?.message ?? '';
}
