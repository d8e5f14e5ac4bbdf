/**
 * What a node program shows of itself: probes on loopback, and metrics with TLS where Prometheus reaches them. Neither is what the
 * program is for: a port in use is reported once and retried, and credentials are served meanwhile.
 */
import { createServer, type RequestListener } from 'node:http';
import { join } from 'node:path';
import { describeError, errnoOf, PullwrightError } from '../core/errors.ts';
import type { Logger } from '../core/logger.ts';
import type { Clock } from './clock.ts';
import { HttpsServer, readPair, watchPair } from './https.ts';
import type { NodeState } from './task.ts';

// `/readyz`, `/healthz` and `/metrics` of a node agent.

interface ProbeOptions {
  readonly host: string;
  readonly port: number;
  readonly state: () => NodeState;
  readonly metrics: () => string;
}

/** Idle connections are closed after this time. */
const IDLE_MS = 60_000;
const CERTIFICATE_LOOK_MS = 60_000;

function listenerOf(options: ProbeOptions): RequestListener {
  return (request, response) => {
    const [status, body] = answer(options, request.url ?? '');
    response.writeHead(status, { 'content-type': 'text/plain; charset=utf-8', 'cache-control': 'no-store' });
    response.end(request.method === 'HEAD' ? undefined : body);
  };
}

/** Listens without TLS, and does not keep the process alive. Gives what ends it. */
async function servePlain(options: ProbeOptions): Promise<() => void> {
  const server = createServer(listenerOf(options));
  server.unref();
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error) => reject(busy(options, error)));
    server.listen(options.port, options.host, () => resolve());
  });
  return () => {
    server.close();
    server.closeAllConnections();
  };
}

/** The same with the certificate in `folder`, which may be renewed meanwhile. */
async function serveTls(folder: string, log: Logger, options: ProbeOptions): Promise<() => void> {
  const files = { certificate: join(folder, 'tls.crt'), key: join(folder, 'tls.key') };
  const present = await readPair(files);
  const server = new HttpsServer({ pair: present, listener: listenerOf(options), idleMs: IDLE_MS });
  server.unref();
  await server.listen(options.port, options.host).catch((error: Error) => {
    throw busy(options, error);
  });
  const stop = watchPair({
    files,
    present,
    everyMs: CERTIFICATE_LOOK_MS,
    onChange: (pair) => server.renew(pair),
    onProblem: (problem) => log.warn('The old certificate goes on', { error: describeError(problem) }),
  });
  return () => {
    stop();
    void server.close();
  };
}

function answer(options: ProbeOptions, url: string): readonly [number, string] {
  switch (url.split('?')[0]) {
    case '/readyz': {
      const state = options.state();
      return [state.ready ? 200 : 503, `${state.reason}: ${state.message}\n`];
    }
    case '/healthz':
      // A program whose loop hangs ends by itself.
      return [200, 'ok\n'];
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
  readonly metricsAddress?: string | undefined;
  readonly metricsPort?: number | undefined;
  /** Folder of `tls.crt` and `tls.key`. */
  readonly metricsTlsDir?: string;
}

type Shown = Omit<ProbeOptions, 'host' | 'port'>;

/** A port is tried again after this. */
const AGAIN_MS = 30_000;

/** Serves until `signal`. Comes back at once and never fails. */
export function serveBeside(
  options: ServingOptions,
  shown: Shown,
  around: { readonly clock: Clock; readonly log: Logger },
  signal: AbortSignal,
): void {
  const { healthAddress, healthPort, metricsAddress, metricsPort, metricsTlsDir: folder } = options;
  const { log } = around;
  if (healthPort !== undefined)
    void keepOpen(() => servePlain({ ...shown, host: healthAddress, port: healthPort }), around, signal);
  if (metricsAddress === undefined || metricsPort === undefined || folder === undefined) return;
  const metrics = { ...shown, host: metricsAddress, port: metricsPort };
  void keepOpen(() => serveTls(folder, log, metrics), around, signal);
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
