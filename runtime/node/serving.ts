/**
 * What a node program shows of itself: probes on loopback, and metrics with TLS where Prometheus reaches them. Neither is what the
 * program is for: a port that somebody else holds is said once and tried again, and the credentials go on.
 */
import { createServer, type RequestListener } from 'node:http';
import { join } from 'node:path';
import { describeError, errnoOf, PullwrightError } from '../core/errors.ts';
import type { Logger } from '../core/logger.ts';
import type { Clock } from './clock.ts';
import { HttpsServer, readPair, watchPair } from './https.ts';
import type { NodeState } from './task.ts';

// `/readyz`, `/healthz` and `/metrics` of a node agent.

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

export interface ServingOptions {
  readonly healthAddress: string;
  /** Undefined: nothing is served. */
  readonly healthPort: number | undefined;
  /** Undefined: no metrics but those beside the probes. */
  readonly metricsAddress: string | undefined;
  readonly metricsPort: number | undefined;
  /** Folder of `tls.crt` and `tls.key`. */
  readonly metricsTlsDir: string;
}

type Shown = Omit<ProbeOptions, 'host' | 'port' | 'tls'>;

/** A port is tried again after this. */
const AGAIN_MS = 30_000;
const CERTIFICATE_LOOK_MS = 60_000;

/** Serves until `signal`. Comes back at once and never fails. */
export function serveBeside(
  options: ServingOptions,
  shown: Shown,
  around: { readonly clock: Clock; readonly log: Logger },
  signal: AbortSignal,
): void {
  const { healthAddress, healthPort, metricsAddress, metricsPort } = options;
  if (healthPort !== undefined) {
    const open = (): Promise<() => void> =>
      serveNodeProbes({ ...shown, host: healthAddress, port: healthPort }).then(closing);
    void keepOpen(open, around, signal);
  }
  if (metricsAddress === undefined || metricsPort === undefined) return;
  const open = (): Promise<() => void> =>
    withTls(options.metricsTlsDir, around.log, { ...shown, host: metricsAddress, port: metricsPort });
  void keepOpen(open, around, signal);
}

async function keepOpen(
  open: () => Promise<() => void>,
  { clock, log }: { readonly clock: Clock; readonly log: Logger },
  signal: AbortSignal,
): Promise<void> {
  let said = '';
  while (!signal.aborted) {
    try {
      const close = await open();
      if (signal.aborted) close();
      else signal.addEventListener('abort', close, { once: true });
      return;
    } catch (error) {
      const text = describeError(error);
      if (text !== said) log.warn('Cannot serve: the work goes on without', { error: text });
      said = text;
      await clock.sleep(AGAIN_MS, signal);
    }
  }
}

async function withTls(folder: string, log: Logger, shown: ProbeOptions): Promise<() => void> {
  const files = {
    certificate: join(folder, 'tls.crt'),
    key: join(folder, 'tls.key'),
  };
  const present = await readPair(files);
  const serving = await serveNodeProbes({ ...shown, tls: present });
  const stop = watchPair({
    files,
    present,
    everyMs: CERTIFICATE_LOOK_MS,
    onChange: (pair) => serving.renew(pair),
    onProblem: (problem) => log.warn('The old certificate goes on', { error: describeError(problem) }),
  });
  return () => {
    stop();
    serving.close();
  };
}

function closing(serving: Serving): () => void {
  return () => serving.close();
}
