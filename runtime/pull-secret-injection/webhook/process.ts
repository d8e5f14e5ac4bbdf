/** Puts the webhook together and runs it until it is told to stop. */

import { type CertificateFiles, readPair } from '../../host/serving-certificate.ts';
import { HttpKubeClient } from '../../kube/http-client.ts';
import { loadConnection } from '../../kube/kubeconfig.ts';
import { UsageError } from '../../rules/errors.ts';
import { VERSION } from '../../rules/version.ts';
import {
  createLogger,
  LOG_FORMATS,
  LOG_LEVELS,
  type LogFormat,
  type Logger,
  type LogLevel,
} from '../../telemetry/logger.ts';
import { createMetrics } from '../../telemetry/metrics.ts';
import { type ProbeServer, serveProbes } from '../../telemetry/probes.ts';
import { serveWebhook, type WebhookServer } from '../../webhook/server.ts';
import { DEFAULT_OPTIONS } from '../options.ts';
import { InjectionWebhook } from './webhook.ts';

export interface WebhookProcessOptions {
  readonly certificates: CertificateFiles;
  readonly port: number;
  /** Undefined: no probes. */
  readonly healthPort: number | undefined;
  readonly kubeconfig: string | undefined;
  readonly ownNamespace: string;
  readonly excludedNamespaces: readonly string[];
  readonly withoutContainers: boolean;
  /** @default {'skip'} */
  readonly missingRevision?: 'skip' | 'current';
  readonly logLevel: string;
  readonly logFormat: string;
  /** @default {10000} */
  readonly reloadEveryMs?: number;
}

/** What a process has of the world. */
export interface ProcessIo {
  readonly stdout: { write(text: string): unknown };
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly signal: AbortSignal;
}

/** Serves until the signal; resolves with the exit code. */
export async function runWebhook(options: WebhookProcessOptions, io: ProcessIo): Promise<number> {
  const log = loggerOf(options, io);
  const metrics = createMetrics();
  const connection = await loadConnection(options.kubeconfig, io.env);
  const client = new HttpKubeClient({
    connection,
    userAgent: `pullwright-webhook/${VERSION}`,
  });
  const { ownNamespace, excludedNamespaces, withoutContainers, missingRevision = 'skip' } = options;
  const webhook = new InjectionWebhook(client, {
    ...DEFAULT_OPTIONS,
    ownNamespace,
    excludedNamespaces,
    withoutContainers,
    missingRevision,
    admission: 'webhook',
  });
  let probes: ProbeServer | undefined;
  let server: WebhookServer | undefined;
  try {
    // Wrong files are said before anything is waited for.
    await readPair(options.certificates);
    if (options.healthPort !== undefined)
      probes = await serveProbes({
        port: options.healthPort,
        checks: {
          '/healthz': () => undefined,
          '/readyz': () =>
            webhook.waitingFor ?? (server === undefined ? 'not listening yet' : server.trouble()),
        },
        metrics: () => metrics.render(),
      });
    // An answer from half-filled caches would be a wrong one. Nobody listens until they are full: the Service sends nothing to a
    // pod that is not ready, and whoever asks all the same is refused at once and lets the pod pass (failurePolicy: Ignore).
    if (webhook.waitingFor !== undefined) log.info('webhook waits', { for: webhook.waitingFor });
    await webhook.synced(io.signal);
    if (io.signal.aborted) return 0;
    server = await serveWebhook({
      port: options.port,
      files: options.certificates,
      ...(options.reloadEveryMs === undefined ? {} : { reloadEveryMs: options.reloadEveryMs }),
      handlers: { '/inject': (request) => webhook.admit(request) },
      log,
      metrics,
    });
    await stopped(io.signal);
    log.info('webhook stops');
    await server.close();
    return 0;
  } finally {
    await probes?.close();
    webhook.close();
  }
}

function loggerOf({ logLevel, logFormat }: WebhookProcessOptions, io: ProcessIo): Logger {
  if (!LOG_LEVELS.includes(logLevel as LogLevel))
    throw new UsageError(`Cannot use --log-level "${logLevel}": expected one of ${LOG_LEVELS.join(', ')}`);
  if (!LOG_FORMATS.includes(logFormat as LogFormat))
    throw new UsageError(`Cannot use --log-format "${logFormat}": expected one of ${LOG_FORMATS.join(', ')}`);
  return createLogger({
    write: (line) => io.stdout.write(line),
    format: logFormat as LogFormat,
    level: () => logLevel as LogLevel,
  });
}

async function stopped(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
}
