/** A proxy on loopback that is asked for tunnels. */
import { createServer } from 'node:http';
import { connect, type Socket } from 'node:net';
import { listen } from './loopback.ts';

export interface ConnectProxy {
  readonly host: string;
  /** What it was asked to connect to. */
  readonly asked: string[];
  /** Credentials of the same requests. */
  readonly credentials: (string | undefined)[];
  stop(): void;
}

/**
 * Starts one.
 *
 * @param leadsTo `host:port` that a tunnel leads to; undefined: it is refused
 */
export async function startProxy(
  leadsTo: (asked: string) => string | undefined,
  refusal = '403 Forbidden',
): Promise<ConnectProxy> {
  const [asked, credentials]: [string[], (string | undefined)[]] = [[], []];
  const sockets = new Set<Socket>();
  const proxy = createServer().on('connect', ({ url = '', headers }, client: Socket) => {
    asked.push(url);
    credentials.push(headers['proxy-authorization']);
    sockets.add(client.on('error', () => undefined));
    const target = leadsTo(url);
    if (target === undefined) {
      client.end(`HTTP/1.1 ${refusal}\r\n\r\n`);
      return;
    }
    const { hostname, port } = new URL(`http://${target}`);
    const upstream = connect(Number(port), hostname, () => {
      client.write('HTTP/1.1 200 Connection established\r\n\r\n');
      upstream.pipe(client);
      client.pipe(upstream);
    });
    sockets.add(upstream.on('error', () => client.destroy()));
  });
  return {
    host: `127.0.0.1:${await listen(proxy)}`,
    asked,
    credentials,
    stop: () => {
      for (const socket of sockets) socket.destroy();
      proxy.close();
    },
  };
}
