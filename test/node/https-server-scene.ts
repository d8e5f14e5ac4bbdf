/** Exercises our HTTPS server in the runtime of this process; prints a line per observation. */
import { once } from 'node:events';
import { request } from 'node:https';
import { connect as connectPlain } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { connect, type TLSSocket } from 'node:tls';
import { HttpsServer } from '../../runtime/node/https.ts';
import { Authority } from '../control-plane/x509.ts';

const pairOf = (name: string): { readonly cert: string; readonly key: string } => {
  const { certificate, key } = new Authority(name).issue({ commonName: name, hosts: ['127.0.0.1'] });
  return { cert: certificate, key };
};

const { promise: held, resolve: release } = Promise.withResolvers<void>();
const { promise: arrived, resolve: arrive } = Promise.withResolvers<void>();
const server = new HttpsServer({
  pair: pairOf('first'),
  idleMs: 2000,
  maxConnections: 8,
  listener: (asked, response) => {
    let size = 0;
    asked.on('data', (chunk: Buffer) => (size += chunk.length));
    asked.on('end', () => {
      if (asked.url === '/held') arrive();
      if (asked.url === '/held') void held.then(() => response.end(`${size}`));
      else response.end(`${size}`);
    });
  },
});
const port = await server.listen(0, '127.0.0.1');
const dial = async (): Promise<TLSSocket> => {
  const socket = connect({ port, host: '127.0.0.1', rejectUnauthorized: false });
  await once(socket, 'secureConnect');
  return socket;
};
const shown = async (): Promise<string> => {
  const socket = await dial();
  const name = String(socket.getPeerCertificate().subject?.CN);
  socket.destroy();
  return name;
};
const ask = (path: string, body: Buffer): Promise<string> =>
  new Promise((resolve, reject) => {
    const asking = request(
      { port, host: '127.0.0.1', path, method: 'POST', rejectUnauthorized: false, agent: false },
      (answer) => {
        let text = '';
        answer.on('data', (part: Buffer) => (text += part.toString()));
        answer.on('end', () => resolve(`${answer.statusCode} ${text}`));
      },
    );
    asking.on('error', reject);
    asking.end(body);
  });
const say = (what: string, seen: unknown): void => console.log(`${what}: ${String(seen)}`);

say('certificate', await shown());
const open = await dial();
say('a large body', await ask('/', Buffer.alloc(3_000_000)));
server.renew(pairOf('second'));
say('after the change', await shown());
const answered = once(open, 'data');
open.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n');
say('a connection from before', String((await answered)[0]).split('\r\n', 1)[0]);
const kept = await dial();
const answers: string[] = [];
for (let asked = 0; asked < 10; asked += 1) {
  kept.write('POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\n\r\nx');
  answers.push(String((await once(kept, 'data'))[0]).split('\r\n', 1)[0] ?? '');
  await delay(400);
}
kept.destroy();
say('ten requests within twice the time', new Set(answers).size === 1 ? answers[0] : answers.join());
const mute = connectPlain(port, '127.0.0.1');
mute.resume();
await once(mute, 'close');
say('who says nothing', 'ended');
const half = await dial();
half.resume();
half.write('GET / HTTP/1.1\r\nhost: x\r\n');
await once(half, 'close');
say('half a request', 'ended');
/** Sends a request byte by byte, each before the connection counts as idle. */
const dribble = async (start: string): Promise<string> => {
  const socket = await dial();
  socket.resume();
  socket.write(start);
  const timer = setInterval(() => socket.write('x'), 300);
  await once(socket, 'close');
  clearInterval(timer);
  return 'ended';
};
const [header, body] = await Promise.all([
  dribble('GET / HTTP/1.1\r\nx: '),
  dribble('POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 1000\r\n\r\n'),
]);
say('a header that never ends', header);
say('a body that never ends', body);
const crowd = await Promise.all(
  Array.from({ length: 20 }, async () => {
    const socket = connectPlain(port, '127.0.0.1');
    socket.on('error', () => undefined);
    socket.resume();
    const ended = once(socket, 'close');
    await once(socket, 'connect');
    return { socket, ended };
  }),
);
// Twelve are closed at once, the others later.
const { promise: twelve, resolve: enough } = Promise.withResolvers<void>();
let gone = 0;
const countGone = (): void => {
  gone += 1;
  if (gone === 12) enough();
};
for (const { ended } of crowd) void ended.then(countGone);
await twelve;
// One more is closed as well, which shows that the server has processed all of them.
const late = connectPlain(port, '127.0.0.1')
  .on('error', () => undefined)
  .resume();
await once(late, 'close');
await delay(50);
say('of twenty at once are ended', gone);
for (const { ended } of crowd) await ended;
const last = ask('/held', Buffer.from('x'));
await arrived;
const closed = server.close(5000);
release();
say('asked before the end', await last);
await closed;
say('closed', await shown().then(String, () => 'refused'));
