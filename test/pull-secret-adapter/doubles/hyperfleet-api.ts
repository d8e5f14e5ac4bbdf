/**
 * The HyperFleet API on loopback. Every request, and every answer of its own, is held against the published document of its generation
 * (`hyperfleet-document.ts`): what does not fit is in `violations`, and a request that does not fit is answered with 400, so that
 * neither a wrong client nor a wrong double can pass. `generation: 'old'` is version 1.0.2 (POST), `'current'` is 1.0.25 (PUT).
 */

import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { close, listen, portOf } from '../../support/loopback.ts';
import { type ApiGeneration, misfit, type Operation, operations } from './hyperfleet-document.ts';
import { HyperfleetState, type Report, shownCluster, shownReport } from './hyperfleet-state.ts';

/** Fault that replaces or precedes the answer to a request. */
export interface ApiFault {
  /** Pattern for `METHOD /path?query`. @default every request */
  readonly on?: RegExp;
  /** Requests that it hits. @default {1} */
  readonly times?: number;
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  /** Answers this late; without `status`, with the real answer. */
  readonly delayMs?: number;
  /** `reset` breaks the connection before any answer; `truncate` in the middle of the real one. */
  readonly connection?: 'reset' | 'truncate';
}

type Reply = readonly [status: number, body: unknown];

export class HyperfleetDouble extends HyperfleetState {
  /** Requests and answers that violate the document: always a defect. */
  readonly violations: string[] = [];
  /** Reports that were refused with 400: always a defect of the client. */
  readonly refused: string[] = [];
  readonly requests: string[] = [];
  generation: ApiGeneration = 'current';
  delayMs = 0;
  /** Wanted as bearer token. */
  token: string | undefined;
  /** Holding everything against the document takes time, which a benchmark does not measure. */
  strict = true;
  faults: ApiFault[] = [];
  /** Called before a page of clusters is answered. */
  beforePage: ((page: number) => void) | undefined;
  readonly #server: Server;
  readonly #used = new Map<ApiFault, number>();
  readonly #operations = { old: operations('old'), current: operations('current') };

  private constructor(server: Server) {
    super();
    this.#server = server;
  }

  static async start(): Promise<HyperfleetDouble> {
    const server = createServer();
    const double = new HyperfleetDouble(server);
    server.on('request', (request, response) => void double.#serve(request, response));
    await listen(server);
    return double;
  }

  get url(): string {
    return `http://127.0.0.1:${portOf(this.#server)}`;
  }

  close(): Promise<void> {
    return close(this.#server);
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const sent = await text(request);
    const { method = '', url: path = '/' } = request;
    this.requests.push(`${method} ${path.split('?')[0]}`);
    const fault = this.#faultFor(`${method} ${path}`);
    const delay = fault?.delayMs ?? this.delayMs;
    if (delay > 0) await new Promise((resolve) => setTimeout(resolve, delay));
    if (fault !== undefined && disturbed(fault, request, response)) return;
    const reply = this.#authorized(request)
      ? this.#checked(method, new URL(path, 'http://double'), sent)
      : this.#problem(401, 'HYPERFLEET-AUT-001', 'no valid token');
    await this.#send(response, reply, fault?.connection === 'truncate');
  }

  async #send(response: ServerResponse, [status, body]: Reply, truncate: boolean): Promise<void> {
    const text = body === undefined ? '' : JSON.stringify(body);
    const problem = status >= 400 && this.generation === 'current';
    response.writeHead(status, {
      'content-type': problem ? 'application/problem+json' : 'application/json',
      ...(status === 204 ? {} : { 'content-length': Buffer.byteLength(text) }),
    });
    if (!truncate) {
      response.end(text);
      return;
    }
    await new Promise((resolve) => response.write(text.slice(0, text.length / 2), resolve));
    response.destroy();
  }

  #faultFor(request: string): ApiFault | undefined {
    for (const fault of this.faults) {
      const used = this.#used.get(fault) ?? 0;
      if (used >= (fault.times ?? 1) || fault.on?.test(request) === false) continue;
      this.#used.set(fault, used + 1);
      return fault;
    }
    return undefined;
  }

