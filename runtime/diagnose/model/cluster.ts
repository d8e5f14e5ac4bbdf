/**
 * Collects the data of a cluster for `report`: registry keys of its nodes, mirror sets and namespaces; and the kinds to read.
 */

import { credentialExpiry } from '../../core/docker-config/expiry.ts';
import { type MergeResult, mergePullSecrets } from '../../core/docker-config/merge.ts';
import {
  type AuthSource,
  pullSecretKey,
  pullSecretSource,
  readAuthSource,
} from '../../core/docker-config/pull-secret.ts';
import { isSecret, type KubeObject, type SecretObject } from '../../core/kubernetes/object.ts';
import { type EntryStatus, PULL_STATUS } from '../../core/kubernetes/pull-status.ts';
import type { RuleOrigin } from '../../core/mirrors/resolve.ts';
import { textOf } from '../../core/record.ts';
import { withoutUserInfo } from '../../core/text.ts';
import type { ObjectStore } from '../../engine/store.ts';
import { GRANT, readPullSecretGrant } from '../../pull-secret-injection/kinds/grant.ts';
import { writerOf } from '../../pull-secret-injection/reconciler/copies.ts';
import { SOURCES_ANNOTATION } from '../../pull-secret-injection/reconciler/view.ts';
import type { NodeMirrors } from '../../registry-overrides/planes.ts';
import { secretFault } from '../checks/docker-config.ts';
import { injectionKinds } from './admission.ts';
import { eventsAbout } from './events.ts';
import { AGENT_PODS, DAEMON_SET, type ReportNodes } from './nodes.ts';
import type { SourceKind } from './objects.ts';
import {
  CLUSTER_KINDS,
  GLOBAL_SECRET,
  nextNodeKinds,
  nodeDocuments,
  PLATFORM_SECRET,
  POD_KINDS,
} from './pull.ts';
import { type Cause, type Explanation, type ReportSystemName, type ReportVerdict, worstOf } from './types.ts';

// The data of a report. Of a credential it contains only the registry key, the location and the expiry: no password, token or
// user name.

export interface Report {
  /** Version of this format; other versions are incompatible. */
  readonly version: 1;
  /** RFC 3339. */
  readonly madeAt: string;
  /** The folder or context that was read. */
  readonly source: string;
  /** Worst first. */
  readonly clusters: readonly ReportCluster[];
  /** Worst first. */
  readonly problems: readonly Cause[];
  /** Kinds that could not be read. */
  readonly unread: readonly string[];
}

export interface ReportCluster {
  readonly name: string;
  readonly verdict: ReportVerdict;
  /** Systems that are in use. */
  readonly systems: readonly ReportSystem[];
  readonly nodes: ReportNodes;
  /** Container runtimes of its Nodes, sorted: `containerd`, `cri-o`; empty if no Node reports one. */
  readonly runtimes: readonly string[];
  readonly keys: readonly ReportKey[];
  readonly pulls: readonly ReportPull[];
  /** Number of healthy pulls that are omitted to keep the report small enough to open. */
  readonly pullsLeftOut: number;
  readonly namespaces: readonly ReportNamespace[];
  readonly mirrors: ReportMirrors;
}

export interface ReportSystem {
  readonly system: ReportSystemName;
  readonly verdict: ReportVerdict;
  /** One sentence. */
  readonly summary: string;
}

/** One image of one workload or pod. */
export interface ReportPull {
  /** Unique in the report; used in permalinks. */
  readonly id: string;
  readonly namespace: string;
  /** `Deployment/shop/web` */
  readonly object: string;
  /** Number of identical pods that this entry represents. */
  readonly pods: number;
  readonly image: string;
  readonly verdict: ReportVerdict;
  /** Why the image cannot be parsed, in which case there is no explanation. */
  readonly fault?: string;
  readonly explanation?: ReportExplanation;
}

/** The parts of an explanation that the page shows. */
export type ReportExplanation = WithoutUsers<
  Pick<Explanation, 'secrets' | 'kubelet' | 'places' | 'skipped' | 'containerd' | 'findings'>
>;

/** Removes user names, which no report contains. */
export type WithoutUsers<T> = T extends readonly (infer One)[]
  ? readonly WithoutUsers<One>[]
  : T extends object
    ? { readonly [Name in keyof T as Exclude<Name, 'username'>]: WithoutUsers<T[Name]> }
    : T;

