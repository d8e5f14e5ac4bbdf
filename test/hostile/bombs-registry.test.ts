/** What a registry may answer at size: everything ends at a bound, and the words of the error stay short. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import { imageManifest } from '../../runtime/registry/image.ts';
import { RegistryError } from '../../runtime/registry/registry-error.ts';
import { readTar } from '../../runtime/registry/tar.ts';
import { client, image } from '../registry/asker.ts';
import { startServer, stopServers } from '../registry/https-server.ts';
import { suite, table } from '../support/suite.ts';

const test = suite('bombs of registries');
const DIGEST = `sha256:${createHash('sha256').update('').digest('hex')}`;
const NAME = 'release-manifests/image-references';

interface Answer {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string | readonly string[]>>;
  readonly body?: Buffer | string;
}

const layer = { digest: DIGEST, mediaType: 'application/vnd.oci.image.layer.v1.tar' };

table(
  test,
  [
    {
      name: 'a manifest of 100 MB',
      reason: 'four megabytes hold any',
      answer: { body: `{"a":"${'x'.repeat(100_000_000)}"}` },
      says: /the answer is longer than 4194304 bytes/,
    },
    {
      name: 'an index of 30,000 architectures',
      reason: 'the message was 200 KB long',
      answer: {
        body: JSON.stringify({
          manifests: Array.from({ length: 30_000 }, (_, at) => ({
            digest: DIGEST,
            platform: { architecture: `a${at}` },
          })),
        }),
      },
      says: /it has a0, .* a19 and 29980 more$/,
    },
    {
      name: 'an architecture of a megabyte',
      reason: 'nor one long word',
      answer: {
        body: JSON.stringify({
          manifests: [{ digest: DIGEST, platform: { architecture: 'a'.repeat(1_000_000) } }],
        }),
      },
      says: /it has a{80}$/,
    },
    {
      name: 'a manifest of 30,000 layers',
      reason: 'each would be asked for',
      answer: {
        body: JSON.stringify({ config: layer, layers: Array.from({ length: 30_000 }, () => layer) }),
      },
      says: /has 30000 layers: at most 500 are read/,
    },
    {
      name: 'lists within lists for a million levels',
      reason: 'it is JSON, and no manifest',
      answer: { body: `${'['.repeat(1_000_000)}${']'.repeat(1_000_000)}` },
      says: /no config or no layers/,
    },
    {
      name: 'a packed answer that nobody asked for',
      reason: 'it is not unpacked',
      answer: { headers: { 'content-encoding': 'gzip' }, body: gzipSync(Buffer.alloc(50_000_000, 32)) },
      says: /no JSON object/,
    },
    {
      name: 'a ring of redirects',
      reason: 'each is a request',
      answer: { status: 307, headers: { location: '/v2/ring' } },
      says: /redirects more than 5 times/,
    },
    {
      name: 'a header of a megabyte',
      reason: 'headers are held before anybody reads them',
      answer: { headers: { 'x-long': 'a'.repeat(1_000_000) } },
      says: /HPE_HEADER_OVERFLOW/,
    },
    {
      name: '10,000 challenges',
      reason: 'each would be looked at',
      answer: {
        status: 401,
        headers: { 'www-authenticate': Array<string>(10_000).fill('Bearer realm="a"') },
      },
      says: /HPE_HEADER_OVERFLOW/,
    },
    {
      name: 'challenges of a kind that we do not know',
      reason: 'as many as a header holds',
      answer: { status: 401, headers: { 'www-authenticate': 'Foo realm="a", '.repeat(900) } },
      says: /does not say which kind/,
    },
  ] satisfies readonly { name: string; reason: string; answer: Answer; says: RegExp }[],
  async ({ answer, says }: { readonly answer: Answer; readonly says: RegExp }) => {
    const { status = 200, headers = {}, body = '' } = answer;
    const registry = await startServer((_request, response) => {
      response.writeHead(status, headers as Record<string, string>).end(body);
    });
    await assert.rejects(imageManifest(client([registry.host]), image(registry.host), 'amd64'), (error) => {
      assert.ok(error instanceof RegistryError, String(error));
      assert.match(error.message, says);
      assert.ok(error.message.length < 500, `${error.message.length} letters`);
      return true;
    });
  },
);

function entry(name: string, type = '0', text = ''): Buffer {
  const block = Buffer.alloc(512);
  block.write(name, 0, 100);
  block.write('0000644\0', 100);
  block.write(`${text.length.toString(8).padStart(11, '0')}\0`, 124);
  block.write(`        ${type}`, 148);
  block.write('/etc/passwd', 157);
  block.write('ustar\0', 257);
  const sum = block.reduce((total, byte) => total + byte, 0);
  block.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148);
  return Buffer.concat([block, Buffer.from(text.padEnd(Math.ceil(text.length / 512) * 512, '\0'))]);
}

const END = Buffer.alloc(1024);

async function read(...parts: readonly Buffer[]): Promise<string> {
  const stream = async function* (): AsyncGenerator<Uint8Array> {
    yield* [...parts, END];
  };
  const files = await readTar(stream(), { names: new Set([NAME]), maxBytes: 100 });
  return [...files].map(([name, bytes]) => `${name}=${Buffer.from(bytes).toString()}`).join();
}

table(
  test,
  [
    { name: 'a link', reason: 'it is no file', parts: [entry(NAME, '2')], gives: '' },
    { name: 'a hard link', reason: 'nor this', parts: [entry(NAME, '1')], gives: '' },
    {
      name: 'a path that climbs',
      reason: 'another name',
      parts: [entry(`../../${NAME}`, '0', 'a')],
      gives: '',
    },
    {
      name: 'a path that climbs back',
      reason: 'another name',
      parts: [entry(`a/../${NAME}`, '0', 'a')],
      gives: '',
    },
    {
      name: 'a path from the root',
      reason: 'some tools write so',
      parts: [entry(`/${NAME}`, '0', 'a')],
      gives: `${NAME}=a`,
    },
    {
      name: 'a file twice',
      reason: 'the later one counts',
      parts: [entry(NAME, '0', 'a'), entry(NAME, '0', 'b')],
      gives: `${NAME}=b`,
    },
    {
      name: 'a file with holes',
      reason: 'its size is not that of its bytes',
      parts: [entry(NAME, 'S', 'a')],
      gives: '',
    },
    {
      name: 'a name for all that follow',
      reason: 'it names nothing',
      parts: [entry('p', 'g', `48 path=${NAME}\n`), entry('x', '0', 'a')],
      gives: '',
    },
  ],
  async ({ parts, gives }) => assert.equal(await read(...parts), gives),
);

test('a million empty entries are not read to their end', async () => {
  const many = Buffer.concat(Array<Buffer>(1000).fill(entry('e')));
  let given = 0;
  const stream = async function* (): AsyncGenerator<Uint8Array> {
    for (; given < 1000; given += 1) yield many;
    yield END;
  };
  await assert.rejects(
    readTar(stream(), { names: new Set([NAME]), maxBytes: 100 }),
    /more than 200000 entries/,
  );
  assert.ok(given <= 201, `${given} thousand were read`);
});

test.lastly('the servers are stopped', stopServers);

test.run();
