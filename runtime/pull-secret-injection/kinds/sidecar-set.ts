/**
 * OpenKruise SidecarSets (apps.kruise.io v1alpha1 and v1beta1), limited to `imagePullSecrets`: parsing and pod matching.
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
import { type KubeObject, listedPullSecrets } from '../../core/kubernetes/object.ts';
import { recordOf, recordsIn, textOf } from '../../core/record.ts';

export const SIDECAR_SET_API_VERSIONS: readonly string[] = [
  'apps.kruise.io/v1beta1',
  'apps.kruise.io/v1alpha1',
];

/** Annotation with the namespace of a SidecarSet's source Secrets; the spec has no field for it. */
export const SOURCE_NAMESPACE_ANNOTATION = 'pullwright.dev/source-namespace';

/** A parsed SidecarSet. */
export interface SidecarSet extends Readonly<ReturnType<typeof readSidecarSet>> {
  /** Set on both variants of a partially pinned set: one selects pods that meet the requirements, one all other pods. */
  readonly only?: { readonly requirements: readonly LabelRequirement[]; readonly meeting: boolean };
}

/** A ControllerRevision of a SidecarSet. */
export type SidecarSetRevision = Readonly<NonNullable<ReturnType<typeof readRevision>>>;

/** Reads a SidecarSet. Never throws: fields of the wrong shape count as absent. */
export function readSidecarSet(object: Pick<KubeObject, 'metadata' | 'spec'>) {
  const spec = recordOf(object.spec);
  const strategy = recordOf(spec['injectionStrategy']);
  const update = recordOf(spec['updateStrategy']);
  const annotations = object.metadata.annotations ?? {};
  const isCanary = annotations['apps.kruise.io/sidecarset-canary'] === 'true';
  const revision = recordOf(strategy['revision']);
  const [revisionName, customVersion] = [revision['revisionName'], revision['customVersion']].map(text);
  const isPinned = revisionName !== undefined || customVersion !== undefined;
  // v1alpha1 `namespace` becomes a selector on the name and overrides `namespaceSelector`.
  const namespace = textOf(spec['namespace']);
  const byName: ReadSelector = {
    ok: true,
    requirements: [{ key: NAMESPACE_NAME_LABEL, operator: 'In', values: [namespace] }],
  };
  const [, percent = 0] = /^(\d+)%$/.exec(textOf(update['partition'])) ?? [];
  return {
    name: object.metadata.name,
    paused: strategy['paused'] === true,
    selector: readSelector(spec['selector'] ?? {}, { strict: false }),
    /** Undefined: every namespace. */
    namespaceSelector: namespace === '' ? selectorOf(spec['namespaceSelector']) : byName,
    /** The name of the set that this canary replaces. */
    canaryOf: isCanary ? text(annotations['apps.kruise.io/sidecarset-base']) : undefined,
    /** `injectionStrategy.revision`. */
    pin: isPinned ? { revisionName, customVersion, policy: revision['policy'] } : undefined,
    update: {
      paused: update['paused'] === true,
      selector: selectorOf(update['selector']),
      /** Percentage of pods that get the pinned revision; an absolute number counts as 0, as upstream does. */
      partitionPercent: Math.min(100, Number(percent)),
    },
    ...readContent(spec),
  };
}

function selectorOf(selector: unknown): ReadSelector | undefined {
  return selector === undefined || selector === null ? undefined : readSelector(selector, { strict: false });
}

/** Reads the injected content of a revision or a spec; selectors and strategy are always the current ones. */
export function readContent(spec: unknown) {
  const { containers, initContainers } = recordOf(spec);
  return {
    imagePullSecrets: listedPullSecrets(spec),
    /** Number of containers and init containers; upstream injects secrets only together with at least one. */
    containers: [containers, initContainers].flatMap(recordsIn).length,
  };
}

