/** One HTTPS exchange on Node, whose fetch takes no CA. */
import { Agent, request } from 'node:https';
import type { RawAnswer } from './api-client.ts';
import type { ApiServer } from './api-server.ts';

const agent: Agent = new Agent({ keepAlive: false });

export function nodeExchange(
  url: string,
  headers: Readonly<Record<string, string>>,
  { server, signal }: { readonly server: ApiServer; readonly signal: AbortSignal },
): Promise<RawAnswer> {
  return new Promise((resolve, reject) => {
    const sent = request(
      url,
      { headers, signal, agent, ca: server.ca, rejectUnauthorized: true },
      (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.on('error', reject);
        response.on('end', () =>
          resolve({
            status: response.statusCode ?? 0,
            text: Buffer.concat(chunks).toString('utf8'),
            retryAfter: response.headers['retry-after'] ?? null,
          }),
        );
      },
    );
    sent.on('error', reject);
    sent.end();
  });
}
