/** A pass of the reconciler over one control plane secret and one additional secret, and what triggers a pass. */

import { GLOBAL_PULL_SECRET as NAMES } from '../../../../runtime/core/kubernetes/hypershift.ts';
import type { KubeObject, SecretObject } from '../../../../runtime/core/kubernetes/object.ts';
import { reveal } from '../../../../runtime/core/redacted.ts';
import type { Reconciler, Ref } from '../../../../runtime/engine/contract.ts';
import { type OfflineResult, runOffline } from '../../../../runtime/engine/offline/offline.ts';
import { covers, createReader, ObjectStore } from '../../../../runtime/engine/store.ts';
import { hasAdditional } from '../../../../runtime/global-pull-secret/reconciler/plan.ts';
import { reconcilers } from '../../../../runtime/global-pull-secret/reconciler/reconcile.ts';
import { decodeObject } from '../../../../runtime/kube/decode.ts';
import { meta } from '../../../support/meta.ts';
import { type ConformanceSuite, rows } from '../../suite.ts';

/** Null: there is no such Secret; `no-data-field`: there is one without `data`. */
type Data = Readonly<Record<string, string>> | 'no-data-field' | null;
type Input =
  | { readonly cp: Data; readonly additional: Data; readonly nodePool?: string }
  | { readonly event: string }
  | { readonly additional: Data }
  | { readonly object: string; readonly hcpNamespace?: string };
type Answer = Readonly<Record<string, unknown>>;

export const suite: ConformanceSuite<Input, Answer> = {
  cases: rows,
  answer(input) {
    if ('cp' in input) return pass(input.cp, input.additional, input.nodePool);
    if ('event' in input) return { reconciled: reactsTo(input.event) };
    if ('object' in input) return triggers(input.object, input.hcpNamespace);
    return exists(input.additional);
  },
  /** The error text is compared by inclusion; every other field of the expected answer by value. */
  accepts(actual, expected) {
    return Object.entries(expected).every(([field, wanted]) => {
      if (field === 'errorContains') return String(actual['messages']).includes(String(wanted));
      return field in actual && JSON.stringify(actual[field]) === JSON.stringify(wanted);
    });
  },
  mutation: {
    file: 'runtime/global-pull-secret/reconciler/reconcile.ts',
    replace: "if (plan.original.act === 'write') {",
    by: 'if (false as boolean) {',
  },
};

const NAMESPACE = 'clusters-a';
const SCOPE = {
  name: 'clusters/a',
  controlPlaneNamespace: NAMESPACE,
  hostedCluster: { namespace: 'clusters', name: 'a' },
};

function only(): Reconciler {
  const [reconciler] = reconcilers({ agent: { shape: 'upstream', image: 'quay.io/hypershift/cpo:1' } });
  if (reconciler === undefined) throw new TypeError('no reconciler');
  return reconciler;
}

function secret(name: string, namespace: string, data: NonNullable<Data>): KubeObject {
  const encoded = Object.fromEntries(
    Object.entries(data === 'no-data-field' ? {} : data).map(([key, value]) => [
      key,
      Buffer.from(value).toString('base64'),
    ]),
  );
  return decodeObject({
    ...meta('v1 Secret', { name, namespace, uid: name }),
    type: 'kubernetes.io/dockerconfigjson',
    ...(data === 'no-data-field' ? {} : { data: encoded }),
  });
}

function run(
  cp: Data,
  additional: Data,
  upgradeType?: string,
): { hosted: ObjectStore; result: OfflineResult } {
  const management = new ObjectStore();
  const hosted = new ObjectStore();
  hosted.set({ apiVersion: 'v1', kind: 'Node', metadata: { name: 'n', uid: 'n' } });
  if (upgradeType !== undefined) for (const object of poolOf(upgradeType)) management.set(object);
  if (cp !== null) management.set(secret('pull-secret', NAMESPACE, cp));
  if (additional !== null) hosted.set(secret('additional-pull-secret', 'kube-system', additional));
  return {
    hosted,
    result: runOffline({
      reconcilers: [only()],
      scope: SCOPE,
      stores: { hosted, management },
      now: new Date(0),
    }),
  };
}

/** A pool on a platform that is eligible, and the Machine of the one node. */
function poolOf(upgradeType: string): readonly KubeObject[] {
  return [
    {
      ...meta('hypershift.openshift.io/v1beta1 NodePool', { name: 'p', namespace: 'clusters' }),
      spec: { platform: { type: 'AWS' }, management: { upgradeType } },
    },
    {
      ...meta('cluster.x-k8s.io/v1beta1 Machine', {
        name: 'm',
        namespace: NAMESPACE,
        annotations: { [NAMES.nodePoolAnnotation]: 'clusters/p' },
      }),
      status: { nodeRef: { name: 'n' } },
    },
  ];
}

