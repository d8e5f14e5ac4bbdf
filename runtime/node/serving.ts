/**
 * Probes of a node program on loopback, and metrics with TLS for Prometheus. Neither is essential: a port in use is logged once
 * and retried, and the program works meanwhile.
 */
import { join } from 'node:path';
import { describeError, errnoOf, PullwrightError } from '../core/errors.ts';
import type { Logger } from '../core/logger.ts';
import { closeServer, type Page, type Pages, pagesListener, servePages } from '../http/serve.ts';
import { systemClock } from './clock.ts';
import { HttpsServer, readPair, watchPair } from './https.ts';
import type { NodeState } from './task.ts';

/** State and metrics of a node program. */
export interface Served {
  readonly state: NodeState;
  metrics(): string;
}

interface Place {
  readonly host: string;
  readonly port: number;
}

/** Idle connections are closed after this time. */
const IDLE_MS = 60_000;
const CERTIFICATE_LOOK_MS = 60_000;

function pagesOf(served: Served): Pages {
  const readiness = (): Page => {
    const { ready, reason, message } = served.state;
    return { status: ready ? 200 : 503, text: `${reason}: ${message}` };
  };
  return new Map([
    ['/readyz', readiness],
    // A program whose loop hangs exits by itself.
    ['/healthz', () => ({ text: 'ok' })],
    ['/metrics', () => ({ text: served.metrics() })],
  ]);
}

/** Listens without TLS, and does not keep the process alive. Returns a function that closes the server. */
async function servePlain(pages: Pages, place: Place): Promise<() => void> {
  const server = await listening(place, servePages(pages, place.port, place.host));
  server.unref();
  return () => void closeServer(server);
}

/** The same with TLS, by the certificate in `folder`, which may be renewed meanwhile. */
async function serveTls(folder: string, log: Logger, pages: Pages, place: Place): Promise<() => void> {
  const files = { certificate: join(folder, 'tls.crt'), key: join(folder, 'tls.key') };
  const present = await readPair(files);
  const server = new HttpsServer({ pair: present, listener: pagesListener(pages), idleMs: IDLE_MS });
  server.unref();
  await listening(place, server.listen(place.port, place.host));
  const stop = watchPair({
    files,
    present,
    everyMs: CERTIFICATE_LOOK_MS,
    onChange: (pair) => server.renew(pair),
    onProblem: (problem) => log.warn('Keeping the old certificate', { error: describeError(problem) }),
  });
  return () => {
    stop();
    void server.close();
  };
}

async function listening<T>({ host, port }: Place, opened: Promise<T>): Promise<T> {
  return opened.catch((error: Error) => {
    const code = errnoOf(error) ?? error.message;
    throw new PullwrightError(`Cannot listen on ${host}:${port}: ${code}`, {
      code: 'CannotListen',
      hint: 'Choose another port with --health-port',
    });
  });
}

export interface ServingOptions {
  readonly healthAddress: string;
  /** Undefined: no probes. */
  readonly healthPort: number | undefined;
  /** Undefined: metrics on the probe port only. */
  readonly metricsAddress?: string | undefined;
  readonly metricsPort?: number | undefined;
  /** Folder of `tls.crt` and `tls.key`. */
  readonly metricsTlsDir?: string;
}

/** Wait before a port is tried again. */
const AGAIN_MS = 30_000;

/** Serves until `signal`. Returns at once and never fails. */
export function serveBeside(options: ServingOptions, served: Served, log: Logger, signal: AbortSignal): void {
  const { healthAddress, healthPort, metricsAddress, metricsPort, metricsTlsDir: folder } = options;
  const pages = pagesOf(served);
  if (healthPort !== undefined)
    void keepOpen(() => servePlain(pages, { host: healthAddress, port: healthPort }), log, signal);
  if (metricsAddress === undefined || metricsPort === undefined || folder === undefined) return;
  const place = { host: metricsAddress, port: metricsPort };
  void keepOpen(() => serveTls(folder, log, pages, place), log, signal);
}

async function keepOpen(open: () => Promise<() => void>, log: Logger, signal: AbortSignal): Promise<void> {
  let said = '';
  while (!signal.aborted) {
    try {
      const close = await open();
      if (signal.aborted) close();
      else signal.addEventListener('abort', close, { once: true });
      return;
    } catch (error) {
      const text = describeError(error);
      if (text !== said) log.warn('Cannot serve HTTP: continuing without it', { error: text });
      said = text;
      await systemClock.sleep(AGAIN_MS, signal);
    }
  }
}
