/** Small services of a cluster: DNS, and forwarding to servers on loopback. */
import { createSocket } from 'node:dgram';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import type { Identity } from '../../control-plane/x509.ts';

/** DNS server on `address` with IPv4 addresses of `names`; NXDOMAIN for others. */
export async function startDns(address: string, names: Readonly<Record<string, string>>): Promise<void> {
  const socket = createSocket('udp4');
  socket.on('message', (question, { address: to, port }) => socket.send(answer(question, names), port, to));
  await new Promise<void>((resolve) => socket.bind(53, address, resolve));
  socket.unref();
}

/** Source: RFC 1035, 4.1. One question; the answer points back to its name. */
function answer(question: Buffer, names: Readonly<Record<string, string>>): Buffer {
  const labels: string[] = [];
  let at = 12;
  for (let length = question[at] ?? 0; length > 0; length = question[at] ?? 0) {
    labels.push(question.toString('latin1', at + 1, at + 1 + length));
    at += 1 + length;
  }
  const end = at + 5;
  const address = names[labels.join('.').toLowerCase()];
  const isAddress = question.readUInt16BE(at + 1) === 1;
  const head = Buffer.from(question.subarray(0, end));
  head.writeUInt16BE(address === undefined ? 0x8183 : 0x8180, 2);
  head.writeUInt16BE(address === undefined || !isAddress ? 0 : 1, 6);
  head.writeUInt32BE(0, 8);
  if (address === undefined || !isAddress) return head;
  const record = [0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 5, 0, 4, ...address.split('.').map(Number)];
  return Buffer.concat([head, Buffer.from(record)]);
}

/** Forwards `address` to the same port on loopback, for pods. */
export async function expose(address: string, port: number): Promise<void> {
  await listening(createServer(forwards(port)), address, port);
}

/** The same with TLS on a port of its own; returns the URL. */
export async function exposeTls(
  address: string,
  port: number,
  { certificate, key }: Identity,
): Promise<string> {
  const server = await listening(createTlsServer({ cert: certificate, key }, forwards(port)), address, 0);
  return `https://${address}:${(server.address() as AddressInfo).port}`;
}

function forwards(port: number): (from: Socket) => void {
  return (from) => {
    const to = connect(port, '127.0.0.1');
    from.pipe(to).pipe(from);
    for (const socket of [from, to])
      socket.on('error', () => {
        from.destroy();
        to.destroy();
      });
  };
}

async function listening(server: Server, address: string, port: number): Promise<Server> {
  await new Promise<void>((resolve) => server.listen(port, address, resolve));
  server.unref();
  return server;
}
