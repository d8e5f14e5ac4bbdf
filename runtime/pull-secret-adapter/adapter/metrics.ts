/**
 * What is known of each cluster's secret, as metrics: how old its version is, how many are enabled, how the last pass ended. From what
 * the Job said, by way of the report. Only the leader gives them: it watches every Job and visits every cluster, so that what
 * another replica did is in them too, and nothing is said twice.
 */
import { scalarText } from '../../core/record.ts';
import type { Sample } from '../../engine/contract.ts';
import type { PassResult } from './reconcile-cluster.ts';

type Passed = Pick<PassResult, 'phase' | 'reason' | 'data'>;

export class SecretMetrics {
  readonly #clusters = new Map<string, Passed>();
  #isLeading = false;

  /** Says from when on this process knows, and until when. */
  lead(isLeading: boolean): void {
    this.#isLeading = isLeading;
  }

  /** Takes in one pass. */
  reconciled(cluster: string, pass: Passed): void {
    if (pass.phase === 'gone' || pass.phase === 'deleted') this.#clusters.delete(cluster);
    else this.#clusters.set(cluster, pass);
  }

  /** The clusters that are known now. */
  get clusters(): ReadonlySet<string> {
    return new Set(this.#clusters.keys());
  }

  /**
   * Takes in a whole list: the reason that the API holds for each cluster.
   *
   * @param before what was known when the list was begun: of these, what is not in it has gone
   */
  listed(reasons: ReadonlyMap<string, string | undefined>, before: ReadonlySet<string>): void {
    for (const [id, known] of this.#clusters) {
      const reason = reasons.get(id);
      if (!reasons.has(id) && before.has(id)) this.#clusters.delete(id);
      if (reason !== undefined) this.#clusters.set(id, { ...known, reason });
    }
  }

  /** Computed per scrape: there may be thousands. */
  samples(): readonly Sample[] {
    if (!this.#isLeading) return [];
    return [...this.#clusters].flatMap(([cluster, pass]) => samplesOf(cluster, pass));
  }
}

function samplesOf(cluster: string, { reason, data }: Passed): readonly Sample[] {
  const samples: readonly Sample[] = [
    {
      name: 'pullwright_pull_secret_version_created_timestamp_seconds',
      help: 'When the version of the secret that holds the pull secret was made',
      value: Date.parse(scalarText(data['versionCreatedTime'])) / 1000,
      labels: { cluster },
    },
    {
      name: 'pullwright_pull_secret_enabled_versions',
      help: 'Versions of the secret that can be read',
      value: typeof data['enabledVersions'] === 'number' ? data['enabledVersions'] : Number.NaN,
      labels: { cluster },
    },
    {
      name: 'pullwright_pull_secret_result',
      help: 'Result of the last pass over a cluster: 1 for its reason',
      value: 1,
      labels: { cluster, reason },
    },
  ];
  return samples.filter(({ value }) => !Number.isNaN(value));
}
