/**
 * What a node program shows of itself: probes on loopback, and metrics with TLS where Prometheus reaches them. Neither is what the
 * program is for: a port that somebody else holds is said once and tried again, and the credentials go on.
 */
import { join } from 'node:path';
import type { Clock } from '../host/clock.ts';
import { readPair, watchPair } from '../host/serving-certificate.ts';
import { describeError } from '../rules/errors.ts';
import type { Logger } from '../telemetry/logger.ts';
import { type ProbeOptions, type Serving, serveNodeProbes } from './probes.ts';

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
