/** `/readyz`, `/healthz` and `/metrics` of a node agent. */
import { createServer, type RequestListener } from 'node:http';
import { errnoOf, PullwrightError } from '../rules/errors.ts';
import type { NodeState } from './events.ts';

export interface ProbeOptions {
  readonly host: string;
  readonly port: number;
  readonly state: () => NodeState;
  /** Whether the loop still goes round. */
  readonly alive: () => boolean;
  readonly metrics: () => string;
  /** Texts in PEM. @default {HTTP without TLS} */
  readonly tls?: Pair;
}

interface Pair {
  readonly cert: string;
  readonly key: string;
}

/** A connection on which nothing moves for so long is ended. */
const IDLE_MS = 60_000;

/** A server that listens. */
export interface Serving {
  /** Goes on with another certificate. */
  renew(pair: Pair): void;
  close(): void;
}

/** Listens. The server does not keep the process alive. */
export async function serveNodeProbes(options: ProbeOptions): Promise<Serving> {
  const answering: RequestListener = (request, response) => {
    const [status, body] = answer(options, request.url ?? '');
    response.writeHead(status, { 'content-type': 'text/plain; charset=utf-8', 'cache-control': 'no-store' });
    response.end(request.method === 'HEAD' ? undefined : body);
  };
  if (options.tls !== undefined) return serveWithTls(options, options.tls, answering);
  const server = createServer(answering);
  server.unref();
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error) => reject(busy(options, error)));
    server.listen(options.port, options.host, () => resolve());
  });
  return {
    renew: () => undefined,
    close: () => {
      server.close();
      server.closeAllConnections();
    },
  };
}

async function serveWithTls(options: ProbeOptions, pair: Pair, listener: RequestListener): Promise<Serving> {
  // Loaded only where it is needed: TLS costs an agent memory.
  const { HttpsServer } = await import('../host/https-server.ts');
  const server = new HttpsServer({ pair, listener, idleMs: IDLE_MS });
  server.unref();
  await server.listen(options.port, options.host).catch((error: Error) => {
    throw busy(options, error);
  });
  return { renew: (next) => server.renew(next), close: () => void server.close() };
}

function answer(options: ProbeOptions, url: string): readonly [number, string] {
  switch (url.split('?')[0]) {
    case '/readyz': {
      const state = options.state();
      return [state.ready ? 200 : 503, `${state.reason}: ${state.message}\n`];
    }
    case '/healthz':
      return options.alive() ? [200, 'ok\n'] : [500, 'the loop stands still\n'];
    case '/metrics':
      return [200, options.metrics()];
    default:
      return [404, 'expected /readyz, /healthz or /metrics\n'];
  }
}

function busy(options: ProbeOptions, error: Error): PullwrightError {
  const code = errnoOf(error) ?? error.message;
  return new PullwrightError(`Cannot listen on ${options.host}:${options.port}: ${code}`, {
    code: 'CannotListen',
    hint: 'Choose another port with --health-port',
  });
}
