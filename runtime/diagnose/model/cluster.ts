/** The registry keys of the pull secrets that nodes get: which entry wins, which lose, why, and when each ends. */

import { credentialExpiry } from '../../core/docker-config/expiry.ts';
import { type MergeResult, mergePullSecrets } from '../../core/docker-config/merge.ts';
import {
  type AuthSource,
  pullSecretKey,
  pullSecretSource,
  readAuthSource,
} from '../../core/docker-config/pull-secret.ts';
import { GLOBAL_PULL_SECRET } from '../../core/kubernetes/hypershift.ts';
import { isSecret, type KubeObject, type SecretObject } from '../../core/kubernetes/object.ts';
import { type EntryStatus, PULL_STATUS } from '../../core/kubernetes/pull-status.ts';
import type { RuleOrigin } from '../../core/mirrors/resolve.ts';
import { textOf } from '../../core/record.ts';
import { withoutUserInfo } from '../../core/text.ts';
import type { ObjectStore } from '../../engine/store.ts';
import { GRANT_KIND, readPullSecretGrant } from '../../pull-secret-injection/kinds/grant.ts';
import { SOURCES_ANNOTATION } from '../../pull-secret-injection/names.ts';
import { writerOf } from '../../pull-secret-injection/reconciler/copies.ts';
import type { NodeMirrors } from '../../registry-overrides/machine-config/node-mirrors.ts';
import { secretFault } from '../checks/docker-config.ts';
import { injectionKinds } from './admission.ts';
import type { NextKinds, SourceKind } from './objects.ts';
import {
  CLUSTER_KINDS,
  GLOBAL_SECRET,
  nextNodeKinds,
  nodeDocuments,
  PLATFORM_SECRET,
  WORKLOAD_KINDS,
} from './pull.ts';
import {
  type ReportKey,
  type ReportMirrors,
  type ReportNamespace,
  type ReportNodes,
  type ReportPull,
  type ReportSecret,
  worstOf,
} from './types.ts';

/** A credential that ends within so many days ends soon. */
export const SOON_DAYS = 14;

const DAY_MS = 24 * 60 * 60 * 1000;

export interface ReportKeys {
  readonly keys: readonly ReportKey[];
  /** Why a document as a whole cannot be used. */
  readonly faults: readonly { readonly source: string; readonly message: string }[];
}

/**
 * Merges the two documents as the reconciler does, and reports the outcome of every entry.
 *
 * @param nodes which nodes have what was merged
 */
export function reportKeys(store: ObjectStore, nodes: ReportNodes, now: Date): ReportKeys {
  const { original, additional } = nodeDocuments(store);
  const faultOf = (source: AuthSource | undefined, message: string | undefined): ReportKeys['faults'] =>
    source === undefined || message === undefined ? [] : [{ source: source.name, message }];
  if (original === undefined)
    return {
      keys: [],
      faults: faultOf(additional, "cannot be merged: the platform's pull secret was not found"),
    };
  const merged = mergePullSecrets({
    original: original.text,
    ...(additional === undefined ? {} : { additional: additional.text }),
  });
  if (!merged.ok) return { keys: [], faults: faultOf(original, merged.problem.message) };
  const faults = faultOf(additional, merged.additionalProblem?.message);
  const documents = additional === undefined ? [original] : [original, additional];
  const rows = [
    ...platformRows(merged, original.name),
    ...(additional === undefined ? [] : tenantRows(merged, additional.name, original.name)),
  ];
  const ends = new Map(documents.flatMap((document) => endsOf(document, now)));
  const keys = rows.map(
    (row): ReportKey => ({
      ...row,
      ...ends.get(`${row.source}\n${row.key}`),
      onNodes: row.state === 'used' || row.state === 'last-good' ? nodes.inSync : 0,
    }),
  );
  return { keys: keys.toSorted((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0)), faults };
}

