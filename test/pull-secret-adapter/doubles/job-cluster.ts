/**
 * A cluster in one small HTTPS server, for what a real control plane is too slow or too obedient: it keeps what is applied, watches can
 * be held open, and every Job ends by itself after `jobMs`, with the result that `end` gives it.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import type { KubeObject } from '../../../runtime/core/kubernetes/object.ts';
import { CLUSTER_LABEL } from '../../../runtime/pull-secret-adapter/names.ts';
import type { JobResult } from '../../../runtime/pull-secret-adapter/outcome.ts';
import { Door } from '../../support/loopback.ts';
import { meta } from '../../support/meta.ts';

const SERVED: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  '/api/v1': { secrets: 'Secret', pods: 'Pod', configmaps: 'ConfigMap', namespaces: 'Namespace' },
  '/apis/batch/v1': { jobs: 'Job' },
  '/apis/coordination.k8s.io/v1': { leases: 'Lease' },
  '/apis/events.k8s.io/v1': { events: 'Event' },
  '/apis/rbac.authorization.k8s.io/v1': { rolebindings: 'RoleBinding' },
};

const STORED: JobResult = {
  status: 'success',
  reason: 'SecretStored',
  message: 'Stored',
  details: { secretVersion: '1' },
};

/** Result of a successful Job. */
function endOf(job: KubeObject): JobResult {
  const text = JSON.stringify(job.spec);
  const places = /"PLACES","value":"([^"]*)"/.exec(text)?.[1]?.split(' ') ?? [];
  if (!text.includes('"JOB_MODE","value":"delete"')) return STORED;
  const receipt = Object.fromEntries(places.map((place) => [place, 'removed']));
  return { status: 'success', reason: 'SecretDeleted', message: 'Removed', details: {}, receipt };
}

export class JobCluster {
  readonly kubeconfig: string;
  readonly objects: Map<string, KubeObject> = new Map();
  /** Names of the Jobs that were made, in order. */
  readonly started: string[] = [];
  /** When each Job ended, by its name, in `performance.now()`. */
  readonly ended: Map<string, number> = new Map();
  jobMs = 0;
  end: (job: KubeObject) => JobResult = endOf;
  /** State of each namespace. */
  namespace: (name: string) => 'active' | 'terminating' | 'gone' = () => 'active';
  /** Answers a request with this status instead. */
  refuse: ((method: string, path: string) => number | undefined) | undefined;
  readonly #door: Door;
  /** Paths by collection and cluster, since a benchmark has thousands. */
  readonly #byCluster = new Map<string, Set<string>>();
  readonly #watches = new Map<string, Set<ServerResponse>>();
  readonly #timers = new Set<NodeJS.Timeout>();
  #version = 1000;