/** Credentials that expire within this number of days are reported as expiring soon. */
const SOON_DAYS = 14;

const DAY_MS = 24 * 60 * 60 * 1000;

export type ReportKeys = ReturnType<typeof reportKeys>;
export type ReportKey = ReportKeys['keys'][number];

/**
 * Merges the two documents as the reconciler does, and reports the outcome of every entry.
 *
 * @param nodes the nodes that have the merged file
 * @returns the entries, and why a whole document is unusable
 */
export function reportKeys(store: ObjectStore, nodes: ReportNodes, now: Date) {
  const { original, additional } = nodeDocuments(store);
  const merged =
    original &&
    mergePullSecrets({ original: original.text, ...(additional && { additional: additional.text }) });
  const faults = (source: AuthSource | undefined, message: string | undefined) =>
    source === undefined || message === undefined ? [] : [{ source: source.name, message }];
  if (merged === undefined)
    return {
      keys: [],
      faults: faults(additional, "cannot be merged: the platform's pull secret was not found"),
    };
  if (!merged.ok) return { keys: [], faults: faults(original, merged.problem.message) };
  const ends = new Map([original, additional].flatMap((source) => (source ? endsOf(source, now) : [])));
  const keys = entriesOf(merged, original?.name ?? '', additional?.name ?? '').map((one) => ({
    ...one,
    ...ends.get(`${one.source}\n${one.key}`),
    /** Number of nodes known to have the entry. */
    onNodes: one.state === 'used' ? nodes.inSync : 0,
  }));
  return {
    keys: keys.toSorted((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0)),
    faults: faults(additional, merged.additionalProblem?.message),
  };
}

/**
 * The platform's entries, whose valid ones are all used, then the tenant's.
 *
 * @param platform such as `Secret/kube-system/original-pull-secret`
 */
function entriesOf(
  { entries, originalVerdicts, verdicts, conflicts }: Extract<MergeResult, { readonly ok: true }>,
  platform: string,
  tenant: string,
) {
  const used = entries
    .filter(({ source }) => source === 'original')
    .map(({ key }) => ({ verdict: 'Accepted' as const, subject: key, message: '' }));
  const told =
    (source: string) =>
    ({ verdict, subject: key, message }: Pick<EntryStatus, 'verdict' | 'subject' | 'message'>) => {
      const state = STATES[verdict];
      if (state === undefined) return [];
      const conflict = state === 'shadowed' ? conflicts.find(({ registry }) => registry === key) : undefined;
      /** The key and Secret that are used instead. */
      const winner = conflict && { key: conflict.original, source: platform };
      return { key, source, state, ...(winner && { winner }), ...(state !== 'used' && { why: message }) };
    };
  return [...[...used, ...originalVerdicts].flatMap(told(platform)), ...verdicts.flatMap(told(tenant))];
}

const STATES: Readonly<Partial<Record<EntryStatus['verdict'], 'used' | 'shadowed' | 'rejected'>>> = {
  Accepted: 'used',
  Shadowed: 'shadowed',
  Rejected: 'rejected',
};

function endsOf(source: AuthSource, now: Date) {
  const parsed = readAuthSource(source);
  if (!parsed.ok) return [];
  return parsed.config.entries.flatMap(({ key, kubelet }) => {
    const { expiresAt } = kubelet === undefined ? {} : credentialExpiry(kubelet);
    if (expiresAt === undefined) return [];
    const left = Date.parse(expiresAt) - now.getTime();
    const ends =
      left <= 0 ? ('expired' as const) : left <= SOON_DAYS * DAY_MS ? ('expiring' as const) : undefined;
    /** `expiresAt`: RFC 3339. */
    return [[`${source.name}\n${key.written}`, { expiresAt, ...(ends && { ends }) }] as const];
  });
}

// Kinds to read for examining many pods, in one namespace or in all.

/** Objects of the agents' namespace, if only one other namespace is read. */
const AGENTS: readonly SourceKind[] = [
  GLOBAL_SECRET,
  PLATFORM_SECRET,
  AGENT_PODS,
  DAEMON_SET,
  { ...PULL_STATUS, namespace: DAEMON_SET.namespace },
];

