/** A pair of clusters that goes while its API server keeps the last write waiting. */
import assert from 'node:assert/strict';
import type { KubeObject } from '../../runtime/core/kubernetes/object.ts';
import { createLogger } from '../../runtime/core/logger.ts';
import { ClusterCache } from '../../runtime/engine/cache.ts';
import { Cluster } from '../../runtime/engine/cluster.ts';
import type { Reconciler } from '../../runtime/engine/contract.ts';
import { FactCache, noLookUp } from '../../runtime/engine/lookups.ts';
import { Manager } from '../../runtime/engine/manager.ts';
import { createMetrics } from '../../runtime/engine/metrics.ts';
import { systemQueueClock } from '../../runtime/engine/queue.ts';
import type { KubeClient } from '../../runtime/kube/client.ts';
import { EventRecorder } from '../../runtime/kube/events.ts';
import { eventually } from '../control-plane/eventually.ts';
import { test } from '../support/suite.ts';

const CONFIG_MAP: KubeObject = {
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name: 'in', namespace: 'a', uid: 'uid-in', resourceVersion: '1' },
};

/** Takes a write and never answers, until the client is closed. */
class Hanging {
  writes = 0;
  isClosed = false;
  readonly #ends = new Set<() => void>();

  get client(): KubeClient {
    return {
      host: 'hanging.example.com',
      list: () => Promise.resolve({ items: [CONFIG_MAP], resourceVersion: '1', bytes: 0 }),
      watch: () => this.#until(),
      get: () => Promise.resolve(undefined),
      apply: () => this.#hang(),
      close: () => {
        this.isClosed = true;
        for (const end of this.#ends) end();
      },
    } as unknown as KubeClient;
  }

  #hang(): Promise<never> {
    this.writes += 1;
    return this.#until();
  }

  #until(): Promise<never> {
    return new Promise((_resolve, reject) => {
      const end = (): void => reject(new Error('aborted'));
      this.#ends.add(end);
      if (this.isClosed) end();
    });
  }
}

function clusterOf(client: KubeClient): Cluster {
  return new Cluster({
    server: 'https://test.example.com',
    client,
    cache: new ClusterCache(client),
    events: new EventRecorder({ client, controller: 'test', instance: 'test', now: () => 0 }),
    mayWrite: () => true,
  });
}

const WRITER: Reconciler = {
  name: 'writer',
  watches: [{ role: 'hosted', apiVersion: 'v1', kind: 'ConfigMap', namespace: 'a' }],
  requestsFor: (_changed, { scope }) => [{ scope: scope.name, name: 'in' }],
  reconcile: () => ({
    apply: ['out-1', 'out-2'].map((name) => ({
      role: 'hosted',
      object: { apiVersion: 'v1', kind: name, metadata: { name, namespace: 'a' } },
    })),
  }),
};

test('a removal waits for the last write, breaks it off where nobody answers, and is one for all who ask', async () => {
  const manager = new Manager({
    reconcilers: [WRITER],
    facts: new FactCache(noLookUp),
    log: createLogger({ write: () => undefined, level: () => 'error' }),
    metrics: createMetrics(),
    clock: systemQueueClock,
    lastPassesMs: 50,
  });
  const [server, management] = [new Hanging(), new Hanging()];
  const scope = { name: 'clusters/one', controlPlaneNamespace: 'clusters-one' };
  manager.work();
  manager.add(scope, { hosted: clusterOf(server.client), management: clusterOf(management.client) });
  await eventually(() => assert.equal(server.writes, 1));
  const removed = manager.remove(scope.name);
  assert.deepEqual(manager.scopes, []);
  assert.equal(manager.remove(scope.name), removed, 'whoever opens it again waits for the same end');
  assert.equal(server.isClosed, false);
  await removed;
  assert.equal(server.isClosed, true);
  assert.equal(management.isClosed, false);
});
