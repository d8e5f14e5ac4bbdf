/** HTTP servers for probes and Prometheus metrics. */
import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';

export interface Page {
  readonly text: string;
  /** @default {200} */
  readonly status?: number;
  /** @default {'text/plain; charset=utf-8'} */
  readonly contentType?: string;
}

/** Pages by path. */
export type Pages = ReadonlyMap<string, () => Page | Promise<Page>>;

/** Serves the page of the path for GET and HEAD. */
export function pagesListener(pages: Pages): RequestListener {
  return (request, response) => {
    const send = ({ status = 200, text, contentType = 'text/plain; charset=utf-8' }: Page): void => {
      const headers = { 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' };
      response.writeHead(status, { ...headers, 'content-type': contentType });
      response.end(`${text.trimEnd()}\n`);
    };
    const page = pages.get((request.url ?? '').split('?')[0] ?? '');
    if (request.method !== 'GET' && request.method !== 'HEAD') send({ status: 405, text: 'GET only' });
    else if (page === undefined) send({ status: 404, text: `expected ${[...pages.keys()].join(', ')}` });
    else
      Promise.resolve()
        .then(page)
        .then(send)
        .catch(() => send({ status: 500, text: 'the request failed' }));
  };
}

/** Serves pages without TLS. @throws the error of Node's `listen` */
export async function servePages(pages: Pages, port: number, host?: string): Promise<Server> {
  const server = createServer(pagesListener(pages));
  server.requestTimeout = 10_000;
  server.listen(port, host);
  await once(server, 'listening');
  return server;
}

/** Closes a server and all its connections. */
export async function closeServer(server: Server): Promise<void> {
  const closed = once(server, 'close');
  server.close();
  server.closeAllConnections();
  await closed;
}
