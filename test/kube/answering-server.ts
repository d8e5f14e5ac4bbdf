/** An API server of one object that answers as it is told, and knows which requests came, with which tokens. */
import type { ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import { redact } from '../../runtime/core/redacted.ts';
import type { Connection } from '../../runtime/kube/client.ts';
import { Authority } from '../control-plane/x509.ts';
import { close, listen } from '../support/loopback.ts';

const authority = new Authority('requests');
const { certificate: cert, key } = authority.issue({ commonName: 'api', hosts: ['127.0.0.1', 'localhost'] });

export const OBJECT = { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'a', namespace: 'web' } };
export const REF = { apiVersion: 'v1', kind: 'Secret', namespace: 'web', name: 'a' };

/** A server that answers as it is told, and what came. */
export async function answering(
  answer: (response: ServerResponse, count: number) => void,
): Promise<{ port: number; arrived: string[]; close: () => Promise<void> }> {
  const arrived: string[] = [];
  const server = createServer({ cert, key }, (request, response) => {
    request.resume();
    arrived.push(`${request.method} ${request.headers.authorization?.replace('Bearer ', '')}`);
    answer(response, arrived.length);
  });
  return { port: await listen(server), arrived, close: () => close(server) };
}

export const JSON_TYPE = { 'content-type': 'application/json' };

/** The last status goes on. */
export function statuses(answers: readonly number[]): Parameters<typeof answering>[0] {
  return (response, count) => {
    const status = answers[Math.min(count, answers.length) - 1] ?? 500;
    response.writeHead(status, JSON_TYPE);
    response.end(JSON.stringify(status < 400 ? OBJECT : { kind: 'Status', message: 'told to' }));
  };
}

export function connection(host: string, port: number): Connection {
  return {
    server: `https://${host}:${port}`,
    ca: authority.certificate,
    credentials: (refused) => Promise.resolve({ token: redact(refused ? 'fresh' : 'kept') }),
  };
}
