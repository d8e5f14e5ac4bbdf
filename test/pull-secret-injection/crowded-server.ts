/**
 * The part of an API server that distribution needs, with thousands of namespaces in memory: list, watch, create and merge patch of
 * four kinds. For tests of request counts and memory; tests of permissions and order use the control plane.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { json } from 'node:stream/consumers';
import { Door } from '../support/loopback.ts';

type Json = Readonly<Record<string, unknown>>;
interface Stored extends Json {
  readonly metadata: Json & { readonly name: string; readonly namespace?: string };
}

/** Group and version to what it serves: kind, plural, and whether it is namespaced. */
const SERVED: Readonly<Record<string, readonly (readonly [string, string, boolean])[]>> = {
  'pullwright.dev/v1alpha1': [
    ['PullSecretProfile', 'pullsecretprofiles', false],
    ['PullSecretGrant', 'pullsecretgrants', true],
    ['PullStatus', 'pullstatuses', true],
  ],
  'apps/v1': [['ControllerRevision', 'controllerrevisions', true]],
  'admissionregistration.k8s.io/v1': [
    ['MutatingWebhookConfiguration', 'mutatingwebhookconfigurations', false],
  ],
};

export class CrowdedServer {
  readonly kubeconfig: string;
  /** Number of requests that create or change Secrets. */
  writes = 0;
  /** Number of GET requests for Secrets. */
  looks = 0;
  /** Bytes of answers and watches. */
  sent = 0;
  readonly #door: Door;
  readonly #kinds = new Map<string, Map<string, Stored>>();
  readonly #watches = new Map<string, Set<Watch>>();
  #version = 1000;

  private constructor(door: Door) {
    this.#door = door;
    this.kubeconfig = door.kubeconfig;
    door.server.on('request', (request, response) => void this.#answer(request, response));
  }

  static async start(): Promise<CrowdedServer> {
    return new CrowdedServer(await Door.open());
  }

  /** Stores the object, as new or in place of another, and tells the watches. */
  put(plural: string, object: Stored): Stored {
    this.#version += 1;
    const kind = this.#kinds.get(plural) ?? new Map<string, Stored>();
    this.#kinds.set(plural, kind);
    const id = `${object.metadata.namespace ?? ''}/${object.metadata.name}`;
    const before = kind.get(id);
    const stored = {
      ...object,
      metadata: {
        creationTimestamp: '2026-01-01T00:00:00Z',
        uid: `0b0b7b4e-1111-4222-8333-${String(this.#version).padStart(12, '0')}`,
        ...before?.metadata,
        ...object.metadata,
        resourceVersion: String(this.#version),
      },
    };
    kind.set(id, stored);
    const type = before === undefined ? 'ADDED' : 'MODIFIED';
    for (const { asked, response } of this.#watches.get(plural) ?? []) {
      const [line] = [stored].filter((one) => asked.selects(one)).map((one) => asked.shown(one));
      if (line !== undefined) this.#send(response, `${JSON.stringify({ type, object: line })}\n`);
    }
    return stored;
  }

  /** The objects of a kind. */
  all(plural: string): readonly Stored[] {
    return [...(this.#kinds.get(plural)?.values() ?? [])];
  }

  stop(): Promise<void> {
    return this.#door.close();
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '/', 'https://crowd');
    const body = request.method === 'GET' ? {} : ((await json(request)) as Json);
    const [status, answer] = this.#handle(request, url, body, response);
    if (answer === undefined) return;
    const text = JSON.stringify(answer);
    response.writeHead(status, {
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(text),
    });
    this.#send(response, text);
    response.end();
  }

  #send(response: ServerResponse, text: string): void {
    this.sent += Buffer.byteLength(text);
    response.write(text);
  }

  #handle(
    request: IncomingMessage,
    url: URL,
    body: Json,
    response: ServerResponse,
  ): [number, Json | undefined] {
    const { method = '', headers } = request;
    const [root, ...parts] = url.pathname.split('/').filter((part) => part !== '');
    if (root === 'apis' && parts.length === 2) return discovered(parts.join('/'));
    // Behind the group, where there is one, and the version.
    const { plural, within, name } = placeOf(parts.slice(root === 'apis' ? 2 : 1));
    const asked = new Asked(url, headers.accept ?? '');
    if (url.searchParams.has('watch')) return this.#watch(plural, { asked, response });
    if (name === undefined && method === 'GET') return this.#list(plural, asked);
    const found = this.#kinds.get(plural)?.get(`${within}/${name}`);
    return method === 'GET' ? this.#get(plural, found) : this.#write(method, plural, body, found);
  }

  #get(plural: string, found: Stored | undefined): [number, Json] {
    if (plural === 'secrets') this.looks += 1;
    return foundOr404(found);
  }

