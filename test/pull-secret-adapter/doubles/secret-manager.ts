/**
 * Google Secret Manager and what a Job needs beside it (metadata server, token endpoints, IAM Credentials, the permission check of
 * projects), on loopback, with faults. The official npm client is run against it in the tests called
 * `official-client`.
 */

import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { close, listen, portOf } from '../../support/loopback.ts';
import { IdentityDouble } from './identity.ts';
import { invalid, permissionDenied, Refusal } from './refusal.ts';
import { PERMISSION, rpcOf, targetOf } from './secret-routes.ts';
import { pathOf, SecretStore, type Target } from './secret-store.ts';
import type { StoredSecret } from './secret-versions.ts';

/** One rule of failure. Calls are counted per RPC from 1. */
export interface Fault {
  readonly rpc: string;
  /** Canonical code of the answer. */
  readonly code?: string;
  readonly message?: string;
  /** Numbers of the calls that fail. @default all */
  readonly on?: readonly number[];
  /** The effect is committed before the failure. */
  readonly after?: boolean;
  /** `reason` of ErrorInfo. */
  readonly info?: string;
  /** Answers with other bytes than the checksum is of. */
  readonly corrupt?: boolean;
  /** A page of a proxy, with this status (200 for `true`). */
  readonly html?: boolean | number;
  /** Stores other bytes than were sent. */
  readonly tamper?: boolean;
  /** The connection is cut instead of an answer. */
  readonly reset?: boolean;
  /** No answer at all. */
  readonly hang?: boolean;
  /** The answer comes this much later. */
  readonly delayMs?: number;
  /** Header `Retry-After`, in seconds. */
  readonly retryAfter?: number;
}

export interface RpcCall {
  readonly rpc: string;
  readonly n: number;
  readonly path: string;
  readonly body: unknown;
  /** Came to the endpoint of a location. */
  readonly regional: boolean;
  /** Source of the token; undefined: missing, unknown or expired. */
  readonly identity: string | undefined;
  readonly at: number;
  code: string;
}

type Outcome =
  | 'cut'
  | {
      readonly status: number;
      readonly type?: string;
      readonly headers?: Readonly<Record<string, string>>;
      readonly text: string;
    };

const STATE_NUMBER: Readonly<Record<string, number>> = { ENABLED: 1, DISABLED: 2, DESTROYED: 3 };

export class SecretManagerDouble {
  readonly identity: IdentityDouble = new IdentityDouble();
  readonly calls: RpcCall[] = [];
  faults: readonly Fault[] = [];
  /** Permissions that are denied to every caller. */
  denied: ReadonlySet<string> = new Set();
  /** Tokens have to come from {@link identity}. @default {true} */
  authenticates = true;
  /** Labels of projects; the existence of any other project is hidden. */
  readonly projects: Map<string, Record<string, string>> = new Map();
  readonly #store = new SecretStore();
  readonly #server: Server;
  readonly #counts = new Map<string, number>();

  private constructor(server: Server) {
    this.#server = server;
  }

