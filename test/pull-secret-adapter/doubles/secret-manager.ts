/* oxlint-disable complexity, max-lines -- one server, one branch for each of its calls */
/**
 * Google Secret Manager, its metadata server and IAM Credentials on loopback, with faults. Checked by the requests that the official
 * npm client was recorded to send (conformance suite `adapter/secretmanager-rest-wire`).
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { crc32c } from '../../../runtime/pull-secret-adapter/crc32c.ts';

/** One rule of failure. Calls are counted per RPC from 1. */
export interface Fault {
  readonly rpc: string;
  /** Canonical code of the answer. */
  readonly code?: string;
  readonly message?: string;
  /** Which calls; absent: all. */
  readonly on?: readonly number[];
  /** The effect is committed before the failure. */
  readonly after?: boolean;
  /** `reason` of ErrorInfo. */
  readonly info?: string;
  /** Answers with other bytes than are stored. */
  readonly corrupt?: boolean;
  readonly html?: boolean;
  /** The connection is cut instead of an answer. */
  readonly reset?: boolean;
}

export interface StoredVersion {
  state: 'ENABLED' | 'DISABLED' | 'DESTROYED';
  data: Buffer;
}

export interface StoredSecret {
  labels: Record<string, string>;
  annotations: Record<string, string>;
  replication: unknown;
  etag: number;
  versions: StoredVersion[];
}

export interface RpcCall {
  readonly rpc: string;
  readonly n: number;
  readonly path: string;
  readonly body: unknown;
  readonly authorization: string;
  code: string;
}

export const PROJECT_NUMBER = '123456';
const HTTP: Readonly<Record<string, number>> = {
  NOT_FOUND: 404,
  ALREADY_EXISTS: 409,
  PERMISSION_DENIED: 403,
  FAILED_PRECONDITION: 400,
  INVALID_ARGUMENT: 400,
  OUT_OF_RANGE: 400,
  UNAUTHENTICATED: 401,
  RESOURCE_EXHAUSTED: 429,
  ABORTED: 409,
  CANCELLED: 499,
  UNAVAILABLE: 503,
  DEADLINE_EXCEEDED: 504,
};
const STATE_NUMBER: Readonly<Record<string, number>> = { ENABLED: 1, DISABLED: 2, DESTROYED: 3 };

class Refusal extends Error {
  readonly status: string;
  readonly info: string | undefined;
  constructor(status: string, message: string, info?: string) {
    super(message);
    this.status = status;
    this.info = info;
  }
}

export class SecretManagerDouble {
  readonly secrets: Map<string, StoredSecret> = new Map();
  readonly calls: RpcCall[] = [];
  readonly metadataRequests: string[] = [];
  readonly impersonated: string[] = [];
  faults: readonly Fault[] = [];
  metadata: 'ok' | 'down' = 'ok';
  /** Service accounts that may not be taken on. */
  denyImpersonation = false;
  tokenSeconds = 3600;
  readonly #server: Server;
  #counts = new Map<string, number>();

  private constructor(server: Server) {
    this.#server = server;
  }

  static async start(): Promise<SecretManagerDouble> {
    const server = createServer();
    const double = new SecretManagerDouble(server);
    server.on('request', (request, response) => void double.#serve(request, response));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return double;
  }

  get host(): string {
    return `127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  get url(): string {
    return `http://${this.host}`;
  }

  /** Environment of a job that speaks to nothing else. */
  get jobEnv(): Readonly<Record<string, string>> {
    return {
      SECRET_MANAGER_ENDPOINT: this.url,
      IAM_CREDENTIALS_ENDPOINT: this.url,
      GCE_METADATA_HOST: this.host,
      METADATA_SERVER_DETECTION: 'assume-present',
    };
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  put(path: string, secret: Partial<StoredSecret> = {}): StoredSecret {
    const stored = {
      labels: {},
      annotations: {},
      replication: { automatic: {} },
      etag: 161,
      versions: [],
      ...secret,
    };
    this.secrets.set(path, stored);
    return stored;
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const text = Buffer.concat(chunks).toString();
    const url = new URL(request.url ?? '/', 'http://double');
    if (url.pathname.startsWith('/computeMetadata/')) return this.#serveMetadata(url, request, response);
    if (url.pathname.includes(':generateAccessToken')) return this.#serveImpersonation(url, response);
    this.#serveRpc(
      { url, method: request.method ?? 'GET', text, authorization: request.headers.authorization ?? '' },
      response,
    );
  }

  #serveMetadata(url: URL, request: IncomingMessage, response: ServerResponse): void {
    this.metadataRequests.push(url.pathname + url.search);
    if (this.metadata === 'down' || request.headers['metadata-flavor'] !== 'Google') {
      response.writeHead(503).end('unavailable');
      return;
    }
    const { tokenSeconds } = this;
    const answers: Readonly<Record<string, string>> = {
      '/computeMetadata/v1/project/project-id': 'mgmt-project',
      '/computeMetadata/v1/instance/service-accounts/default/email':
        'job@mgmt-project.iam.gserviceaccount.com',
      '/computeMetadata/v1/universe/universe-domain': 'googleapis.com',
    };
    response.setHeader('Metadata-Flavor', 'Google');
    if (url.pathname.endsWith('/token')) {
      const token = { access_token: 'ya29.own', expires_in: tokenSeconds, token_type: 'Bearer' };
      response.setHeader('content-type', 'application/json').end(JSON.stringify(token));
      return;
    }
    response.setHeader('content-type', 'application/text').end(answers[url.pathname] ?? 'ok');
  }

