/**
 * Small inputs that say something huge: every place that unpacks, pages, or follows references stops at a bound, says so, and goes on
 * with what comes after. Each row calls what ships with a bomb.
 */
import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { fileText } from '../../runtime/credential-provider/reconciler/targets.ts';
import { openHttpClient } from '../../runtime/http/open.ts';
import { jsonLines } from '../../runtime/kube/http-client.ts';
import { parseYaml } from '../../runtime/kube/yaml.ts';
import { HyperfleetApi } from '../../runtime/pull-secret-adapter/hyperfleet-api.ts';
import { table, test } from '../support/suite.ts';

const root = new URL('../..', import.meta.url).pathname;
const MIB = 1024 * 1024;
const HUGE = Buffer.alloc(64 * MIB);

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
      const ids = (await Array.fromAsync(api.clusters(''))).flat().map(({ id }) => id);
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
const UNPACKING: readonly string[] = ['runtime/credential-provider/reconciler/targets.ts'];

test('nothing else unpacks', () => {
  const found = globSync(['main.ts', 'runtime/**/*.ts', 'charts/**/*.ts'], { cwd: root }).filter((file) =>
    /node:zlib|DecompressionStream|Bun\.\w*(?:gunzip|inflate|zstd)/i.test(
      readFileSync(join(root, file), 'utf8'),
    ),
  );
  assert.deepEqual(found.sort(), UNPACKING);
});