/**
 * The kinds for examining pods.
 *
 * @param namespace the only namespace to read; undefined for all
 * @param more further kinds
 */
export function clusterKinds(namespace: string | undefined, more: readonly SourceKind[] = []) {
  const inside = namespace === undefined ? {} : { namespace };
  const first: readonly SourceKind[] = [
    ...POD_KINDS.map((kind) => ({ ...kind, ...inside })),
    { apiVersion: 'v1', kind: 'Event', fieldSelector: eventsAbout(undefined), ...inside },
    GRANT,
    ...['Namespace', 'Node'].map((kind) => ({ apiVersion: 'v1', kind })),
    ...injectionKinds('').filter(({ kind }) => kind !== 'Namespace'),
    ...CLUSTER_KINDS,
    ...(namespace === undefined ? [] : AGENTS),
    ...more,
  ];
  return [() => first, nextNodeKinds];
}

// The mirror sets of a cluster as its nodes apply them: in the operator's order, with every rejected rule.

export type ReportMirrors = ReturnType<typeof reportMirrors>;

/** @param place describes the object and field of an origin */
export function reportMirrors(nodes: NodeMirrors, place: (origin: RuleOrigin) => string) {
  const { rendering, state, summary, rules, problems } = nodes;
  const shown = state === 'rendered' && !rendering.refused ? rendering.rules : rules;
  return {
    state,
    summary,
    /** In the order of the operator's file. */
    rules: shown.map(({ prefix, blocked, origins = [], mirrors }) => ({
      source: prefix,
      blocked,
      from: [...new Set(origins.map(place))],
      mirrors: mirrors.map(({ location, pullFrom, origin }) => ({
        location,
        pullFrom,
        ...(origin && { from: place(origin) }),
      })),
    })),
    refusals: problems.map(({ origin, ...problem }) => ({ ...problem, object: place(origin) })),
  };
}

// Namespaces with their pull secrets, grants and copied Secrets.

export type ReportNamespace = ReturnType<typeof reportNamespaces>[number];

/** Namespaces that have a pull secret, a grant or a workload. */
export function reportNamespaces(objects: Iterable<KubeObject>, pulls: readonly ReportPull[]) {
  const inNamespaces = Map.groupBy(objects, ({ metadata }) => metadata.namespace ?? '');
  const byPull = Map.groupBy(pulls, ({ namespace }) => namespace);
  return [...new Set([...inNamespaces.keys(), ...byPull.keys()])].toSorted().flatMap((name) => {
    const own = inNamespaces.get(name) ?? [];
    const secrets = own
      .filter(isSecret)
      .filter(({ type }) => pullSecretKey(type) !== undefined)
      .map(secretOf);
    const grants = own.filter(({ kind }) => kind === GRANT.kind).map(grantOf);
    const used = byPull.get(name) ?? [];
    if (name === '' || secrets.length + grants.length + used.length === 0) return [];
    const verdicts = [
      ...used.map(({ verdict }) => verdict),
      ...secrets.map(({ fault }) => (fault === undefined ? 'ok' : 'attention')),
    ];
    /** `pulls`: number of images of its workloads. */
    return [{ name, secrets, grants, pulls: used.length, verdict: worstOf(verdicts, 'ok') }];
  });
}

function secretOf(object: SecretObject) {
  const profile = writerOf(object);
  const of = textOf(object.metadata.annotations?.[SOURCES_ANNOTATION]);
  const source = pullSecretSource(object);
  const parsed = source && readAuthSource(source);
  const fault = secretFault(object);
  return {
    name: object.metadata.name,
    type: object.type ?? 'Opaque',
    /** For a copy: the profile that syncs it, and its source Secrets. */
    ...(profile !== undefined && { copy: { profile, of } }),
    keys: parsed?.ok === true ? parsed.config.entries.map(({ key }) => withoutUserInfo(key.written)) : [],
    ...(fault !== undefined && { fault }),
  };
}

function grantOf(object: KubeObject) {
  const { name, secrets, profiles, patterns, selector, problems } = readPullSecretGrant(object);
  const to = [...patterns, ...(selector === undefined ? [] : ['namespaces with matching labels'])];
  return { name, secrets, profiles, to, problems };
}
