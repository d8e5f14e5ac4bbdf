/** Requeue of keys: the engine's own writes trigger other keys, and each key only once. */
import assert from 'node:assert/strict';
import type { Readable } from 'node:stream';
import type { KubeObject } from '../../runtime/core/kubernetes/object.ts';
import { createLogger } from '../../runtime/core/logger.ts';
import { ClusterCache } from '../../runtime/engine/cache.ts';
import { Cluster } from '../../runtime/engine/cluster.ts';
import type { Reader, Reconciler, Request, Result } from '../../runtime/engine/contract.ts';
import { Controller } from '../../runtime/engine/controller.ts';
import { FactCache, noLookUp } from '../../runtime/engine/lookups.ts';
import { Manager } from '../../runtime/engine/manager.ts';
import { createMetrics } from '../../runtime/engine/metrics.ts';
import { systemQueueClock } from '../../runtime/engine/queue.ts';
import type { KubeClient, WatchEvent, WatchOptions } from '../../runtime/kube/client.ts';
import { EventRecorder } from '../../runtime/kube/events.ts';
import type { Collection } from '../../runtime/kube/resources.ts';
import { eventually } from '../control-plane/eventually.ts';
import { openWatch } from '../kube/scripted-server.ts';
import { test } from '../support/suite.ts';

const SILENT = createLogger({ write: () => undefined });
const MANAGER = 'pullwright-copier';

/** ConfigMaps and what watches them. Watches tell when {@link Server.tell} says so. */
class Server {
  readonly objects = new Map<string, KubeObject>();
  readonly writes: string[] = [];
  #version = 1;
  #held: WatchEvent[] = [];
  readonly #watchers = new Set<Readable>();

  get client(): KubeClient {
    return {
      list: () =>
        Promise.resolve({
          items: [...this.objects.values()],
          resourceVersion: String(this.#version),
          bytes: 0,
        }),
      watch: (_collection: Collection, options: WatchOptions) => Promise.resolve(this.#watch(options.signal)),
      get: ({ name }: { name: string }) => Promise.resolve(this.objects.get(name)),
      create: (object: KubeObject) => Promise.resolve(this.write(object, 'Update')),
      apply: (object: KubeObject) => Promise.resolve(this.write(object, 'Apply')),
      mergePatch: ({ name }: { name: string }, patch: object) =>
        Promise.resolve(this.write({ ...this.objects.get(name), ...patch } as KubeObject, 'Update')),
      close: () => undefined,
    } as unknown as KubeClient;
  }

  /** Stores it as the API server does; watches hear of it with the next {@link tell}. */
  write(object: KubeObject, operation: 'Update' | 'Apply'): KubeObject {
    const { name } = object.metadata;
    this.#version += 1;
    const fieldsV1 = { 'f:data': { 'f:value': {} } };
    const stored: KubeObject = {
      ...object,
      metadata: {
        ...object.metadata,
        uid: `uid-${name}`,
        resourceVersion: String(this.#version),
        managedFields: [{ manager: MANAGER, operation, fieldsV1 }],
      },
    };
    this.writes.push(name);
    this.#held.push({ type: this.objects.has(name) ? 'MODIFIED' : 'ADDED', object: stored });
    this.objects.set(name, stored);
    return stored;
  }

  remove(name: string): void {
    const object = this.objects.get(name);
    if (object === undefined) return;
    this.objects.delete(name);
    this.#held.push({ type: 'DELETED', object });
  }

  /** Watches hear of everything up to now; resolves when they have taken it. */
  async tell(): Promise<void> {
    for (const event of this.#held.splice(0)) for (const watcher of this.#watchers) watcher.push(event);
    for (let turn = 0; turn < 5; turn++) await new Promise(setImmediate);
  }

  #watch(signal: AbortSignal): Readable {
    const watch = openWatch(signal);
    this.#watchers.add(watch.once('close', () => this.#watchers.delete(watch)));
    return watch;
  }
}

const SAMPLE = { name: 'pullwright_test', help: 'A test', value: 1, labels: { of: 'in' } } as const;

function configMap(name: string, value: string): KubeObject {
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace: 'a' }, data: { value } };
}

const READ = { role: 'hosted', apiVersion: 'v1', kind: 'ConfigMap', namespace: 'a' } as const;

interface Engine {
  readonly server: Server;
  readonly controller: Controller;
  /** Names of the keys of all passes. */
  readonly passes: string[];
  readonly metrics: ReturnType<typeof createMetrics>;
  readonly settled: () => Promise<void>;
  stop(): Promise<void>;
}

/** A running controller for keys named after the ConfigMaps `in-*`. */
async function engineFor(
  reconcile: (reader: Reader, key: Request) => Result,
  server: Server,
): Promise<Engine> {
  const { client } = server;
  const metrics = createMetrics();
  const cluster = clusterOf(client);
  const passes: string[] = [];
  const controller = new Controller({
    reconciler: {
      name: 'copier',
      watches: [READ],
      requestsFor: KEYS,
      reconcile: (reader, key) => {
        passes.push(key.name);
        return reconcile(reader, key);
      },
    },
    scope: { name: 'local', controlPlaneNamespace: 'a' },
    clusters: { hosted: cluster, management: cluster },
    facts: new FactCache(noLookUp),
    log: SILENT,
    metrics,
    clock: systemQueueClock,
  });
  controller.watch();
  await eventually(() => assert.ok(controller.readings.synced));
  controller.work();
  return {
    server,
    controller,
    passes,
    metrics,
    settled: async () => {
      for (let before = -1; before !== passes.length; ) {
        before = passes.length;
        for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate);
      }
    },
    stop: async () => {
      await controller.stop();
      cluster.close();
    },
  };
}

