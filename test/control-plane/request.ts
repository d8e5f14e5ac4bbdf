/** JSON over HTTPS with a client certificate or token: what tests use to look at a server without the product's client. */
import { Agent, request as httpsRequest } from 'node:https';

export interface RequesterOptions {
  readonly server: string;
  readonly ca: string;
  readonly cert?: string;
  readonly key?: string;
  readonly token?: string;
  /** User whom each request is to be taken for. */
  readonly as?: string;
}

export interface Answer {
  readonly status: number;
  // The tests look into arbitrary objects.
  // oxlint-disable-next-line typescript/no-explicit-any
  readonly body: any;
}

export interface Requester {
  request(method: string, path: string, body?: unknown, contentType?: string): Promise<Answer>;
  close(): void;
}

/** Rejects only when there is no answer at all. */
export function requester(options: RequesterOptions): Requester {
  const agent = new Agent({
    keepAlive: true,
    ca: options.ca,
    ...(options.cert === undefined ? {} : { cert: options.cert, key: options.key }),
  });
  const authorization = {
    ...(options.token === undefined ? {} : { authorization: `Bearer ${options.token}` }),
    ...(options.as === undefined ? {} : { 'impersonate-user': options.as }),
  };
  return {
    request: (method, path, body, contentType = 'application/json') =>
      new Promise<Answer>((resolve, reject) => {
        const text = body === undefined ? undefined : JSON.stringify(body);
        const call = httpsRequest(
          new URL(path, options.server),
          { method, agent, headers: { ...authorization, ...headersFor(text, contentType) }, timeout: 30_000 },
          (response) => {
            const chunks: Buffer[] = [];
            response.on('data', (chunk: Buffer) => chunks.push(chunk));
            response.on('error', reject);
            response.on('end', () => {
              const answer = Buffer.concat(chunks).toString('utf8');
              resolve({ status: response.statusCode ?? 0, body: parsed(answer) });
            });
          },
        );
        call.on('error', reject);
        call.on('timeout', () => call.destroy(new Error(`no answer to ${method} ${path} within 30 s`)));
        call.end(text);
      }),
    close: () => agent.destroy(),
  };
}

function headersFor(text: string | undefined, contentType: string): Record<string, string> {
  if (text === undefined) return { accept: 'application/json' };
  return {
    accept: 'application/json',
    'content-type': contentType,
    'content-length': String(Buffer.byteLength(text)),
  };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