type Merged = Extract<MergeResult, { readonly ok: true }>;
type Row = Omit<ReportKey, 'onNodes' | 'expiresAt' | 'ends'>;

function platformRows({ entries, originalVerdicts, verdicts }: Merged, source: string): readonly Row[] {
  const rejected = originalVerdicts.filter(({ verdict }) => verdict === 'Rejected');
  const tenants = new Set(
    verdicts.filter(({ verdict }) => verdict === 'Accepted').map(({ subject }) => subject),
  );
  return [
    ...entries.flatMap(({ key, source: from }): readonly Row[] => {
      if (from === 'additional' || (from === 'lastGood' && tenants.has(key))) return [];
      return [{ key, source, state: from === 'original' ? 'used' : 'last-good' }];
    }),
    ...rejected.map(
      ({ subject, message }): Row => ({ key: subject, source, state: 'rejected', why: message }),
    ),
  ];
}

function tenantRows({ verdicts, conflicts }: Merged, source: string, platform: string): readonly Row[] {
  return verdicts.flatMap((verdict): readonly Row[] => {
    const state = STATES[verdict.verdict];
    if (state === undefined) return [];
    const conflict = conflicts.find(({ registry }) => registry === verdict.subject);
    return [
      {
        key: verdict.subject,
        source,
        state,
        ...(conflict === undefined ? {} : { winner: { key: conflict.original, source: platform } }),
        ...(state === 'used' ? {} : { why: verdict.message }),
      },
    ];
  });
}

const STATES: Readonly<Partial<Record<EntryStatus['verdict'], ReportKey['state']>>> = {
  Accepted: 'used',
  Shadowed: 'shadowed',
  Rejected: 'rejected',
};

function endsOf(
  source: AuthSource,
  now: Date,
): readonly (readonly [string, Pick<ReportKey, 'expiresAt' | 'ends'>])[] {
  const parsed = readAuthSource(source);
  if (!parsed.ok) return [];
  return parsed.config.entries.flatMap(({ key, kubelet }) => {
    const { expiresAt } = kubelet === undefined ? {} : credentialExpiry(kubelet);
    if (expiresAt === undefined) return [];
    const left = Date.parse(expiresAt) - now.getTime();
    const ends = left <= 0 ? 'ended' : left <= SOON_DAYS * DAY_MS ? 'soon' : undefined;
    return [
      [`${source.name}\n${key.written}`, { expiresAt, ...(ends === undefined ? {} : { ends }) }] as const,
    ];
  });
}

// What is read of a cluster to examine many pods: every kind once, of one namespace or of all.

const RBAC = 'rbac.authorization.k8s.io/v1';
const OWN = 'pullwright.dev/v1alpha1';

/** Of the namespace that agents run in, where only one other is looked at. */
const AGENTS: readonly SourceKind[] = [
  GLOBAL_SECRET,
  PLATFORM_SECRET,
  { apiVersion: 'v1', kind: 'Pod', labelSelector: `name=${GLOBAL_PULL_SECRET.syncer}` },
  { apiVersion: 'apps/v1', kind: 'DaemonSet', name: GLOBAL_PULL_SECRET.syncer },
  PULL_STATUS,
].map((kind) => ({ namespace: GLOBAL_PULL_SECRET.namespace, ...kind }));

/**
 * The kinds that pods are examined with.
 *
 * @param namespace the one that is looked at; all where it is undefined
 * @param more kinds beside them
 */
