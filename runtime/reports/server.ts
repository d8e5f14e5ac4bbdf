/**
 * The HTTPS server of the report's page. Until the API server has said who asks and that they may, nothing is read and nothing is
 * made; what is sent to one who may not is one line.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { HttpsServer } from '../host/https-server.ts';
import { type CertificateFiles, expiry, readPair, watchPair } from '../host/serving-certificate.ts';
import { describeError, PullwrightError } from '../rules/errors.ts';
import { readPageRequest } from '../rules/report-page/request.ts';
import { REPORT_AUDIENCE } from '../rules/report-page/reviews.ts';
import { REPORT_POLICY, SIGN_IN_PAGE, SIGN_IN_POLICY } from '../rules/report-page/sign-in.ts';
import type { Logger } from '../telemetry/logger.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import type { Gate } from './gate.ts';
import type { LatestReport } from './latest.ts';

export interface ReportServerOptions {
  /** 0 lets the system choose. */
  readonly port: number;
  readonly host?: string;
  readonly files: CertificateFiles;
  readonly gate: Pick<Gate, 'judge'>;
  readonly latest: Pick<LatestReport, 'get'>;
  readonly log: Logger;
  readonly metrics: Pick<Metrics, 'count'>;
}

export interface ReportServer {
  readonly port: number;
  close(): Promise<void>;
}

/** Connections at once; each costs a TLS session and nothing else. */
const MOST_CONNECTIONS = 128;
const RELOAD_MS = 10_000;
const IDLE_MS = 60_000;
/** Room for the longest token and what a browser adds. */
const MOST_HEADER_BYTES = 16 * 1024;

/** Listens. @throws PullwrightError `CertificateUnusable` when the files cannot be used at the start */
export async function serveReport(options: ReportServerOptions): Promise<ReportServer> {
  const { files, log } = options;
  const pair = await readPair(files);
  const server = new HttpsServer({
    pair,
    // Who does not read what was sent, or sends half a request, keeps no connection.
    idleMs: IDLE_MS,
    maxConnections: MOST_CONNECTIONS,
    maxHeaderBytes: MOST_HEADER_BYTES,
    listener: (request, response) => {
      answer(options, request, response).catch(() => send(options, response, { status: 500, text: FAILED }));
    },
  });
  const stop = watchPair({
    files,
    everyMs: RELOAD_MS,
    present: pair,
    onChange: (next) => {
      server.renew(next);
      log.info('certificate reloaded', { ends: expiry(next).toISOString() });
    },
    onProblem: (problem) => log.warn('certificate kept', { problem: problem.message }),
  });
  const port = await server.listen(options.port, options.host);
  return {
    port,
    close: async () => {
      stop();
      await server.close();
    },
  };
}

const FAILED = 'the request failed';

async function answer(
  options: ReportServerOptions,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const asked = readPageRequest({
    method: request.method ?? '',
    url: request.url ?? '',
    authorization: request.headers.authorization,
  });
  if (asked.is === 'refused') return send(options, response, { status: asked.status, text: asked.why });
  if (asked.is === 'sign-in')
    return send(options, response, {
      status: 200,
      text: SIGN_IN_PAGE,
      type: 'text/html',
      policy: SIGN_IN_POLICY,
    });
  const { form, namespace, token } = asked;
  const judgement = await options.gate.judge(token, namespace, request.socket.remoteAddress ?? '');
  if (judgement.is === 'refused')
    return send(options, response, { status: judgement.status, text: judgement.why });
  try {
    const text = await options.latest.get(form, namespace);
    const type = form === 'json' ? 'application/json' : 'text/html';
    return send(options, response, { status: 200, text, type, policy: REPORT_POLICY });
  } catch (error) {
    options.log.warn('the report could not be made', { problem: describeError(error) });
    return send(options, response, { status: 503, text: failureText(error) });
  }
}

/** What of a failure may be said to everybody who may see the report of some namespace: not what it was about. */
function failureText(error: unknown): string {
  return error instanceof PullwrightError && error.code === 'TooMuchToRead'
    ? 'the cluster is too large for this page: "pullwright report --context" makes it elsewhere'
    : 'the report could not be made now; the log of this server says why';
}

interface Sent {
  readonly status: number;
  readonly text: string | Buffer;
  readonly type?: 'text/plain' | 'text/html' | 'application/json';
  readonly policy?: string;
}

const EXTRA: Readonly<Record<number, Readonly<Record<string, string>>>> = {
  401: { 'www-authenticate': `Bearer realm="pullwright", scope="${REPORT_AUDIENCE}"` },
  405: { allow: 'GET, HEAD' },
  429: { 'retry-after': '5' },
  503: { 'retry-after': '5' },
};

function send(
  { metrics }: Pick<ReportServerOptions, 'metrics'>,
  response: ServerResponse,
  { status, text, type = 'text/plain', policy = "default-src 'none'; frame-ancestors 'none'" }: Sent,
): void {
  if (response.headersSent || response.destroyed) {
    response.destroy();
    return;
  }
  metrics.count({
    name: 'pullwright_report_requests_total',
    help: 'Requests for the page of the report by status code',
    labels: { code: String(status) },
  });
  const body = typeof text === 'string' && !text.endsWith('\n') ? `${text}\n` : text;
  response.writeHead(status, {
    'content-type': `${type}; charset=utf-8`,
    'content-length': Buffer.byteLength(body),
    'content-security-policy': policy,
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
    'referrer-policy': 'no-referrer',
    'cross-origin-resource-policy': 'same-origin',
    ...EXTRA[status],
  });
  response.end(body);
}
