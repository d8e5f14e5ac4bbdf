/** Sentinel: goes over the clusters, decides, publishes. Keeps nothing: what it sent is seen in what the adapters report. */
import { randomUUID } from 'node:crypto';
import type { Publisher } from '../brokers/broker.ts';
import { encodeCloudEvent } from '../brokers/cloud-event.ts';
import type { Cluster } from './cluster.ts';
import type { HyperfleetApi } from './hyperfleet-api.ts';
import { planCluster } from './plan.ts';
import { buildEventData, decideToPublish, type SentinelAges, searchByLabels } from './sentinel-decision.ts';

export interface SentinelSettings {
  /** `reconcile`: generation and age, as the running system. `dependencies`: as the requirement, `cluster.create` once they are complete. */
  readonly rule: 'reconcile' | 'dependencies';
  readonly dependencies: readonly string[];
  readonly eventType: string;
  readonly source: string;
  readonly selector: Readonly<Record<string, string>>;
  readonly ages: SentinelAges;
}

export interface SentinelCount {
  readonly clusters: number;
  readonly published: number;
  readonly failed: number;
}

/** One go over all clusters. One that cannot be published does not hold up the others. @throws PullwrightError when the list fails */
export async function pollOnce(
  api: Pick<HyperfleetApi, 'clusters'>,
  publisher: Publisher,
  settings: SentinelSettings,
  now: Date,
): Promise<SentinelCount> {
  const clusters = await api.clusters(searchByLabels(settings.selector));
  let published = 0;
  let failed = 0;
  for (const cluster of clusters) {
    if (!isDue(cluster, settings, now)) continue;
    const { id, body } = eventFor(cluster, settings);
    try {
      await publisher.publish({ id, body });
      published += 1;
    } catch {
      failed += 1;
    }
  }
  return { clusters: clusters.length, published, failed };
}

function isDue(cluster: Cluster, settings: SentinelSettings, now: Date): boolean {
  const { publish } = decideToPublish(cluster, now, settings.ages);
  if (!publish || settings.rule === 'reconcile') return publish;
  // A cluster that is being deleted has no dependencies to wait for.
  return planCluster(cluster, [], settings.dependencies).verdict !== 'waiting';
}

/** The event, as the running system writes it. */
export function eventFor(
  cluster: Cluster,
  settings: Pick<SentinelSettings, 'eventType' | 'source'>,
): { id: string; body: string } {
  const id = randomUUID();
  const resource = {
    id: cluster.id,
    kind: 'Cluster',
    href: `/api/hyperfleet/v1/clusters/${cluster.id}`,
    generation: cluster.generation,
  };
  const definition = {
    id: 'resource.id',
    kind: 'resource.kind',
    href: 'resource.href',
    generation: 'resource.generation',
  };
  const body = encodeCloudEvent({
    specversion: '1.0',
    id,
    source: settings.source,
    type: settings.eventType,
    datacontenttype: 'application/json',
    data: buildEventData(definition, resource),
    extensions: {},
  });
  return { id, body };
}
