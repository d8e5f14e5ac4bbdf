/**
 * OpenKruise SidecarSets (apps.kruise.io v1alpha1 and v1beta1), as far as `imagePullSecrets` go: reading them, and telling
 * which of them concern a pod.
 *
 * Source of the rule: the SidecarSet webhook of Kruise.
 */
import { z } from 'zod';
import {
  conditionsSchema,
  crd,
  labelSelectorSchema,
  observedGenerationSchema,
} from '../../core/kubernetes/kind.ts';
import {
  type LabelRequirement,
  type Labels,
  NAMESPACE_NAME_LABEL,
  type ReadSelector,
  readSelector,
  selects,
} from '../../core/kubernetes/label-selector.ts';
import type { KubeObject } from '../../core/kubernetes/object.ts';
import { labels } from '../../core/kubernetes/objects.ts';
import { recordOf, textOf } from '../../core/record.ts';

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
  readonly revisionName: string | undefined;
  readonly customVersion: string | undefined;
  readonly policy: unknown;
}

/** A SidecarSet, read. */
export interface SidecarSet extends SidecarSetContent {
  readonly name: string;
  readonly paused: boolean;
  readonly selector: ReadSelector;
  /** Absent: every namespace. */
  readonly namespaceSelector?: ReadSelector | undefined;
  /** The name of the set that this canary replaces. */
  readonly canaryOf?: string | undefined;
  readonly pin?: RevisionPin | undefined;
  /** Of a set that was split by its pin: only pods whose labels meet the requirements, or only those whose labels do not. */
  readonly only?: { readonly requirements: readonly LabelRequirement[]; readonly meeting: boolean };
  readonly update: {
    readonly paused: boolean;
    readonly selector?: ReadSelector | undefined;
    /** The chance of the pinned revision in percent; a number of pods counts as none, as upstream does. */
    readonly partitionPercent: number;
  };
}

/** A ControllerRevision of a SidecarSet. */
export interface SidecarSetRevision extends SidecarSetContent {
  readonly name: string;
  readonly sidecarSet: string;
  readonly customVersion?: string | undefined;
  readonly revision: number;
}

/** Reads a SidecarSet object. Total: what has the wrong shape counts as absent. */
export function readSidecarSet(object: Pick<KubeObject, 'metadata' | 'spec'>): SidecarSet {
  const spec = recordOf(object.spec);
  const strategy = recordOf(spec['injectionStrategy']);
  const update = recordOf(spec['updateStrategy']);
  const annotations = object.metadata.annotations ?? {};
  const isCanary = annotations['apps.kruise.io/sidecarset-canary'] === 'true';
  const revision = recordOf(strategy['revision']);
  const [revisionName, customVersion] = [revision['revisionName'], revision['customVersion']].map(text);
  const isPinned = revisionName !== undefined || customVersion !== undefined;
  // v1alpha1 `namespace` becomes a selector on the name and wins over a selector beside it.
  const namespace = textOf(spec['namespace']);
  const byName: LabelRequirement = { key: NAMESPACE_NAME_LABEL, operator: 'In', values: [namespace] };
  const [, percent = 0] = /^(\d+)%$/.exec(textOf(update['partition'])) ?? [];
  return {
    name: object.metadata.name,
    paused: strategy['paused'] === true,
    selector: readSelector(spec['selector'] ?? {}, { strict: false }),
    namespaceSelector:
      namespace === '' ? selectorOf(spec['namespaceSelector']) : { ok: true, requirements: [byName] },
    canaryOf: isCanary ? text(annotations['apps.kruise.io/sidecarset-base']) : undefined,
    pin: isPinned ? { revisionName, customVersion, policy: revision['policy'] } : undefined,
    update: {
      paused: update['paused'] === true,
      selector: selectorOf(update['selector']),
      partitionPercent: Math.min(100, Number(percent)),
    },
    ...readContent(spec),
  };
}

function selectorOf(selector: unknown): ReadSelector | undefined {
  return selector === undefined || selector === null ? undefined : readSelector(selector, { strict: false });
}

/** Reads what a revision or a spec injects. */
export function readContent(spec: unknown): SidecarSetContent {
  const { imagePullSecrets, containers, initContainers } = recordOf(spec);
  return {
    imagePullSecrets: list(imagePullSecrets).map((reference) => textOf(recordOf(reference)['name'])),
    containers: list(containers).length + list(initContainers).length,
  };
}

