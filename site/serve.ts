/** Serves a folder on this machine, to look at what was built. Gives the address, and a function that ends it. */
import { createReadStream, statSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { extname, join, normalize } from 'node:path';

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.json': 'application/json',
  '.png': 'image/png',
  '.svg': 'image/svg+xml',
};

/** A folder that is served. */
export interface Served {
  readonly url: string;
  close(): void;
}

/** Port 0 takes any that is free. */
export async function serve(folder: string, port: number): Promise<Served> {
  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url ?? '/', 'http://localhost');
    const file = fileFor(folder, pathname);
    if (file === undefined) {
      response.writeHead(404, { 'content-type': 'text/plain' }).end('There is no such page.\n');
      return;
    }
    response.writeHead(200, { 'content-type': TYPES[extname(file)] ?? 'application/octet-stream' });
    createReadStream(file).pipe(response);
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, '127.0.0.1', resolve);
  });
  const { port: taken } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${taken}/`,
    close: () => {
      server.close();
      server.closeAllConnections();
    },
  };
}

function fileFor(folder: string, pathname: string): string | undefined {
  let path: string;
  try {
    path = normalize(decodeURIComponent(pathname));
  } catch {
    return undefined;
  }
  const file = join(folder, path, path.endsWith('/') ? 'index.html' : '');
  const found = statSync(file, { throwIfNoEntry: false });
  return found?.isFile() === true ? file : undefined;
}
