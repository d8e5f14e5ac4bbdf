/** Reports for the owner of a HostedCluster: PullStatus, events, metrics. */
import { createHash } from 'node:crypto';
import { type ConditionInput, readinessOf } from '../../core/kubernetes/conditions.ts';
import type { KubeObject } from '../../core/kubernetes/object.ts';
import { type EntryStatus, type PullStatusTarget, subjectsOf } from '../../core/kubernetes/pull-status.ts';
import type { MirrorRule } from '../../core/mirrors/resolve.ts';
import { counted } from '../../core/text.ts';
import { seenRef } from '../../engine/changes.ts';
import type { EventNote, Reader, Ref, Result, Sample } from '../../engine/contract.ts';
import { pullStatusRef, reportPullStatus } from '../../engine/pull-status.ts';
import type { DeploymentPlan } from './deployments.ts';

interface OverridesReportInput {
  readonly reader: Reader;
  readonly cluster: KubeObject;
  readonly rules: number;
  /** Hash of the full document. */
  readonly hash: string;
  readonly verdicts: readonly EntryStatus[];
  readonly deployments: Pick<DeploymentPlan, 'observed' | 'contested' | 'memory'>;
  /** Why the catalogs' annotations are invalid. */
  readonly catalogError?: string | undefined;
}

type OverridesReport = Required<Pick<Result, 'apply' | 'status' | 'events' | 'metrics'>>;

/** The PullStatus of `cluster`. */
export function statusRef(cluster: KubeObject): Ref {
  return pullStatusRef('management', aboutOf(cluster));
}

function aboutOf({ apiVersion, metadata }: KubeObject): PullStatusTarget {
  return { apiVersion, kind: 'HostedCluster', namespace: metadata.namespace ?? '', name: metadata.name };
}

/** Builds the reporting part of the result. */
export function reportOverrides(input: OverridesReportInput): OverridesReport {
  const { reader, cluster } = input;
  const said = reportPullStatus(reader, 'management', {
    reporter: 'registry-overrides',
    about: aboutOf(cluster),
    conditions: conditionsOf(input),
    verdicts: input.verdicts,
    summary: { rules: input.rules, hash: input.hash, ...input.deployments.memory },
  });
  return {
    apply: [said.apply],
    status: [said.status],
    events: eventsOf(input),
    metrics: metricsOf(input),
  };
}

/** The first reason among the verdicts of one kind; undefined without any. */
function textOf({ verdicts }: OverridesReportInput, wanted: 'Rejected' | 'Pending') {
  const found = verdicts.filter(({ verdict }) => verdict === wanted);
  const [first] = found;
  if (first === undefined) return undefined;
  const { reason, message } = first;
  const subjects = subjectsOf(found);
  const said = wanted === 'Rejected' ? `cannot use ${subjects}: ${message}` : `not applied yet: ${subjects}`;
  return { reason, message: said };
}

function conditionsOf(input: OverridesReportInput): readonly ConditionInput[] {
  return [
    ...readinessOf([
      ['stalled', textOf(input, 'Rejected')],
      ['progressing', textOf(input, 'Pending')],
      [
        'ready',
        { reason: 'Reconciled', message: `${counted(input.rules, 'source has', 'sources have')} mirrors` },
      ],
    ]),
    {
      type: 'CatalogsValid',
      ...(input.catalogError === undefined
        ? { status: 'True', reason: 'Valid', message: 'the catalog annotations are valid' }
        : { status: 'False', reason: 'CatalogImagesInvalid', message: input.catalogError }),
    },
    ...managed(input),
    ...(input.deployments.contested
      ? [
          {
            type: 'Contested',
            status: 'True',
            reason: 'AnotherWriter',
            message: 'another writer removes what Pullwright sets; see the verdicts',
          } as const,
        ]
      : []),
  ];
}

function managed({ deployments: { observed }, verdicts }: OverridesReportInput): readonly ConditionInput[] {
  if (observed === undefined) return [];
  const drifted = verdicts.filter((verdict) => verdict.reason === 'Drifted');
  const drift =
    drifted.length === 0
      ? 'they match the mirror sets'
      : `${subjectsOf(drifted)} differ from the mirror sets`;
  const message = `${observed} manages the Deployments; Pullwright writes none of them; ${drift}`;
  return [
    {
      type: 'ManagedElsewhere',
      status: 'True',
      reason: drifted.length === 0 ? 'Observing' : 'Drifted',
      message,
    },
  ];
}

/** One event per verdict that needs action; the engine sends each change once. */
function eventsOf({ cluster, verdicts, catalogError }: OverridesReportInput): readonly EventNote[] {
  const regarding = seenRef('management', cluster);
  const warn = (reason: string, note: string): EventNote => {
    return { regarding, type: 'Warning', reason, action: 'Override', note };
  };
  const shown = verdicts.filter(
    ({ verdict, reason }) => verdict === 'Rejected' || reason === 'Contested' || reason === 'FellBack',
  );
  return [
    ...shown
      .slice(0, MAX_EVENTS)
      .map((verdict) => warn(verdict.reason, `${verdict.subject}: ${verdict.message}`)),
    ...(catalogError === undefined ? [] : [warn('CatalogImagesInvalid', catalogError)]),
  ];
}

/** Limits the events for a thousand invalid entries. */
const MAX_EVENTS = 20;

function metricsOf({ reader, rules, verdicts, deployments }: OverridesReportInput): readonly Sample[] {
  const labels = { scope: reader.scope.name };
  const rejected = verdicts.filter(({ verdict }) => verdict === 'Rejected').length;
  const samples: readonly (readonly [Sample['name'], help: string, value: number])[] = [
    ['pullwright_override_sources', 'Sources that have mirrors for the hosted cluster', rules],
    ['pullwright_override_problems', 'Entries and annotations that cannot be used', rejected],
    [
      'pullwright_override_contested',
      'Whether another writer removes the variable',
      deployments.contested ? 1 : 0,
    ],
    [
      'pullwright_override_drifted',
      'Deployments of another operator that differ from the mirror sets',
      count(verdicts, 'Drifted'),
    ],
  ];
  return [
    ...samples.map(([name, help, value]) => ({ name, help, value, labels })),
    ...Object.entries(CATALOG_RESULTS).map(([result, reason]) => ({
      name: 'pullwright_override_catalogs' as const,
      help: 'Catalogs by how their image was resolved: by annotations, found, found only outside the mirrors, or not found',
      value: count(verdicts, reason),
      labels: { ...labels, result },
    })),
  ];
}

const CATALOG_RESULTS = {
  annotated: 'Annotated',
  found: 'Found',
  fallback: 'FellBack',
  failed: 'CatalogImageMissing',
};

function count(verdicts: readonly EntryStatus[], reason: string): number {
  return verdicts.filter((verdict) => verdict.reason === reason).length;
}

// All details of one hosted cluster's mirrors, as a JSON document with a version and a hash: the administrator's order, the pulls
// that each mirror serves, and the policy of the source. `OPENSHIFT_IMG_OVERRIDES` cannot express these.

/**
 * The document of `rules` and its hexadecimal SHA-256. Equal rules give equal texts.
 */
export function overridesDocument(rules: readonly MirrorRule[]) {
  const written = rules.map(({ prefix, mirrors, blocked }) => ({
    source: prefix,
    mirrors: mirrors.map(({ location, pullFrom }) => ({ location, pullFrom })),
    mirrorSourcePolicy: blocked ? 'NeverContactSource' : 'AllowContactingSource',
  }));
  const text = `${JSON.stringify({ version: 1, rules: written })}\n`;
  return { text, hash: createHash('sha256').update(text).digest('hex') };
}