function labelledNodes(hosted: ObjectStore): readonly string[] {
  const nodes = [...hosted].filter((object) => object.kind === 'Node');
  return nodes
    .filter((node) => node.metadata.labels?.[NAMES.nodeLabel] === 'true')
    .map((node) => node.metadata.name);
}

function pass(cp: Data, additional: Data, upgradeType?: string): Answer {
  const { hosted, result } = run(cp, additional, upgradeType);
  const get = (apiVersion: string, kind: string, name: string): KubeObject | undefined =>
    hosted.get({ apiVersion, kind, namespace: 'kube-system', name });
  const global = get('v1', 'Secret', 'global-pull-secret');
  const daemonSet = get('apps/v1', 'DaemonSet', 'global-pull-secret-syncer');
  const messages = result.reports.flatMap((report) => report.problems.map((problem) => problem.message));
  const rejected = (
    get('pullwright.dev/v1alpha1', 'PullStatus', 'secret-additional-pull-secret')?.status as
      | { verdicts?: { verdict: string }[] }
      | undefined
  )?.verdicts?.some((verdict) => verdict.verdict === 'Rejected');
  return {
    error: messages.length > 0 || rejected === true,
    messages: messages.join('\n'),
    serviceAccount: get('v1', 'ServiceAccount', 'global-pull-secret-syncer') !== undefined,
    originalSecret: get('v1', 'Secret', 'original-pull-secret') !== undefined,
    globalSecret: global !== undefined,
    daemonSet: daemonSet !== undefined,
    nodesLabelled: labelledNodes(hosted),
    ...(global === undefined ? {} : { globalAuthKeys: authKeys(global as SecretObject) }),
    ...(daemonSet === undefined
      ? {}
      : {
          volumes: (daemonSet.spec as { template: { spec: { volumes: unknown[] } } }).template.spec.volumes
            .length,
        }),
  };
}

function authKeys(object: SecretObject): readonly string[] {
  const value = object.data?.['.dockerconfigjson'];
  const text = value === undefined ? '{}' : Buffer.from(reveal(value), 'base64').toString();
  return Object.keys((JSON.parse(text) as { auths?: object }).auths ?? {}).sort();
}

/** `delete <Kind>` or `update <namespace>/<Secret>`: does the reconciler look again? */
function reactsTo(event: string): boolean {
  const [verb, subject = ''] = event.split(' ');
  if (verb === 'update' && subject.includes('/')) return watched(secretAt(subject), 'hosted');
  if (verb !== 'delete' || subject === '') throw new TypeError(`unknown event "${event}"`);
  const { hosted } = run({ '.dockerconfigjson': '{"auths":{"a.example":{"auth":"dTpw"}}}' }, null);
  const object = [...hosted].find(
    (one) => one.kind === subject && one.metadata.labels?.['pullwright.dev/owner'] !== undefined,
  );
  if (object === undefined) throw new TypeError(`the reconciler makes no ${subject}`);
  return watched(object, 'hosted');
}

function secretAt(place: string): KubeObject {
  const [namespace = '', name = ''] = place.split('/');
  return secret(name, namespace, {});
}

function watched(object: KubeObject, role: Ref['role']): boolean {
  return keys(object, role, SCOPE).length > 0;
}

function keys(object: KubeObject, role: Ref['role'], scope: typeof SCOPE) {
  const reconciler = only();
  const covered = reconciler.watches.some((read) => read.role === role && covers(read, object, scope));
  const stores = { hosted: new ObjectStore(), management: new ObjectStore() };
  const reader = createReader({
    scope,
    now: new Date(0),
    stores,
    reads: reconciler.watches,
    serves: () => true,
  });
  const ref: Ref = { role, apiVersion: object.apiVersion, kind: object.kind, name: object.metadata.name };
  return covered ? reconciler.requestsFor(ref, reader) : [];
}

/** One work item for the whole cluster, whatever triggered it: upstream's empty request. */
function triggers(place: string, hcpNamespace: string | undefined): Answer {
  if (hcpNamespace === undefined) return { enqueue: watched(secretAt(place), 'hosted') };
  const found = keys(secretAt(place), 'management', {
    ...SCOPE,
    controlPlaneNamespace: hcpNamespace,
  });
  const other = keys(secret('additional-pull-secret', 'kube-system', {}), 'hosted', {
    ...SCOPE,
    controlPlaneNamespace: hcpNamespace,
  });
  if (found.length === 0) return { enqueue: false };
  return { enqueue: true, ...(JSON.stringify(found) === JSON.stringify(other) ? { request: '/' } : {}) };
}

function exists(additional: Data): Answer {
  const there = additional === null ? undefined : secret('additional-pull-secret', 'kube-system', additional);
  return { exists: there !== undefined, data: hasAdditional(there) ? true : null };
}
