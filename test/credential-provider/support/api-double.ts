/**
 * Double of an API server on loopback, with TLS: Secrets of a namespace with field selectors, pods and ServiceAccounts, errors as
 * Status objects, and failures of servers.
 */

import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import { type Certificates, makeCertificates } from '../../support/certificates.ts';
import { close, portOf } from '../../support/loopback.ts';

export interface ApiState {
  readonly secrets: readonly SecretLike[];
  readonly pods?: Readonly<Record<string, readonly string[]>>;
  readonly serviceAccounts?: Readonly<Record<string, readonly string[]>>;
  /**
   * 200, a status for every request, `429once`, `reset`, `hang`, `forbid-list`, `forbid-secrets`, `fail-older` (500 for the list
   * of other types), `close` (after each answer), `garbage` (a page of HTML for an answer), `torn` (the connection breaks within
   * the answer) or `drip` (the answer comes in small pieces).
   */
  readonly mode?: number | string;
  readonly ignoresSelector?: boolean;
  /** Accepted token; absent: any. */
  readonly token?: string;
}

export interface SecretLike {
  readonly type?: string;
  readonly metadata: { readonly name: string; readonly namespace?: string };
  readonly data?: Readonly<Record<string, string>>;
}

export interface SeenRequest {
  readonly method: string;
  readonly path: string;
  readonly authorization: string;
}

export interface ApiDouble {
  readonly port: number;
  readonly ca: string;
  readonly requests: SeenRequest[];
  close(): Promise<void>;
}

const STATUS_TEXT: Readonly<Record<number, string>> = {
  401: 'Unauthorized',
  403: 'secrets is forbidden: User "system:serviceaccount:team-a:app" cannot list resource "secrets" in API group "" in the namespace "team-a"',
  404: 'the server could not find the requested resource',
  500: 'Internal error occurred: boom',
};

let shared: Certificates | undefined;

/** Starts one; `certificates` default to a set that all doubles of the process share. */
export async function startApi(
  state: ApiState,
  options: { readonly certificates?: Certificates; readonly host?: string } = {},
): Promise<ApiDouble> {
  shared ??= makeCertificates();
  const { ca, cert, key } = options.certificates ?? shared;
  const requests: SeenRequest[] = [];
  const server = createServer({ cert, key }, (request, response) => {
    requests.push({
      method: request.method ?? '',
      path: request.url ?? '',
      authorization: request.headers.authorization ?? '',
    });
    answer(state, request, response, requests.length);
  });
  await new Promise<void>((resolve) => server.listen(0, options.host ?? '127.0.0.1', resolve));
  return { port: portOf(server), ca, requests, close: () => close(server) };
}

function answer(state: ApiState, request: IncomingMessage, response: ServerResponse, count: number): void {
  if (fails(state.mode ?? 200, request, response, count)) return;
  const { authorization } = request.headers;
  if (state.token !== undefined && authorization !== `Bearer ${state.token}`)
    send(response, 401, 'Unauthorized');
  else serve(state, new URL(request.url ?? '/', 'https://localhost'), response);
}

function serve(state: ApiState, url: URL, response: ServerResponse): void {
  const [, namespace, kind = '', name] =
    /^\/api\/v1\/namespaces\/([^/]+)\/(\w+)(?:\/(.+))?$/.exec(url.pathname) ?? [];
  const own = state.secrets.filter(
    ({ metadata }) => metadata.namespace === undefined || metadata.namespace === namespace,
  );
  if (kind === 'secrets' && name === undefined) return list(state, own, url, response);
  if (kind === 'secrets' && state.mode === 'forbid-secrets')
    return send(response, 403, STATUS_TEXT[403] ?? '');
  const secret = own.find(({ metadata }) => metadata.name === name);
  const found = kind === 'secrets' ? secret : referring(state, kind, String(name));
  if (found !== undefined) json(response, { apiVersion: 'v1', ...found });
  else send(response, kind === 'secrets' ? 404 : 403, `${kind} "${name}" not found`);
}

/** Simulates the failure of `mode`; false without one. */
function fails(
  mode: number | string,
  request: IncomingMessage,
  response: ServerResponse,
  count: number,
): boolean {
  if (mode === 'close') response.setHeader('connection', 'close');
  if (mode === 'hang') return true;
  if (mode === 'reset') request.socket.destroy();
  else if (mode === 'garbage') response.end('<html>It works!</html>');
  else if (mode === 'torn') {
    response.writeHead(200, { 'content-length': '1000' });
    response.write('{"items":[', () => request.socket.destroy());
  } else if (mode === '429once' && count === 1) send(response, 429, 'slow down', { 'retry-after': '1' });
  else if (typeof mode === 'number' && mode !== 200)
    send(response, mode, STATUS_TEXT[mode] ?? `status ${mode}`);
  else return false;
  return true;
}

function list(state: ApiState, own: readonly SecretLike[], url: URL, response: ServerResponse): void {
  if (state.mode === 'forbid-list' || state.mode === 'forbid-secrets')
    return send(response, 403, STATUS_TEXT[403] ?? '');
  const selector = state.ignoresSelector === true ? '' : (url.searchParams.get('fieldSelector') ?? '');
  if (state.mode === 'fail-older' && selector.includes('!='))
    return send(response, 500, STATUS_TEXT[500] ?? '');
  const items = own.filter((secret) => selects(selector, secret));
  const body = { kind: 'SecretList', apiVersion: 'v1', items };
  if (state.mode === 'drip') drip(response, JSON.stringify(body));
  else json(response, body);
}

/** In pieces of seven bytes, each in a packet of its own. */
function drip(response: ServerResponse, text: string): void {
  response.writeHead(200, { 'content-type': 'application/json' });
  const next = (at: number): void => {
    if (at >= text.length) response.end();
    else response.write(text.slice(at, at + 7), () => setImmediate(next, at + 7));
  };
  next(0);
}

function referring(state: ApiState, kind: string, name: string): object | undefined {
  const names = kind === 'pods' ? state.pods?.[name] : state.serviceAccounts?.[name];
  if (names === undefined) return undefined;
  const imagePullSecrets = names.map((one) => ({ name: one }));
  return kind === 'pods'
    ? { kind: 'Pod', spec: { imagePullSecrets } }
    : { kind: 'ServiceAccount', imagePullSecrets };
}

function selects(selector: string, { type = 'Opaque' }: SecretLike): boolean {
  return selector
    .split(',')
    .filter((term) => term !== '')
    .every((term) => (term.includes('!=') ? term !== `type!=${type}` : term === `type=${type}`));
}

function send(
  response: ServerResponse,
  code: number,
  message: string,
  headers: Record<string, string> = {},
): void {
  response.writeHead(code, { 'content-type': 'application/json', ...headers });
  response.end(JSON.stringify({ kind: 'Status', apiVersion: 'v1', status: 'Failure', message, code }));
}

function json(response: ServerResponse, body: object): void {
  response.writeHead(200, { 'content-type': 'application/json' });
  response.end(JSON.stringify(body));
}
