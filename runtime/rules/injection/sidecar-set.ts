/**
 * OpenKruise SidecarSets (apps.kruise.io v1alpha1 and v1beta1), as far as `imagePullSecrets` go: reading them, and telling
 * which of them concern a pod.
 *
 * Source of the rule: the SidecarSet webhook of Kruise.
 */

import {
  type LabelRequirement,
  type Labels,
  NAMESPACE_NAME_LABEL,
  type ReadSelector,
  readSelector,
  selects,
} from '../kubernetes/label-selector.ts';
import type { KubeObject } from '../kubernetes/object.ts';
import { recordOf } from '../record.ts';

export const SIDECAR_SET_API_VERSIONS: readonly string[] = [
  'apps.kruise.io/v1beta1',
  'apps.kruise.io/v1alpha1',
];

/** Names the namespace of the source Secrets of a SidecarSet, which has no field for it. */
export const SOURCE_NAMESPACE_ANNOTATION = 'pullwright.dev/source-namespace';

/** What a revision pins: these parts come from the revision, selectors and strategy stay current. */
export interface SidecarSetContent {
  readonly imagePullSecrets: readonly string[];
  /** Containers and init containers; upstream injects secrets only beside at least one. */
  readonly containers: number;
}

/** `injectionStrategy.revision`. */
export interface RevisionPin {
  readonly revisionName?: string;
  readonly customVersion?: string;
  readonly policy: string;
}

/** A SidecarSet, read. */
export interface SidecarSet extends SidecarSetContent {
  readonly name: string;
  readonly paused: boolean;
  readonly selector: ReadSelector;
  /** Absent: every namespace. */
  readonly namespaceSelector?: ReadSelector;
  /** The name of the set that this canary stands in for. */
  readonly canaryOf?: string;
  readonly pin?: RevisionPin;
  /** Of a set that was split by its pin: only pods whose labels meet the requirements, or only those whose labels do not. */
  readonly only?: { readonly requirements: readonly LabelRequirement[]; readonly meeting: boolean };
  readonly update: {
    readonly paused: boolean;
    readonly selector?: ReadSelector;
    /** The chance of the pinned revision in percent; a number of pods counts as none, as upstream does. */
    readonly partitionPercent: number;
  };
}

/** A ControllerRevision of a SidecarSet. */
export interface SidecarSetRevision extends SidecarSetContent {
  readonly name: string;
  readonly sidecarSet: string;
  readonly customVersion?: string;
  readonly revision: number;
}

type Raw = Readonly<Record<string, unknown>>;

/** Reads a SidecarSet object. Total: what has the wrong shape counts as absent. */
export function readSidecarSet(object: Pick<KubeObject, 'metadata' | 'spec'>): SidecarSet {
  const spec = recordOf(object.spec);
  const strategy = recordOf(spec['injectionStrategy']);
  const update = recordOf(spec['updateStrategy']);
  const annotations = object.metadata.annotations ?? {};
  const namespaceSelector = namespaceSelectorOf(spec);
  const base = annotations['apps.kruise.io/sidecarset-base'];
  const pin = pinOf(recordOf(strategy['revision']));
  return {
    name: object.metadata.name,
    paused: strategy['paused'] === true,
    selector: readSelector(spec['selector'] ?? {}, { strict: false }),
    ...(namespaceSelector === undefined ? {} : { namespaceSelector }),
    ...(annotations['apps.kruise.io/sidecarset-canary'] === 'true' && typeof base === 'string'
      ? { canaryOf: base }
      : {}),
    ...(pin === undefined ? {} : { pin }),
    update: {
      paused: update['paused'] === true,
      ...(update['selector'] === undefined || update['selector'] === null
        ? {}
        : { selector: readSelector(update['selector'], { strict: false }) }),
      partitionPercent: percentOf(update['partition']),
    },
    ...readContent(spec),
  };
}

/** Reads what a revision or a spec injects. */
export function readContent(spec: unknown): SidecarSetContent {
  const { imagePullSecrets, containers, initContainers } = recordOf(spec);
  return {
    imagePullSecrets: list(imagePullSecrets).map((reference) => text(recordOf(reference)['name']) ?? ''),
    containers: list(containers).length + list(initContainers).length,
  };
}

