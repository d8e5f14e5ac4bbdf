/**
 * Small inputs that say something huge: every place that unpacks, pages, or follows references stops at a bound, says so, and goes on
 * with what comes after. Each row calls what ships with a bomb.
 */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { globSync, readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { deflateRawSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib';
import { fileText } from '../../runtime/credential-provider/reconciler/ignition-files.ts';
import { openHttpClient } from '../../runtime/http/open.ts';
import { jsonLines } from '../../runtime/kube/lines.ts';
import { parseYaml } from '../../runtime/kube/yaml.ts';
import { HyperfleetApi } from '../../runtime/pull-secret-adapter/hyperfleet-api.ts';
import { imageConfig, imageFiles, imageManifest } from '../../runtime/registry/image.ts';
import { signedMessage } from '../../runtime/registry/openpgp.ts';
import { readTar } from '../../runtime/registry/tar.ts';
import { unpacked } from '../../runtime/registry/unpack.ts';
import { client, image } from '../registry/asker.ts';
import { startServer, stopServers, type TestServer } from '../registry/https-server.ts';
import { suite, table } from '../support/suite.ts';

const test = suite('bombs');
const root = new URL('../..', import.meta.url).pathname;
const MIB = 1024 * 1024;
const FILE = 'release-manifests/image-references';
const TAR = 'application/vnd.oci.image.layer.v1.tar';
const HUGE = Buffer.alloc(64 * MIB);

/** A registry with one image of one layer; `stored` is what it gives when the layer is asked for. */
async function registryOf(
  layer: Uint8Array,
  { mediaType = TAR, stored = layer, size }: { mediaType?: string; stored?: Uint8Array; size?: number } = {},
): Promise<TestServer> {
  const config = Buffer.from('{"architecture":"amd64"}');
  const layers = [{ mediaType, digest: digestOf(layer), ...(size === undefined ? {} : { size }) }];
  const manifest = Buffer.from(
    JSON.stringify({ schemaVersion: 2, config: { digest: digestOf(config) }, layers }),
  );
  return startServer((request, response) => {
    if (request.url.includes('/blobs/')) response.writeHead(200).end(stored);
    else response.writeHead(200, { 'docker-content-digest': digestOf(manifest) }).end(manifest);
  });
}

async function filesOf(registry: TestServer): Promise<unknown> {
  const asker = client([registry.host]);
  const found = await imageManifest(asker, image(registry.host), 'amd64');
  const wanted = { names: [FILE], maxBytes: 1000, maxLayer: MIB, maxUnpacked: 8 * MIB };
  return imageFiles(asker, image(registry.host), found, wanted);
}

function digestOf(bytes: Uint8Array): string {
  return `sha256:${createHash('sha256').update(bytes).digest('hex')}`;
}

/** A header of tar for a file of `size` bytes. */
function header(name: string, size: number): Buffer {
  const block = Buffer.alloc(512);
  block.write(name, 0);
  block.write('0000644\0', 100);
  block.write(`${size.toString(8).padStart(11, '0')}\0`, 124);
  block.write('        0', 148);
  block.write('ustar\0', 257);
  const sum = block.reduce((total, byte) => total + byte, 0);
  block.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148);
  return block;
}

const FULL = Buffer.concat([header('var/lib/full', HUGE.length), HUGE]);

function packet(tag: number, body: Buffer): Buffer {
  const head = Buffer.from([0xc0 | tag, 0xff, 0, 0, 0, 0]);
  head.writeUInt32BE(body.length, 2);
  return Buffer.concat([head, body]);
}

function machineConfig(packed: Buffer): Parameters<typeof fileText>[0] {
  const contents = { compression: 'gzip', source: `data:;base64,${packed.toString('base64')}` };
  return {
    apiVersion: 'machineconfiguration.openshift.io/v1',
    kind: 'MachineConfig',
    metadata: { name: 'rendered' },
    spec: { config: { storage: { files: [{ path: '/etc/a', contents }] } } },
  };
}

async function* endless(): AsyncGenerator<Uint8Array> {
  for (;;) yield Buffer.alloc(MIB, 97);
}

const laughs = Array.from(
  { length: 9 },
  (_, at) => `a${at + 1}: &a${at + 1} [${Array.from({ length: 9 }, () => `*a${at}`).join(',')}]`,
);

table(
  test,
  [
    {
      name: 'a layer of zstd that holds much more than it says',
      reason: '`release` reads layers of images that somebody else made',
      run: async () => filesOf(await registryOf(zstdCompressSync(FULL), { mediaType: `${TAR}+zstd` })),
      says: /a layer of \d+ bytes holds more than 8388608/,
    },
    {
      name: 'a layer of gzip that holds much more than it says',
      reason: 'the other packing',
      run: async () => filesOf(await registryOf(gzipSync(FULL), { mediaType: `${TAR}+gzip` })),
      says: /a layer of \d+ bytes holds more than 8388608/,
    },
    {
      name: 'a bomb under the digest of another layer',
      reason: 'the digest is judged before anything is unpacked, or the bound of unpacking would speak here',
      run: async () =>
        filesOf(await registryOf(gzipSync('small'), { mediaType: `${TAR}+gzip`, stored: gzipSync(FULL) })),
      says: /have the digest sha256:/,
    },
    {
      name: 'a layer that says it is too large',
      reason: 'nothing of it is asked for',
      run: async () => filesOf(await registryOf(gzipSync('small'), { size: 1e12 })),
      says: /has 1000000000000 bytes: at most 1048576 are read in search of release-manifests/,
    },
    {
      name: 'a layer that is too large and does not say so',
      reason: 'a manifest need not tell sizes',
      run: async () => filesOf(await registryOf(FULL)),
      says: /bytes: at most 1048576 are read/,
    },
    {
      name: 'a configuration that is too large',
      reason: 'it is held in memory as well',
      run: async () => {
        const big = Buffer.alloc(5 * MIB, 32);
        const registry = await registryOf(big, { stored: big });
        const digest = digestOf(big);
        const asked = { digest, manifestDigest: digest, architectures: [], config: { digest }, layers: [] };
        return imageConfig(client([registry.host]), image(registry.host), asked);
      },
      says: /configuration has \d+ bytes: at most 4194304/,
    },
    {
      name: 'a signature of deflate',
      reason: 'signatures come from a server that has to be trusted with nothing',
      run: () => signedMessage(packet(8, Buffer.concat([Buffer.from([1]), deflateRawSync(HUGE)]))),
      says: /cannot be unpacked/,
    },
    {
      name: 'a signature of zlib',
      reason: 'the other packing',
      run: () => signedMessage(packet(8, Buffer.concat([Buffer.from([2]), deflateSync(HUGE)]))),
      says: /cannot be unpacked/,
    },
    {
      name: 'a line of a watch without an end',
      reason: 'an API server that lies costs its own cluster, and not the process',
      run: () => Array.fromAsync(jsonLines(endless())),
      says: /a line is longer than 16777216 bytes/,
    },
    {
      name: 'aliases of aliases in YAML',
      reason: 'ten lines that say four hundred million',
      run: () => parseYaml(['a0: &a0 [lol]', ...laughs].join('\n')),
      says: /alias/i,
    },
  ],
  async ({ run, says }) => {
    await assert.rejects(async () => run(), says);
  },
);

test('a packed file of a MachineConfig is read up to its bound, and unknown beyond', () => {
  assert.equal(fileText(machineConfig(gzipSync('one line')), '/etc/a'), 'one line');
  assert.equal(fileText(machineConfig(gzipSync(HUGE)), '/etc/a'), undefined);
});

test('a layer ends at its end, whatever follows', async () => {
  const archive = Buffer.concat([header(FILE, 1), Buffer.alloc(512, 'x'), Buffer.alloc(1024), HUGE]);
  let read = 0;
  const counted = async function* (): AsyncGenerator<Uint8Array> {
    for await (const chunk of unpacked(zstdCompressSync(archive), `${TAR}+zstd`, 1024 * MIB)) {
      read += chunk.length;
      yield chunk;
    }
  };
  const files = await readTar(counted(), { names: new Set([FILE]), maxBytes: 10 });
  assert.equal(Buffer.from(files.get(FILE) ?? []).toString(), 'x');
  assert.ok(read < MIB, `${read} bytes were unpacked`);
});

test('a file that arrives byte by byte is put together once', async () => {
  const size = 51_200;
  const archive = Buffer.concat([header(FILE, size), Buffer.alloc(size, 'y'), Buffer.alloc(1024)]);
  const bytes = async function* (): AsyncGenerator<Uint8Array> {
    for (let at = 0; at < archive.length; at += 1) yield archive.subarray(at, at + 1);
  };
  const files = await readTar(bytes(), { names: new Set([FILE]), maxBytes: size });
  assert.equal(files.get(FILE)?.length, size);
});

const TOO_LONG = 'x'.repeat(33 * MIB);

/** An API of clusters, one of which has a document of its own size. */
async function clustersApi(
  count: number,
  huge: ReadonlySet<number>,
): Promise<{ server: Server; url: string }> {
  const server = createServer((request, response) => {
    const query = new URL(request.url ?? '', 'http://localhost').searchParams;
    const [page, size] = [Number(query.get('page')), Number(query.get('size'))];
    const items = Array.from({ length: count }, (_, at) => ({
      id: `cls-${at}`,
      name: `cls-${at}`,
      generation: 1,
      spec: huge.has(at) ? { filling: TOO_LONG } : {},
    })).slice((page - 1) * size, page * size);
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ items, page, size: items.length, total: count }));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { server, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

table(
  test,
  [
    { name: 'in the middle', reason: 'the pages after it were never read', huge: [130] },
    { name: 'at the start', reason: 'not even the first page', huge: [0] },
    { name: 'at the end', reason: 'the list must end all the same', huge: [249] },
    { name: 'two of them side by side', reason: 'each is left out by itself', huge: [101, 102] },
  ],
  async ({ huge }) => {
    const { server, url } = await clustersApi(250, new Set(huge));
    const leftOut: number[] = [];
    const api = new HyperfleetApi({
      baseUrl: url,
      http: openHttpClient({}, [url]),
      userAgent: 'test',
      pause: () => Promise.resolve(),
      onLeftOut: ({ position }) => leftOut.push(position),
    });
    try {
      const ids = (await Array.fromAsync(api.clusters(''))).map(({ id }) => id);
      const wanted = Array.from({ length: 250 }, (_, at) => at).filter((at) => !huge.includes(at));
      assert.deepEqual(
        ids,
        wanted.map((at) => `cls-${at}`),
      );
      assert.deepEqual(leftOut, huge);
    } finally {
      server.close();
    }
  },
);

/** Files that unpack something; each has rows above. */
const UNPACKING: readonly string[] = [
  'runtime/credential-provider/reconciler/ignition-files.ts',
  'runtime/registry/openpgp.ts',
  'runtime/registry/unpack.ts',
];

test('nothing else unpacks', () => {
  const found = globSync(['main.ts', 'runtime/**/*.ts', 'charts/**/*.ts'], { cwd: root }).filter((file) =>
    /node:zlib|DecompressionStream|Bun\.\w*(?:gunzip|inflate|zstd)/i.test(
      readFileSync(join(root, file), 'utf8'),
    ),
  );
  assert.deepEqual(found.sort(), UNPACKING);
});

test.lastly('the servers are stopped', stopServers);

test.run();
