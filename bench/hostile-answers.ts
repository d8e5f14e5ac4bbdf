/** What an API server may do to whoever asks it. */
import type { IncomingMessage, ServerResponse } from 'node:http';

export type Json = Readonly<Record<string, unknown>>;

/** What the API server of a cluster may do to whoever asks it. */
export const HOSTILITIES = [
  'silence',
  'no TLS handshake',
  'one byte a second',
  'an endless body',
  'no JSON',
  'objects of other kinds',
  'a refusal',
  'come back in a year',
  'a broken connection',
  'watches that end at once',
  'versions that are always too old',
  'a list without end',
  'pages of eight megabytes',
  'ten thousand changes a second',
  'changes of eight megabytes',
  'changes without end',
] as const;
export type Hostility = (typeof HOSTILITIES)[number];

export function send(response: ServerResponse, status: number, body: Json): void {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify(body));
}

export async function bodyOf(request: IncomingMessage): Promise<Json> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return JSON.parse(Buffer.concat(chunks).toString()) as Json;
}

const JSON_TYPE = { 'content-type': 'application/json' };

function drip(response: ServerResponse, bytes: number, everyMs: number): void {
  response.writeHead(200, JSON_TYPE);
  response.write('{"items":["');
  const timer = setInterval(() => {
    if (!response.writableNeedDrain) response.write('x'.repeat(bytes));
  }, everyMs);
  response.once('close', () => clearInterval(timer));
}

/** What is said to whoever asks for anything. */
const TO_ALL: Readonly<Partial<Record<Hostility, (response: ServerResponse) => void>>> = {
  silence: () => undefined,
  'one byte a second': (response) => drip(response, 1, 1000),
  'an endless body': (response) => drip(response, 1 << 20, 5),
  'no JSON': (response) => response.writeHead(200, JSON_TYPE).end('<html>'.repeat(1000)),
  'objects of other kinds': (response) =>
    send(response, 200, {
      kind: 'PodList',
      metadata: [],
      items: [1, null, { metadata: 'x' }],
      resources: 'x',
    }),
  'a refusal': (response) => send(response, 403, { kind: 'Status', reason: 'Forbidden' }),
  'come back in a year': (response) =>
    response.writeHead(429, { 'retry-after': String(365 * 86_400) }).end('{}'),
  'a broken connection': (response) => response.destroy(),
};

/** What is said to whoever watches. */
const TO_WATCHES: Readonly<Partial<Record<Hostility, (response: ServerResponse) => void>>> = {
  'watches that end at once': (response) => response.writeHead(200).end(),
  'changes without end': (response) => drip(response, 1 << 20, 5),
  'versions that are always too old': (response) =>
    response.writeHead(200).end(`${JSON.stringify({ type: 'ERROR', object: { code: 410 } })}\n`),
};

/**
 * Answers as nobody should; false when the request is to be answered as by a good one.
 *
 * @param next counts one more change, and gives how many there were
 */
export function harm(url: URL, response: ServerResponse, how: Hostility, next: () => number): boolean {
  const isWatch = url.searchParams.has('watch');
  const answer = TO_ALL[how] ?? (isWatch ? TO_WATCHES[how] : undefined);
  if (answer !== undefined) answer(response);
  else if (how === 'pages of eight megabytes' && url.searchParams.has('limit')) heavyPage(response, next());
  else if (how === 'a list without end' && url.searchParams.has('limit')) {
    const count = next();
    const items = [{ metadata: { name: `item-${count}`, uid: String(count), resourceVersion: '1' } }];
    send(response, 200, { metadata: { resourceVersion: '1', continue: `from-${count}` }, items });
  } else if (isWatch && url.search.includes('additional-pull-secret')) {
    if (how === 'ten thousand changes a second') storm(response, next, { each: 100 });
    else if (how === 'changes of eight megabytes') storm(response, next, { each: 1, bytes: 8 << 20 });
    else return false;
  } else return false;
  return true;
}

/** A little less than what is refused, and made once. */
const HEAVY = Buffer.alloc((8 << 20) - 4096, 'x');

/** A page with one heavy object, and another page after it. */
function heavyPage(response: ServerResponse, count: number): void {
  const annotations = { 'tenant.example.com/note': FILLER };
  const metadata = { name: `item-${count}`, uid: String(count), resourceVersion: '1', annotations };
  const page = { metadata: { resourceVersion: '1', continue: `from-${count}` }, items: [{ metadata }] };
  const [head = '', tail = ''] = JSON.stringify(page).split(FILLER);
  response.writeHead(200, JSON_TYPE);
  response.write(head);
  response.write(HEAVY);
  response.end(tail);
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

/** A Secret that changes every ten milliseconds, as long as somebody reads. */
function storm(
  response: ServerResponse,
  next: () => number,
  { each, bytes = 0 }: { readonly each: number; readonly bytes?: number },
): void {
  response.writeHead(200);
  // Made once: whoever makes so much anew for each change has no time to answer for other clusters.
  const filler = Buffer.alloc(bytes, 'x');
  const timer = setInterval(() => {
    if (response.writableNeedDrain) return;
    const lines = Array.from({ length: each }, () => {
      const [head = '', tail = ''] = JSON.stringify(changeOf(next())).split(FILLER);
      return [Buffer.from(head), filler, Buffer.from(`${tail}\n`)];
    });
    // In one write: the time of the server is that of the other clusters, too.
    response.write(Buffer.concat(lines.flat()));
  }, 10);
  response.once('close', () => clearInterval(timer));
}

const FILLER = 'filler goes here';

function changeOf(count: number): Json {
  const metadata = {
    name: 'additional-pull-secret',
    namespace: 'kube-system',
    uid: 'storm',
    resourceVersion: String(1_000_000 + count),
    annotations: { 'tenant.example.com/note': FILLER },
  };
  const object = { ...pullSecretFor('tenant.example.com', `u:${count}`), metadata };
  return { type: 'MODIFIED', object };
}
