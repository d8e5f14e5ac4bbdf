/** Layers as registries keep them: at another host, compressed in each way, and not always what they should be. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import { gzipSync, zstdCompressSync } from 'node:zlib';
import { imageFiles, imageManifest } from '../../runtime/registry/image.ts';
import { RegistryError } from '../../runtime/registry/registry-error.ts';
import { suite, table } from '../support/suite.ts';
import { BASIC, challenge, client, failure, image } from './asker.ts';
import { startServer, stopServers, type TestServer } from './https-server.ts';

const test = suite('imageFiles');

const FILE = 'release-manifests/image-references';
const TEXT = 'what the release consists of';
const TAR = tarOf(FILE, TEXT);

interface Layered {
  readonly registry: TestServer;
  /** Where the blobs are. */
  readonly storage: TestServer;
}

/** A registry that wants Basic and keeps its blobs at another host. */
async function layered(layer: Uint8Array, mediaType: string, stored: Uint8Array = layer): Promise<Layered> {
  const storage = await startServer((_request, response) => void response.writeHead(200).end(stored));
  const config = Buffer.from('{"architecture":"amd64"}');
  const manifest = Buffer.from(
    JSON.stringify({
      schemaVersion: 2,
      config: { digest: digestOf(config) },
      layers: [{ mediaType, digest: digestOf(layer) }],
    }),
  );
  const registry = await startServer((request, response) => {
    if (request.authorization !== BASIC) return challenge(response, 'Basic realm="test"');
    if (request.url.includes('/blobs/'))
      redirect(response, `https://${storage.host}/${digestOf(layer)}?signature=x`);
    else response.writeHead(200, { 'docker-content-digest': digestOf(manifest) }).end(manifest);
  });
  return { registry, storage };
}

function redirect(response: ServerResponse, location: string): void {
  response.writeHead(307, { location }).end();
}

async function filesOf({ registry, storage }: Layered): Promise<ReadonlyMap<string, Uint8Array>> {
  const asker = client([registry.host, storage.host]);
  const reference = image(registry.host);
  const found = await imageManifest(asker, reference, 'amd64');
  return imageFiles(asker, reference, found, { names: [FILE], maxBytes: 1000 });
}

table(
  test,
  [
    {
      name: 'gzip',
      reason: 'the common one',
      pack: gzipSync,
      type: 'application/vnd.oci.image.layer.v1.tar+gzip',
    },
    {
      name: 'gzip of Docker',
      reason: 'older images',
      pack: gzipSync,
      type: 'application/vnd.docker.image.rootfs.diff.tar.gzip',
    },
    {
      name: 'zstd',
      reason: 'newer images',
      pack: zstdCompressSync,
      type: 'application/vnd.oci.image.layer.v1.tar+zstd',
    },
    {
      name: 'zstd in many frames, and with frames to skip',
      reason: 'zstd:chunked of Podman and Buildah',
      pack: chunked,
      type: 'application/vnd.oci.image.layer.v1.tar+zstd',
    },
    {
      name: 'not compressed',
      reason: 'allowed',
      pack: (tar: Buffer) => tar,
      type: 'application/vnd.oci.image.layer.v1.tar',
    },
  ],
  async (row) => {
    const places = await layered(row.pack(TAR), row.type);
    const files = await filesOf(places);
    assert.equal(Buffer.from(files.get(FILE) ?? []).toString(), TEXT);
    assert.deepEqual(
      places.storage.seen.map((one) => one.authorization),
      [undefined],
      'no credential follows a redirect',
    );
  },
);

const ZSTD = 'application/vnd.oci.image.layer.v1.tar+zstd';
const GZIP = 'application/vnd.oci.image.layer.v1.tar+gzip';

table(
  test,
  [
    {
      name: 'text that says it is zstd',
      reason: 'not shown',
      layer: Buffer.from('secret'),
      type: ZSTD,
      says: /is no zstd$/,
    },
    {
      name: 'zstd that ends within a frame to skip',
      reason: 'half a layer is none',
      layer: Buffer.concat([zstdCompressSync(TAR.subarray(0, 100)), skippable(100).subarray(0, 50)]),
      type: ZSTD,
      // Bun takes what is there.
      says: /is no zstd$|breaks off$/,
    },
    {
      name: 'zstd with something behind it',
      reason: 'half a layer is none',
      layer: Buffer.concat([zstdCompressSync(TAR.subarray(0, 100)), Buffer.from('secret')]),
      type: ZSTD,
      says: /is no zstd$/,
    },
    {
      name: 'zstd of frames without end that hold nothing',
      reason: 'each of them costs time',
      layer: Buffer.concat(Array.from({ length: 100_001 }, () => skippable(0))),
      type: ZSTD,
      says: /more than 100000 frames/,
    },
    {
      name: 'text that says it is gzip',
      reason: 'not shown',
      layer: Buffer.from('secret'),
      type: GZIP,
      says: /is no gzip$/,
    },
    {
      name: 'gzip of something else',
      reason: 'no archive',
      layer: gzipSync('x'.repeat(2000)),
      type: GZIP,
      says: /no tar archive/,
    },
    {
      name: 'another blob than the digest says',
      reason: 'nothing of it is used',
      layer: gzipSync(TAR),
      stored: gzipSync(tarOf(FILE, 'other')),
      type: GZIP,
      says: /have the digest/,
    },
    {
      name: 'a file that is too long',
      reason: 'memory is bounded',
      layer: gzipSync(tarOf(FILE, 'x'.repeat(1001))),
      type: GZIP,
      says: /at most 1000 are read/,
    },
  ],
  async (row) => {
    const error = await failure(filesOf(await layered(row.layer, row.type, row.stored)));
    assert.equal(error.failure, 'Damaged');
    assert.match(error.message, row.says);
    assert.ok(!error.message.includes('secret'));
  },
);

test('half a zstd layer gives nothing', async () => {
  const half = zstdCompressSync(TAR).subarray(0, 60);
  // Bun ends such a stream without an error; what is in it does not count either way.
  const files = await filesOf(await layered(half, ZSTD)).catch((error: unknown) => error);
  assert.ok(files instanceof RegistryError || (files instanceof Map && files.size === 0), String(files));
});

/** A frame that a reader passes over. */
function skippable(length: number): Buffer {
  const frame = Buffer.alloc(8 + length);
  frame.writeUInt32LE(0x184d2a53, 0);
  frame.writeUInt32LE(length, 4);
  return frame;
}

/** A frame for each 100 bytes, with others before, between and behind them. */
function chunked(tar: Buffer): Buffer {
  const parts = [skippable(0)];
  for (let at = 0; at < tar.length; at += 100)
    parts.push(zstdCompressSync(tar.subarray(at, at + 100)), skippable(at % 7));
  return Buffer.concat(parts);
}

function digestOf(bytes: Uint8Array): string {
  return `sha256:${createHash('sha256').update(bytes).digest('hex')}`;
}

/** A tar archive of one file. */
function tarOf(name: string, text: string): Buffer {
  const header = Buffer.alloc(512);
  header.write(name, 0);
  header.write('0000644\0', 100);
  header.write(`${text.length.toString(8).padStart(11, '0')}\0`, 124);
  header.write('        0', 148);
  header.write('ustar\0', 257);
  const sum = header.reduce((total, byte) => total + byte, 0);
  header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148);
  const padding = Buffer.alloc((512 - (text.length % 512)) % 512);
  return Buffer.concat([header, Buffer.from(text), padding, Buffer.alloc(1024)]);
}

test.lastly('the servers are stopped', stopServers);

test.run();
