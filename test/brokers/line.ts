/** A line to a server, at one and the same address, that breaks in the ways in which connections break. */
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

export interface Line {
  /** `127.0.0.1:<port>` */
  readonly host: string;
  /** Number of connections since the start. */
  readonly connections: () => number;
  /** Resets existing connections, and refuses new ones. */
  readonly cut: () => void;
  /** Drops every byte of existing and new connections, without closing them. */
  readonly hang: () => void;
  /** Closes existing connections for the server only, like a router that lost its state; new connections pass. */
  readonly forget: () => void;
  /** Half-closes existing connections from the server's side; new connections pass. */
  readonly halfClose: () => void;
  /** Ends `cut` and `hang`; hung connections continue. */
  readonly repair: () => void;
  readonly close: () => void;
}

interface Pair {
  readonly near: Socket;
  readonly far: Socket;
  isForgotten: boolean;
}

/** Node cannot reset a socket while it shuts down: it would lose the handle, and the process would never end. */
const reset = (socket: Socket): unknown =>
  socket.writableEnded ? socket.destroy() : socket.resetAndDestroy();

/** @param target `host:port` of the server */
export async function openLine(target: string): Promise<Line> {
  const [host = '', port = ''] = target.split(':');
  const pairs = new Set<Pair>();
  let made = 0;
  let hangs = false;
  const stop = ({ near, far }: Pair): void => {
    for (const socket of [near, far]) socket.pause();
  };
  const server = createServer({ allowHalfOpen: true }, (near) => {
    made += 1;
    const far = connect({ port: Number(port), host, allowHalfOpen: true });
    const pair: Pair = { near, far, isForgotten: false };
    pairs.add(pair);
    const both = [
      [near, far],
      [far, near],
    ] as const;
    for (const [from, to] of both) {
      from.on('data', (bytes: Buffer) => {
        if (to.writable) to.write(bytes);
      });
      from.on('end', () => to.end());
      from.on('error', () => undefined);
      from.on('close', () => {
        // Over a hung line, the other side never learns that a connection is closed.
        if (hangs || pair.isForgotten) return;
        to.destroy();
        pairs.delete(pair);
      });
    }
    if (hangs) stop(pair);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port: own } = server.address() as AddressInfo;
  const drop = (): void => {
    for (const { near, far } of pairs) for (const socket of [near, far]) reset(socket);
    pairs.clear();
  };
  return {
    host: `127.0.0.1:${own}`,
    connections: () => made,
    cut: () => {
      server.close();
      drop();
    },
    hang: () => {
      hangs = true;
      for (const pair of pairs) stop(pair);
    },
    forget: () => {
      for (const pair of pairs) {
        pair.isForgotten = true;
        pair.near.pause();
        reset(pair.far);
      }
    },
    halfClose: () => {
      for (const { near } of pairs) near.end();
    },
    repair: () => {
      hangs = false;
      for (const pair of pairs)
        for (const socket of [pair.near, pair.far])
          if (pair.isForgotten) continue;
          else if (socket.destroyed) (socket === pair.near ? pair.far : pair.near).destroy();
          else socket.resume();
      if (!server.listening) server.listen(own, '127.0.0.1');
    },
    close: () => {
      server.close();
      drop();
    },
  };
}
