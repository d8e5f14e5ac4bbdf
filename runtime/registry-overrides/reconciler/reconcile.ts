/**
 * Registry overrides of a hosted cluster: the mirror sets of the management cluster as `OPENSHIFT_IMG_OVERRIDES` on Deployments
 * that look up images without a container runtime, as a JSON document with all details, and as the images of the catalogs. Images
 * of pods on nodes keep their canonical names.
 *
 * Source of the rule: requirement 3. The desired state depends on registries only in whether a catalog's image exists.
 */

import type { OwnershipMode } from '../../core/kubernetes/hypershift.ts';
import type { KubeObject } from '../../core/kubernetes/object.ts';
import { configMap } from '../../core/kubernetes/objects.ts';
import { type EntryStatus, PULL_STATUS } from '../../core/kubernetes/pull-status.ts';
import {
  CONTROL_PLANE_NAMESPACE,
  HOSTED_CLUSTER_NAME,
  HOSTED_CLUSTER_NAMESPACE,
  HOSTED_CLUSTER_READ,
  hostedClusterOf,
  type Reader,
  type ReconcileError,
  type Reconciler,
  type Ref,
  type Result,
  type Watch,
} from '../../engine/contract.ts';
import { CATALOGS } from '../olm-catalogs.ts';
import { parseOverridesOptions, type RegistryOverridesOptions } from '../options.ts';
import { formatImageOverrides } from '../overrides.ts';
import { CATALOG_SOURCES, NO_CATALOGS, planCatalogs, STREAM } from './catalogs.ts';
import { deploymentRef, type Memory, planDeployments, TARGETS } from './deployments.ts';
import { type MirrorSetObjects, readMirrorSets, readSelection, SET_READS } from './mirror-sets.ts';
import { reportOverrides, statusRef } from './report.ts';

const NAME = 'registry-overrides';
export const CONFIG_MAP = 'registry-overrides';
export const DOCUMENT_KEY = 'overrides.json';
export const DOCUMENT_HASH_ANNOTATION = 'pullwright.dev/overrides-hash';
/** `own` or `observe`, for one hosted cluster. */
export const MODE_ANNOTATION = 'pullwright.dev/registry-overrides-mode';

const CATALOG_DEPLOYMENTS = CATALOGS.map(({ name }) => `${name}-catalog`);

const READS: readonly Watch[] = [
  ...SET_READS,
  HOSTED_CLUSTER_READ,
  ...[...TARGETS, ...CATALOG_DEPLOYMENTS].map((name) => deploymentRef(CONTROL_PLANE_NAMESPACE, name)),
  documentRef(CONTROL_PLANE_NAMESPACE),
  { ...STREAM, namespace: CONTROL_PLANE_NAMESPACE, optional: true },
  { ...CATALOG_SOURCES, optional: true },
  {
    role: 'management',
    ...PULL_STATUS,
    namespace: HOSTED_CLUSTER_NAMESPACE,
    name: `hostedcluster-${HOSTED_CLUSTER_NAME}`,
    labelSelector: `pullwright.dev/owner=${NAME}`,
    optional: true,
  },
];

/**
 * The reconciler by its part of the configuration. One request per hosted cluster; none for a stand-alone cluster, whose nodes use
 * mirrors by themselves.
 */
export function reconcilers(raw: Readonly<Record<string, unknown>>): readonly Reconciler[] {
  const options = parseOverridesOptions(raw);
  return [
    {
      name: NAME,
      watches: READS,
      requestsFor: (_changed, reader) =>
        reader.scope.hostedCluster === undefined ? [] : [{ scope: reader.scope.name, name: NAME }],
      reconcile: (reader) => reconcile(reader, options(reader.scope.name)),
    },
  ];
}

