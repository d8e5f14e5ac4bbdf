/** An HTTPS server for admission webhooks: one path per webhook, certificate reload, graceful shutdown. */

import type { IncomingMessage, ServerResponse } from 'node:http';
import { z } from 'zod';
import type { Frozen } from '../../core/kubernetes/fields.ts';
import type { Logger } from '../../core/logger.ts';
import { jsonOf } from '../../core/record.ts';
import type { Metrics } from '../../engine/metrics.ts';
import {
  type CertificateFiles,
  expiry,
  HttpsServer,
  readPair,
  untimely,
  watchPair,
} from '../../node/https.ts';
import type { AddOperation } from '../plan/plan.ts';

// AdmissionReview v1: reads requests and writes responses. Objects stay raw JSON, so that unknown fields survive the patch.

const REVIEW = z.looseObject({
  apiVersion: z.literal('admission.k8s.io/v1'),
  request: z.looseObject({
    uid: z.string(),
    operation: z.string(),
    resource: z.looseObject({ resource: z.unknown() }),
    subResource: z.string().optional(),
    namespace: z.string().optional(),
    object: z.record(z.string(), z.unknown()),
  }),
});

/** The fields of a request that handlers use; `object` as it would be stored. */
export type AdmissionRequest = Frozen<z.output<typeof REVIEW>['request']>;

/** The response. Requests are never denied: failures become warnings. */
export interface AdmissionAnswer {
  /** JSON patch; absent or empty: no change. */
  readonly patch?: readonly AddOperation[];
  /** Shown to the client of the request. */
  readonly warnings?: readonly string[];
  /** Label of the metric: `injected`, `unchanged`, `skipped`. */
  readonly outcome: string;
}

/**
 * Reads the body of a request.
 *
 * @returns undefined when the text is not an AdmissionReview v1 with a request and an object
 */
export function readReview(text: string): AdmissionRequest | undefined {
  return REVIEW.safeParse(jsonOf(text)).data?.request;
}

/** The response body. */
export function answerText(uid: string, answer: AdmissionAnswer): string {
  const { patch = [], warnings = [] } = answer;
  const patched =
    patch.length === 0
      ? {}
      : { patchType: 'JSONPatch', patch: Buffer.from(JSON.stringify(patch)).toString('base64') };
  return JSON.stringify({
    apiVersion: 'admission.k8s.io/v1',
    kind: 'AdmissionReview',
    response: { uid, allowed: true, ...patched, ...(warnings.length === 0 ? {} : { warnings }) },
  });
}

export type AdmissionHandler = (request: AdmissionRequest) => AdmissionAnswer | Promise<AdmissionAnswer>;

export interface WebhookServerOptions {
  /** 0 lets the system choose. */
  readonly port: number;
  readonly host?: string;
  readonly files: CertificateFiles;
  /** Keyed by path, such as `/inject`. */
  readonly handlers: Readonly<Record<string, AdmissionHandler>>;
  readonly log: Logger;
  readonly metrics: Pick<Metrics, 'admitted'>;
}

export interface WebhookServer {
  readonly port: number;
  /** Returns why the API server rejects the served certificate. Logs each change. */
  trouble(): string | undefined;
  /** Answers open requests, then stops. */
  close(): Promise<void>;
}

/** Limit of concurrent connections. An API server opens one for each request in flight. */
const MOST_CONNECTIONS = 1000;

/** Limit for one request. Objects are up to 1.5 MiB, and an update also carries the stored one. */
const MOST_BYTES = 3 * 1024 * 1024;

/** Twice the webhook's timeoutSeconds (3) in the charts: later answers are useless. */
const GRACE_MS = 6000;
const IDLE_MS = 10_000;

/** Listens. @throws PullwrightError `CertificateUnusable` when the files cannot be used at the start */
export async function serveWebhook(options: WebhookServerOptions): Promise<WebhookServer> {
  let pair = await readPair(options.files);
  const server = new HttpsServer({
    pair,
    idleMs: IDLE_MS,
    maxConnections: MOST_CONNECTIONS,
    listener: (request, response) => {
      answer(options, request, response).catch(() => end(response, 500, 'the request failed'));
    },
  });
  const { log } = options;
  const stop = watchPair({
    files: options.files,
    everyMs: 10_000,
    present: pair,
    onChange: (next) => {
      server.renew(next);
      pair = next;
      log.info('certificate reloaded', { ends: expiry(next).toISOString() });
    },
    onProblem: (problem) => log.warn('certificate kept', { problem: problem.message }),
  });
  const port = await server.listen(options.port, options.host);
  log.info('webhook listens', { port, ends: expiry(pair).toISOString() });
  let said: string | undefined;
  return {
    port,
    trouble: () => {
      const problem = untimely(pair, new Date());
      if (problem !== said && problem !== undefined) log.warn('webhook is not ready', { problem });
      said = problem;
      return problem;
    },
    close: async () => {
      stop();
      await server.close(GRACE_MS);
    },
  };
}

async function answer(
  options: WebhookServerOptions,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const path = new URL(request.url ?? '/', 'https://webhook').pathname;
  const handler = options.handlers[path];
  if (handler === undefined) return end(response, 404, 'no such webhook');
  if (request.method !== 'POST') return end(response, 405, 'expected POST');
  const body = await bodyOf(request);
  if (body === undefined) return refuse(request, response);
  const started = performance.now();
  const review = readReview(body);
  if (review === undefined) return end(response, 400, 'expected an AdmissionReview of admission.k8s.io/v1');
  const given = await safely(handler, review, options.log);
  const text = answerText(review.uid, given);
  options.metrics.admitted(path.slice(1), given.outcome, (performance.now() - started) / 1000);
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) });
  response.end(text);
}

/** An internal error must not reject a pod. */
async function safely(
  handler: AdmissionHandler,
  request: AdmissionRequest,
  log: Logger,
): Promise<AdmissionAnswer> {
  try {
    return await handler(request);
  } catch (error) {
    log.error('handler failed', {
      problem: error instanceof Error ? error.name : 'unknown',
      uid: request.uid,
    });
    return { outcome: 'failed', warnings: ['Pullwright could not look at this object; it is unchanged'] };
  }
}

/** The whole body; undefined if it is too large. Rejects when the request is aborted. */
function bodyOf(request: IncomingMessage): Promise<string | undefined> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    request.on('data', (chunk: Buffer) => {
      size += chunk.length;
      if (size > MOST_BYTES) resolve(undefined);
      else chunks.push(chunk);
    });
    request.once('end', () => resolve(Buffer.concat(chunks).toString('utf8')));
    request.once('close', () => reject(new Error('the request breaks off')));
  });
}

/** The rest of the body is not read, so the response closes the connection. */
function refuse(request: IncomingMessage, response: ServerResponse): void {
  response.once('finish', () => request.socket.destroy());
  response.setHeader('connection', 'close');
  end(response, 413, `the request is too large: at most ${MOST_BYTES} bytes are read`);
}

function end(response: ServerResponse, status: number, text: string): void {
  if (!response.headersSent) response.writeHead(status, { 'content-type': 'text/plain' });
  response.end(`${text}\n`);
}