  static async start(): Promise<SecretManagerDouble> {
    const server = createServer();
    const double = new SecretManagerDouble(server);
    server.on('request', (request, response) => void double.#serve(request, response));
    await listen(server);
    return double;
  }

  get secrets(): Map<string, StoredSecret> {
    return this.#store.secrets;
  }

  get port(): number {
    return portOf(this.#server);
  }

  get host(): string {
    return `127.0.0.1:${this.port}`;
  }

  get url(): string {
    return `http://${this.host}`;
  }

  /** Regional secrets are served under another host name only. */
  get regionalUrl(): string {
    return `http://localhost:${this.port}`;
  }

  /** Environment of a job that speaks to nothing else. */
  get jobEnv(): Readonly<Record<string, string>> {
    return {
      SECRET_MANAGER_ENDPOINT: this.url,
      REGIONAL_SECRET_MANAGER_ENDPOINT: this.regionalUrl,
      IAM_CREDENTIALS_ENDPOINT: this.url,
      RESOURCE_MANAGER_ENDPOINT: this.url,
      GCE_METADATA_HOST: this.host,
      METADATA_SERVER_DETECTION: 'assume-present',
    };
  }

  close(): Promise<void> {
    return close(this.#server);
  }

  /** Destroys what is due by then. */
  passTime(until: number): void {
    this.#store.passTime(until);
  }

  put(path: string, secret: Partial<StoredSecret> = {}): StoredSecret {
    return this.#store.put(path, secret);
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const sent = await text(request);
    const url = new URL(request.url ?? '/', 'http://double');
    if (this.identity.serve(url, request, sent, response)) return;
    const call = this.#note(request, url, sent);
    const { n, rpc } = call;
    const fault = this.faults.find((one) => one.rpc === rpc && (one.on?.includes(n) ?? true));
    const late = fault?.after === true;
    if (fault?.hang === true && !late) return;
    const delay = (): Promise<unknown> => new Promise((resolve) => setTimeout(resolve, fault?.delayMs ?? 0));
    if (!late) await delay();
    const result = this.#outcome(call, url, fault);
    if (fault?.hang === true) return;
    if (late) await delay();
    send(result, response);
  }

  #note(request: IncomingMessage, url: URL, text: string): RpcCall {
    const rpc = rpcOf(request.method ?? 'GET', url.pathname);
    const n = (this.#counts.get(rpc) ?? 0) + 1;
    this.#counts.set(rpc, n);
    const { authorization = '' } = request.headers;
    const call: RpcCall = {
      rpc,
      n,
      path: url.pathname + url.search,
      body: text === '' ? {} : JSON.parse(text),
      regional: (request.headers.host ?? '').startsWith('localhost'),
      identity: this.authenticates ? this.identity.originOf(authorization) : authorization,
      at: performance.now(),
      code: 'OK',
    };
    this.calls.push(call);
    return call;
  }

  /** Carries out the call as far as the fault allows. */
  #outcome(call: RpcCall, url: URL, fault: Fault = { rpc: call.rpc }): Outcome {
    try {
      assertIdentity(call);
      const early = fault.after === true ? undefined : failed(fault);
      const answer = early === undefined ? this.#answer(call, url) : undefined;
      const instead = early ?? (fault.after === true ? failed(fault) : undefined);
      if (instead !== undefined) {
        call.code = 'UNKNOWN';
        return instead;
      }
      if (fault.tamper === true) this.#tamper(targetOf(url));
      return { status: 200, text: spelled(fault.corrupt === true ? corrupted(answer) : answer, url) };
    } catch (error) {
      const refusal = error instanceof Refusal ? error : new Refusal('INTERNAL', String(error));
      call.code = refusal.status;
      const headers = fault.retryAfter === undefined ? {} : { 'retry-after': String(fault.retryAfter) };
      return { status: refusal.http, headers, text: JSON.stringify(refusal.body) };
    }
  }

  #tamper(target: Target): void {
    const version = this.secrets.get(pathOf(target))?.versions.at(-1);
    if (version !== undefined) version.data = Buffer.from('{"auths":{}}');
  }

  #answer(call: RpcCall, url: URL): unknown {
    const target = targetOf(url);
    const body = call.body as Readonly<Record<string, unknown>>;
    if (call.rpc.startsWith('Test')) {
      const wanted = (body['permissions'] ?? []) as readonly string[];
      const there = call.rpc === 'TestProjectPermissions' || this.secrets.has(pathOf(target));
      // For a missing secret the service returns an empty answer, without an error.
      return there ? { permissions: wanted.filter((one) => !this.denied.has(one)) } : {};
    }
    const permission = PERMISSION[call.rpc] ?? '';
    if (this.denied.has(permission)) throw permissionDenied(permission, url.pathname.slice('/v1/'.length));
    if (call.rpc === 'GetProject') return this.#project(target.project);
    if ((target.location !== '') !== call.regional)
      throw invalid('Regional secrets are served by the endpoint of their location, and by no other.');
    return this.#store.answer(call.rpc, target, body);
  }

  #project(projectId: string): unknown {
    const labels = this.projects.get(projectId);
    if (labels === undefined) throw permissionDenied('resourcemanager.projects.get', `projects/${projectId}`);
    return { name: 'projects/123456', projectId, state: 'ACTIVE', labels };
  }
}

function assertIdentity({ identity }: RpcCall): void {
  if (identity !== undefined && identity !== '') return;
  throw new Refusal('UNAUTHENTICATED', 'Request had invalid authentication credentials.', {
    reason: 'ACCESS_TOKEN_TYPE_UNSUPPORTED',
    domain: 'googleapis.com',
  });
}

/** Encodes enums as numbers if the request asks for it. */
function spelled(answer: unknown, url: URL): string {
  const numeric = url.search.includes('enum-encoding');
  return JSON.stringify(answer, (key, value: unknown) =>
    numeric && key === 'state' && typeof value === 'string' ? STATE_NUMBER[value] : value,
  );
}

function send(result: Outcome, response: ServerResponse): void {
  if (result === 'cut') return void response.destroy();
  const { status, type = 'application/json; charset=UTF-8', headers, text } = result;
  response.writeHead(status, { 'content-type': type, ...headers }).end(text);
}

/** Answer that replaces the one of the service. @throws Refusal */
function failed(fault: Fault): Outcome | undefined {
  if (fault.reset === true) return 'cut';
  if (fault.html !== undefined && fault.html !== false) {
    return { status: fault.html === true ? 200 : fault.html, type: 'text/html', text: '<html>proxy</html>' };
  }
  if (fault.code === undefined) return undefined;
  const info = fault.info === undefined ? undefined : { reason: fault.info, domain: 'googleapis.com' };
  throw new Refusal(fault.code, fault.message ?? fault.code, info);
}

function corrupted(answer: unknown): unknown {
  const { payload, ...rest } = answer as { payload?: { data: string; dataCrc32c: string } };
  if (payload === undefined) return answer;
  const data = Buffer.from(`${Buffer.from(payload.data, 'base64').toString()} `).toString('base64');
  return { ...rest, payload: { ...payload, data } };
}