  #write(method: string, plural: string, body: Json, found: Stored | undefined): [number, Json] {
    if (plural !== 'secrets') return [200, this.put(plural, withName(body, found))];
    this.writes += 1;
    if (method === 'PATCH') return [200, this.put(plural, merged(found ?? {}, body) as Stored)];
    return [201, this.put(plural, managed(body as Stored))];
  }

  #list(plural: string, asked: Asked): [number, Json] {
    const all = this.all(plural).filter((one) => asked.selects(one));
    const end = asked.from + asked.limit;
    const items = all.slice(asked.from, end).map((one) => {
      const { apiVersion: _version, kind: _kind, ...item } = asked.shown(one);
      return item;
    });
    const more = end < all.length ? { continue: String(end) } : {};
    return [200, { metadata: { resourceVersion: String(this.#version), ...more }, items }];
  }

  #watch(plural: string, watch: Watch): [number, undefined] {
    const open = this.#watches.get(plural) ?? new Set();
    this.#watches.set(plural, open.add(watch));
    const { response } = watch;
    response.once('close', () => open.delete(watch));
    response.writeHead(200, { 'content-type': 'application/json' }).flushHeaders();
    return [200, undefined];
  }
}

/** Objects and fields that a request reads. */
class Asked {
  readonly #labels: readonly string[];
  readonly #metadataAlone: boolean;
  /** Start and size limit of the page. */
  readonly from: number;
  readonly limit: number;

  constructor(url: URL, accept: string) {
    this.#labels = (url.searchParams.get('labelSelector') ?? '').split(',').filter((term) => term !== '');
    this.from = Number(url.searchParams.get('continue') ?? 0);
    this.limit = Number(url.searchParams.get('limit') ?? Number.POSITIVE_INFINITY);
    this.#metadataAlone = accept.includes('as=PartialObjectMetadata');
  }

  selects({ metadata }: Stored): boolean {
    const labels = (metadata['labels'] ?? {}) as Readonly<Record<string, string>>;
    return this.#labels.every((term) => {
      const [key = '', value] = term.split(/!?=/);
      return value === undefined ? key in labels : (labels[key] === value) !== term.includes('!=');
    });
  }

  shown(object: Stored): Json {
    if (!this.#metadataAlone) return object;
    return { apiVersion: 'meta.k8s.io/v1', kind: 'PartialObjectMetadata', metadata: object.metadata };
  }
}

interface Watch {
  readonly asked: Asked;
  readonly response: ServerResponse;
}

function placeOf(path: readonly string[]): { plural: string; within: string; name: string | undefined } {
  const isWithin = path[0] === 'namespaces' && path.length > 2;
  const [plural = '', name] = path.slice(isWithin ? 2 : 0);
  return { plural, within: isWithin ? (path[1] ?? '') : '', name };
}

function discovered(group: string): [number, Json] {
  const served = SERVED[group];
  if (served === undefined) return [404, { kind: 'Status', reason: 'NotFound' }];
  return [200, { resources: served.map(([kind, name, namespaced]) => ({ kind, name, namespaced })) }];
}

function foundOr404(found: Stored | undefined): [number, Json] {
  return found === undefined ? [404, { kind: 'Status', reason: 'NotFound' }] : [200, found];
}

/** A status is applied without what it is the status of. */
function withName(body: Json, found: Stored | undefined): Stored {
  return { ...found, ...body, metadata: { ...found?.metadata, ...(body['metadata'] as Json) } } as Stored;
}

/** With the fields that a create owns. */
function managed(object: Stored): Stored {
  const { metadata, data, type } = object;
  const { labels, annotations } = metadata;
  const entry = {
    manager: 'pullwright-pull-secret-injection',
    operation: 'Update',
    apiVersion: 'v1',
    time: '2026-01-01T00:00:00Z',
    fieldsType: 'FieldsV1',
    fieldsV1: fieldsOf({ metadata: { labels, annotations }, data, type }),
  };
  return { ...object, metadata: { ...metadata, managedFields: [entry] } };
}

function fieldsOf(object: Json): Json {
  const entries = Object.entries(object).filter(([, value]) => value !== undefined);
  return Object.fromEntries(
    entries.map(([key, value]) => [`f:${key}`, isJson(value) ? { '.': {}, ...fieldsOf(value) } : {}]),
  );
}

function merged(base: Json, patch: Json): Json {
  const out: Record<string, unknown> = { ...base };
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete out[key];
    else out[key] = isJson(value) && isJson(out[key]) ? merged(out[key], value) : value;
  }
  return out;
}

function isJson(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