/** Runs `check` beside a controller that sees the ConfigMap `in`. */
async function withEngine(
  reconcile: Parameters<typeof engineFor>[0],
  check: (engine: Engine) => Promise<void>,
): Promise<void> {
  const server = new Server();
  server.write(configMap('in', '1'), 'Update');
  await server.tell();
  const engine = await engineFor(reconcile, server);
  try {
    await engine.settled();
    await check(engine);
  } finally {
    await engine.stop();
  }
}

/** `in` is copied to `out`; `sum` counts what is there. */
function copier(plain: boolean): Parameters<typeof engineFor>[0] {
  return (reader, key) => {
    const source = reader.get({ ...READ, name: 'in' });
    if (key.name !== 'in' || source === undefined) return {};
    const { value } = source['data'] as { value: string };
    return {
      apply: [
        { role: 'hosted', object: configMap('out', value), plain },
        { role: 'hosted', object: configMap('out-2', value), plain },
      ],
    };
  };
}

/** `out*` concerns `in`, which makes it, and `sum`. */
const KEYS: Reconciler['requestsFor'] = (changed, reader) => {
  const key = (name: string): Request => ({ scope: reader.scope.name, name });
  return changed.name.startsWith('out') ? [key('in'), key('sum')] : [key('in')];
};

test('plain writes are news to others at once, to their author never, and to nobody by the watch', () =>
  withEngine(copier(true), async ({ server, passes, settled }) => {
    assert.deepEqual(server.writes, ['in', 'out', 'out-2']);
    assert.equal(passes.filter((name) => name === 'in').length, 1);
    assert.ok(passes.includes('sum'));
    const before = passes.length;
    await server.tell();
    await settled();
    assert.equal(passes.length, before, 'the watch told nothing new');
  }));

test('applied objects are looked at once more, whatever their number, and not again by the watch', () =>
  withEngine(copier(false), async ({ server, passes, settled }) => {
    assert.equal(passes.filter((name) => name === 'in').length, 2);
    const before = passes.length;
    await server.tell();
    await settled();
    assert.equal(passes.length, before);
  }));

test('a change of our object by another writer is reconciled', () =>
  withEngine(copier(true), async ({ server, passes, settled }) => {
    await server.tell();
    const out = server.objects.get('out') as KubeObject;
    server.write({ ...out, data: { value: 'edited' } }, 'Update');
    server.writes.length = 0;
    await server.tell();
    await settled();
    assert.equal(passes.filter((name) => name === 'in').length, 2);
    assert.deepEqual(server.writes, ['out']);
  }));

test('a key that has nothing to do and owns nothing is forgotten, also when it keeps all', () =>
  withEngine(
    (reader) =>
      reader.get({ ...READ, name: 'in' }) === undefined ? { retain: 'all' } : { metrics: [SAMPLE] },
    async ({ server, controller, settled }) => {
      assert.deepEqual(
        controller.keys.map(({ name }) => name),
        ['in'],
      );
      server.remove('in');
      await server.tell();
      await settled();
      assert.deepEqual(controller.keys, []);
    },
  ));

test('a controller that stops takes its gauges with it', async () => {
  const kept = { render: (): Promise<{ readonly text: string }> => Promise.resolve({ text: '' }) };
  await withEngine(
    () => ({ metrics: [SAMPLE] }),
    async ({ metrics }) => {
      kept.render = () => metrics.render();
      assert.match((await kept.render()).text, /^pullwright_test\{of="in"\} 1$/m);
    },
  );
  assert.doesNotMatch((await kept.render()).text, /^pullwright_test\{/m);
});

// A pair of clusters that goes while its API server keeps the last write waiting.

/** Takes a write and never answers, until the client is closed. */
class Hanging {
  writes = 0;
  isClosed = false;
  readonly #ends = new Set<() => void>();

  get client(): KubeClient {
    return {
      host: 'hanging.example.com',
      list: () => Promise.resolve({ items: [configMap('in', '')], resourceVersion: '1', bytes: 0 }),
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
  watches: [READ],
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
    log: SILENT,
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