/** Reads an apps/v1 ControllerRevision that Kruise keeps for a SidecarSet; undefined for other ones. */
export function readRevision(object: KubeObject): SidecarSetRevision | undefined {
  const labels = object.metadata.labels ?? {};
  const sidecarSet = labels['kruise.io/sidecarset-name'];
  if (sidecarSet === undefined) return undefined;
  const customVersion = labels['apps.kruise.io/sidecarset-custom-version'];
  return {
    name: object.metadata.name,
    sidecarSet,
    ...(customVersion === undefined ? {} : { customVersion }),
    revision: typeof object['revision'] === 'number' ? object['revision'] : 0,
    ...readContent(recordOf(object['data'])['spec']),
  };
}

/** A pod as the matching sees it. */
export interface PodIdentity {
  readonly labels: Labels;
  /** Labels of its namespace; undefined when the namespace is not known. */
  readonly namespaceLabels: Labels | undefined;
}

/**
 * Whether the set selects the pod. A broken pod selector is an error, a broken or unmatched namespace selector is a plain
 * no; a nil or empty pod selector matches nothing. Upstream does the same.
 *
 * @example
 * ```ts
 * import { readSidecarSet, sidecarSetSelects } from './sidecar-set.ts';
 * import assert from 'node:assert/strict';
 *
 * const set = readSidecarSet({ metadata: { name: 'log' }, spec: { namespace: 'shop', selector: { matchLabels: { app: 'web' } } } });
 * const shop = { labels: { app: 'web' }, namespaceLabels: { 'kubernetes.io/metadata.name': 'shop' } };
 * assert.equal(sidecarSetSelects(set, shop), true);
 * assert.equal(sidecarSetSelects(set, { ...shop, namespaceLabels: {} }), false);
 * ```
 */
export function sidecarSetSelects(set: SidecarSet, pod: PodIdentity): boolean | { readonly problem: string } {
  if (set.namespaceSelector !== undefined && !selectsNamespace(set.namespaceSelector, pod.namespaceLabels)) {
    return false;
  }
  if (!set.selector.ok) return { problem: set.selector.problem };
  if (set.only !== undefined && selects(set.only.requirements, pod.labels) !== set.only.meeting) return false;
  return set.selector.requirements.length > 0 && selects(set.selector.requirements, pod.labels);
}

/**
 * Orders sets as they are visited: those that name their namespaces before all other ones, as upstream reads its two
 * indexes; inside each group by name, where upstream ranges over a map.
 */
export function compareSidecarSets(a: SidecarSet, b: SidecarSet): number {
  return Number(namesNamespaces(b)) - Number(namesNamespaces(a)) || (a.name < b.name ? -1 : 1);
}

function namesNamespaces({ namespaceSelector: selector }: SidecarSet): boolean {
  if (selector?.ok !== true) return false;
  return selector.requirements.some(({ key, operator }) => key === NAMESPACE_NAME_LABEL && operator === 'In');
}

function selectsNamespace(selector: ReadSelector, labels: Labels | undefined): boolean {
  return selector.ok && labels !== undefined && selects(selector.requirements, labels);
}

/** v1alpha1 `namespace` becomes a selector on the name and wins over a selector beside it. */
function namespaceSelectorOf(spec: Raw): ReadSelector | undefined {
  const namespace = text(spec['namespace']) ?? '';
  if (namespace !== '') {
    const byName: LabelRequirement = {
      key: NAMESPACE_NAME_LABEL,
      operator: 'In',
      values: [namespace],
    };
    return { ok: true, requirements: [byName] };
  }
  const selector = spec['namespaceSelector'];
  return selector === undefined || selector === null ? undefined : readSelector(selector, { strict: false });
}

function pinOf(revision: Raw): RevisionPin | undefined {
  const revisionName = text(revision['revisionName']);
  const customVersion = text(revision['customVersion']);
  if (revisionName === undefined && customVersion === undefined) return undefined;
  return {
    ...(revisionName === undefined ? {} : { revisionName }),
    ...(customVersion === undefined ? {} : { customVersion }),
    policy: text(revision['policy']) ?? '',
  };
}

function percentOf(partition: unknown): number {
  const found = /^(\d+)%$/.exec(typeof partition === 'string' ? partition : '')?.[1];
  return found === undefined ? 0 : Math.min(100, Number(found));
}

function list(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? (value as readonly unknown[]) : [];
}

function text(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}
