/** Equal reads in many namespaces share one watch. */
import assert from 'node:assert/strict';
import type { Readable } from 'node:stream';
import type { KubeObject } from '../../runtime/core/kubernetes/object.ts';
import { ClusterCache, type Selection, type Source } from '../../runtime/engine/cache.ts';
import { apiErrorOf } from '../../runtime/kube/api-error.ts';
import type { KubeClient, ListPage, WatchOptions } from '../../runtime/kube/client.ts';
import type { Collection } from '../../runtime/kube/resources.ts';
import { eventually } from '../control-plane/eventually.ts';
import { openWatch } from '../kube/scripted-server.ts';
import { test } from '../support/suite.ts';

const FAST = { backOff: { firstMs: 1, maxMs: 5 }, missingMs: 5 };
const NAMES = Array.from({ length: 10 }, (_, at) => `clusters-${at}`);

function secret(namespace: string, resourceVersion = '1'): KubeObject {
  const metadata = { name: 'pull-secret', namespace, uid: namespace, resourceVersion };
  return { apiVersion: 'v1', kind: 'Secret', metadata };
}

function selection(namespace: string): Selection & { readonly namespace: string } {
  return { apiVersion: 'v1', kind: 'Secret', namespace, name: 'pull-secret' };
}
const WIDE: Selection = { apiVersion: 'v1', kind: 'Secret', name: 'pull-secret' };

/** An API server with one Secret per namespace, which refuses lists over all namespaces when `denied`. */
class Server {
  denied = false;
  readonly #watches = new Map<string, Readable>();

  get watched(): readonly string[] {
    return [...this.#watches.keys()].sort();
  }

  /** Streams of the watch of this namespace, and of the watch of all namespaces. */
  streams(namespace: string): readonly Readable[] {
    return [namespace, '*'].flatMap((one) => this.#watches.get(one) ?? []);
  }

  get client(): KubeClient {
    return {
      list: (collection: Collection) => this.#list(collection),
      watch: (collection: Collection, options: WatchOptions) =>
        Promise.resolve(this.#watch(collection.namespace ?? '*', options.signal)),
    } as unknown as KubeClient;
  }

  #list({ namespace = '*' }: Collection): Promise<ListPage> {
    const refusal = { verb: 'list', subject: 'Secret', status: 403, body: {} };
    if (this.denied && namespace === '*') return Promise.reject(apiErrorOf(refusal));
    const items = (namespace === '*' ? NAMES : [namespace]).map((name) => secret(name));
    return Promise.resolve({ items, resourceVersion: '1', bytes: 0 });
  }

  #watch(namespace: string, signal: AbortSignal): Readable {
    const watch = openWatch(signal).once('close', () => this.#watches.delete(namespace));
    this.#watches.set(namespace, watch);
    return watch;
  }
}

interface Reader {
  readonly source: Source;
  readonly heard: string[];
  readonly end: () => void;
}

function readers(cache: ClusterCache, namespaces: readonly string[]): readonly Reader[] {
  return namespaces.map((namespace) => {
    const source = cache.sharedSource(selection(namespace), WIDE);
    const heard: string[] = [];
    const end = source.subscribe(({ metadata }) =>
      heard.push(`${metadata.namespace} ${metadata.resourceVersion}`),
    );
    return { source, heard, end };
  });
}

/** Readers of all namespaces, which share their watch already. */
async function shared(): Promise<{ server: Server; cache: ClusterCache; all: readonly Reader[] }> {
  const server = new Server();
  const cache = new ClusterCache(server.client, FAST);
  const all = readers(cache, NAMES);
  await eventually(() => assert.ok(all.every(({ source }) => source.status.is === 'synced')));
  await eventually(() => assert.deepEqual(server.watched, ['*']));
  return { server, cache, all };
}

test('all namespaces share one watch', async () => {
  const { cache, all } = await shared();
  assert.deepEqual(
    all.map(({ source }) => source.selection.namespace),
    NAMES,
  );
  for (const name of NAMES)
    assert.equal(cache.store.get({ ...WIDE, namespace: name, name: 'pull-secret' })?.metadata.uid, name);
  cache.close();
});

test('a reader of one namespace hears of no other', async () => {
  const { server, cache, all } = await shared();
  for (const { heard } of all) heard.length = 0;
  for (const stream of server.streams('clusters-7'))
    stream.push({ type: 'MODIFIED', object: secret('clusters-7', '2') });
  await eventually(() => assert.deepEqual(all[7]?.heard, ['clusters-7 2']));
  assert.deepEqual(
    all.flatMap(({ heard }) => heard),
    ['clusters-7 2'],
  );
  cache.close();
});

test('rights that are withdrawn later do not make the known objects go away', async () => {
  const { server, cache, all } = await shared();
  server.denied = true;
  const expired = apiErrorOf({ verb: 'watch', subject: 'Secret', status: 410, body: {} });
  for (const stream of server.streams('*')) stream.destroy(expired);
  await eventually(() => assert.equal(all[7]?.source.status.error?.code, 'Forbidden'));
  assert.equal(all[7]?.source.status.is, 'synced');
  assert.equal(
    cache.store.get({ ...WIDE, namespace: 'clusters-7', name: 'pull-secret' })?.metadata.uid,
    'clusters-7',
  );
  cache.close();
});

test('the shared watch ends with its last reader', async () => {
  const { server, cache, all } = await shared();
  for (const { end } of all.slice(1)) end();
  cache.sweep();
  assert.deepEqual(server.watched, ['*']);
  all[0]?.end();
  cache.sweep();
  await eventually(() => assert.deepEqual(server.watched, []));
  cache.close();
});