function reconcile(reader: Reader, options: RegistryOverridesOptions): Result {
  const cluster = hostedClusterOf(reader);
  // Without its HostedCluster the desired state is unknown; the engine drops the scope when that is deleted.
  if (cluster === undefined) return { retain: 'all' };
  const annotations = cluster.metadata.annotations ?? {};
  const selection = readSelection(annotations);
  const { mode, problems } = modeOf(annotations[MODE_ANNOTATION], options.mode);
  const sets = readMirrorSets(reader, options, selection);
  const memory = memoryOf(reader, cluster);
  const planned = planDeployments({
    reader,
    mode,
    wanted: formatImageOverrides(sets.overrides, 'given'),
    upstream: sets.upstreamText,
    memory,
  });
  // What the owner wants is unknown: a list without its unreadable entries would let in other mirrors.
  const isUnread = selection.problems.length > 0;
  const deployments = isUnread ? { ...planned, apply: [], verdicts: [], memory, contested: false } : planned;
  // The manager of the control plane's Deployments also manages its catalogs, even before it writes them.
  const catalogMode = mode === 'auto' && deployments.observed !== undefined ? 'observe' : mode;
  const catalogs = options.catalogs
    ? planCatalogs(reader, cluster, catalogMode, options.askRegistries)
    : NO_CATALOGS;
  const document = isUnread ? { apply: [], keep: [], errors: [] } : documentApply(reader, sets);
  const reported = reportOverrides({
    reader,
    cluster,
    rules: sets.rules.length,
    hash: sets.hash,
    verdicts: [
      ...[...selection.problems, ...problems].map(annotationVerdict),
      ...(isUnread ? [] : sets.verdicts),
      ...deployments.verdicts,
      ...catalogs.verdicts,
    ],
    deployments,
    catalogError: catalogs.error,
  });
  return {
    ...reported,
    apply: [...document.apply, ...deployments.apply, ...catalogs.apply, ...reported.apply],
    retain: isUnread ? 'all' : [...document.keep, ...catalogs.keep],
    lookups: catalogs.needs,
    errors: [...document.errors, ...catalogProblem(catalogs.error, cluster)],
    ...(deployments.contested ? { requeueAfterMs: 60_000 } : {}),
  };
}

function modeOf(annotation: unknown, fallback: OwnershipMode): { mode: OwnershipMode; problems: string[] } {
  if (annotation === undefined) return { mode: fallback, problems: [] };
  if (annotation === 'own' || annotation === 'observe' || annotation === 'auto')
    return { mode: annotation, problems: [] };
  const text = JSON.stringify(typeof annotation === 'string' ? annotation.slice(0, 100) : '');
  return { mode: fallback, problems: [`${MODE_ANNOTATION} is ${text}: expected "own", "observe" or "auto"`] };
}

function annotationVerdict(problem: string): EntryStatus {
  const [subject = ''] = problem.split(' ', 1);
  return { subject, verdict: 'Rejected', reason: 'AnnotationInvalid', message: problem };
}

/** State of the last reconcile, from the status. */
function memoryOf(reader: Reader, cluster: KubeObject): Memory {
  const status = reader.get(statusRef(cluster))?.status as { summary?: Memory } | undefined;
  return status?.summary ?? {};
}

/** The ConfigMap of the document. */
function documentRef(namespace: string): Ref {
  return { role: 'management', apiVersion: 'v1', kind: 'ConfigMap', namespace, name: CONFIG_MAP };
}

/** Limit of etcd, minus the rest of the object. */
const MAX_DOCUMENT_BYTES = 900_000;

/** The document; when it is too large, the last one stays. */
function documentApply(reader: Reader, sets: MirrorSetObjects) {
  const namespace = reader.scope.controlPlaneNamespace;
  const bytes = Buffer.byteLength(sets.document);
  if (bytes > MAX_DOCUMENT_BYTES) {
    const ref = documentRef(namespace);
    const message = `Cannot write "ConfigMap/${namespace}/${CONFIG_MAP}": the mirrors take ${bytes} bytes, at most ${MAX_DOCUMENT_BYTES} fit`;
    const hint =
      'Choose mirror sets with the annotation pullwright.dev/registry-overrides-allow on the HostedCluster';
    const code = 'DocumentTooLarge';
    const error = { retryPolicy: 'terminal', code, message, hint, regarding: ref } as const;
    return { apply: [], keep: [ref], errors: [error] };
  }
  const metadata = { name: CONFIG_MAP, namespace, annotations: { [DOCUMENT_HASH_ANNOTATION]: sets.hash } };
  const object = configMap(metadata, { [DOCUMENT_KEY]: sets.document });
  return { apply: [{ role: 'management' as const, object }], keep: [], errors: [] };
}

function catalogProblem(error: string | undefined, cluster: KubeObject): readonly ReconcileError[] {
  if (error === undefined) return [];
  const { namespace = '', name } = cluster.metadata;
  return [
    {
      retryPolicy: 'terminal',
      code: 'CatalogImagesInvalid',
      message: `Cannot use the catalog annotations of "HostedCluster/${namespace}/${name}": ${error}`,
      hint: 'The previous images stay in use; correct or remove the annotations',
    },
  ];
}
