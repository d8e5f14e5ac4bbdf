/**
 * Stands between the program and an API server and does harm: refuses with 429, cuts watches, never answers. What it lets through
 * goes to the real server as it is.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { Agent, createServer, request as httpsRequest, type Server } from 'node:https';
import { join } from 'node:path';
import { json } from 'node:stream/consumers';
import { parse } from 'yaml';
import type { ControlPlane } from '../control-plane/control-plane.ts';
import { kubeconfigText } from '../control-plane/users.ts';
import { close, listen, portOf } from '../support/loopback.ts';

export class FaultServer {
  /** `storm`: every request gets 429; `silence`: none gets an answer. */
  mode: 'pass' | 'storm' | 'silence' = 'pass';
  requests = 0;
  /** After so many writes the next ones get no answer and do not happen. */
  writesLeft: number = Number.MAX_SAFE_INTEGER;
  /** By the path of a discovery document, resources that it leaves out: a cluster that does not serve them. */
  hidden: Readonly<Record<string, readonly string[]>> = {};
  /** Writes that were held. */
  held = 0;
  readonly #server: Server;
  readonly #agent: Agent;
  readonly #plane: ControlPlane;
  readonly #uid: string | undefined;
  readonly #watches = new Set<ServerResponse>();

  /** @param uid of `kube-system`, so that one API server plays several clusters */
  constructor(plane: ControlPlane, uid?: string) {
    this.#plane = plane;
    this.#uid = uid;
    const { user } = (
      parse(readFileSync(plane.kubeconfig, 'utf8')) as { users: [{ user: Record<string, string> }] }
    ).users[0];
    const decode = (field: string): string => Buffer.from(user[field] ?? '', 'base64').toString();
    this.#agent = new Agent({
      keepAlive: true,
      ca: plane.ca,
      cert: decode('client-certificate-data'),
      key: decode('client-key-data'),
    });
    const file = (name: string): string => readFileSync(join(plane.folder, name), 'utf8');
    this.#server = createServer(
      { cert: file('serving.crt'), key: file('serving.key') },
      (request, response) => this.#handle(request, response),
    );
  }

  /** Listens; gives the path of a kubeconfig that leads here. */
  async start(name = 'faulty'): Promise<string> {
    await listen(this.#server);
    const path = join(this.#plane.folder, `${name}.kubeconfig`);
    writeFileSync(path, this.kubeconfig, { mode: 0o600 });
    return path;
  }

  /** Text of a kubeconfig that leads here, all inline. */
  get kubeconfig(): string {
    return kubeconfigText(`https://127.0.0.1:${portOf(this.#server)}`, this.#plane.ca, {
      token: 'not-looked-at',
    });
  }

  /** Ends every watch in the middle of a line, if need be. */
  cutWatches(): number {
    const count = this.#watches.size;
    for (const response of this.#watches) response.destroy();
    return count;
  }

  async stop(): Promise<void> {
    this.#agent.destroy();
    await close(this.#server);
  }

  #handle(request: IncomingMessage, response: ServerResponse): void {
    this.requests += 1;
    if (this.mode === 'silence') return;
    if (this.mode === 'storm') {
      response.writeHead(429, { 'retry-after': '1', 'content-type': 'application/json' });
      response.end('{"kind":"Status","reason":"TooManyRequests"}');
      return;
    }
    if (this.#uid !== undefined && request.url === '/api/v1/namespaces/kube-system') {
      const metadata = { name: 'kube-system', uid: this.#uid };
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ apiVersion: 'v1', kind: 'Namespace', metadata }));
      return;
    }
    if (isWrite(request)) {
      if (this.writesLeft === 0) {
        this.held += 1;
        return;
      }
      this.writesLeft -= 1;
    }
    const { authorization: _authorization, host: _host, ...headers } = request.headers;
    const upstream = httpsRequest(new URL(request.url ?? '/', this.#plane.server), {
      method: request.method,
      headers,
      agent: this.#agent,
    });
    upstream.once('response', (answer) => {
      const hidden = this.hidden[request.url ?? ''];
      const { 'content-length': length, ...answered } = answer.headers;
      const isWhole = hidden === undefined && length !== undefined;
      response.writeHead(answer.statusCode ?? 502, {
        ...answered,
        ...(isWhole ? { 'content-length': length } : {}),
      });
      response.flushHeaders();
      answer.on('error', () => response.destroy());
      if (hidden === undefined) answer.pipe(response);
      else void json(answer).then((document) => response.end(without(document as Discovery, hidden)));
    });
    // There may be more than one: of the connection, and of the body that is still sent.
    upstream.on('error', () => response.destroy());
    response.once('close', () => {
      this.#watches.delete(response);
      upstream.destroy();
    });
    if ((request.url ?? '').includes('watch=true')) this.#watches.add(response);
    request.pipe(upstream);
  }
}

interface Discovery {
  readonly resources: readonly { readonly name: string }[];
}

function without(document: Discovery, hidden: readonly string[]): string {
  return JSON.stringify({
    ...document,
    resources: document.resources.filter(({ name }) => !hidden.includes(name)),
  });
}

/** Leases say who leads, and events what was done: what is done are the others. */
function isWrite({ method, url = '' }: IncomingMessage): boolean {
  return (
    method !== 'GET' &&
    !/\/(?:leases|events|selfsubjectaccessreviews)\b/.test(url) &&
    !url.includes('dryRun=')
  );
}
