/** Serves a bare repository over HTTPS by git's own CGI program, for readers: what a git host does. */
import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { basename, dirname, join } from 'node:path';
import { Authority } from '../control-plane/x509.ts';
import { HTTP_BACKEND } from './build.ts';

export class GitServer {
  readonly #bare: string;
  readonly #server: Server;
  /** A folder with the certificate of the authority, under the name of the host, as Argo CD wants it. */
  readonly certificates: string;

  private constructor(bare: string, certificates: string, server: Server) {
    this.#bare = bare;
    this.certificates = certificates;
    this.#server = server;
  }

  /** @param certificates an empty folder */
  static async start(bare: string, certificates: string): Promise<GitServer> {
    const authority = new Authority('git-host');
    const { certificate, key } = authority.issue({ commonName: 'git-host', hosts: ['127.0.0.1'] });
    writeFileSync(join(certificates, '127.0.0.1'), authority.certificate);
    const server = createServer({ cert: certificate, key }, (request, response) =>
      answer(dirname(bare), request, response),
    );
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return new GitServer(bare, certificates, server);
  }

  get url(): string {
    return `https://127.0.0.1:${(this.#server.address() as AddressInfo).port}/${basename(this.#bare)}`;
  }

  stop(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }
}

function answer(root: string, request: IncomingMessage, response: ServerResponse): void {
  const { pathname, searchParams } = new URL(request.url ?? '/', 'https://127.0.0.1');
  const { headers } = request;
  const child = spawn(HTTP_BACKEND, [], {
    stdio: ['pipe', 'pipe', 'ignore'],
    env: {
      PATH: '/usr/bin:/bin',
      GIT_PROJECT_ROOT: root,
      GIT_HTTP_EXPORT_ALL: '1',
      REQUEST_METHOD: request.method ?? 'GET',
      PATH_INFO: pathname,
      QUERY_STRING: searchParams.toString(),
      CONTENT_TYPE: headers['content-type'] ?? '',
      HTTP_CONTENT_ENCODING: headers['content-encoding'] ?? '',
      GIT_PROTOCOL: String(headers['git-protocol'] ?? ''),
    },
  });
  request.pipe(child.stdin);
  child.stdin.on('error', () => undefined);
  const parts: Buffer[] = [];
  child.stdout.on('data', (part: Buffer) => parts.push(part));
  child.once('close', () => {
    const all = Buffer.concat(parts);
    const end = all.indexOf('\r\n\r\n');
    let status = 200;
    for (const line of all.subarray(0, end).toString().split('\r\n')) {
      const [name = '', value = ''] = line.split(/: */, 2);
      if (name === 'Status') status = Number.parseInt(value, 10);
      else response.setHeader(name, value);
    }
    response.writeHead(status).end(all.subarray(end + 4));
  });
}