  #authorized(request: IncomingMessage): boolean {
    return this.token === undefined || request.headers.authorization === `Bearer ${this.token}`;
  }

  /** The answer, both ways held against the document. */
  #checked(method: string, url: URL, text: string): Reply {
    const route = routeOf(method, url);
    if (route === undefined) return this.#problem(404, 'HYPERFLEET-NTF-000', 'unknown endpoint');
    const operation = this.#operations[this.generation].get(route.name);
    if (operation === undefined) return this.#problem(405, 'HYPERFLEET-VAL-000', 'method not allowed');
    const body: unknown = text === '' ? undefined : JSON.parse(text);
    const wrong = this.strict ? unfit(operation, url, body) : undefined;
    if (wrong !== undefined) {
      this.violations.push(`${route.name}: ${wrong}`);
      return this.#problem(400, 'HYPERFLEET-VAL-001', wrong);
    }
    const reply = this.#answer(url, route, body);
    const strange = this.strict
      ? misfit(operation.answers[reply[0]] ?? operation.otherwise, reply[1])
      : undefined;
    if (strange !== undefined) this.violations.push(`answer ${reply[0]} of ${route.name}: ${strange}`);
    return reply;
  }

  #answer(url: URL, { id, statuses }: Route, body: unknown): Reply {
    if (id === undefined) return this.#clusterPage(url);
    const cluster = this.clusters.get(id);
    if (cluster === undefined) return this.#problem(404, 'HYPERFLEET-NTF-002', 'cluster not found');
    if (!statuses) return [200, shownCluster(cluster, this.generation, this.required)];
    if (body === undefined)
      return this.#page('AdapterStatusList', [...cluster.reports.values()].map(shownReport), url);
    return this.#ingested(id, body as Report);
  }

  #clusterPage(url: URL): Reply {
    this.beforePage?.(Number(url.searchParams.get('page') ?? 1));
    // Newest first, as the API does unless it is told otherwise.
    const all = [...this.clusters.values()].reverse().filter((one) => selects(url, one.labels));
    const shown = all.map((one) => shownCluster(one, this.generation, this.required));
    return this.#page('ClusterList', shown, url);
  }

  #ingested(id: string, report: Report): Reply {
    const { status, detail = '' } = this.ingest(id, report);
    if (status === 201) return [201, shownReport(report)];
    if (status === 204) return [204, undefined];
    if (status === 404) return this.#problem(404, 'HYPERFLEET-NTF-002', 'cluster not found');
    this.refused.push(detail);
    return this.#problem(400, 'HYPERFLEET-VAL-001', detail);
  }

  #page(kind: string, items: readonly unknown[], url: URL): Reply {
    const old = this.generation === 'old';
    const number = Number(url.searchParams.get('page') ?? 1);
    const size = Math.min(Number(url.searchParams.get(old ? 'pageSize' : 'size') ?? 20), 100);
    const found = items.slice((number - 1) * size, number * size);
    return [200, { ...(old ? { kind } : {}), page: number, size, total: items.length, items: found }];
  }

  #problem(status: number, code: string, detail: string): Reply {
    if (this.generation === 'old') return [status, { kind: 'Error', code: String(status), reason: detail }];
    return [status, { type: 'https://api.hyperfleet.io/errors/x', title: 'Error', status, detail, code }];
  }
}

/** True when the fault has answered, or made an answer impossible. */
function disturbed(fault: ApiFault, request: IncomingMessage, response: ServerResponse): boolean {
  if (fault.connection === 'reset') {
    request.socket.resetAndDestroy();
    return true;
  }
  if (fault.status === undefined) return false;
  response.writeHead(fault.status, { 'content-type': 'text/html', ...fault.headers }).end(fault.body);
  return true;
}

interface Route {
  /** Name in the document. */
  readonly name: string;
  readonly id: string | undefined;
  readonly statuses: boolean;
}

function routeOf(method: string, url: URL): Route | undefined {
  const path = /^\/api\/hyperfleet\/v1\/clusters(?:\/([^/]+))?(\/statuses)?$/.exec(url.pathname);
  if (path === null) return undefined;
  const [, id, statuses = ''] = path;
  return {
    name: `${method} /clusters${id === undefined ? '' : '/{id}'}${statuses}`,
    id: id === undefined ? undefined : decodeURIComponent(id),
    statuses: statuses !== '',
  };
}

function unfit(operation: Operation, url: URL, body: unknown): string | undefined {
  const query = misfit(operation.query, Object.fromEntries(url.searchParams));
  return query ?? (operation.request === undefined ? undefined : misfit(operation.request, body));
}

/** `labels.k='v' and ...`, as Sentinel writes it. */
function selects(url: URL, labels: Readonly<Record<string, string>>): boolean {
  const search = url.searchParams.get('search') ?? '';
  return search
    .split(' and ')
    .filter(Boolean)
    .every((term) => {
      const [, key = '', value = ''] = /^labels\.([^=]+)='(.*)'$/.exec(term) ?? [];
      return labels[key] === value.replaceAll("''", "'");
    });
}
