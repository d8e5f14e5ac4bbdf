/** Servers on loopback, and one that a kubeconfig leads to. */
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import type { Server as HttpServer } from 'node:http';
import { createServer } from 'node:https';
import { type AddressInfo, createServer as createSocketServer, type Server } from 'node:net';
import { join } from 'node:path';
import { kubeconfigText } from '../control-plane/users.ts';
import { Authority } from '../control-plane/x509.ts';
import { tempFolder } from './temp-folder.ts';

export function portOf(server: Server): number {
  return (server.address() as AddressInfo).port;
}

/** Listens; gives the port. */
export async function listen(server: Server): Promise<number> {
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return portOf(server);
}

/** A port without a listener. */
export async function freePort(): Promise<number> {
  const server = createSocketServer();
  const port = await listen(server);
  await once(server.close(), 'close');
  return port;
}

/** Closes the server and its open connections. */
export async function close(server: HttpServer): Promise<void> {
  const closed = once(server, 'close');
  server.close();
  server.closeAllConnections();
  await closed;
}

/** A server with TLS and a folder of its own, which has the kubeconfig that leads to it. */
export class Door {
  readonly server: HttpServer;
  readonly folder: string = tempFolder();
  readonly kubeconfig: string = join(this.folder, 'kubeconfig');
  readonly #authority: Authority;

  private constructor(server: HttpServer, authority: Authority) {
    this.server = server;
    this.#authority = authority;
  }

  static async open(): Promise<Door> {
    const authority = new Authority('authority of a double');
    const { certificate, key } = authority.issue({ commonName: 'double', hosts: ['127.0.0.1'] });
    const door = new Door(createServer({ cert: certificate, key }), authority);
    await listen(door.server);
    writeFileSync(door.kubeconfig, door.kubeconfigFor(''), { mode: 0o600 });
    return door;
  }

  /** Text of a kubeconfig that leads to what lies below a path. */
  kubeconfigFor(path: string): string {
    const url = `https://127.0.0.1:${portOf(this.server)}${path}`;
    return kubeconfigText(url, this.#authority.certificate, { token: 'double' });
  }

  close(): Promise<void> {
    return close(this.server);
  }
}
