/** A server that takes connections and says nothing: a TLS handshake with it never ends. */
import { once } from 'node:events';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';

export class DeafServer {
  readonly #server: Server;
  readonly #connections = new Set<Socket>();

  constructor(server: Server) {
    this.#server = server;
  }

  /** @param onConnection called for each */
  static async start(onConnection: () => void): Promise<DeafServer> {
    const deaf = new DeafServer(createServer());
    deaf.#server.on('connection', (socket) => {
      onConnection();
      deaf.#connections.add(socket);
      socket.on('error', () => undefined);
      socket.once('close', () => deaf.#connections.delete(socket));
    });
    deaf.#server.listen(0, '127.0.0.1');
    await once(deaf.#server, 'listening');
    return deaf;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  stop(): void {
    this.#server.close();
    for (const connection of this.#connections) connection.destroy();
  }
}