  #serveImpersonation(url: URL, response: ServerResponse): void {
    const account = decodeURIComponent(/serviceAccounts\/([^:]+):/.exec(url.pathname)?.[1] ?? '');
    this.impersonated.push(account);
    response.setHeader('content-type', 'application/json');
    if (this.denyImpersonation) {
      response
        .writeHead(403)
        .end(JSON.stringify({ error: { code: 403, status: 'PERMISSION_DENIED', message: 'no' } }));
      return;
    }
    const expireTime = new Date(Date.now() + this.tokenSeconds * 1000).toISOString();
    response.end(JSON.stringify({ accessToken: 'ya29.taken-on', expireTime }));
  }

  #serveRpc(
    request: { url: URL; method: string; text: string; authorization: string },
    response: ServerResponse,
  ): void {
    const { url, method, text } = request;
    const rpc = rpcOf(method, url.pathname);
    const n = (this.#counts.get(rpc) ?? 0) + 1;
    this.#counts.set(rpc, n);
    const body: unknown = text === '' ? undefined : JSON.parse(text);
    const call: RpcCall = {
      rpc,
      n,
      path: url.pathname + url.search,
      body,
      authorization: request.authorization,
      code: 'OK',
    };
    this.calls.push(call);
    const fault = this.faults.find((one) => one.rpc === rpc && (one.on?.includes(n) ?? true));
    response.setHeader('content-type', 'application/json; charset=UTF-8');
    try {
      if (request.authorization === '')
        throw new Refusal('UNAUTHENTICATED', 'Request is missing credentials.');
      if (fault !== undefined && fault.after !== true) this.#fail(fault, response);
      const answer = this.#answer(rpc, url, body as Record<string, unknown>);
      if (fault?.after === true) this.#fail(fault, response);
      if (response.writableEnded) return;
      const numeric = url.search.includes('enum-encoding');
      response.end(
        JSON.stringify(fault?.corrupt === true ? corrupted(answer) : answer, (key, value: unknown) =>
          numeric && key === 'state' && typeof value === 'string' ? STATE_NUMBER[value] : value,
        ),
      );
    } catch (error) {
      if (response.writableEnded || response.destroyed) return;
      const { status, message, info } =
        error instanceof Refusal ? error : new Refusal('INTERNAL', String(error));
      call.code = status;
      const http = HTTP[status] ?? 500;
      const details =
        info === undefined
          ? {}
          : { details: [{ '@type': 'type.googleapis.com/google.rpc.ErrorInfo', reason: info }] };
      response.writeHead(http).end(JSON.stringify({ error: { code: http, message, status, ...details } }));
    }
  }

  #fail(fault: Fault, response: ServerResponse): void {
    if (fault.reset === true) response.destroy();
    if (fault.html === true) response.setHeader('content-type', 'text/html').end('<html>proxy</html>');
    if (fault.reset === true || fault.html === true) throw new Error('cut');
    if (fault.code !== undefined) throw new Refusal(fault.code, fault.message ?? fault.code, fault.info);
  }

  #answer(rpc: string, url: URL, body: Record<string, unknown>): unknown {
    const match = /^\/v1\/projects\/([^/]+)\/secrets(?:\/([^/:]+))?/.exec(url.pathname);
    const [project = '', id = ''] = (match?.slice(1) ?? []).map((part) => decodeURIComponent(part ?? ''));
    const name = (rpc === 'CreateSecret' ? url.searchParams.get('secretId') : id) ?? '';
    const key = `projects/${project}/secrets/${name}`;
    const full = `projects/${PROJECT_NUMBER}/secrets/${name}`;
    if (rpc === 'CreateSecret') return this.#create(key, full, body);
    const secret = this.secrets.get(key);
    if (secret === undefined)
      throw new Refusal('NOT_FOUND', `Secret [projects/123/secrets/${name}] not found.`);
    const version = /\/versions\/([^/:]+)/.exec(url.pathname)?.[1] ?? '';
    switch (rpc) {
      case 'GetSecret':
        return shown(full, secret);
      case 'UpdateSecret':
        return update(full, secret, url.searchParams.get('updateMask') ?? '', body);
      case 'DeleteSecret':
        assertEtag(secret, url.searchParams.get('etag') ?? undefined);
        this.secrets.delete(key);
        return {};
      case 'AddSecretVersion':
        return addVersion(full, secret, body);
      case 'ListSecretVersions':
        return list(full, secret, url.searchParams.get('filter') ?? '');
      case 'TestIamPermissions':
        return { permissions: body['permissions'] };
      default:
        return onVersion(rpc, full, secret, version);
    }
  }

  #create(key: string, full: string, body: Record<string, unknown>): unknown {
    if (this.secrets.has(key)) throw new Refusal('ALREADY_EXISTS', `Secret [${full}] already exists.`);
    const labels = (body['labels'] ?? {}) as Record<string, string>;
    for (const value of Object.values(labels)) {
      if (!/^[\p{Ll}\p{Lo}\p{N}_-]{0,63}$/u.test(value))
        throw new Refusal('INVALID_ARGUMENT', `Invalid label value ${value}`);
    }
    if (body['replication'] === undefined) throw new Refusal('INVALID_ARGUMENT', 'replication is missing');
    const annotations = (body['annotations'] ?? {}) as Record<string, string>;
    return shown(full, this.put(key, { labels, annotations, replication: body['replication'], etag: 1 }));
  }
}

