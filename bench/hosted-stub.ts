/**
 * A management cluster and any number of hosted clusters in one small HTTPS server, each hosted one below a path of its own. It
 * keeps what is applied and holds watches open: enough to see what many clusters cost the client.
 */
import { writeFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { join } from 'node:path';
import { json } from 'node:stream/consumers';
import { Door } from '../test/support/loopback.ts';
import { Merges } from './hosted-merges.ts';
import { controlPlane, type Json, pullSecretFor, SERVED } from './hosted-objects.ts';

const BOOKMARK_MS = 60_000;
const BOOKMARK = '{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"1"}}}\n';

export class HostedStub {
  /** Number of hosted clusters that the management cluster serves. */
  clusters = 1;
  requests = 0;
  /** When each cluster had its merged secret, and what it has to get. */
  readonly merges: Merges = new Merges();
  readonly kubeconfig: string;
  readonly config: string;
  readonly #door: Door;
  readonly #applied = new Map<string, Json>();
  /** Watches that are open, by the name of their cluster; that of the management cluster is empty. */
  readonly #watches = new Map<string, Set<ServerResponse>>();
  readonly #gone = new Set<string>();
  /** Requests of each hosted cluster by its name. */
  readonly asked: Map<string, number> = new Map();
  /** User agents of the writes to each hosted cluster, in order, by cluster name. */
  readonly writers: Map<string, string[]> = new Map();
  /** Rotated pull secrets by cluster. */
  readonly #pullSecrets = new Map<string, { readonly registry: string; readonly resourceVersion: string }>();
  #version = 1000;

  private constructor(door: Door) {
    this.#door = door;
    this.kubeconfig = door.kubeconfig;
    this.config = join(door.folder, 'config.yaml');
    // Same as an API server. With Node's default of 5 s, every rotation would open a connection, and some would hit a closing one.
    door.server.keepAliveTimeout = 90_000;
    door.server.on('request', (request, response) => void this.#answer(request, response));
    writeFileSync(
      this.config,
      'systems: { global-pull-secret: {}, pull-secret-injection: false, registry-overrides: false, credential-provider: false }\n',
    );
  }

  static async start(): Promise<HostedStub> {
    return new HostedStub(await Door.open());
  }

  /** Hosted clusters that have their merged secret. */
  get merged(): number {
    return [...this.#applied.keys()].filter((path) => path.endsWith('/secrets/original-pull-secret')).length;
  }

  forget(): void {
    this.#applied.clear();
    this.merges.clear();
    this.asked.clear();
    this.#pullSecrets.clear();
  }

  /** Number of open watches of a cluster. */
  watches(cluster: string): number {
    return this.#watches.get(cluster)?.size ?? 0;
  }

  /** Ends every connection of a cluster at once, as its API server does that restarts. */
  restart(cluster: string): void {
    for (const response of this.#watches.get(cluster) ?? []) response.destroy();
  }

  /** Removes a hosted cluster with the objects applied to it, or restores it. */
  show(cluster: string, is: 'there' | 'gone'): void {
    if (is === 'gone') {
      this.#gone.add(cluster);
      for (const path of this.#applied.keys())
        if (path.startsWith(`/${cluster}/`)) this.#applied.delete(path);
      this.merges.at.delete(cluster);
    } else this.#gone.delete(cluster);
    this.#version += 1;
    const object = controlPlane(Number(cluster.replace('hosted-', '')), this.#version);
    const event = JSON.stringify({ type: is === 'gone' ? 'DELETED' : 'ADDED', object });
    for (const response of this.#watches.get('') ?? [])
      if (response.req.url?.includes('/hostedcontrolplanes?') === true) response.write(`${event}\n`);
  }

  /** Gives the platform's pull secret of a cluster another registry; resolves with the milliseconds until it is merged there. */
  rotated(cluster: string): Promise<number> {
    this.#version += 1;
    const registry = `round-${this.#version}.example.com`;
    this.#pullSecrets.set(cluster, { registry, resourceVersion: String(this.#version) });
    const namespace = `clusters-${cluster}`;
    const event = `${JSON.stringify({ type: 'MODIFIED', object: this.#pullSecret(namespace) })}\n`;
    const paths = ['/api/v1/secrets', `/api/v1/namespaces/${namespace}/secrets`];
    const merged = this.merges.until(cluster, registry);
    for (const response of this.#watches.get('') ?? []) {
      const { pathname, search } = new URL(response.req.url ?? '/', 'https://stub');
      if (paths.includes(pathname) && (!search.includes('name%3D') || search.includes('name%3Dpull-secret')))
        response.write(event);
    }
    return merged;
  }

  #pullSecret(namespace: string): Json {
    const { registry, resourceVersion } = this.#pullSecrets.get(namespace.replace(/^clusters-/, '')) ?? {
      registry: 'quay.io',
      resourceVersion: '1',
    };
    return {
      ...pullSecretFor(registry),
      metadata: { name: 'pull-secret', namespace, resourceVersion, uid: namespace },
    };
  }

  /** Text of a kubeconfig that leads to a hosted cluster. */
  kubeconfigOf(cluster: string): string {
    return this.#door.kubeconfigFor(`/${cluster}`);
  }

  stop(): Promise<void> {
    return this.#door.close();
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    this.requests += 1;
    const url = new URL(request.url ?? '/', 'https://stub');
    const path = url.pathname;
    const cluster = /^\/(hosted-\d+)\//.exec(path)?.[1] ?? '';
    this.asked.set(cluster, (this.asked.get(cluster) ?? 0) + 1);
    this.#note(cluster, request);
    if (request.method === 'PATCH') return this.#apply(path, (await json(request)) as Json, response);
    if (url.searchParams.has('watch')) return this.#watch(cluster, response);
    this.#read(path, url.searchParams.has('limit'), response);
  }

  #note(cluster: string, { method, headers }: IncomingMessage): void {
    if (method === 'GET') return;
    const writers = this.writers.get(cluster) ?? [];
    this.writers.set(cluster, writers);
    writers.push(headers['user-agent'] ?? '');
  }

  #watch(cluster: string, response: ServerResponse): void {
    const open = this.#watches.get(cluster) ?? new Set();
    this.#watches.set(cluster, open.add(response));
    // Bookmarks with jitter, as an API server sends them: clients take a watch that is silent for long as broken.
    const timer = setInterval(() => response.write(BOOKMARK), BOOKMARK_MS * (0.8 + 0.4 * Math.random()));
    response.once('close', () => {
      open.delete(response);
      clearInterval(timer);
    });
    response.writeHead(200).flushHeaders();
  }

  #read(path: string, isCollection: boolean, response: ServerResponse): void {
    const [, cluster = '', rest = ''] = /^(\/hosted-\d+)?(\/.*)$/.exec(path) ?? [];
    if (SERVED[rest] !== undefined)
      return send(response, 200, {
        resources: SERVED[rest].map(([kind, name, namespaced]) => ({ kind, name, namespaced })),
      });
    const last = rest.split('/').at(-1) ?? '';
    const found = this.#applied.get(path) ?? this.#given(cluster, rest);
    if (found !== undefined) return send(response, 200, found);
    if (!isCollection) return send(response, 404, { kind: 'Status', reason: 'NotFound' });
    send(response, 200, {
      metadata: { resourceVersion: '1' },
      items: cluster === '' ? this.#listed(rest, last) : [],
    });
  }

  /** Objects that are read with a single GET. */
  #given(cluster: string, path: string): Json | undefined {
    if (path === '/api/v1/namespaces/kube-system')
      return { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'kube-system', uid: `of${cluster}` } };
    const namespace = /^\/api\/v1\/namespaces\/clusters-(hosted-\d+)\/secrets\/pullwright-kubeconfig$/.exec(
      path,
    )?.[1];
    if (cluster !== '' || namespace === undefined) return undefined;
    const data = { kubeconfig: Buffer.from(this.#door.kubeconfigFor(`/${namespace}`)).toString('base64') };
    return { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'pullwright-kubeconfig' }, data };
  }

  #listed(path: string, plural: string): readonly Json[] {
    if (plural === 'hostedcontrolplanes')
      return Array.from({ length: this.clusters }, (_, index) => index)
        .filter((index) => !this.#gone.has(`hosted-${index}`))
        .map((index) => controlPlane(index, 1));
    if (plural !== 'secrets') return [];
    // One namespace, or all of them at once.
    const only = /^\/api\/v1\/namespaces\/([^/]+)\/secrets$/.exec(path)?.[1];
    return Array.from({ length: this.clusters }, (_, index) => `clusters-hosted-${index}`)
      .filter((namespace) => only === undefined || namespace === only)
      .map((namespace) => this.#pullSecret(namespace));
  }

  #apply(path: string, body: Json, response: ServerResponse): void {
    this.#version += 1;
    const main = path.replace(/\/status$/, '');
    const before = this.#applied.get(main);
    const metadata = {
      uid: main,
      ...(before?.['metadata'] as object),
      ...(body['metadata'] as object),
      resourceVersion: String(this.#version),
    };
    const stored = { ...before, ...body, metadata };
    this.#applied.set(main, stored);
    const [, cluster] = /^\/(hosted-\d+)\/.*\/secrets\/original-pull-secret$/.exec(main) ?? [];
    if (cluster !== undefined) this.merges.saw(cluster, body);
    send(response, before === undefined ? 201 : 200, stored);
  }
}

function send(response: ServerResponse, status: number, body: Json): void {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify(body));
}
