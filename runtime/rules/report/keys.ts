/** The registry keys of the pull secrets that nodes get: which entry wins, which lose, why, and when each ends. */
import { type DockerConfigEntry, parseDockerConfig } from '../docker-config/docker-config.ts';
import { credentialExpiry } from '../docker-config/expiry.ts';
import { type MergeResult, mergePullSecrets } from '../docker-config/merge.ts';
import { secretDataText } from '../docker-config/secret-text.ts';
import { GLOBAL_PULL_SECRET as NAMES } from '../kubernetes/global-pull-secret.ts';
import { isSecret, type KubeObject, type SecretObject } from '../kubernetes/object.ts';
import type { Verdict } from '../kubernetes/pull-status.ts';
import type { Redacted } from '../redacted.ts';
import type { ReportKey, ReportNodes } from './types.ts';

/** A credential that ends within so many days ends soon. */
export const SOON_DAYS = 14;

const DAY_MS = 24 * 60 * 60 * 1000;

export interface ReportKeys {
  readonly keys: readonly ReportKey[];
  /** Why a document as a whole cannot be used. */
  readonly faults: readonly { readonly source: string; readonly message: string }[];
}

interface Document {
  readonly source: string;
  readonly text: Redacted<string>;
}

/**
 * Merges the two documents as the reconciler does, and tells of every entry what became of it.
 *
 * @param objects of the cluster: the platform's and the tenant's Secret are looked for
 * @param nodes which nodes have what was merged
 */
export function reportKeys(objects: readonly KubeObject[], nodes: ReportNodes, now: Date): ReportKeys {
  const secrets = objects.filter(isSecret);
  const original =
    documentOf(secrets, NAMES.namespace, NAMES.original) ??
    documentOf(secrets, NAMES.configNamespace, NAMES.platform);
  const additional = documentOf(secrets, NAMES.namespace, NAMES.additional);
  if (original === undefined)
    return {
      keys: [],
      faults:
        additional === undefined
          ? []
          : [
              {
                source: additional.source,
                message: "cannot be merged: the platform's pull secret is not there",
              },
            ],
    };
  const merged = mergePullSecrets({
    original: original.text,
    ...(additional === undefined ? {} : { additional: additional.text }),
  });
  if (!merged.ok) return { keys: [], faults: [{ source: original.source, message: merged.problem.message }] };
  const faults =
    merged.additionalProblem === undefined || additional === undefined
      ? []
      : [{ source: additional.source, message: merged.additionalProblem.message }];
  const rows = [
    ...platformRows(merged, original.source),
    ...(additional === undefined ? [] : tenantRows(merged, additional.source, original.source)),
  ];
  const ends = new Map([
    ...endsOf(original, now),
    ...(additional === undefined ? [] : endsOf(additional, now)),
  ]);
  const keys = rows.map(
    (row): ReportKey => ({
      ...row,
      ...ends.get(`${row.source}\n${row.key}`),
      onNodes: row.state === 'used' || row.state === 'last-good' ? nodes.inSync : 0,
    }),
  );
  return { keys: keys.toSorted((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0)), faults };
}

function documentOf(secrets: readonly SecretObject[], namespace: string, name: string): Document | undefined {
  const found = secrets.find(({ metadata }) => metadata.name === name && metadata.namespace === namespace);
  const value = found?.data?.[NAMES.dataKey];
  return value === undefined
    ? undefined
    : { source: `Secret/${namespace}/${name}`, text: secretDataText(value) };
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

const STATES: Readonly<Partial<Record<Verdict['verdict'], ReportKey['state']>>> = {
  Accepted: 'used',
  Shadowed: 'shadowed',
  Rejected: 'rejected',
};

function endsOf(
  { source, text }: Document,
  now: Date,
): readonly (readonly [string, Pick<ReportKey, 'expiresAt' | 'ends'>])[] {
  const parsed = parseDockerConfig(text);
  if (!parsed.ok) return [];
  return parsed.config.entries.flatMap((entry) => {
    const expiresAt = expiryOf(entry);
    if (expiresAt === undefined) return [];
    const left = Date.parse(expiresAt) - now.getTime();
    const ends = left <= 0 ? 'ended' : left <= SOON_DAYS * DAY_MS ? 'soon' : undefined;
    return [
      [`${source}\n${entry.key.written}`, { expiresAt, ...(ends === undefined ? {} : { ends }) }] as const,
    ];
  });
}

function expiryOf({ kubelet }: DockerConfigEntry): string | undefined {
  return kubelet === undefined ? undefined : credentialExpiry(kubelet).expiresAt;
}
