/**
 * What is known of each cluster's secret, as metrics: how old its version is, how many are enabled, how the last look ended. From what
 * the Job said, by way of the report. A process knows the clusters that it has looked at since it started; every cluster is looked at
 * once a day at least, and replicas are combined with `max by (cluster)`.
 */
import type { GaugeSample } from '../../telemetry/metrics.ts';

/** What a look leaves behind. */
export interface Looked {
  /** `gone`: the cluster is no more. */
  readonly phase: string;
  /** Of the condition `Available`. */
  readonly reason: string;
  /** The `data` of the report. */
  readonly data: Readonly<Record<string, unknown>>;
}

/**
 * @example
 * ```ts
 * import { SecretMetrics } from './secret-metrics.ts';
 * import assert from 'node:assert/strict';
 *
 * const metrics = new SecretMetrics();
 * metrics.looked('cls-1', { phase: 'stored', reason: 'SecretAvailable', data: { enabledVersions: 2 } });
 * assert.deepEqual(metrics.samples().map((sample) => [sample.name, sample.value]), [
 *   ['pullwright_pull_secret_enabled_versions', 2],
 *   ['pullwright_pull_secret_result', 1],
 * ]);
 * ```
 */
export class SecretMetrics {
  readonly #clusters = new Map<string, Looked>();

  /** Takes in one look. */
  looked(cluster: string, look: Looked): void {
    if (look.phase === 'gone' || look.phase === 'deleted') this.#clusters.delete(cluster);
    else this.#clusters.set(cluster, look);
  }

  /** Made when somebody asks: there may be thousands. */
  samples(): readonly GaugeSample[] {
    return [...this.#clusters].flatMap(([cluster, look]) => samplesOf(cluster, look));
  }
}

function samplesOf(cluster: string, { reason, data }: Looked): readonly GaugeSample[] {
  const created = Date.parse(String(data['versionCreatedTime'])) / 1000;
  const enabled = data['enabledVersions'];
  return [
    ...(Number.isNaN(created)
      ? []
      : [
          {
            name: 'pullwright_pull_secret_version_created_timestamp_seconds',
            help: 'When the version of the secret that holds the pull secret was made',
            value: created,
            labels: { cluster },
          },
        ]),
    ...(typeof enabled === 'number'
      ? [
          {
            name: 'pullwright_pull_secret_enabled_versions',
            help: 'Versions of the secret that can be read',
            value: enabled,
            labels: { cluster },
          },
        ]
      : []),
    {
      name: 'pullwright_pull_secret_result',
      help: 'How the last look at a cluster ended: 1 for its reason',
      value: 1,
      labels: { cluster, reason },
    },
  ];
}