export function clusterKinds(
  namespace: string | undefined,
  more: readonly SourceKind[] = [],
): readonly NextKinds[] {
  const inside = namespace === undefined ? {} : { namespace };
  const first: readonly SourceKind[] = [
    ...[
      ...WORKLOAD_KINDS,
      { apiVersion: 'v1', kind: 'Secret' },
      { apiVersion: 'v1', kind: 'ServiceAccount' },
      PULL_STATUS,
      { apiVersion: RBAC, kind: 'Role' },
      { apiVersion: RBAC, kind: 'RoleBinding' },
      { apiVersion: 'v1', kind: 'Event', fieldSelector: 'involvedObject.kind=Pod,type=Warning' },
    ].map((kind) => ({ ...kind, ...inside })),
    { apiVersion: OWN, kind: 'PullSecretGrant' },
    ...['Namespace', 'Node'].map((kind) => ({ apiVersion: 'v1', kind })),
    ...injectionKinds('').filter(({ kind }) => kind !== 'Namespace'),
    ...CLUSTER_KINDS,
    ...(namespace === undefined ? [] : AGENTS),
    ...more,
  ];
  return [() => first, nextNodeKinds];
}

// The mirror sets of a cluster as its nodes follow them: in the operator's order, with everything that it refuses.

/**
 * @param place names the object and field of an origin, for a person
 */
export function reportMirrors(nodes: NodeMirrors, place: (origin: RuleOrigin) => string): ReportMirrors {
  const { rendering, state, summary, rules, problems } = nodes;
  const shown = state === 'rendered' && !rendering.refused ? rendering.rules : rules;
  return {
    state,
    summary,
    rules: shown.map(({ prefix, blocked, origins = [], mirrors }) => ({
      source: prefix,
      blocked,
      from: [...new Set(origins.map(place))],
      mirrors: mirrors.map(({ location, pullFrom, origin }) => ({
        location,
        pullFrom,
        ...(origin === undefined ? {} : { from: place(origin) }),
      })),
    })),
    refusals: problems.map(({ severity, code, origin, message }) => ({
      severity,
      code,
      object: place(origin),
      message,
    })),
  };
}

// Namespaces with their pull secrets, what they grant, and which of their Secrets are copies.

/** Only namespaces that have something to say: a pull secret, a grant, or a workload. */
export function reportNamespaces(
  objects: Iterable<KubeObject>,
  pulls: readonly ReportPull[],
): readonly ReportNamespace[] {
  const inNamespaces = Map.groupBy(objects, ({ metadata }) => metadata.namespace ?? '');
  const byPull = Map.groupBy(pulls, ({ namespace }) => namespace);
  return [...new Set([...inNamespaces.keys(), ...byPull.keys()])]
    .toSorted()
    .flatMap((name): readonly ReportNamespace[] => {
      const own = inNamespaces.get(name) ?? [];
      const secrets = own
        .filter(isSecret)
        .filter(({ type }) => pullSecretKey(type) !== undefined)
        .map(secretOf);
      const grants = own.filter(({ kind }) => kind === GRANT_KIND).map(grantOf);
      const used = byPull.get(name) ?? [];
      if (name === '' || secrets.length + grants.length + used.length === 0) return [];
      const verdicts = [
        ...used.map(({ verdict }) => verdict),
        ...secrets.map(({ fault }) => (fault === undefined ? 'ok' : 'attention')),
      ];
      return [{ name, secrets, grants, pulls: used.length, verdict: worstOf(verdicts, 'ok') }];
    });
}

function secretOf(object: SecretObject): ReportSecret {
  const profile = writerOf(object);
  const of = textOf(object.metadata.annotations?.[SOURCES_ANNOTATION]);
  const source = pullSecretSource(object);
  const parsed = source && readAuthSource(source);
  const fault = secretFault(object);
  return {
    name: object.metadata.name,
    type: object.type ?? 'Opaque',
    ...(profile === undefined ? {} : { copy: { profile, of } }),
    keys: parsed?.ok === true ? parsed.config.entries.map(({ key }) => withoutUserInfo(key.written)) : [],
    ...(fault === undefined ? {} : { fault }),
  };
}

function grantOf(object: KubeObject): ReportNamespace['grants'][number] {
  const { name, secrets, profiles, patterns, selector, problems } = readPullSecretGrant(object);
  return {
    name,
    secrets,
    profiles,
    to: [...patterns, ...(selector === undefined ? [] : ['namespaces with the labels that it names'])],
    problems,
  };
}