function rpcOf(method: string, path: string): string {
  const verb = /:([a-zA-Z]+)$/.exec(path)?.[1];
  const verbs: Readonly<Record<string, string>> = {
    addVersion: 'AddSecretVersion',
    access: 'AccessSecretVersion',
    disable: 'DisableSecretVersion',
    enable: 'EnableSecretVersion',
    destroy: 'DestroySecretVersion',
    testIamPermissions: 'TestIamPermissions',
  };
  if (verb !== undefined) return verbs[verb] ?? verb;
  if (path.endsWith('/versions')) return 'ListSecretVersions';
  if (path.includes('/versions/')) return 'GetSecretVersion';
  const methods: Readonly<Record<string, string>> = {
    GET: 'GetSecret',
    PATCH: 'UpdateSecret',
    DELETE: 'DeleteSecret',
    POST: 'CreateSecret',
  };
  return methods[method] ?? method;
}

function shown(name: string, secret: StoredSecret): unknown {
  const { labels, annotations, replication, etag } = secret;
  return { name, labels, annotations, replication, etag: `"${etag}"`, createTime: '2026-01-01T00:00:00Z' };
}

function assertEtag(secret: StoredSecret, etag: unknown): void {
  if (etag !== undefined && etag !== `"${secret.etag}"`)
    throw new Refusal('FAILED_PRECONDITION', 'etag mismatch');
}

function update(name: string, secret: StoredSecret, mask: string, body: Record<string, unknown>): unknown {
  assertEtag(secret, body['etag']);
  for (const field of mask.split(',')) {
    if (field !== 'labels' && field !== 'annotations')
      throw new Refusal('INVALID_ARGUMENT', `bad mask ${field}`);
    secret[field] = body[field] as Record<string, string>;
  }
  secret.etag += 1;
  return shown(name, secret);
}

function addVersion(name: string, secret: StoredSecret, body: Record<string, unknown>): unknown {
  const payload = (body['payload'] ?? {}) as { data?: string; dataCrc32c?: string };
  const data = Buffer.from(payload.data ?? '', 'base64');
  if (data.length > 65_536) throw new Refusal('INVALID_ARGUMENT', 'Secret Payload is too large.');
  if (payload.dataCrc32c !== undefined && payload.dataCrc32c !== String(crc32c(data))) {
    throw new Refusal('INVALID_ARGUMENT', 'The checksum does not match.');
  }
  secret.versions.push({ state: 'ENABLED', data });
  return {
    name: `${name}/versions/${secret.versions.length}`,
    state: 'ENABLED',
    createTime: '2026-01-01T00:00:00Z',
  };
}

function list(name: string, secret: StoredSecret, filter: string): unknown {
  const versions = secret.versions
    .map(({ state }, index) => ({ name: `${name}/versions/${index + 1}`, state }))
    .filter(({ state }) => filter === '' || filter === `state:${state}`);
  return { versions: versions.reverse() };
}

function onVersion(rpc: string, name: string, secret: StoredSecret, version: string): unknown {
  const number = version === 'latest' ? secret.versions.length : Number(version);
  const stored = secret.versions[number - 1];
  const full = `${name}/versions/${number}`;
  if (stored === undefined) throw new Refusal('NOT_FOUND', `Secret [${name}] not found or has no versions.`);
  if (rpc === 'AccessSecretVersion') {
    if (stored.state !== 'ENABLED')
      throw new Refusal('FAILED_PRECONDITION', `Secret Version [${full}] is in ${stored.state} state.`);
    return {
      name: full,
      payload: { data: stored.data.toString('base64'), dataCrc32c: String(crc32c(stored.data)) },
    };
  }
  if (rpc === 'DisableSecretVersion') stored.state = 'DISABLED';
  if (rpc === 'EnableSecretVersion') stored.state = 'ENABLED';
  if (rpc === 'DestroySecretVersion') stored.state = 'DESTROYED';
  return { name: full, state: stored.state };
}

function corrupted(answer: unknown): unknown {
  const { payload, ...rest } = answer as { payload?: { data: string; dataCrc32c: string } };
  if (payload === undefined) return answer;
  return {
    ...rest,
    payload: {
      ...payload,
      data: Buffer.from(`${Buffer.from(payload.data, 'base64').toString()} `).toString('base64'),
    },
  };
}