  private constructor(door: Door) {
    this.#door = door;
    this.kubeconfig = door.kubeconfig;
    door.server.on('request', (request, response) => void this.#serve(request, response));
  }

  static async start(): Promise<JobCluster> {
    return new JobCluster(await Door.open());
  }

  close(): Promise<void> {
    for (const timer of this.#timers) clearTimeout(timer);
    return this.#door.close();
  }

  /** Every object of a plural. */
  all(plural: string): readonly KubeObject[] {
    return [...this.objects]
      .filter(([path]) => path.split('/').at(-2) === plural)
      .map(([, object]) => object);
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const sent = await text(request);
    const body = (sent === '' ? {} : JSON.parse(sent)) as KubeObject;
    const url = new URL(request.url ?? '/', 'https://stub');
    const { method = 'GET' } = request;
    const refused = this.refuse?.(method, url.pathname);
    if (refused !== undefined) return send(response, refused, { kind: 'Status', reason: 'Refused' });
    if (url.searchParams.has('watch')) return this.#watch(url.pathname, response);
    const [status, answer] = this.#answer(request, url, body);
    send(response, status, answer);
  }

  #answer(request: IncomingMessage, url: URL, body: KubeObject): readonly [number, object] {
    const { method = 'GET' } = request;
    const path = url.pathname;
    if (method === 'GET') return this.#read(path, url.searchParams.get('labelSelector') ?? '');
    if (method === 'DELETE') return this.#remove(path, body);
    if (method === 'POST') return this.#create(`${path}/${body.metadata.name}`, body);
    if (request.headers['content-type'] === 'application/merge-patch+json') return this.#merge(path, body);
    return this.#change(method, path, body);
  }

  /** Labels of the object with this uid; nothing else is changed so. */
  #merge(path: string, { metadata: { uid, labels } }: KubeObject): readonly [number, object] {
    const before = this.objects.get(path);
    if (before === undefined) return [404, { kind: 'Status', reason: 'NotFound' }];
    if (before.metadata.uid !== uid) return [409, { kind: 'Status', reason: 'Conflict' }];
    const metadata = { ...before.metadata, labels: { ...before.metadata.labels, ...labels } };
    return [200, this.#store(path, { ...before, metadata })];
  }

  /** Replaces (PUT) or applies (PATCH); a resource version has to be the one that is there. */
  #change(method: string, path: string, body: KubeObject): readonly [number, object] {
    const before = this.objects.get(path);
    const wanted = body.metadata.resourceVersion;
    if (wanted !== undefined && wanted !== before?.metadata.resourceVersion)
      return [409, { kind: 'Status', reason: 'Conflict' }];
    if (before === undefined) return this.#create(path, body);
    if (method === 'PUT') return [200, this.#store(path, { ...before, ...body })];
    const after = { ...before, ...body, metadata: { ...before.metadata, ...body.metadata } };
    const same = JSON.stringify(after) === JSON.stringify(before);
    return [200, same ? before : this.#store(path, after)];
  }

  #create(path: string, body: KubeObject): readonly [number, object] {
    if (this.objects.has(path)) return [409, { kind: 'Status', reason: 'AlreadyExists' }];
    this.#version += 1;
    const stored = this.#store(path, {
      ...body,
      metadata: { ...body.metadata, uid: `uid-${this.#version}` },
    });
    if (body.kind === 'Job') this.#startJob(path, stored);
    return [201, stored];
  }

  #read(path: string, selector: string): readonly [number, object] {
    const kinds = SERVED[path];
    if (kinds !== undefined) {
      const resources = Object.entries(kinds).map(([name, kind]) => ({
        name,
        kind,
        namespaced: kind !== 'Namespace',
      }));
      return [200, { resources }];
    }
    const found = this.objects.get(path);
    if (found !== undefined) return [200, found];
    const [, namespace] = /^\/api\/v1\/namespaces\/([^/]+)$/.exec(path) ?? [];
    if (namespace !== undefined) return this.#namespace(namespace);
    if (!isCollection(path)) return [404, { kind: 'Status', reason: 'NotFound' }];
    const wanted = selector.split(',').filter(Boolean);
    const cluster = wanted.find((term) => term.startsWith(`${CLUSTER_LABEL}=`))?.split('=')[1];
    const paths =
      cluster === undefined
        ? [...this.objects.keys()].filter((at) => at.startsWith(`${path}/`))
        : [...(this.#byCluster.get(`${path} ${cluster}`) ?? [])];
    const items = paths
      .map((at) => this.objects.get(at))
      .filter((object) => object !== undefined)
      .filter(({ metadata }) => wanted.every((term) => matches(term, metadata.labels ?? {})));
    return [200, { metadata: { resourceVersion: String(this.#version) }, items }];
  }

  #namespace(name: string): readonly [number, object] {
    const state = this.namespace(name);
    if (state === 'gone') return [404, { kind: 'Status', reason: 'NotFound' }];
    const ending = state === 'terminating' ? { deletionTimestamp: '2026-01-01T00:00:00Z' } : {};
    return [200, { apiVersion: 'v1', kind: 'Namespace', metadata: { name, ...ending } }];
  }

  #store(path: string, object: KubeObject): KubeObject {
    this.#version += 1;
    const before = this.objects.has(path);
    const stored = { ...object, metadata: { ...object.metadata, resourceVersion: String(this.#version) } };
    this.objects.set(path, stored);
    this.#index(path, stored).add(path);
    this.#tell(path, before ? 'MODIFIED' : 'ADDED', stored);
    return stored;
  }

  #index(path: string, object: KubeObject): Set<string> {
    const key = `${path.slice(0, path.lastIndexOf('/'))} ${object.metadata.labels?.[CLUSTER_LABEL] ?? ''}`;
    const found = this.#byCluster.get(key) ?? new Set();
    this.#byCluster.set(key, found);
    return found;
  }

  #remove(path: string, body: unknown): readonly [number, object] {
    const found = this.objects.get(path);
    if (found === undefined) return [404, { kind: 'Status', reason: 'NotFound' }];
    const { preconditions } = body as { readonly preconditions?: { readonly uid?: string } };
    const uid = preconditions?.uid;
    if (uid !== undefined && uid !== found.metadata.uid) return [409, { kind: 'Status', reason: 'Conflict' }];
    this.objects.delete(path);
    this.#index(path, found).delete(path);
    this.#tell(path, 'DELETED', found);
    if (found.kind !== 'Job') return [200, { kind: 'Status', status: 'Success' }];
    for (const [at, object] of this.objects)
      if (object.metadata.ownerReferences?.some((owner) => owner.uid === found.metadata.uid))
        this.#remove(at, {});
    return [200, { kind: 'Status', status: 'Success' }];
  }

  #startJob(path: string, job: KubeObject): void {
    this.started.push(job.metadata.name);
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      if (this.objects.get(path)?.metadata.uid === job.metadata.uid) this.#endJob(path, job);
    }, this.jobMs);
    this.#timers.add(timer);
  }

  #endJob(path: string, job: KubeObject): void {
    const result = this.end(job);
    const time = new Date().toISOString();
    const failed = result.status === 'failure';
    const terminated = { exitCode: failed ? 1 : 0, message: JSON.stringify(result), finishedAt: time };
    const { name, namespace, labels, uid = '' } = job.metadata;
    this.#store(`/api/v1/namespaces/${namespace}/pods/${name}`, {
      ...meta('v1 Pod', {
        name,
        ...(namespace === undefined ? {} : { namespace }),
        labels: { ...labels },
        ownerReferences: [{ apiVersion: 'batch/v1', kind: 'Job', name, uid }],
      }),
      status: { containerStatuses: [{ name: 'job', state: { terminated } }] },
    });
    const condition = { type: failed ? 'Failed' : 'Complete', status: 'True', lastTransitionTime: time };
    this.ended.set(name, performance.now());
    const current = this.objects.get(path) ?? job;
    this.#store(path, {
      ...current,
      status: { startTime: time, completionTime: time, conditions: [condition] },
    });
  }

  #watch(path: string, response: ServerResponse): void {
    response.writeHead(200, { 'content-type': 'application/json' }).flushHeaders();
    const open = this.#watches.get(path) ?? new Set();
    this.#watches.set(path, open.add(response));
    response.once('close', () => open.delete(response));
  }

  #tell(path: string, type: string, object: KubeObject): void {
    const collection = path.slice(0, path.lastIndexOf('/'));
    for (const response of this.#watches.get(collection) ?? [])
      response.write(`${JSON.stringify({ type, object })}\n`);
  }
}

function isCollection(path: string): boolean {
  const last = path.split('/').at(-1) ?? '';
  return Object.values(SERVED).some((kinds) => last in kinds);
}

function matches(term: string, labels: Readonly<Record<string, string>>): boolean {
  const [key = '', value = ''] = term.split('=');
  return labels[key] === value;
}

function send(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}