/** Reads an apps/v1 ControllerRevision that Kruise keeps for a SidecarSet; undefined for others. */
export function readRevision(object: KubeObject) {
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

/** The fields of a pod that matching uses. */
export interface PodIdentity {
  readonly labels: Labels;
  /** Labels of the pod's namespace; undefined if the namespace is unknown. */
  readonly namespaceLabels: Labels | undefined;
}

/** Reports whether the set selects the pod. An invalid selector, and an empty pod selector, select nothing, as upstream. */
export function sidecarSetSelects(set: SidecarSet, { labels, namespaceLabels }: PodIdentity): boolean {
  const { selector, namespaceSelector: namespaces, only } = set;
  if (namespaces !== undefined && !selectsNamespace(namespaces, namespaceLabels)) return false;
  if (only !== undefined && selects(only.requirements, labels) !== only.meeting) return false;
  return selector.ok && selector.requirements.length > 0 && selects(selector.requirements, labels);
}

/**
 * Sorts sets with explicit namespaces first, in the order of upstream's two indexes. Each group is sorted by name, because
 * upstream's order within an index is undefined (map iteration).
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

function text(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

// The kind `SidecarSet` for clusters without Kruise: only the fields that pull secret injection reads are typed, others are
// preserved. Kruise installs its own CRD.

function specSchema() {
  const containers = (description: string): z.ZodType =>
    z
      .array(z.looseObject({}))
      .max(64)
      .meta({ 'x-kubernetes-list-type': 'atomic' })
      .describe(description)
      .optional();

  return z.looseObject({
    selector: labelSelectorSchema().describe('Pods to inject; empty selects none').optional(),
    namespace: z
      .string()
      .max(63)
      .describe('Only pods of this namespace; overrides namespaceSelector')
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
      'Not injected. When no matching set has a container, nothing is injected, as in Kruise',
    ),
    initContainers: containers('Not injected'),
    injectionStrategy: z
      .looseObject({
        paused: z.boolean().describe('Nothing is injected while true').optional(),
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
              .describe('Whether all pods get that revision, or only those outside updateStrategy')
              .optional(),
          })
          .describe('Older revision whose names are injected instead')
          .optional(),
      })
      .describe('Whether and from which revision new pods are injected')
      .optional(),
  });
}

/** The CustomResourceDefinition of `SidecarSet`, v1beta1 (stored) and v1alpha1. */
export function sidecarSetCrd(): KubeObject {
  const observedGeneration = observedGenerationSchema();
  const status = z.looseObject({ observedGeneration, conditions: conditionsSchema().optional() }).optional();
  const schema = z.strictObject({ spec: specSchema(), status }).meta({
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
    versions: [
      { name: 'v1beta1', schema, printerColumns },
      { name: 'v1alpha1', schema, printerColumns, storage: false },
    ],
  });
}

// Resolves the pinned revision of a SidecarSet, with one decision for all pods.
// Source of the rule: the SidecarSet webhook of Kruise: `injectionStrategy.revision` and the update's partition.

/** Returns the pinned revision: by name, else the newest with the custom version. */
export function pinnedRevision({ name, pin }: SidecarSet, revisions: readonly SidecarSetRevision[]) {
  if (pin?.revisionName !== undefined)
    return revisions.find((revision) => revision.name === pin.revisionName);
  return revisions
    .filter((revision) => revision.sidecarSet === name && revision.customVersion === pin?.customVersion)
    .sort((a, b) => b.revision - a.revision || (a.name < b.name ? 1 : -1))[0];
}

/**
 * Applies the pin of a set, with one decision for all pods. With policy `Partial`, pods outside `updateStrategy.selector` get the
 * pinned content, and the others the current content: two disjoint variants. With `partition` 100% all pods get the pinned
 * content. Other partitions are random per pod upstream and unsupported here; see {@link isDrawn}. Returns no variant if the
 * revision is missing, because upstream then rejects the pod.
 */
export function pinVariants(set: SidecarSet, revisions: readonly SidecarSetRevision[]) {
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
  // Upstream rejects such a pod.
  if (!selector.ok) return [];
  const { requirements } = selector;
  return [
    { ...set, only: { requirements, meeting: true } },
    { ...old, only: { requirements, meeting: false } },
  ];
}

/**
 * Describes the injected names for the status of the set, because a pinned set does not inject the names in its spec.
 *
 * @param variants the result of {@link pinVariants} for the set
 */
export function namesGiven(set: SidecarSet, variants: readonly SidecarSet[]): string {
  const said = variants.map((variant) => {
    const names = variant.imagePullSecrets.filter((name) => name !== '').join(', ') || 'none';
    const from = variant.imagePullSecrets === set.imagePullSecrets ? '' : `, from the pinned ${pinText(set)}`;
    if (variant.only === undefined) return `${names}${from}`;
    return `${names}${from}, into pods that updateStrategy.selector ${variant.only.meeting ? 'selects' : 'does not select'}`;
  });
  return said.join('; ');
}

/** The pin, named as in the set's spec. */
export function pinText({ pin }: SidecarSet): string {
  return pin?.revisionName === undefined
    ? `custom version "${pin?.customVersion ?? ''}"`
    : `revision "${pin.revisionName}"`;
}

/** Reports whether upstream chooses the content at random for each pod. */
export function isDrawn({ pin, update }: SidecarSet): boolean {
  const { paused, partitionPercent } = update;
  return pin?.policy === 'Partial' && !paused && partitionPercent > 0 && partitionPercent < 100;
}
