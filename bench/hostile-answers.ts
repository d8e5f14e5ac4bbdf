/** What an API server may do to whoever asks it. */
import type { ServerResponse } from 'node:http';

export type Json = Readonly<Record<string, unknown>>;

/** What the API server of one cluster may do to whoever asks it. */
export const HOSTILITIES = [
  'silence',
  'one byte a second',
  'an endless body',
  'no JSON',
  'objects of other kinds',
  'a refusal',
  'a broken connection',
  'ten thousand changes a second',
] as const;
export type Hostility = (typeof HOSTILITIES)[number];

export function send(response: ServerResponse, status: number, body: Json): void {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify(body));
}

/** Answers as nobody should. */
export function harm(
  response: ServerResponse,
  how: Exclude<Hostility, 'ten thousand changes a second'>,
): void {
  const json = { 'content-type': 'application/json' };
  if (how === 'a broken connection') response.destroy();
  else if (how === 'a refusal') send(response, 403, { kind: 'Status', reason: 'Forbidden' });
  else if (how === 'no JSON') response.writeHead(200, json).end('<html>'.repeat(1000));
  else if (how === 'objects of other kinds')
    send(response, 200, {
      kind: 'PodList',
      metadata: [],
      items: [1, null, { metadata: 'x' }],
      resources: 'x',
    });
  else if (how === 'one byte a second' || how === 'an endless body') {
    response.writeHead(200, json);
    response.write('{"items":["');
    const [bytes, everyMs] = how === 'an endless body' ? [1 << 20, 5] : [1, 1000];
    const timer = setInterval(() => {
      if (!response.writableNeedDrain) response.write('x'.repeat(bytes));
    }, everyMs);
    response.once('close', () => clearInterval(timer));
  }
}

/** Type and data of a pull secret for one registry. */
export function pullSecretFor(registry: string, login = 'u:p'): Json {
  const auths = JSON.stringify({ auths: { [registry]: { auth: Buffer.from(login).toString('base64') } } });
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    type: 'kubernetes.io/dockerconfigjson',
    data: { '.dockerconfigjson': Buffer.from(auths).toString('base64') },
  };
}

/**
 * A Secret that changes a hundred times every ten milliseconds, as long as somebody reads.
 *
 * @param next counts one more change, and gives how many there were
 */
export function storm(response: ServerResponse, next: () => number): void {
  response.writeHead(200);
  const timer = setInterval(() => {
    if (response.writableNeedDrain) return;
    const events = Array.from({ length: 100 }, () => {
      const count = next();
      const metadata = {
        name: 'additional-pull-secret',
        namespace: 'kube-system',
        uid: 'storm',
        resourceVersion: String(1_000_000 + count),
      };
      const object = { ...pullSecretFor('tenant.example.com', `u:${count}`), metadata };
      return `${JSON.stringify({ type: 'MODIFIED', object })}\n`;
    });
    response.write(events.join(''));
  }, 10);
  response.once('close', () => clearInterval(timer));
}