/** Reads an apps/v1 ControllerRevision that Kruise keeps for a SidecarSet; undefined for other ones. */
export function readRevision(object: KubeObject): SidecarSetRevision | undefined {
  const labels = object.metadata.labels ?? {};
  const sidecarSet = labels['kruise.io/sidecarset-name'];
  if (sidecarSet === undefined) return undefined;
  return {
    name: object.metadata.name,
    sidecarSet,
    customVersion: labels['apps.kruise.io/sidecarset-custom-version'],
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

function list(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? (value as readonly unknown[]) : [];
}

function text(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

// The kind `SidecarSet` for clusters that do not run Kruise: the fields that pull secret injection reads are typed, the
// rest is kept as it is. Where Kruise is installed, its own definition stays.

const containers = (description: string): z.ZodType =>
  z
    .array(z.looseObject({}))
    .max(64)
    .meta({ 'x-kubernetes-list-type': 'atomic' })
    .describe(description)
    .optional();

const spec = z.looseObject({
  selector: labelSelectorSchema().describe('Pods that get the names; empty selects none').optional(),
  namespace: z
    .string()
    .max(63)
    .describe('Only pods of this namespace; wins over namespaceSelector')
    .optional(),
  namespaceSelector: labelSelectorSchema().describe('Only pods of these namespaces').optional(),
  imagePullSecrets: z
    .array(
      z.strictObject({
        name: z.string().max(253).describe('Name of a Secret in the namespace of the pod').optional(),
      }),
    )
    .max(64)
    .meta({ 'x-kubernetes-list-type': 'atomic' })
    .describe('Names that are merged into imagePullSecrets of matching pods')
    .optional(),
  containers: containers(
    'Not injected. Without any container in the matching sets nothing is injected, as in Kruise',
  ),
  initContainers: containers('Not injected'),
  injectionStrategy: z
    .looseObject({
      paused: z.boolean().describe('Nothing is injected while it is true').optional(),
      revision: z
        .looseObject({
          revisionName: z.string().max(253).describe('Name of a ControllerRevision').optional(),
          customVersion: z
            .string()
            .max(63)
            .describe('Value of the label apps.kruise.io/sidecarset-custom-version of a ControllerRevision')
            .optional(),
          policy: z
            .enum(['Always', 'Partial'])
            .describe('Whether all pods get that revision, or those beside the updated ones')
            .optional(),
        })
        .describe('An older revision, whose names are injected instead')
        .optional(),
    })
    .describe('Whether and from which revision new pods are injected')
    .optional(),
});

const status = z
  .looseObject({
    observedGeneration: observedGenerationSchema(),
    conditions: conditionsSchema().optional(),
  })
  .optional();

/** The CustomResourceDefinition of `SidecarSet`, v1beta1 (stored) and v1alpha1. */
export function sidecarSetCrd(): KubeObject {
  const schema = z.strictObject({ spec, status }).meta({
    description:
      'An OpenKruise SidecarSet as Pullwright reads it: only imagePullSecrets are injected, never containers. Install Kruise to inject containers.',
  });
  const printerColumns = [
    { name: 'Injecting', type: 'string', jsonPath: '.status.conditions[?(@.type=="Ready")].status' },
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
  ] as const;
  return crd({
    group: 'apps.kruise.io',
    kind: 'SidecarSet',
    scope: 'Cluster',
    labels: labels({ name: 'sidecarset', component: 'crd' }),
    versions: [
      { name: 'v1beta1', schema, printerColumns },
      { name: 'v1alpha1', schema, printerColumns, storage: false },
    ],
  });
}

// Which content of a SidecarSet counts where the decision is made once for all pods.
// Source of the rule: the SidecarSet webhook of Kruise: `injectionStrategy.revision` and the update's partition.

/** The revision that the set is pinned to: by name, else the newest of the custom version. */
export function pinnedRevision(
  { name, pin }: SidecarSet,
  revisions: readonly SidecarSetRevision[],
): SidecarSetRevision | undefined {
  if (pin?.revisionName !== undefined)
    return revisions.find((revision) => revision.name === pin.revisionName);
  return revisions
    .filter((revision) => revision.sidecarSet === name && revision.customVersion === pin?.customVersion)
    .sort((a, b) => b.revision - a.revision || (a.name < b.name ? 1 : -1))[0];
}

/**
 * The set with the content of its pinned revision, for evaluators that decide once for all pods. With policy `Partial` the pods
 * outside `updateStrategy.selector` get the pinned content, and the others the current one, unless `partition` gives them all the pinned:
 * two sets that no pod meets both of. A partition in between cannot be drawn here; {@link isDrawn} tells. Empty when the revision is missing,
 * as upstream refuses the pod then.
 */
export function pinVariants(
  set: SidecarSet,
  revisions: readonly SidecarSetRevision[],
): readonly SidecarSet[] {
  if (set.pin === undefined) return [set];
  const pinned = pinnedRevision(set, revisions);
  if (pinned === undefined) return [];
  const old: SidecarSet = {
    ...set,
    imagePullSecrets: pinned.imagePullSecrets,
    containers: pinned.containers,
  };
  if (set.pin.policy !== 'Partial' || set.update.paused) return [old];
  const { selector, partitionPercent } = set.update;
  if (partitionPercent === 100) return [old];
  if (selector === undefined) return [set];
  // Upstream refuses such a pod.
  if (!selector.ok) return [];
  const { requirements } = selector;
  return [
    { ...set, only: { requirements, meeting: true } },
    { ...old, only: { requirements, meeting: false } },
  ];
}

/**
 * Which names pods get, as a sentence for the status of the set: a pinned set does not inject what its spec lists.
 *
 * @param variants what {@link pinVariants} made of the set
 */
export function namesGiven(set: SidecarSet, variants: readonly SidecarSet[]): string {
  const said = variants.map((variant) => {
    const names = variant.imagePullSecrets.filter((name) => name !== '').join(', ') || 'none';
    const from = variant.imagePullSecrets === set.imagePullSecrets ? '' : `, of the pinned ${pinText(set)}`;
    if (variant.only === undefined) return `${names}${from}`;
    return `${names}${from}, into pods that updateStrategy.selector ${variant.only.meeting ? 'selects' : 'leaves out'}`;
  });
  return said.join('; ');
}

/** The pin, in the words of the set. */
export function pinText({ pin }: SidecarSet): string {
  return pin?.revisionName === undefined
    ? `custom version "${pin?.customVersion ?? ''}"`
    : `revision "${pin.revisionName}"`;
}

/** Whether upstream draws for each pod which content it gets. */
export function isDrawn({ pin, update }: SidecarSet): boolean {
  const { paused, partitionPercent } = update;
  return pin?.policy === 'Partial' && !paused && partitionPercent > 0 && partitionPercent < 100;
}
